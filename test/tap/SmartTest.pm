# Helper for the TAP tests: a server with smart loaded, and checks that every test wants.
#
#   use SmartTest;
#   my $node = smart_node('main', 'autovacuum = off');
#   index_is_sound($node, 'postgres', 'packages_name_smart', 'after the crash');
package SmartTest;

use strict;
use warnings;

use Cwd qw(abs_path);
use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

our @EXPORT = qw($NODE_SETTINGS smart_node looks_for_nodes region_of lose_region lose_power start_again fill_up pid_of signal_came stop_walwriter answers is_gone same_answers index_is_sound state_of indexes_become becomes compaction_ends pgbench_script log_is_quiet);

# The price of a round trip is about that of an idle machine's loopback. The tests of trees on memory nodes are about those that
# writers wait for; those of write-back turn it on.
our $NODE_SETTINGS = "smart.round_trip_cost = 10\nsmart.write_back = off";

# smart_node(NAME, SETTING...): a running server with smart preloaded and the extension created in "postgres".  A round trip to
# a memory node has a price that was not measured: else plans would depend on what else the machine does.
sub smart_node
{
	my ($name, @settings) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init;
	$node->append_conf('postgresql.conf', join("\n", "shared_preload_libraries = 'smart'", $NODE_SETTINGS, @settings, ''));
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION smart');
	looks_for_nodes($node);
	return $node;
}

# looks_for_nodes(NODE): waits until a server that was started has found its memory nodes, or that they are away. Before that no
# index is planned with.
sub looks_for_nodes
{
	my ($node) = @_;

	$node->poll_query_until('postgres', q{SELECT current_setting('smart.memory_nodes') = '' OR
		(SELECT bool_and(state <> 'connecting') FROM smart_memory_nodes)}) or die $node->name . ': a memory node is not found';
	return;
}

# region_of(NODE): the path of its region, which is the shared memory of its data directory or a file there.
sub region_of
{
	my ($node) = @_;
	my ($device, $number) = stat $node->data_dir or die $node->data_dir . ": $!";
	my ($shared) = glob sprintf('/dev/shm/smart-region.*.%x.%x', $device, $number);

	return $shared // $node->data_dir . '/smart/pgsql_tmp_region';
}

# lose_region(NODE): what a power loss takes goes: the region, wherever it lies, and the files about it, but for the identity,
# which has been flushed.
sub lose_region
{
	my ($node) = @_;

	unlink region_of($node);
	unlink grep { !/pgsql_tmp_identity$/ } glob($node->data_dir . '/smart/*');
	return;
}

# lose_power(NODE): all processes are gone at once, and the region with them. The postmaster dies first, so that it cannot tell
# its children anything; one that it made a moment before is found by the directory that it is in.
sub lose_power
{
	my ($node) = @_;
	my @children = split ' ', `ps -o pid= --ppid $node->{_pid}`;
	my $directory = abs_path($node->data_dir);

	$node->kill9;
	kill 'KILL', @children;
	kill 'KILL', map { m{(\d+)} } grep { (readlink("$_/cwd") // '') eq $directory } glob('/proc/[0-9]*');
	lose_region($node);
	return;
}

# start_again(NODE): starts a server whose postmaster was killed, when its children have noticed.
sub start_again
{
	my ($node) = @_;

	foreach my $attempt (1 .. 300)
	{
		return if $node->start(fail_ok => 1);
		$node->stop('fast', fail_ok => 1);
		sleep(0.1);
	}
	die 'the server does not start';
}

# pid_of(NODE, TYPE): the process of this backend type, which may be a moment later than the first connections.
sub pid_of
{
	my ($node, $type) = @_;

	$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = '$type'") or die "there is no $type";
	return $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = '$type'");
}

# stop_walwriter(NODE): returns its pid. It is stopped while it waits for something to do: if it held a lock, whoever flushes
# WAL would wait for ever. The collector of orphans flushes WAL before it frees one, so it is to find none.
sub stop_walwriter
{
	my ($node) = @_;

	$node->safe_psql('postgres', 'SELECT smart_collect_orphans()');
	$node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'smart orphan collector'")
		or die 'the collector of orphans does not end';
	foreach my $attempt (1 .. 1000)
	{
		my $pid = pid_of($node, 'walwriter');

		kill 'STOP', $pid;
		return $pid if $node->safe_psql('postgres', "SELECT wait_event_type IS NOT DISTINCT FROM 'Activity' FROM pg_stat_activity WHERE pid = $pid") eq 't';
		kill 'CONT', $pid;
		sleep(0.01);
	}
	die 'the walwriter does not come to rest';
}

# answers(NODE): whether a session gets the lock under which memory is allocated. A process that was stopped at some moment may
# have it, and who waits for such a lock cannot be cancelled; so the process has to go on for a moment then.
sub answers
{
	my ($node) = @_;
	my $late = 0;

	$node->psql('postgres', 'SELECT count(*) FROM smart_stat_space()', timeout => 10, timed_out => \$late);
	return !$late;
}

# is_gone(NODE, PID): waits for a backend whose client has heard of the end: it is not the end for the backend.
sub is_gone
{
	my ($node, $pid) = @_;

	$node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $pid") or die "backend $pid does not end";
	return;
}

# signal_came(NODE, PID, OFFSET): whether a process that was sent signal 9 has ended by it, as the log says from there on. It
# may have been about to end by itself.
sub signal_came
{
	my ($node, $pid, $offset) = @_;
	my $looks = 0; # since it is gone

	foreach my $look (1 .. 20 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return 1 if $node->log_contains(qr/\(PID $pid\) was terminated by signal 9/, $offset);
		last if !kill(0, $pid) && ++$looks > 20;
		sleep(0.05);
	}
	return 0;
}

# same_answers(NODE, DATABASE, QUERY, NAME): the index gives what a sequential scan gives. The query must have an
# ORDER BY that leaves nothing open. Fails also if the plan without sequential scans uses no index at all.
sub same_answers
{
	my ($node, $database, $query, $name) = @_;
	my $by_heap = 'SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off; ';
	my $by_index = 'SET enable_seqscan = off; ';
	my $plan = $node->safe_psql($database, $by_index . 'EXPLAIN (COSTS OFF) ' . $query);

	like($plan, qr/Index/, "$name: the plan uses an index");
	is($node->safe_psql($database, $by_index . $query), $node->safe_psql($database, $by_heap . $query), $name);
	return;
}

# fill_up(INSERT, FROM): a DO that repeats this statement, whose n grows from there by 10, until it has failed 300 times for want of
# memory: nothing goes in any more, wherever inserts have come to their end.
sub fill_up
{
	my ($insert, $from) = @_;

	return "DO 'DECLARE
			failed int := 0;
			n int := $from;
		BEGIN
			WHILE failed < 300 LOOP
				BEGIN
					n := n + 10;
					$insert;
				EXCEPTION WHEN insufficient_resources THEN
					failed := failed + 1;
				END;
			END LOOP;
		END'";
}

# index_is_sound(NODE, DATABASE, INDEX, NAME): smart_index_check finds nothing, heap and index hold the same rows.
sub index_is_sound
{
	my ($node, $database, $index, $name) = @_;
	my ($status, $out, $err) = $node->psql($database, "SELECT smart_index_check('$index', true)");

	ok($status == 0, "$index is sound: $name") or diag($err);
	return;
}

# state_of(NODE, INDEX): whether an index of "postgres" can be used, by the view smart_index_state.
sub state_of
{
	my ($node, $index) = @_;

	return $node->safe_psql('postgres', "SELECT state FROM smart_index_state WHERE index = '$index'::regclass");
}

# indexes_become(NODE, STATES, CONDITION, DATABASE): waits until all indexes, or those of a condition, are in one of these
# states. An index is ready a moment before the log says how it became so; this waits for that, too.
sub indexes_become
{
	my ($node, $states, $condition, $database) = @_;

	return $node->poll_query_until($database // 'postgres', "SELECT bool_and(state IN ($states) AND (state <> 'ready' OR NOT EXISTS
		(SELECT FROM pg_stat_progress_create_index WHERE index_relid = index))) FROM smart_index_state WHERE " . ($condition // 'true'));
}

# becomes(NODE, INDEX, STATE): it is a test that it comes to this state. If it does not, what the server is at is shown.
sub becomes
{
	my ($node, $index, $state) = @_;
	my $done = indexes_become($node, "'$state'", "index = '$index'::regclass");

	ok($done, "$index becomes $state") or tell_of($node);
	return $done;
}

# compaction_ends(NODE): waits until no journal of it is being written anew.
sub compaction_ends
{
	my ($node) = @_;

	$node->poll_query_until('postgres', q{SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'smart compaction')})
		or die 'compaction does not end';
	return;
}

# tell_of(NODE): the last lines of its log, and what its processes are at.
sub tell_of
{
	my ($node) = @_;
	my @log = grep { !/LOG:  statement:/ } split /^/, PostgreSQL::Test::Utils::slurp_file($node->logfile);

	diag(@log[ (@log > 20 ? -20 : 0) .. -1 ]);
	foreach my $query ('SELECT * FROM smart_index_state', 'SELECT address, state FROM smart_memory_nodes',
		'SELECT pid, phase, tuples_done FROM pg_stat_progress_create_index',
		'SELECT pid, backend_type, state, wait_event, now() - xact_start, left(query, 60) FROM pg_stat_activity WHERE datname IS NOT NULL',
		'SELECT pid, relation::regclass, mode, granted FROM pg_locks WHERE relation > 16383')
	{
		my ($status, $out, $err) = $node->psql('postgres', $query);

		diag("$query:\n$out$err");
	}
	return;
}

# pgbench_script(TEXT): a file with a pgbench script, removed when the test ends.
sub pgbench_script
{
	my ($text) = @_;
	my $directory = PostgreSQL::Test::Utils::tempdir();
	my $path = "$directory/script.sql";

	PostgreSQL::Test::Utils::append_to_file($path, $text);
	return $path;
}

# log_is_quiet(NODE): no backend crashed and no assertion failed.
sub log_is_quiet
{
	my ($node) = @_;
	my $log = PostgreSQL::Test::Utils::slurp_file($node->logfile);

	unlike($log, qr/PANIC|terminated by signal|TRAP:|assertion/, 'the server log has no crash');
	return;
}

1;
