# smart.wait_timeout: statements that need a memory node which is away go on when it is back, those that change
# something, too; and nothing else waits.  Here nothing is done without the node (smart.node_down_after), and pages do not answer.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

use SmartMemnode;
use SmartTest;

my @VERBOSE = (extra_params => [ '-v', 'VERBOSITY=verbose' ]);
my $memory = SmartMemnode->new('one', '--size=64M');
my $node = smart_node('main', 'autovacuum = off', 'smart.fabric_timeout = 1s', 'smart.auto_rebuild = off', 'smart.node_down_after = 0', 'smart.answer_from_pages = off', 'smart.memory_nodes = ' . addresses($memory));

# A session that is at a statement until the memory node is back.
sub waiting
{
	my ($statement) = @_;
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	my ($pid) = $session->query_safe('SET smart.wait_timeout = 3600000; SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT pg_backend_pid()') =~ /(\d+)/;

	$session->query_until(qr/begun/, "\\echo begun\n$statement;\n");
	ok($node->poll_query_until('postgres', "SELECT state = 'active' AND wait_event_type = 'Extension' FROM pg_stat_activity WHERE pid = $pid"),
		"waits: $statement");
	return ($session, $pid);
}

$node->safe_psql('postgres', 'CREATE TABLE numbers (id int, v int); INSERT INTO numbers SELECT g, 0 FROM generate_series(1, 3000) g;
	CREATE INDEX numbers_id ON numbers USING smart (id); CREATE UNIQUE INDEX numbers_v ON numbers USING smart (v, id)');
$memory->kill9;
node_becomes($node, $memory, 'down');

like(($node->psql('postgres', 'INSERT INTO numbers VALUES (0, 1)', @VERBOSE))[2], qr/ERROR:  08006:/, 'a session that does not want to wait does not');
like(($node->psql('postgres', "SET smart.wait_timeout = 3600000; SET statement_timeout = '300ms'; INSERT INTO numbers VALUES (0, 1)", @VERBOSE))[2],
	qr/ERROR:  57014:.*statement timeout/s, 'statement_timeout ends the wait');
my $begun = time;
like(($node->psql('postgres', 'SET smart.wait_timeout = 700; INSERT INTO numbers VALUES (0, 1)', @VERBOSE))[2], qr/ERROR:  08006:/, 'so does smart.wait_timeout');
cmp_ok(time - $begun, '>=', 0.7, 'when it is over');
my ($status, undef, $err) = $node->psql('postgres', 'SET smart.wait_timeout = 2000; SET enable_indexscan = off; SET enable_bitmapscan = off;
	DELETE FROM numbers WHERE id > 2990; VACUUM (INDEX_CLEANUP on) numbers');
like("$status $err", qr/^0 .*skipping index "numbers_id"/s, 'VACUUM does not wait for longer than ever');
$memory->start;
node_becomes($node, $memory, 'up');
$node->safe_psql('postgres', 'REINDEX TABLE numbers');

$memory->kill9;
node_becomes($node, $memory, 'down');
my @waiting = map { [ waiting($_) ] } (
	'INSERT INTO numbers SELECT g, 5 FROM generate_series(5001, 5100) g', 'UPDATE numbers SET id = id + 10000, v = 6 WHERE id = 77',
	'SELECT sum(id) FROM numbers WHERE id BETWEEN 100 AND 200', 'DELETE FROM numbers WHERE id = 78',
	q{SELECT smart_index_check('numbers_v', true)}, q{SELECT entries FROM smart_index_stats('numbers_v')});
my ($cancelled, $pid) = waiting('INSERT INTO numbers VALUES (9999, 9)');
$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
ok($node->poll_query_until('postgres', "SELECT state = 'idle' FROM pg_stat_activity WHERE pid = $pid"), 'a cancel request ends the wait');
$cancelled->quit;
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND backend_type = 'client backend'"), 7, 'the others wait');
$memory->start;
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE state = 'active' AND backend_type = 'client backend'"), 'they go on');
$_->[0]->quit for @waiting;
is($node->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*), sum(id), max(v) FROM numbers WHERE id BETWEEN 5001 AND 10077'),
	'101|515127|6', 'what they did is done');
is($node->safe_psql('postgres', 'SELECT count(*) FROM numbers WHERE id IN (78, 9999)'), 0, 'and nothing else');
index_is_sound($node, 'postgres', $_, 'after the wait') for ('numbers_id', 'numbers_v');

# Nor does it matter what is under way when the node goes: sessions that read and write all the time see it go again and again.
$node->safe_psql('postgres', 'CREATE TABLE busy (id int, v int); CREATE UNIQUE INDEX busy_id ON busy USING smart (id);
	CREATE INDEX busy_v ON busy USING smart (v); CREATE TABLE going_on AS SELECT true;
	CREATE PROCEDURE work(client int) LANGUAGE plpgsql AS $$
	DECLARE
		first int := client * 1000000;
		rows int := 0;
		seen int;
	BEGIN
		WHILE EXISTS (SELECT FROM going_on) LOOP
			INSERT INTO busy SELECT first + rows + g, g FROM generate_series(0, 9) g;
			COMMIT;
			UPDATE busy SET v = v + 1000 WHERE id = first + rows;
			COMMIT;
			rows := rows + 10;
			SELECT count(*) INTO seen FROM busy WHERE id BETWEEN first AND first + rows;
			IF seen <> rows THEN
				RAISE EXCEPTION \'% of % rows are found\', seen, rows;
			END IF;
		END LOOP;
	END $$;
	CREATE TABLE big AS SELECT g AS id FROM generate_series(1, 30000) g;
	CREATE PROCEDURE build() LANGUAGE plpgsql AS $$
	BEGIN
		WHILE EXISTS (SELECT FROM going_on) LOOP
			CREATE INDEX big_id ON big USING smart (id);
			COMMIT;
			REINDEX INDEX big_id;
			DROP INDEX big_id;
			COMMIT;
		END LOOP;
		CREATE INDEX big_id ON big USING smart (id);
	END $$');
my @calls = ('work(1)', 'work(2)', 'work(3)', 'build()');
my @busy = map { $node->background_psql('postgres', on_error_stop => 0) } @calls;
$_->query_safe('SET smart.wait_timeout = 3600000; SET enable_seqscan = off; SET enable_bitmapscan = off') for @busy;
$busy[$_]->query_until(qr/begun/, "\\echo begun\nCALL $calls[$_];\n\\echo ended :SQLSTATE\n") for 0 .. $#busy;
for my $cycle (1 .. 6)
{
	my $rows = $node->safe_psql('postgres', 'SELECT count(*) FROM busy');
	ok($node->poll_query_until('postgres', "SELECT count(*) > $rows + 300 FROM busy"), "at work, $cycle");
	my $dies = $cycle % 2;
	$dies ? $memory->kill9 : $memory->signal('STOP');
	node_becomes($node, $memory, 'down');
	$dies ? $memory->start : $memory->signal('CONT');
	node_becomes($node, $memory, 'up');
}
$node->safe_psql('postgres', 'DELETE FROM going_on');
like($_->query_until(qr/ended \w+/, "\n"), qr/ended 00000/, 'nothing failed') for @busy;
$_->quit for @busy;
index_is_sound($node, 'postgres', $_, 'after all of that') for ('busy_id', 'busy_v', 'big_id');

# Its memory is gone: there is nothing to wait for.
$memory->kill9;
node_becomes($node, $memory, 'down');
my ($session) = waiting('INSERT INTO numbers VALUES (8000, 8)');
$memory->forget;
$memory->start;
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE state = 'active' AND backend_type = 'client backend'"), 'a lost node ends the wait');
$session->quit;
is($node->safe_psql('postgres', 'SELECT count(*) FROM numbers WHERE id = 8000'), 0, 'with an error');
$node->stop;
log_is_quiet($node);
done_testing();
