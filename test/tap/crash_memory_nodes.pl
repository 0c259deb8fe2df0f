# The server dies, its memory nodes do not: the same as in crash.pl; and a memory node that is away meanwhile. Then memory nodes
# are killed with it, or without, while it works.
#
#   CYCLES=3    of each kind; test/crash has many more
#   SEED=n      decides when what is killed and what the clients do; printed, so that a failure can be tried again
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartCrash;
use SmartMemnode;
use SmartTest;
use SmartWork;

my $QUERY = 'SELECT id FROM numbers WHERE id BETWEEN 100 AND 200 ORDER BY id';
my @memory = map { SmartMemnode->new($_, '--size=64M') } ('one', 'two');
my $node = smart_node('main', @CRASH_SETTINGS, 'smart.debug_collect_orphans = off', 'smart.spread_above = 0', 'smart.memory_nodes = ' . addresses(@memory));

set_up($node);
loses_wal($node, $_) for ('kill -9 of a backend', 'kill -9 of the postmaster');

# Without a memory node there is no recovery: queries read the tables, inserts say why they fail.
my $offset = -s $node->logfile;
$node->stop('immediate');
$node->append_conf('postgresql.conf', "smart.fabric_timeout = '2s'");
$memory[0]->kill9;
$node->start;
is($node->safe_psql('postgres', "SET enable_seqscan = off; $QUERY"), join("\n", 100 .. 200), 'a memory node is away: the result comes from the table');
my ($status, undef, $err) = $node->psql('postgres', 'INSERT INTO keys VALUES (0)', extra_params => [ '-v', 'VERBOSITY=verbose' ]);
isnt($status, 0, 'a memory node is away: an insert fails');
like($err, qr/ERROR:  08006:.*recovered.*HINT/s, 'a memory node is away: and says why');
my $session = session($node, "SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan; PREPARE q AS $QUERY; EXECUTE q");
$memory[0]->start;
ok($node->wait_for_log(qr/smart has recovered its region/, $offset), 'it comes back: recovered');
is_kept($node, $offset, 'it comes back');
like($session->query_safe('EXPLAIN (COSTS OFF) EXECUTE q'), qr/Index/, 'a plan that was made meanwhile is made anew');
$session->quit;

# An extent map that has relied on WAL that is not there is given up, and the nodes free what it had.
$offset = -s $node->logfile;
$node->stop('immediate');
$node->append_conf('postgresql.conf', "smart.fabric_timeout = '10s'");
open(my $extent_map, '+<', $node->data_dir . '/smart/pgsql_tmp_book') or die $!;
binmode $extent_map;
seek($extent_map, 448 + 16 + 7, 0);
print $extent_map chr(1);
close($extent_map);
$node->start;
ok($node->wait_for_log(qr/empty region: the data directory is older than it/, $offset), 'an extent map that is ahead of WAL is not taken');
node_becomes($node, $_, 'up') for @memory;
is($node->safe_psql('postgres', "SET enable_seqscan = off; $QUERY"), join("\n", 100 .. 200), 'the result comes from the table');
$node->safe_psql('postgres', 'REINDEX DATABASE postgres');
is_right($node, 'rebuilt');
# Those that were loaded meanwhile are orphans now.
$node->safe_psql('postgres', 'SELECT smart_collect_orphans()');
ok($node->poll_query_until('postgres', 'SELECT sum(trees) = 3 FROM smart_memory_nodes'), 'nothing is left of the older trees');
$node->stop;

# ---- memory nodes are killed while the server works ----

my $CYCLES = $ENV{CYCLES} || 3;
my $SEED = $ENV{SEED} || time() % 1_000_000;
my @kinds = ('a memory node', 'memory nodes and others at once');
my $worker = smart_node('worker', @WORK_SETTINGS, 'smart.fabric_timeout = 3s', 'smart.spread_above = 0', 'smart.memory_nodes = ' . addresses(@memory));

note("seed $SEED");
srand($SEED);
$worker->safe_psql('postgres', $WORK_SCHEMA);
foreach my $cycle (1 .. $CYCLES)
{
	run_cycle("cycle $cycle: $_", $worker, $ENDS{$_}, @memory) for @kinds;
}
no_row_is_wrong($CYCLES * @kinds, $SEED);
$worker->stop;
log_is_sound($worker);
is($_->stop, 0, 'a memory node stops cleanly') for @memory;
done_testing();
