# An index without a journal that has lost its content is not used, no query gets a wrong result, and it comes back by itself: the embedded
# region after an unclean stop.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

use SmartTest;

my @VERBOSE = (extra_params => [ '-v', 'VERBOSITY=verbose' ]);
my $QUERY = 'SELECT id FROM numbers WHERE id BETWEEN 100 AND 200 ORDER BY id';

my $node = smart_node('main', 'autovacuum = off', 'smart.auto_rebuild = off', 'max_prepared_transactions = 2');

sub error_of
{
	my ($statement) = @_;
	my ($status, undef, $err) = $node->psql('postgres', $statement, @VERBOSE);

	isnt($status, 0, "fails: $statement");
	return $err;
}

sub plan_of
{
	my ($query) = @_;

	return $node->safe_psql('postgres', "SET enable_seqscan = off; EXPLAIN (COSTS OFF) $query");
}

sub auto_rebuild
{
	my ($value) = @_;

	$node->adjust_conf('postgresql.conf', 'smart.auto_rebuild', $value);
	$node->reload;
	return;
}

# Databases that a session is connected to are not copied or dropped.
sub worker_ends
{
	return ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'smart rebuild'"), 'the worker ends');
}

# A crash after which the region cannot prove whose it is, and is not accepted.
sub crash
{
	$node->kill9;
	unlink $node->data_dir . '/smart/pgsql_tmp_run' or die $!;
	start_again($node);
	return;
}

$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION halves(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN $1 / 2; END $$;
CREATE TABLE numbers (id int, word text);
INSERT INTO numbers SELECT g, md5(g::text) FROM generate_series(1, 20000) g;
CREATE INDEX numbers_id ON numbers USING smart (id) WITH (logged = off);
CREATE INDEX numbers_half ON numbers USING smart (halves(id)) WITH (logged = off) WHERE id % 2 = 0;
CREATE TABLE keys (id int, v int) WITH (fillfactor = 50);
INSERT INTO keys SELECT g, g FROM generate_series(1, 1000) g;
CREATE UNIQUE INDEX keys_id ON keys USING smart (id) WITH (logged = off);
CREATE TABLE later (id int);
CREATE INDEX later_id ON later USING smart (id);
CREATE UNLOGGED TABLE forgetful (id int);
CREATE INDEX forgetful_id ON forgetful USING smart (id);
INSERT INTO forgetful SELECT generate_series(1, 100);
SQL
same_answers($node, 'postgres', $QUERY, 'before');
is(state_of($node, 'numbers_id'), 'ready', 'before: ready');

# ---- lost, and not rebuilt ----

crash();
is(state_of($node, 'numbers_id'), 'lost', 'a crash: lost');
like($node->safe_psql('postgres', "SELECT reason FROM smart_index_state WHERE index = 'numbers_id'::regclass"), qr/made anew/, 'with a reason');
is(state_of($node, 'forgetful_id'), 'empty', 'an unlogged table is empty, and so is its index');
is(state_of($node, 'later_id'), 'empty', 'an index without entries has nothing to lose');
unlike(plan_of($QUERY), qr/Index/, 'the planner does not see it');
is($node->safe_psql('postgres', "SET enable_seqscan = off; SELECT count(*), min(id), max(id) FROM numbers WHERE id BETWEEN 100 AND 200"),
	'101|100|200', 'queries read the table');
$node->safe_psql('postgres', 'INSERT INTO numbers SELECT g, md5(g::text) FROM generate_series(20001, 20100) g; UPDATE numbers SET id = id + 100000 WHERE id <= 10');
is($node->safe_psql('postgres', 'SELECT count(*) FROM numbers WHERE id > 20000'), '110', 'a table takes inserts and updates');
like($node->safe_psql('postgres', "SELECT reason FROM smart_index_state WHERE index = 'numbers_id'::regclass"), qr/inserted or removed/, 'which the metapage says');

my $lost = qr/ERROR:  55000: the content of index "keys_id" is lost.*DETAIL:.*HINT:.*REINDEX/s;
like(error_of('INSERT INTO keys VALUES (5000, 1)'), $lost, 'a unique index takes no inserts');
like(error_of('UPDATE keys SET id = 5000 WHERE id = 1'), $lost, 'nor updates of its columns');
like(error_of('INSERT INTO keys VALUES (1, 1) ON CONFLICT (id) DO NOTHING'), $lost, 'nor ON CONFLICT');
$node->safe_psql('postgres', 'UPDATE keys SET v = 0 WHERE id = 1; DELETE FROM keys WHERE id = 2');
is($node->safe_psql('postgres', 'SELECT count(*) FROM keys'), '999', 'what does not touch it goes on');

$node->safe_psql('postgres', 'DELETE FROM numbers WHERE id BETWEEN 11 AND 99');
my ($status, undef, $err) = $node->psql('postgres', 'VACUUM (INDEX_CLEANUP on) numbers');
is($status, 0, 'VACUUM does not fail over it');
like($err, qr/WARNING:  skipping index "numbers_id"/, 'but says that it was left out');
like(error_of("CLUSTER keys USING keys_id"), $lost, 'CLUSTER by it fails');
like(error_of("SELECT smart_index_check('keys_id', true)"), $lost, 'so does a check');

# A clean restart changes nothing.
$node->restart;
is(state_of($node, 'numbers_id'), 'lost', 'still lost after a restart');
$node->safe_psql('postgres', 'REINDEX INDEX numbers_half');
is(state_of($node, 'numbers_half'), 'ready', 'REINDEX makes it usable');
index_is_sound($node, 'postgres', 'numbers_half', 'after REINDEX');

# ---- rebuilt while it is read and written ----

my $session = $node->background_psql('postgres');
$session->query_safe("SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan; PREPARE q AS $QUERY; PREPARE i(int) AS INSERT INTO numbers VALUES (\$1)");
unlike($session->query_safe('EXPLAIN (COSTS OFF) EXECUTE q'), qr/Index/, 'a prepared statement does without it');
$session->query_safe('EXECUTE i(-1)');
my $writer = $node->background_psql('postgres');
$writer->query_safe("BEGIN; INSERT INTO numbers VALUES (-2, 'in time'); PREPARE i AS INSERT INTO numbers VALUES (-3, 'in time, too')");
$node->safe_psql('postgres', "BEGIN; INSERT INTO numbers VALUES (-4, 'prepared'); PREPARE TRANSACTION 'open'");
my $reader = $node->background_psql('postgres');
$reader->query_safe("BEGIN ISOLATION LEVEL REPEATABLE READ; SET enable_seqscan = off; SELECT count(*) FROM numbers");
my $offset = -s $node->logfile;
my $begun = $node->safe_psql('postgres', 'SELECT now()');
auto_rebuild('on');
becomes($node, 'keys_id', 'ready');
becomes($node, 'numbers_id', 'rebuilding');
ok($node->poll_query_until('postgres', 'SELECT command, phase, index_relid::regclass FROM pg_stat_progress_create_index',
	'REINDEX CONCURRENTLY|waiting for writers before build|numbers_id'), 'its progress is shown');
$node->safe_psql('postgres', "INSERT INTO numbers VALUES (-5, 'meanwhile')");
$session->query_safe('EXECUTE i(-6)');
$writer->query_safe('EXECUTE i');
unlike(plan_of($QUERY), qr/Index/, 'it is not used yet');
$node->safe_psql('postgres', "BEGIN; INSERT INTO numbers VALUES (-7, 'rolled back'); ROLLBACK");
$writer->query_safe('COMMIT');
sleep(0.3);
is(state_of($node, 'numbers_id'), 'rebuilding', 'a prepared transaction is waited for');
$node->safe_psql('postgres', "COMMIT PREPARED 'open'");
becomes($node, 'numbers_id', 'ready');
ok($node->wait_for_log(qr/smart index "numbers_id" has been rebuilt/, $offset), 'the log says so');
is($node->safe_psql('postgres', "SELECT since > '$begun', failures, last_error IS NULL FROM smart_index_state WHERE index = 'numbers_id'::regclass"), 't|0|t', 'and the view');
like($session->query_safe('EXPLAIN (COSTS OFF) EXECUTE q'), qr/Index/, 'a prepared statement uses it again');
is($session->query_safe('EXECUTE q'), join("\n", 100 .. 200), 'with the right result');
$session->query_safe('EXECUTE i(-8)');
same_answers($node, 'postgres', 'SELECT id FROM numbers WHERE id < 0 OR id > 20000 ORDER BY id', 'all rows are found');
is($reader->query_safe('SELECT count(*) FROM numbers WHERE id BETWEEN 1 AND 100000'), '20001', 'an older snapshot finds its rows');
index_is_sound($node, 'postgres', $_, 'rebuilt') for ('numbers_id', 'keys_id');
like(error_of('INSERT INTO keys VALUES (3, 3)'), qr/ERROR:  23505/, 'a unique index is one again');
$node->safe_psql('postgres', 'INSERT INTO keys VALUES (2, 2), (5000, 1); VACUUM keys');
index_is_sound($node, 'postgres', 'keys_id', 'used again');
$_->quit for ($session, $writer, $reader);

# ---- a rebuild that gives way, is cancelled, or fails ----

# lost: all indexes again, and a rebuild of numbers_id that waits for a writer.
sub begin_rebuild
{
	auto_rebuild('off');
	crash();
	my $open = $node->background_psql('postgres');
	$open->query_safe('BEGIN; INSERT INTO numbers VALUES (0, NULL)');
	auto_rebuild('on');
	becomes($node, 'numbers_id', 'rebuilding');
	return $open;
}

$writer = begin_rebuild();
$session = $node->background_psql('postgres');
$session->query_until(qr/waiting/, "\\echo waiting\nALTER TABLE numbers ADD COLUMN more int;\n");
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'");
ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_progress_create_index"), 'it gives way to a lock that another session waits for');
$writer->query_safe('INSERT INTO numbers VALUES (0, NULL)');
$writer->query_safe('COMMIT');
becomes($node, 'numbers_id', 'ready');
is($node->safe_psql('postgres', "SELECT failures FROM smart_index_state WHERE index = 'numbers_id'::regclass"), '0', 'which is no failure');
$_->quit for ($session, $writer);
becomes($node, 'numbers_half', 'ready');
index_is_sound($node, 'postgres', $_, 'it gave way') for ('numbers_id', 'numbers_half');

# One that has written already and wants more is not a deadlock's victim.
$writer = begin_rebuild();
$writer->query_safe('ALTER TABLE numbers DROP COLUMN more');
$writer->query_safe('COMMIT');
$writer->quit;
becomes($node, 'numbers_id', 'ready');
becomes($node, 'numbers_half', 'ready');
index_is_sound($node, 'postgres', $_, 'it gave way again') for ('numbers_id', 'numbers_half');

# Rows that are in the middle of something when they are read.
auto_rebuild('off');
crash();
$writer = $node->background_psql('postgres');
$writer->query_safe('BEGIN; UPDATE keys SET v = 0 WHERE id = 900');
auto_rebuild('on');
becomes($node, 'keys_id', 'rebuilding');
my @others = map { $node->background_psql('postgres') } (0 .. 1);
$others[$_]->query_safe("BEGIN; UPDATE keys SET v = -1 WHERE id IN (10 + $_, 20 + $_); DELETE FROM keys WHERE id = 30 + $_;
	UPDATE keys SET v = -2 WHERE id = 20 + $_") for (0 .. 1);
$writer->query_safe('COMMIT');
becomes($node, 'keys_id', 'ready');
$others[0]->query_safe('COMMIT');
$others[1]->query_safe('ROLLBACK');
$_->quit for ($writer, @others);
index_is_sound($node, 'postgres', 'keys_id', 'rows in the middle of something');
same_answers($node, 'postgres', 'SELECT id, v FROM keys WHERE id BETWEEN 1 AND 40 ORDER BY id', 'rows in the middle of something');
like(error_of("INSERT INTO keys VALUES ($_, 0)"), qr/ERROR:  23505/, "there is a $_") for (10, 11, 20, 21, 31);
$node->safe_psql('postgres', 'INSERT INTO keys VALUES (30, 30); VACUUM keys');
index_is_sound($node, 'postgres', 'keys_id', 'and VACUUM');

$writer = begin_rebuild();
my $pid = $node->safe_psql('postgres', 'SELECT pid FROM pg_stat_progress_create_index');
$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
ok($node->poll_query_until('postgres', "SELECT failures, last_error, state <> 'ready' FROM smart_index_state WHERE index = 'numbers_id'::regclass",
	'1|canceling statement due to user request|t'), 'a rebuild that was cancelled');
$node->safe_psql('postgres', 'INSERT INTO numbers VALUES (-9)');
is($node->safe_psql('postgres', "CREATE ROLE stranger; SET ROLE stranger; SELECT last_error IS NULL FROM smart_index_state WHERE index = 'numbers_id'::regclass"),
	't', 'its error is not for everybody');
$writer->query_safe('COMMIT');
$writer->quit;
becomes($node, 'numbers_id', 'ready');
index_is_sound($node, 'postgres', 'numbers_id', 'after another attempt');
worker_ends();
is($node->safe_psql('postgres', 'SELECT sum(trees) FROM smart_memory_nodes'), '3', 'nothing is left of older trees');

$writer = begin_rebuild();
$pid = $node->safe_psql('postgres', 'SELECT pid FROM pg_stat_progress_create_index');
$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
$node->safe_psql('postgres', 'INSERT INTO numbers VALUES (-10)');
$writer->query_safe('COMMIT');
$writer->quit;
becomes($node, 'numbers_id', 'ready');
index_is_sound($node, 'postgres', 'numbers_id', 'after the worker was terminated');

# The launcher, too, may be terminated: the next one goes on.
my $launcher = "FROM pg_stat_activity WHERE backend_type = 'smart launcher'";
worker_ends();
is($node->safe_psql('postgres', "SELECT string_agg(backend_type, ' ') FROM pg_stat_activity WHERE backend_type ~ '^smart ' AND backend_type NOT IN ('smart orphan collector', 'smart dead entry remover')"),
	'smart launcher', 'one process looks after everything');
auto_rebuild('off');
crash();
$pid = $node->safe_psql('postgres', "SELECT pid $launcher");
is($node->safe_psql('postgres', "SELECT pg_cancel_backend($pid), pg_terminate_backend($pid, 10000)"), 't|t', 'it can be terminated');
auto_rebuild('on');
becomes($node, $_, 'ready') for ('numbers_id', 'keys_id');
is($node->safe_psql('postgres', "SELECT count(*), bool_and(pid <> $pid) $launcher"), '1|t', 'and is there again');

# Rows that a unique index would not have taken.
auto_rebuild('off');
crash();
$node->safe_psql('postgres', <<'SQL');
UPDATE pg_index SET indisready = false WHERE indexrelid = 'keys_id'::regclass;
INSERT INTO keys VALUES (7, 7);
UPDATE pg_index SET indisready = true WHERE indexrelid = 'keys_id'::regclass;
SQL
auto_rebuild('on');
plan_of('SELECT v FROM keys WHERE id = 7');
ok($node->poll_query_until('postgres', "SELECT failures > 0 AND last_error ~ 'unique' AND state = 'lost' FROM smart_index_state WHERE index = 'keys_id'::regclass"),
	'duplicates are found out');
# Each attempt leaves a tree to be freed, which is no reason for the next one.
ok($node->poll_query_until('postgres', <<'SQL'), 'and are not looked for at once again');
SELECT next_attempt - since >= interval '4 s' FROM smart_index_state
WHERE index = 'keys_id'::regclass AND NOT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'smart rebuild')
SQL
$node->safe_psql('postgres', 'DELETE FROM keys WHERE ctid = (SELECT max(ctid) FROM keys WHERE id = 7)');
becomes($node, 'keys_id', 'ready');
index_is_sound($node, 'postgres', 'keys_id', 'without duplicates');

# ---- many writers ----

auto_rebuild('off');
crash();
auto_rebuild('on');
my $script = pgbench_script(<<'SQL');
\set id random(1, 20000)
INSERT INTO numbers VALUES (:id, 'bench');
UPDATE numbers SET id = id + 20000 WHERE ctid = (SELECT ctid FROM numbers WHERE id = :id LIMIT 1 FOR UPDATE SKIP LOCKED);
DELETE FROM numbers WHERE id = :id + 20000;
SQL
$node->command_ok([ 'pgbench', '-n', '-c', '4', '-T', '5', '-f', $script, $node->connstr('postgres') ], 'many write while it is rebuilt');
becomes($node, $_, 'ready') for ('numbers_id', 'numbers_half');
index_is_sound($node, 'postgres', $_, 'after many writes') for ('numbers_id', 'numbers_half');
$node->safe_psql('postgres', 'VACUUM numbers');
index_is_sound($node, 'postgres', $_, 'and VACUUM') for ('numbers_id', 'numbers_half');

# A database that goes away, and one that is copied.
worker_ends();
$node->safe_psql('postgres', 'CREATE DATABASE copied TEMPLATE postgres');
is($node->safe_psql('copied', "SET enable_seqscan = off; SELECT count(*) > 0 FROM numbers WHERE id = 500"), 't', 'a copy is right');
ok($node->poll_query_until('copied', "SELECT bool_and(state IN ('ready', 'empty')) FROM smart_index_state"), 'and has indexes of its own soon');
index_is_sound($node, 'copied', $_, 'copied') for ('numbers_id', 'keys_id');
worker_ends();
$node->safe_psql('postgres', 'DROP DATABASE copied');
index_is_sound($node, 'postgres', $_, 'the original') for ('numbers_id', 'keys_id');

# Without the library queries get their results, but not from an index.
$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', "''");
$node->adjust_conf('postgresql.conf', 'smart.auto_rebuild', undef);
$node->restart;
is($node->safe_psql('postgres', "SET enable_seqscan = off; SELECT count(*) > 0 FROM numbers WHERE id = 500"), 't', 'without the library');
$node->stop;
log_is_quiet($node);
done_testing();
