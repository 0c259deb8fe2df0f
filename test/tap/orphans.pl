# What dropped and rebuilt indexes leave is freed when asked for, by itself, and after a crash in the middle of it, and what
# is in use is not; with the region in the server and on a memory node.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartMemnode;
use SmartTest;

# Each of them takes the name from the one tree of table "t".
my @STATEMENTS = (
	'DROP INDEX t_a', 'DROP INDEX CONCURRENTLY t_a', 'DROP TABLE t', 'DROP SCHEMA s CASCADE', 'DROP OWNED BY owner',
	'TRUNCATE t', 'TRUNCATE t; INSERT INTO t VALUES (1)', 'REINDEX INDEX t_a', 'REINDEX TABLE CONCURRENTLY t',
	'VACUUM FULL t', 'CLUSTER t USING t_a', 'ALTER TABLE t ALTER a TYPE bigint', 'ALTER TABLE t SET UNLOGGED');

sub sql
{
	my ($node, $statement, $database) = @_;

	return $node->safe_psql($database // 'postgres', "SET search_path = s, public; $statement");
}

sub make_table
{
	my ($node) = @_;

	sql($node, 'DROP SCHEMA IF EXISTS s CASCADE; CREATE SCHEMA s AUTHORIZATION owner;
		SET ROLE owner; CREATE TABLE s.t AS SELECT g AS a FROM generate_series(1, 5000) g; CREATE INDEX t_a ON s.t USING smart (a)');
	sql($node, 'SELECT trees FROM smart_collect_orphans()');
	return;
}

# What the view says about a database: trees, those that are leaked, and whether these have bytes.
sub space
{
	my ($node, $database) = @_;
	$database //= 'postgres';

	return $node->safe_psql($database,
		"SELECT trees, leaked_trees, leaked_bytes > 0 FROM smart_stat_space WHERE database = '$database'");
}

# Asks for it: the collection tells what it frees, and nothing is left then.
sub collects
{
	my ($node) = @_;

	foreach my $statement (@STATEMENTS)
	{
		make_table($node);
		is(space($node), '1|0|f', "before: $statement");
		sql($node, $statement);
		like(space($node), qr/^[12]\|1\|t$/, "leaked: $statement");
		my $leaked = sql($node, 'SELECT leaked_trees, leaked_bytes FROM smart_stat_space WHERE database = current_database()');
		is(sql($node, 'SELECT * FROM smart_collect_orphans()'), $leaked, "freed: $statement");
		like(space($node), qr/^[01]\|0\|f$/, "nothing is left: $statement");
		is(sql($node, 'SELECT count(smart_index_check(indexrelid, true)::text) FROM pg_index WHERE indrelid = to_regclass(\'t\')'),
			$statement =~ /^DROP (TABLE|SCHEMA|OWNED|INDEX)/ ? 0 : 1, "sound: $statement");
	}
	return;
}

# What it must leave alone.
sub spares
{
	my ($node) = @_;

	make_table($node);
	$node->safe_psql('postgres', 'CREATE DATABASE other');
	sql($node, 'CREATE EXTENSION smart; CREATE TABLE u AS SELECT g AS a FROM generate_series(1, 5000) g;
		CREATE INDEX u_a ON u USING smart (a); CREATE INDEX u_b ON u USING smart (a); DROP INDEX u_b', 'other');
	is(sql($node, 'SELECT trees FROM smart_collect_orphans()'), 0, 'trees of another database are left alone');
	is(space($node, 'other'), '2|1|t', 'of which only a session there tells whether they leak');
	index_is_sound($node, 'other', 'u_a', 'after a collection elsewhere');
	is(sql($node, 'SELECT trees FROM smart_collect_orphans()', 'other'), 1, 'and frees them');
	index_is_sound($node, 'postgres', 's.t_a', 'after a collection elsewhere');

	sql($node, 'BEGIN; CREATE TABLE v AS SELECT a FROM t; CREATE INDEX v_a ON v USING smart (a);
		DROP TABLE t; PREPARE TRANSACTION \'later\'');
	is(sql($node, 'SELECT trees FROM smart_collect_orphans()'), 0, 'a prepared transaction keeps what it made and what it dropped');
	$node->restart;
	is(sql($node, 'SELECT trees FROM smart_collect_orphans()'), 0, 'also after a restart');
	is(sql($node, 'SELECT trees, unfinished_trees FROM smart_stat_space WHERE database = current_database()'), '2|1',
		'which the view shows');
	sql($node, 'COMMIT PREPARED \'later\'');
	index_is_sound($node, 'postgres', 's.v_a', 'of a prepared transaction');
	is(sql($node, 'SELECT trees FROM smart_collect_orphans()'), 1, 'when it has committed what it dropped is freed');
	index_is_sound($node, 'postgres', 's.v_a', 'of a prepared transaction, after a collection');
	sql($node, 'BEGIN; CREATE INDEX v_b ON v USING smart (a); PREPARE TRANSACTION \'never\'');
	sql($node, 'ROLLBACK PREPARED \'never\'');
	is(sql($node, 'SELECT trees FROM smart_collect_orphans()'), 1, 'when it was rolled back, what it made');
	sql($node, 'DROP TABLE v');
	$node->safe_psql('postgres', 'DROP DATABASE other');
	is(sql($node, 'SELECT trees FROM smart_collect_orphans()'), 2, 'a dropped database leaves its trees');

	passes_over($node, $_) for ('unlink', 'garbage');
	cannot_tell($node);
	return;
}

# Takes the metapage from index w_a while the server is stopped.
sub damage
{
	my ($node, $how) = @_;
	my $path = $node->data_dir . '/' . sql($node, 'SELECT pg_relation_filepath(\'w_a\')');

	$node->stop;
	if ($how eq 'unlink')
	{
		unlink($path) or die "$path: $!";
	}
	else
	{
		open my $file, '+<', $path or die "$path: $!";
		print $file ($how eq 'zeros' ? "\0" : 'x') x 8192;
		close $file or die "$path: $!";
	}
	$node->start;
	return;
}

# What a collection frees while the metapage of w_a cannot be read, and how the warning ends.
sub collects_with_warning
{
	my ($node, $trees, $detail, $name) = @_;
	my ($status, $out, $err) = $node->psql('postgres', 'SELECT trees FROM smart_collect_orphans()', extra_params => [ '-v', 'VERBOSITY=verbose' ]);

	is("$status $out", "0 $trees", "$name: so many are freed");
	is(scalar(() = $err =~ /WARNING:  XX002: the metapage of index \d+ cannot be read\nDETAIL:  $detail/g), 1, "$name: one warning says so") or diag($err);
	return;
}

# An index without a metapage keeps the tree that was made for it, and is no obstacle for others.
sub passes_over
{
	my ($node, $how) = @_;

	make_table($node);
	sql($node, 'CREATE TABLE w AS SELECT a FROM t; CREATE INDEX w_a ON w USING smart (a)');
	damage($node, $how);
	sql($node, 'DROP INDEX t_a');
	is(sql($node, 'SELECT leaked_trees FROM smart_stat_space WHERE database = current_database()'), '1', "$how: one is known to be leaked");
	collects_with_warning($node, 1, 'What was made for it is kept', $how);
	sql($node, 'DROP TABLE w');
	is(sql($node, 'SELECT trees FROM smart_collect_orphans()'), 1, "$how: its tree is freed when the index is gone");
	return;
}

# One that has moved to another file with its tree could have named any.
sub cannot_tell
{
	my ($node) = @_;

	make_table($node);
	sql($node, 'CREATE TABLE w AS SELECT a FROM t; CREATE INDEX w_a ON w USING smart (a)');
	$node->safe_psql('postgres', "SET allow_in_place_tablespaces = on; CREATE TABLESPACE elsewhere LOCATION ''");
	sql($node, 'ALTER INDEX w_a SET TABLESPACE elsewhere');
	damage($node, 'zeros');
	sql($node, 'DROP INDEX t_a');
	collects_with_warning($node, 0, 'It is not known which trees', 'moved');
	is(sql($node, 'SELECT leaked_trees IS NULL FROM smart_stat_space WHERE database = current_database()'), 't',
		'moved: it is not known what is leaked');
	sql($node, 'DROP TABLE w');
	is(sql($node, 'SELECT trees FROM smart_collect_orphans()'), 2, 'moved: when the index is gone it goes on');
	$node->safe_psql('postgres', 'DROP TABLESPACE elsewhere');
	return;
}

# A session ends in the middle of a concurrent build, which leaves the tree: its file is of an earlier transaction.
sub outlives_sessions
{
	my ($node) = @_;
	my $end = <<'SQL';
DO $$
DECLARE pids int[];
BEGIN
	FOR i IN 1..10000 LOOP
		PERFORM pg_stat_clear_snapshot();
		pids := ARRAY(SELECT pid FROM pg_stat_progress_create_index WHERE phase LIKE '%loading entries%');
		EXIT WHEN pids <> '{}';
		PERFORM pg_sleep(0.002);
	END LOOP;
	PERFORM pg_terminate_backend(pid) FROM unnest(pids) pid;
END
$$
SQL
	my $leaked;

	make_table($node);
	sql($node, 'CREATE TABLE large AS SELECT g AS a FROM generate_series(1, 300000) g');
	# The build may be faster than we are.
	foreach my $attempt (1 .. 20)
	{
		my ($out, $err);
		my $build = IPC::Run::start([ 'psql', '-X', '-d', $node->connstr('postgres'), '-c', 'CREATE INDEX CONCURRENTLY large_a ON s.large USING smart (a)' ],
			'<', \undef, '>', \$out, '2>', \$err);

		$node->safe_psql('postgres', $end);
		$build->finish;
		$leaked = sql($node, 'SELECT leaked_trees FROM smart_stat_space WHERE database = current_database()');
		last if $leaked != 0;
		sql($node, 'DROP INDEX large_a; SELECT trees FROM smart_collect_orphans()');
	}
	is($leaked, 1, 'a session that ends leaves the tree that it was building');
	is(sql($node, 'SELECT trees FROM smart_collect_orphans()'), 1, 'and it is freed');
	index_is_sound($node, 'postgres', 's.t_a', 'after that');
	return;
}

# Without a request.
sub collects_by_itself
{
	my ($node) = @_;
	my $clean = "SELECT trees = 0 FROM smart_stat_space WHERE database = 'postgres'";

	make_table($node);
	sql($node, 'DROP TABLE t');
	$node->append_conf('postgresql.conf', 'smart.debug_collect_orphans = on');
	$node->restart;
	ok($node->poll_query_until('postgres', $clean), 'what was left before a restart is freed after it');
	for my $statement ('DROP INDEX t_a', 'TRUNCATE t', 'ALTER TABLE t DROP a', 'DROP SCHEMA s CASCADE')
	{
		make_table($node);
		sql($node, $statement);
		ok($node->poll_query_until('postgres', $clean), "freed by itself: $statement");
	}
	make_table($node);
	sql($node, $_) for ('REINDEX INDEX t_a', 'VACUUM FULL t', 'CLUSTER t USING t_a');
	ok($node->poll_query_until('postgres', "SELECT trees = 1 FROM smart_stat_space WHERE database = 'postgres'"),
		'freed by itself: what was rebuilt');
	index_is_sound($node, 'postgres', 's.t_a', 'freed by itself');
	$node->safe_psql('postgres', 'CREATE DATABASE other');
	sql($node, 'CREATE EXTENSION smart; CREATE TABLE u AS SELECT g AS a FROM generate_series(1, 5000) g;
		CREATE INDEX u_a ON u USING smart (a)', 'other');
	sql($node, 'DROP EXTENSION smart CASCADE', 'other');
	ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM smart_stat_space WHERE database = 'other'"), 'in another database, too');
	sql($node, 'CREATE EXTENSION smart; CREATE INDEX u_a ON u USING smart (a)', 'other');
	$node->safe_psql('postgres', 'DROP DATABASE other');
	ok($node->poll_query_until('postgres', 'SELECT count(*) = 1 FROM smart_stat_space'), 'freed by itself: a dropped database');

	# What a prepared transaction leaves, also if the server has started since.
	sql($node, 'BEGIN; DROP TABLE t; PREPARE TRANSACTION \'later\'');
	sql($node, 'BEGIN; CREATE TABLE v AS SELECT g AS a FROM generate_series(1, 100) g; CREATE INDEX v_a ON v USING smart (a); PREPARE TRANSACTION \'never\'');
	sql($node, 'ROLLBACK PREPARED \'never\'');
	ok($node->poll_query_until('postgres', "SELECT trees = 1 FROM smart_stat_space WHERE database = 'postgres'"),
		'freed by itself: what a prepared transaction had made that was rolled back');
	$node->restart;
	sql($node, 'COMMIT PREPARED \'later\'');
	ok($node->poll_query_until('postgres', $clean), 'freed by itself: what a prepared transaction had dropped');
	$node->append_conf('postgresql.conf', 'smart.debug_collect_orphans = off');
	$node->restart;
	return;
}

# Requests of databases that are dropped before their turn.
sub forgets_databases
{
	my ($node) = @_;
	my $offset = -s $node->logfile;

	# Nothing is collected yet.
	foreach my $name ('first', 'one', 'two', 'three', 'last')
	{
		$node->safe_psql('postgres', "CREATE DATABASE $name");
		sql($node, 'CREATE EXTENSION smart; CREATE TABLE u AS SELECT g AS a FROM generate_series(1, 100) g; CREATE INDEX u_a ON u USING smart (a);
			DROP INDEX u_a', $name);
		$node->safe_psql('postgres', "DROP DATABASE $name") if $name !~ /^(first|last)$/;
	}
	$node->append_conf('postgresql.conf', 'smart.debug_collect_orphans = on');
	$node->reload;
	# The oldest request is served first.
	ok($node->poll_query_until('postgres', "SELECT count(*) < 2 FROM smart_stat_space WHERE database IN ('first', 'last')"), 'one is served');
	is($node->safe_psql('postgres', "SELECT count(*) FROM smart_stat_space WHERE database = 'first'"), '0', 'the one that has asked first');
	ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM smart_stat_space WHERE database IN ('first', 'last') OR database IS NULL"),
		'freed by itself: what dropped databases have left');
	ok(!$node->log_contains(qr/FATAL: .*database \d+ does not exist/, $offset), 'no process is started for a dropped database');
	$node->safe_psql('postgres', "DROP DATABASE $_") for ('first', 'last');
	$node->append_conf('postgresql.conf', 'smart.debug_collect_orphans = off');
	$node->reload;
	return;
}

# A session is killed in the middle of a statement, and the server with it begins anew.
sub survives
{
	my ($node) = @_;
	my @blocked = grep { !/CONCURRENTLY|VACUUM|DROP OWNED|DROP SCHEMA/ } @STATEMENTS;

	foreach my $statement (@blocked)
	{
		make_table($node);
		my $session = $node->background_psql('postgres', on_error_stop => 0);
		my $pid;

		$session->query_safe("SET search_path = s, public; BEGIN; $statement");
		($pid) = $session->query_safe('SELECT pg_backend_pid()') =~ /(\d+)/;
		my $offset = -s $node->logfile;
		kill 'KILL', $pid;
		$node->wait_for_log(qr/all server processes terminated; reinitializing.*ready to accept connections/s, $offset);
		eval { $session->quit };
		$node->poll_query_until('postgres', 'SELECT true');
		sql($node, 'REINDEX TABLE t');
		sql($node, 'SELECT trees FROM smart_collect_orphans()');
		is(space($node), '1|0|f', "crash in the middle: $statement");
		index_is_sound($node, 'postgres', 's.t_a', "crash in the middle: $statement");
	}
	return;
}

# Collections while sessions move, drop and rebuild an index and others search it.
sub stands_alongside
{
	my ($node) = @_;
	my $change = <<'SCRIPT';
\set which random(1, 5)
\set length random(10, 20)
BEGIN;
LOCK TABLE busy;
\if :which = 1
ALTER INDEX busy_a SET TABLESPACE away;
\elif :which = 2
ALTER INDEX busy_a SET TABLESPACE pg_default;
\elif :which = 3
REINDEX INDEX busy_a;
\elif :which = 4
ALTER TABLE busy ALTER b TYPE varchar(:length);
\else
DROP INDEX busy_a;
CREATE INDEX busy_a ON busy USING smart (a, b);
\endif
\set which random(1, 3)
\if :which = 1
ROLLBACK;
\else
COMMIT;
\endif
SCRIPT
	my $search = <<'SCRIPT';
SET enable_seqscan = off;
SELECT 1 / (count(*) = 500)::int FROM busy WHERE a BETWEEN 101 AND 600;
SELECT 1 / (count(*) = 1)::int FROM busy WHERE a = 7;
SCRIPT

	$node->safe_psql('postgres', 'SET allow_in_place_tablespaces = on; CREATE TABLESPACE away LOCATION \'\'');
	$node->safe_psql('postgres', 'CREATE TABLE busy AS SELECT g AS a, (g % 10)::text::varchar(10) AS b FROM generate_series(1, 1000) g;
		CREATE INDEX busy_a ON busy USING smart (a, b)');
	$node->command_ok([ 'pgbench', '-n', '-c', 6, '-t', 100, '-f', pgbench_script($change) . '@2',
			'-f', pgbench_script('SELECT trees FROM smart_collect_orphans();') . '@2', '-f', pgbench_script($search) . '@6',
			'postgres' ], 'nothing in use was freed');
	index_is_sound($node, 'postgres', 'busy_a', 'collected all the time');
	sql($node, 'SELECT trees FROM smart_collect_orphans()');
	is(sql($node, 'SELECT trees - (SELECT count(*) FROM smart_index_state WHERE state = \'ready\'), leaked_trees FROM smart_stat_space
		WHERE database = current_database()'), '0|0', 'and nothing is left');
	$node->safe_psql('postgres', 'DROP TABLE busy; DROP TABLESPACE away');
	return;
}

# Collections while lost indexes are loaded, or rebuilt in place, which other sessions insert into and search.
sub lets_rebuild
{
	my ($node) = @_;
	my $ready = "SELECT bool_and(state = 'ready') FROM smart_index_state";

	make_table($node);
	$node->safe_psql('postgres', 'CREATE TABLE rows AS SELECT g AS a FROM generate_series(1, 100000) g;
		CREATE INDEX rows_a ON rows USING smart (a) WITH (logged = off); CREATE INDEX rows_desc ON rows USING smart (a DESC)');
	foreach my $round (1 .. 3)
	{
		$node->stop('immediate');
		unlink $node->data_dir . '/smart/pgsql_tmp_run' or die $!;
		$node->start;
		is(state_of($node, 'rows_a'), 'lost', "round $round: an index without a journal is lost");
		$node->append_conf('postgresql.conf', 'smart.auto_rebuild = on');
		$node->reload;
		$node->command_ok([ 'pgbench', '-n', '-c', 4, '-t', 100, '-f', pgbench_script('SELECT trees FROM smart_collect_orphans();') . '@3',
				'-f', pgbench_script('INSERT INTO rows VALUES (-1);') . '@5',
				'-f', pgbench_script('SELECT 1 / (count(*) = 500)::int FROM rows WHERE a BETWEEN 101 AND 600;') . '@2',
				'postgres' ], "round $round: collected while they are loaded and rebuilt");
		ok($node->poll_query_until('postgres', $ready), "round $round: they are back");
		index_is_sound($node, 'postgres', $_, "round $round") for ('rows_a', 'rows_desc', 's.t_a');
		$node->append_conf('postgresql.conf', 'smart.auto_rebuild = off');
		$node->reload;
	}
	ok($node->poll_query_until('postgres', 'SELECT trees = 3 FROM smart_stat_space, smart_collect_orphans() s(t, b) WHERE database = current_database()'),
		'nothing is left');
	$node->safe_psql('postgres', 'DROP TABLE rows; SELECT trees FROM smart_collect_orphans()');
	return;
}

my $memory = SmartMemnode->new('one', '--size=64M');
my %place = (embedded => [], 'memory node' => [ 'smart.memory_nodes = ' . addresses($memory) ]);
foreach my $name (sort keys %place)
{
	subtest $name => sub {
		my $node = smart_node($name =~ s/ .*//r, 'autovacuum = off', 'max_prepared_transactions = 4', 'restart_after_crash = on',
			'smart.debug_collect_orphans = off', 'smart.auto_rebuild = off', @{ $place{$name} });

		$node->safe_psql('postgres', 'CREATE ROLE owner; GRANT CREATE ON DATABASE postgres TO owner');
		collects($node);
		spares($node);
		outlives_sessions($node);
		collects_by_itself($node);
		forgets_databases($node);
		stands_alongside($node);
		survives($node);
		lets_rebuild($node);
		if ($name ne 'embedded')
		{
			sql($node, 'DROP TABLE t');
			sql($node, 'SELECT trees FROM smart_collect_orphans()');
			is(sql($node, 'SELECT sum(trees), sum(used_bytes) FROM smart_memory_nodes'), '0|0', 'nothing is in use on the memory node');
			ok($node->poll_query_until('postgres', 'SELECT sum(allocated_bytes) <= 4 * 2097152 FROM smart_memory_nodes'),
				'and it has all back but the chunks that are kept');
		}
		$node->stop;
	};
}

done_testing();
