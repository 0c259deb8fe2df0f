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
	sql($node, 'SELECT trees FROM smart_sweep()');
	return;
}

# What the view says about a database: trees, those that are leaked, and whether these have bytes.
sub space
{
	my ($node, $database) = @_;
	$database //= 'postgres';

	return $node->safe_psql($database,
		"SELECT trees, leaked_trees, leaked_bytes > 0 FROM smart_space WHERE database = '$database'");
}

# Asks for it: the sweep tells what it frees, and nothing is left then.
sub sweeps
{
	my ($node) = @_;

	foreach my $statement (@STATEMENTS)
	{
		make_table($node);
		is(space($node), '1|0|f', "before: $statement");
		sql($node, $statement);
		like(space($node), qr/^[12]\|1\|t$/, "leaked: $statement");
		my $leaked = sql($node, 'SELECT leaked_trees, leaked_bytes FROM smart_space WHERE database = current_database()');
		is(sql($node, 'SELECT * FROM smart_sweep()'), $leaked, "freed: $statement");
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
	is(sql($node, 'SELECT trees FROM smart_sweep()'), 0, 'trees of another database are left alone');
	is(space($node, 'other'), '2|1|t', 'of which only a session there tells whether they leak');
	index_is_sound($node, 'other', 'u_a', 'after a sweep elsewhere');
	is(sql($node, 'SELECT trees FROM smart_sweep()', 'other'), 1, 'and frees them');
	index_is_sound($node, 'postgres', 's.t_a', 'after a sweep elsewhere');

	sql($node, 'BEGIN; CREATE TABLE v AS SELECT a FROM t; CREATE INDEX v_a ON v USING smart (a);
		DROP TABLE t; PREPARE TRANSACTION \'later\'');
	is(sql($node, 'SELECT trees FROM smart_sweep()'), 0, 'a prepared transaction keeps what it made and what it dropped');
	$node->restart;
	is(sql($node, 'SELECT trees FROM smart_sweep()'), 0, 'also after a restart');
	is(sql($node, 'SELECT trees, unfinished_trees FROM smart_space WHERE database = current_database()'), '2|1',
		'which the view shows');
	sql($node, 'COMMIT PREPARED \'later\'');
	index_is_sound($node, 'postgres', 's.v_a', 'of a prepared transaction');
	is(sql($node, 'SELECT trees FROM smart_sweep()'), 1, 'when it has committed what it dropped is freed');
	index_is_sound($node, 'postgres', 's.v_a', 'of a prepared transaction, swept');
	sql($node, 'BEGIN; CREATE INDEX v_b ON v USING smart (a); PREPARE TRANSACTION \'never\'');
	sql($node, 'ROLLBACK PREPARED \'never\'');
	is(sql($node, 'SELECT trees FROM smart_sweep()'), 1, 'when it was rolled back, what it made');
	sql($node, 'DROP TABLE v');
	$node->safe_psql('postgres', 'DROP DATABASE other');
	is(sql($node, 'SELECT trees FROM smart_sweep()'), 2, 'a dropped database leaves its trees');

	# An index without a metapage could have named any tree.
	make_table($node);
	sql($node, 'CREATE TABLE w AS SELECT a FROM t; CREATE INDEX w_a ON w USING smart (a); CHECKPOINT');
	my $path = $node->data_dir . '/' . sql($node, 'SELECT pg_relation_filepath(\'w_a\')');
	$node->stop;
	truncate($path, 0) or die "$path: $!";
	$node->start;
	sql($node, 'DROP INDEX t_a');
	my ($status, $out, $err) = $node->psql('postgres', 'SELECT trees FROM smart_sweep()');
	is("$status $out", '0 0', 'nothing is freed when a metapage cannot be read');
	like($err, qr/WARNING:.*\n.*metapage of index \d+/, 'and a warning says so');
	is(sql($node, 'SELECT leaked_trees IS NULL FROM smart_space WHERE database = current_database()'), 't',
		'since nobody knows what is leaked');
	sql($node, 'DROP TABLE w');
	is(sql($node, 'SELECT trees FROM smart_sweep()'), 2, 'when the index is gone it goes on');
	return;
}

# Nobody asks for it.
sub sweeps_itself
{
	my ($node) = @_;
	my $clean = "SELECT trees = 0 FROM smart_space WHERE database = 'postgres'";

	make_table($node);
	sql($node, 'DROP TABLE t');
	$node->append_conf('postgresql.conf', 'smart.sweep_interval = 1h');
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
	ok($node->poll_query_until('postgres', "SELECT trees = 1 FROM smart_space WHERE database = 'postgres'"),
		'freed by itself: what was rebuilt');
	index_is_sound($node, 'postgres', 's.t_a', 'freed by itself');
	$node->safe_psql('postgres', 'CREATE DATABASE other');
	sql($node, 'CREATE EXTENSION smart; CREATE TABLE u AS SELECT g AS a FROM generate_series(1, 5000) g;
		CREATE INDEX u_a ON u USING smart (a)', 'other');
	sql($node, 'DROP TABLE u', 'other');
	ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM smart_space WHERE database = 'other'"), 'in another database, too');
	sql($node, 'CREATE TABLE u AS SELECT g AS a FROM generate_series(1, 5000) g; CREATE INDEX u_a ON u USING smart (a)', 'other');
	$node->safe_psql('postgres', 'DROP DATABASE other');
	ok($node->poll_query_until('postgres', 'SELECT count(*) = 1 FROM smart_space'), 'freed by itself: a dropped database');

	# No session notices that a prepared transaction commits, so it takes until the next round.
	sql($node, 'BEGIN; DROP TABLE t; PREPARE TRANSACTION \'later\'');
	sql($node, 'COMMIT PREPARED \'later\'');
	is(space($node), '1|1|t', 'a prepared transaction leaves something');
	$node->append_conf('postgresql.conf', 'smart.sweep_interval = 1s');
	$node->restart;
	ok($node->poll_query_until('postgres', $clean), 'and it is freed in the end');
	$node->append_conf('postgresql.conf', 'smart.sweep_interval = 0');
	$node->restart;
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
		sql($node, 'SELECT trees FROM smart_sweep()');
		is(space($node), '1|0|f', "crash in the middle: $statement");
		index_is_sound($node, 'postgres', 's.t_a', "crash in the middle: $statement");
	}
	return;
}

my $memory = SmartMemnode->new('one', '--size=64M');
my %place = (embedded => [], 'memory node' => [ 'smart.memory_nodes = ' . addresses($memory) ]);
foreach my $name (sort keys %place)
{
	subtest $name => sub {
		my $node = smart_node($name =~ s/ .*//r, 'autovacuum = off', 'max_prepared_transactions = 4', 'restart_after_crash = on',
			'smart.sweep_interval = 0', @{ $place{$name} });

		$node->safe_psql('postgres', 'CREATE ROLE owner; GRANT CREATE ON DATABASE postgres TO owner');
		sweeps($node);
		spares($node);
		sweeps_itself($node);
		survives($node);
		if ($name ne 'embedded')
		{
			sql($node, 'DROP TABLE t');
			sql($node, 'SELECT trees FROM smart_sweep()');
			is(sql($node, 'SELECT sum(trees), sum(used_bytes) FROM smart_memory_nodes'), '0|0', 'nothing is in use on the memory node');
			ok($node->poll_query_until('postgres', 'SELECT sum(allocated_bytes) <= 4 * 2097152 FROM smart_memory_nodes'),
				'and it has all back but the chunks that are kept');
		}
		$node->stop;
	};
}

done_testing();
