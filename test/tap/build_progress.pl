# What pg_stat_progress_create_index shows while an index is built: by one process, by several, and CONCURRENTLY. The
# builds stand still where an expression waits for a file to go.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use SmartTest;
use PostgreSQL::Test::Utils;
use Test::More;
use IPC::Run;

my $ROWS = 3000;
my $node = smart_node('main', 'autovacuum = off', 'fsync = off', 'smart.auto_rebuild = off');

# Row 17 waits: held() the first time for the file hold.1, the second time for hold.2 and so on; held_worker() in a
# worker of a parallel build, for the same file whenever it comes.
$node->safe_psql('postgres', <<"SQL");
CREATE TABLE watched (n int);
INSERT INTO watched SELECT generate_series(1, $ROWS);
CREATE SEQUENCE visits;
CREATE FUNCTION wait_for(name text) RETURNS void LANGUAGE plpgsql STABLE PARALLEL SAFE AS \$\$
BEGIN
	WHILE (pg_stat_file(name, true)).size IS NOT NULL LOOP
		PERFORM pg_sleep(0.01);
	END LOOP;
END \$\$;
CREATE FUNCTION held(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE AS \$\$
BEGIN
	IF n = 17 THEN
		PERFORM public.wait_for('hold.' || nextval('public.visits'));
	END IF;
	RETURN n;
END \$\$;
CREATE FUNCTION held_worker(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS \$\$
BEGIN
	IF pg_backend_pid() <> current_setting('test.leader', true)::int THEN
		PERFORM public.wait_for('hold.worker');
	ELSIF pg_backend_pid() = current_setting('test.leader', true)::int THEN
		-- Leaves a row to each of the workers.
		WHILE (SELECT count(*) FROM pg_stat_activity WHERE leader_pid = pg_backend_pid() AND wait_event = 'PgSleep') < 2 LOOP
			PERFORM pg_stat_clear_snapshot();
			PERFORM pg_sleep(0.01);
		END LOOP;
	END IF;
	RETURN n;
END \$\$;
SQL
my $BLOCKS = $node->safe_psql('postgres', "SELECT pg_relation_size('watched') / 8192");

sub hold
{
	append_to_file($node->data_dir . "/hold.$_", '') for @_;
	return;
}

sub release
{
	unlink $node->data_dir . "/hold.$_[0]" or die "hold.$_[0]: $!";
	return;
}

sub start
{
	my ($output, @commands) = @_;

	return IPC::Run::start([ 'psql', '-X', '-q', '-At', '-h', $node->host, '-p', $node->port, '-d', 'postgres',
			map { ('-c', $_) } @commands ], '&>', $output);
}

# shows(CONDITION, NAME): it comes to this; else what is shown instead is told.
sub shows
{
	my ($condition, $name) = @_;

	ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_progress_create_index WHERE $condition"), $name)
		or diag($node->safe_psql('postgres', 'SELECT * FROM pg_stat_progress_create_index'));
	return;
}

sub ends_well
{
	my ($run, $output, $name) = @_;

	$run->finish;
	is($$output, '', "$name: no error");
	is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_stat_progress_create_index'), '0', "$name: nothing is shown any more");
	return;
}

# One process. The second visit is that of the check of an exclusion constraint, right behind the build.
my $output;
hold(1, 2);
my $run = start(\$output, 'ALTER TABLE watched ADD CONSTRAINT watched_held EXCLUDE USING smart (held(n) WITH =)');
shows("phase = 'building index: scanning table' AND blocks_total = $BLOCKS AND tuples_done = 0",
	'one process: the table is scanned');
release(1);
shows("phase = 'building index: loading entries into the tree' AND tuples_total = $ROWS AND tuples_done = $ROWS",
	'one process: the tree is loaded');
release(2);
ends_well($run, \$output, 'one process');

# Two more; the session has read the rest of the table and waits for them.
hold('worker');
$node->safe_psql('postgres', 'ALTER TABLE watched SET (parallel_workers = 2)');
$run = start(\$output, q{DO $$ BEGIN PERFORM set_config('test.leader', pg_backend_pid()::text, false); END $$},
	'CREATE INDEX watched_parallel ON watched USING smart (held_worker(n))');
shows("phase = 'building index: sorting entries' AND blocks_total = $BLOCKS AND blocks_done = $BLOCKS",
	'three processes: one has sorted');
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_stat_activity a JOIN pg_stat_progress_create_index p
	ON a.leader_pid = p.pid'), '2', 'and two are at work');
release('worker');
ends_well($run, \$output, 'three processes');
$node->safe_psql('postgres', 'ALTER TABLE watched DROP CONSTRAINT watched_held');

# CONCURRENTLY, with writers to wait for; the row of the second one is a visit of the validation.
hold(3, 4);
my $writer = $node->background_psql('postgres');
$writer->query_safe('BEGIN; INSERT INTO watched VALUES (-1)');
$run = start(\$output, 'CREATE INDEX CONCURRENTLY watched_later ON watched USING smart (held(n))');
shows("phase = 'waiting for writers before build' AND lockers_total = 1", 'concurrently: waits before it builds');
$writer->query_safe('ROLLBACK');
shows("phase = 'building index: scanning table' AND blocks_total = $BLOCKS", 'concurrently: the table is scanned');
$writer->query_safe('BEGIN; INSERT INTO watched VALUES (17)');
release(3);
shows("phase = 'waiting for writers before validation' AND tuples_total = $ROWS AND tuples_done = $ROWS",
	'concurrently: built');
$writer->query_safe('COMMIT');
shows("phase = 'index validation: scanning table' AND blocks_total = $BLOCKS", 'concurrently: the table is scanned again');
$writer->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM watched');
release(4);
# The locks of the session that looks at it may be counted, too.
shows("phase = 'waiting for old snapshots' AND lockers_total >= 1", 'concurrently: waits before it is valid');
$writer->query_safe('COMMIT');
ends_well($run, \$output, 'concurrently');
$writer->quit;
is($node->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM watched WHERE held(n) = 17'), '2',
	'both rows are found');
index_is_sound($node, 'postgres', $_, 'in the end') for 'watched_parallel', 'watched_later';

$node->stop;
log_is_quiet($node);
done_testing();
