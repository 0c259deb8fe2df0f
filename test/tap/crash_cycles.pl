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
use Time::HiRes qw(sleep time);

use SmartMemnode;
use SmartTest;
use SmartWork;

my $CYCLES = $ENV{CYCLES} || 10;
my $SEED = $ENV{SEED} || time() % 1_000_000;

# ---- the ends ----

sub backend_is_killed
{
	my ($node) = @_;
	my $offset = -s $node->logfile;
	my @pids = split /\n/, $node->safe_psql('postgres',
		"SELECT pid FROM pg_stat_activity WHERE application_name = 'pgbench' ORDER BY pid");

	kill 'KILL', $pids[ int(rand(@pids)) ] if @pids;
	return ok(0, 'there was no backend to kill') if !@pids;
	$node->wait_for_log(qr/all server processes terminated; reinitializing/, $offset);
	return;
}

sub postmaster_is_killed
{
	my ($node) = @_;

	$node->kill9;
	start_again($node);
	return;
}

sub server_is_stopped
{
	my ($node) = @_;

	$node->stop('immediate');
	$node->start;
	return;
}

# Sometimes its memory goes with it, sometimes the server does.
sub memory_node_is_killed
{
	my ($node, @memory) = @_;
	my $victim = $memory[ int(rand(@memory)) ];
	my $chance = rand();

	$victim->kill9;
	$node->kill9 if $chance < 0.2;
	$victim->forget if $chance > 0.6;
	sleep(rand(0.3));
	$victim->start;
	start_again($node) if $chance < 0.2;
	node_becomes($node, $_, 'up') for @memory;
	return;
}

# ---- cycles ----

sub run_cycle
{
	my ($name, $node, $end, @memory) = @_;
	my $work = start_work($node, int(rand(2**31)));

	sleep(0.05 + rand(0.3));
	$end->($node, @memory);
	end_work($node, $work);
	all_is_well($node, $name);
	return;
}

note("seed $SEED");
srand($SEED);

my @memory = map { SmartMemnode->new($_, '--size=64M') } ('one', 'two');
my %node = (
	embedded => smart_node('embedded', @WORK_SETTINGS),
	'memory nodes' => smart_node('remote', @WORK_SETTINGS, 'smart.fabric_timeout = 3s', 'smart.memory_nodes = ' . addresses(@memory)));
my %end = (
	'a backend' => \&backend_is_killed, 'the postmaster' => \&postmaster_is_killed,
	'an immediate stop' => \&server_is_stopped, 'a memory node' => \&memory_node_is_killed);

damage_is_seen($node{embedded});
$_->safe_psql('postgres', $WORK_SCHEMA) for values %node;
foreach my $cycle (1 .. $CYCLES)
{
	foreach my $kind (sort keys %end)
	{
		my $place = $kind eq 'a memory node' || $cycle % 2 == 0 ? 'memory nodes' : 'embedded';

		run_cycle("cycle $cycle: $kind, $place", $node{$place}, $end{$kind}, @memory);
	}
}
no_row_is_wrong($CYCLES * keys(%end), $SEED);
foreach my $node (values %node)
{
	$node->safe_psql('postgres', 'SELECT smart_collect_orphans()');
	is($node->safe_psql('postgres', 'SELECT leaked_trees, leaked_bytes FROM smart_stat_space WHERE database = current_database()'), '0|0',
		'no tree is left over');
	$node->stop;
	log_is_sound($node);
}
done_testing();
