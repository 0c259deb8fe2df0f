# The machine loses its power while a server works, again and again: all processes are gone at once, and the region with
# them. Each time every logged index is loaded from its journal, and holds exactly the rows of its table.
#
#   CYCLES=5    so many times
#   SEED=n      decides when, and what the clients do; printed, so that a failure can be tried again
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

use SmartTest;
use SmartWork;

my $CYCLES = $ENV{CYCLES} || 5;
my $SEED = $ENV{SEED} || time() % 1_000_000;
my @LOGGED = ('rows_a', 'rows_b', 'rows_c_a', 'rows_some');

# Loaded, each once, and nothing was read from the table.
sub all_were_loaded
{
	my ($node, $offset, $name) = @_;
	my $log = slurp_file($node->logfile, $offset);
	my @loaded = sort($log =~ /smart index "(\w+)" has been loaded/g);

	is("@loaded", "@LOGGED", "$name: each index is loaded once");
	unlike($log, qr/rebuilding smart index/, "$name: none is rebuilt");
	return;
}

sub run_cycle
{
	my ($node, $name) = @_;
	my $offset = -s $node->logfile;
	my $work = start_work($node, int(rand(2**31)));

	# Replay begins anywhere.
	sleep(0.05 + rand(0.3));
	$node->safe_psql('postgres', 'CHECKPOINT') if rand() < 0.5;
	sleep(rand(0.3));
	lose_power($node);
	start_again($node);
	# The unique index takes rows, however early they come.
	is($node->safe_psql('postgres', "INSERT INTO rows (a, b, c) VALUES (7, 'after ' || random(), 7) RETURNING a"), '7', "$name: an insert waits for the loading");
	end_work($node, $work);
	all_is_well($node, $name);
	all_were_loaded($node, $offset, $name);
	return;
}

note("seed $SEED");
srand($SEED);

my $node = smart_node('main', @WORK_SETTINGS);

damage_is_seen($node);
$node->safe_psql('postgres', $WORK_SCHEMA);
run_cycle($node, "cycle $_") foreach (1 .. $CYCLES);
no_row_is_wrong($CYCLES, $SEED);

# What was written while nothing was lost, and what was not.
$node->safe_psql('postgres', 'SELECT smart_collect_orphans()');
is($node->safe_psql('postgres', 'SELECT leaked_trees, leaked_bytes FROM smart_stat_space WHERE database = current_database()'), '0|0',
	'no tree is left over');
$node->stop;
log_is_sound($node);
done_testing();
