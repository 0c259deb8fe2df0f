# A server that works is killed at a random moment, again and again: a backend, the postmaster, a memory node, all at once. Each
# time every smart index has to be usable again by itself, and to hold exactly the rows of its table.
#
#   CYCLES=10   of each kind
#   SEED=n      decides when what is killed and what the clients do; printed, so that a failure can be tried again
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

use SmartMemnode;
use SmartTest;
use SmartWork;

my $CYCLES = $ENV{CYCLES} || 10;
my $SEED = $ENV{SEED} || time() % 1_000_000;

note("seed $SEED");
srand($SEED);

my @memory = map { SmartMemnode->new($_, '--size=64M') } ('one', 'two');
my %node = (
	embedded => smart_node('embedded', @WORK_SETTINGS),
	'memory nodes' => smart_node('remote', @WORK_SETTINGS, 'smart.fabric_timeout = 3s', 'smart.spread_above = 0', 'smart.memory_nodes = ' . addresses(@memory)));
damage_is_seen($node{embedded});
$_->safe_psql('postgres', $WORK_SCHEMA) for values %node;
foreach my $cycle (1 .. $CYCLES)
{
	foreach my $kind (sort keys %ENDS)
	{
		my $place = $kind =~ /memory node/ || $cycle % 2 == 0 ? 'memory nodes' : 'embedded';

		run_cycle("cycle $cycle: $kind, $place", $node{$place}, $ENDS{$kind}, @memory);
	}
}
no_row_is_wrong($CYCLES * keys(%ENDS), $SEED);
foreach my $node (values %node)
{
	$node->safe_psql('postgres', 'SELECT smart_collect_orphans()');
	is($node->safe_psql('postgres', 'SELECT leaked_trees, leaked_bytes FROM smart_stat_space WHERE database = current_database()'), '0|0',
		'no tree is left over');
	$node->stop;
	log_is_sound($node);
}
done_testing();
