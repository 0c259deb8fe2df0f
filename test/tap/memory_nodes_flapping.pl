# Memory nodes go and come back, sooner or later than smart.node_down_after, while rows are inserted, changed, removed and read: no
# statement fails that need not ask an index, and the indexes end with what the table has.
use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

use SmartMemnode;
use SmartTest;

my $ROUNDS = 8;
my $seed = $ENV{SMART_SEED} // time;

srand($seed);
note("SMART_SEED=$seed");

# rounds(NAME, COUNT): with so many memory nodes.
sub rounds
{
	my ($name, $count) = @_;
	my @memory = map { SmartMemnode->new("$name$_", '--size=128M') } (1 .. $count);
	my $node = smart_node($name, 'autovacuum = off', "smart.node_down_after = '1s'", 'smart.node_lost_after = 0',
		'smart.fabric_timeout = 1s', 'smart.spread_above = 0', 'smart.memory_nodes = ' . addresses(@memory));
	my $writes = pgbench_script(q{
		\set id random(1, 1000000000)
		INSERT INTO numbers SELECT :id + g, md5((:id + g)::text) FROM generate_series(1, 10) g;
	});
	my ($out, $log) = ('', '');
	my $bench;

	$node->safe_psql('postgres', q{CREATE TABLE numbers (id int, word text) WITH (fillfactor = 50);
		CREATE INDEX numbers_id ON numbers USING smart (id);
		CREATE INDEX numbers_word ON numbers USING smart (word);
		INSERT INTO numbers SELECT g, md5(g::text) FROM generate_series(1, 20000) g});
	$bench = IPC::Run::start([ 'pgbench', '-n', '-c', 3, '-R', 100, '-T', 1000, '-f', $writes, '-h', $node->host, '-p', $node->port, 'postgres' ],
		'>', \$out, '2>', \$log);
	foreach my $round (1 .. $ROUNDS)
	{
		my $victim = $memory[ rand @memory ];

		$victim->kill9;
		# Rows that are removed while the nodes are away: by VACUUM, sometimes.
		$node->safe_psql('postgres', "SET enable_indexscan = off; SET enable_bitmapscan = off; DELETE FROM numbers WHERE id % 97 = $round") if rand() < 0.5;
		sleep(rand(2.5));
		$victim->start;
		node_becomes($node, $_, 'up') for @memory;
		$node->safe_psql('postgres', 'VACUUM numbers') if rand() < 0.5;
		sleep(rand(0.5));
	}
	$bench->signal('TERM');
	$bench->finish;
	unlike($log, qr/ERROR|aborted/, "$name: no insert has failed");
	# The nodes stay now. On a busy machine a loading may take longer than the limits above let it.
	$node->safe_psql('postgres', q{ALTER SYSTEM SET smart.fabric_timeout = '30s'});
	$node->safe_psql('postgres', q{ALTER SYSTEM SET smart.node_down_after = '60s'});
	$node->reload;
	becomes($node, $_, 'ready') for ('numbers_id', 'numbers_word');
	index_is_sound($node, 'postgres', $_, $name) for ('numbers_id', 'numbers_word');
	$node->safe_psql('postgres', 'VACUUM numbers');
	becomes($node, $_, 'ready') for ('numbers_id', 'numbers_word');
	index_is_sound($node, 'postgres', $_, "$name, after VACUUM") for ('numbers_id', 'numbers_word');
	$node->stop;
	is($_->stop, 0, "$name: a memory node stops cleanly") for @memory;
	log_is_quiet($node);
	return;
}

rounds('one', 1);
rounds('two', 2);
done_testing();
