# Sessions that want the same leaf of a memory node at the same time share its READs and write their entries together.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartMemnode;
use SmartTest;

my $CLIENTS = 16;
my $EACH = 250;

my $memory = SmartMemnode->new('one', '--size=64M');
my $node = smart_node('main', 'autovacuum = off', 'max_connections = 40', 'smart.memory_nodes = ' . addresses($memory));

sub counters
{
	my ($what) = @_;

	return $node->safe_psql('postgres', "SELECT $what FROM smart_stat_fabric");
}

# All clients at once, each statement so many times.
sub run_all
{
	my ($name, $statement) = @_;

	$node->pgbench("-n -c $CLIENTS -j 2 -t $EACH -M prepared", 0, [qr/processed: @{[ $CLIENTS * $EACH ]}\//], [qr/^$/], $name,
		{ "$name.sql" => $statement });
	return;
}

$node->safe_psql('postgres', "CREATE TABLE hot (id int, writer int); CREATE INDEX hot_id ON hot USING smart (id, writer);
	INSERT INTO hot SELECT g, 0 FROM generate_series(1, 20) g; ALTER DATABASE postgres SET enable_seqscan = off");

# Of a part of the key's columns: what has all of them would be known without a READ.
run_all('lookups', 'SELECT writer FROM hot WHERE id = 7;');
is(counters('delegated_reads > 0 AND read_batches BETWEEN 1 AND delegated_reads AND leaf_waits >= delegated_reads'), 't', 'READs are shared');
is(counters('combined_entries + combined_batches + leaf_failures'), '0', 'nothing was written');
note(counters('smart_stat_fabric'));

$node->safe_psql('postgres', q{SELECT smart_stat_reset('fabric')});
run_all('inserts', "INSERT INTO hot VALUES (7, 1 + :client_id % 2);");
is(counters('combined_entries > 0 AND combined_batches > 0 AND leaf_failures = 0'), 't', 'entries are written together');
note(counters('smart_stat_fabric'));
is($node->safe_psql('postgres', 'SELECT count(*) FROM hot WHERE id = 7'), 1 + $CLIENTS * $EACH, 'none is lost');
same_answers($node, 'postgres', 'SELECT writer, count(*) FROM hot WHERE id = 7 GROUP BY writer ORDER BY writer', 'after the inserts');
index_is_sound($node, 'postgres', 'hot_id', 'after the inserts');

# Without memory nodes there is nothing to share.  A setting that no longer exists is one that never existed.
my $alone = smart_node('alone', 'autovacuum = off', "smart.rdwc = 'off'");

like(slurp_file($alone->logfile), qr/invalid configuration parameter name "smart\.rdwc", removing it/, 'a setting that does not exist');

$alone->safe_psql('postgres', 'CREATE TABLE t (id int); CREATE INDEX t_id ON t USING smart (id); INSERT INTO t SELECT generate_series(1, 100)');
is($alone->safe_psql('postgres', q{SET enable_seqscan = off; SELECT id FROM t WHERE id = 42; SELECT smart_stat_reset('fabric');
	SELECT delegated_reads + read_batches + combined_entries + combined_batches + leaf_waits + leaf_withdrawals + leaf_refusals + leaf_failures FROM smart_stat_fabric}),
	"42\n\n0", 'a region of the server\'s own');

$alone->stop;
$node->stop;
done_testing();
