# A server that ends in the middle of a statement that makes, replaces or drops trees: when it is back, so are the indexes, and
# the collection of orphans leaves no tree that no index uses.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

use SmartMemnode;
use SmartTest;

my @STATEMENTS = (
	'CREATE INDEX made ON rows USING smart (b)', 'CREATE INDEX CONCURRENTLY made_later ON rows USING smart (b)', 'REINDEX TABLE rows',
	'REINDEX TABLE CONCURRENTLY rows', 'VACUUM FULL rows', 'CLUSTER rows USING rows_a', 'ALTER TABLE rows ALTER a TYPE bigint USING a + 0',
	'ALTER INDEX rows_a SET TABLESPACE away; ALTER INDEX rows_b SET TABLESPACE away', 'BEGIN; TRUNCATE rows; INSERT INTO rows SELECT g, md5(g::text) FROM generate_series(1, 20000) g; COMMIT',
	'BEGIN; DROP INDEX rows_a; CREATE INDEX rows_a ON rows USING smart (a); ROLLBACK; BEGIN; SAVEPOINT s; DROP TABLE rows; ROLLBACK TO s; COMMIT',
	'ALTER TABLE rows SET UNLOGGED; ALTER TABLE rows SET LOGGED', 'VACUUM (INDEX_CLEANUP on) rows');
my @SETTINGS = ('autovacuum = off', 'restart_after_crash = on', 'smart.debug_collect_orphans = off', 'wal_writer_delay = 10s',
	'smart.embedded_max_size = 256MB', 'max_prepared_transactions = 2');

my $memory = SmartMemnode->new('one', '--size=64M');
my @node = (smart_node('embedded', @SETTINGS), smart_node('remote', @SETTINGS, 'smart.memory_nodes = ' . addresses($memory)));

sub make_rows
{
	my ($node) = @_;

	$node->safe_psql('postgres', 'DROP TABLE IF EXISTS rows; CREATE TABLE rows AS SELECT g AS a, md5(g::text) AS b FROM generate_series(1, 20000) g;
		CREATE INDEX rows_a ON rows USING smart (a); CREATE UNIQUE INDEX rows_b ON rows USING smart (b, a); DELETE FROM rows WHERE a % 7 = 0');
	return;
}

# How long the statement takes, undisturbed.
sub duration
{
	my ($node, $statement) = @_;
	my $start = Time::HiRes::time();

	$node->safe_psql('postgres', $statement);
	return Time::HiRes::time() - $start;
}

sub ends
{
	my ($node, $pid, $immediately) = @_;
	my $offset = -s $node->logfile;

	if ($immediately)
	{
		$node->stop('immediate');
		return $node->start;
	}
	# It may have ended.
	return if !kill('KILL', $pid) || !signal_came($node, $pid, $offset);
	$node->wait_for_log(qr/all server processes terminated; reinitializing.*ready to accept connections/s, $offset);
	return $node->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
}

sub is_clean
{
	my ($node, $name) = @_;
	my $indexes = q{FROM pg_index WHERE indisvalid AND indrelid = 'rows'::regclass};

	ok($node->poll_query_until('postgres', "SELECT bool_and(state IN ('ready', 'empty')) FROM smart_index_state WHERE index IN (SELECT indexrelid $indexes)"), "usable: $name");
	is($node->safe_psql('postgres', "SELECT count(smart_index_check(indexrelid, true)::text) >= 2 $indexes"), 't', "sound: $name");
	# What a rebuild has replaced leaves when no session uses it any more.
	ok($node->poll_query_until('postgres', q{SELECT leaked_trees = 0 AND unfinished_trees = 0 AND
		trees <= (SELECT count(*) FROM smart_index_state) FROM smart_collect_orphans() s(t, b), smart_stat_space WHERE database = current_database()}), "no tree is left over: $name");
	$node->safe_psql('postgres', "DROP INDEX IF EXISTS made, made_later; SELECT smart_collect_orphans()");
	return;
}

foreach my $node (@node)
{
	$node->safe_psql('postgres', 'SET allow_in_place_tablespaces = on; CREATE TABLESPACE away LOCATION \'\'');
	make_rows($node);
}
foreach my $i (0 .. $#STATEMENTS)
{
	my ($node, $immediately, $statement) = ($node[ $i % 2 ], int($i / 2) % 2, $STATEMENTS[$i]);
	my $duration = $statement =~ /made|TABLESPACE/ ? 0.05 : duration($node, $statement);
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	my ($pid) = $session->query_safe('SELECT pg_backend_pid()') =~ /(\d+)/;

	$session->query_until(qr/begun/, "\\echo begun\n$statement;\n");
	sleep(rand($duration));
	ends($node, $pid, $immediately);
	eval { $session->quit };
	is_clean($node, $statement);
	make_rows($node) if $statement =~ /TRUNCATE|a TYPE|TABLESPACE/;
}
foreach my $node (@node)
{
	$node->safe_psql('postgres', 'DROP TABLE rows');
	$node->safe_psql('postgres', 'SELECT smart_collect_orphans()');
	is($node->safe_psql('postgres', 'SELECT trees, bytes FROM smart_stat_space WHERE database = current_database()'), '0|0', 'nothing is left in the end');
	$node->stop;
}
done_testing();
