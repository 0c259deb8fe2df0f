# An index that has lost its tree answers from the pages of its journal: the same rows as its table, in either direction, while
# others write, and looks for duplicates there; and goes on in the tree when that has been loaded, or when its pages have been
# used anew. Nothing waits for the tree: smart.wait_timeout is 0.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SmartTest;
use Test::More;

my $node = smart_node('main', 'autovacuum = off', 'shared_buffers = 32MB', 'smart.wait_timeout = 0',
	'max_parallel_workers_per_gather = 0', 'max_prepared_transactions = 2', 'restart_after_crash = on');

sub sql
{
	return $node->safe_psql('postgres', $_[0]);
}

# The server loses its trees, and has no worker that could load them.
sub lose
{
	lose_power($node);
	$node->append_conf('postgresql.conf', 'max_worker_processes = 0');
	start_again($node);
	return;
}

# A server that has workers again, or a session that keeps them out, loads what is lost.
sub with_workers
{
	$node->append_conf('postgresql.conf', 'max_worker_processes = 8');
	$node->restart;
	ok(indexes_become($node, q{'ready', 'empty'}), 'all are loaded');
	return;
}

# Each index has one tree, and there are no others.
sub no_delta_is_left
{
	my ($name) = @_;

	ok($node->poll_query_until('postgres', q{SELECT trees = (SELECT count(*) FROM smart_index_state WHERE state = 'ready') FROM smart_stat_space WHERE database = 'postgres'}),
		"$name: no delta is left over");
	return;
}

sub stays_lost
{
	my ($name) = @_;

	is(sql(q{SELECT string_agg(DISTINCT state, ' ') FROM smart_index_state WHERE index::text LIKE 'rows_%'}), 'lost', "$name: no tree");
	return;
}

# What a query returns by the index in the place where its plan has one, and by the table.
my @queries = (
	'SELECT a, c FROM rows WHERE a = (SELECT a FROM rows WHERE c = 777)',
	'SELECT a, c FROM rows WHERE a BETWEEN -1000000000000000000 AND 1000000000000000000 ORDER BY a',
	'SELECT a, c FROM rows WHERE a BETWEEN -1000000000000000000 AND 1000000000000000000 ORDER BY a DESC',
	'SELECT a FROM rows ORDER BY a LIMIT 300',
	'SELECT a FROM rows ORDER BY a DESC LIMIT 300',
	'SELECT a FROM rows WHERE a > 0 ORDER BY a LIMIT 5',
	'SELECT a FROM rows WHERE a < 0 ORDER BY a DESC LIMIT 5',
	'SELECT count(*), sum(a::numeric) FROM rows WHERE a < 5000000000000000000',
	q{SELECT b, c FROM rows WHERE b = 'common' ORDER BY c},
	q{SELECT b, c FROM rows WHERE b = 'common' ORDER BY c DESC},
	q{SELECT b, c FROM rows WHERE b >= 'f' ORDER BY b, c},
	q{SELECT b, c FROM rows WHERE b >= 'f' ORDER BY b DESC, c DESC},
	q{SELECT b, c FROM rows WHERE b LIKE 'ab%' ORDER BY b, c},
	'SELECT b, c FROM rows WHERE c IN (1, 7, 500, 501, 9999, 19999, 20005, 100000) ORDER BY c',
	'SELECT b, c FROM rows WHERE c IN (1, 7, 500, 501, 9999, 19999, 20005, 100000) ORDER BY c DESC',
	q{SELECT b, c FROM rows WHERE b IN ('common', 'added', 'nothing') ORDER BY b, c},
	'SELECT c FROM rows WHERE c >= 19990 ORDER BY c',
	'SELECT count(*) FROM rows WHERE b IS NULL',
	'SELECT count(*), sum(c) FROM rows WHERE c BETWEEN 100 AND 15000',
	'SELECT x.c, y.a FROM rows x JOIN rows y ON y.a = x.a WHERE x.c BETWEEN 300 AND 400 ORDER BY x.c');

sub answers_are_right
{
	my ($name) = @_;

	same_answers($node, 'postgres', $_, "$name: $_") foreach (@queries);
	return;
}

sub make_rows
{
	sql(<<'SQL');
CREATE TABLE rows (a bigint, b text COLLATE "C", c int);
INSERT INTO rows SELECT hashint8extended(g, 0), CASE WHEN g % 50 = 0 THEN 'common' WHEN g % 77 <> 0 THEN md5(g::text) END, g FROM generate_series(1, 20000) g;
CREATE INDEX rows_a ON rows USING smart (a);
CREATE INDEX rows_b ON rows USING smart (b, c);
CREATE UNIQUE INDEX rows_c ON rows USING smart (c) INCLUDE (b);
CREATE INDEX rows_part ON rows USING smart (c) WHERE b IS NULL;
CREATE TABLE excluded (a int, EXCLUDE USING smart (a WITH =));
INSERT INTO excluded SELECT generate_series(1, 10);
CREATE TABLE gone AS SELECT generate_series(1, 100) AS a;
CREATE INDEX gone_a ON gone USING smart (a);
CREATE TABLE deferred (a int, UNIQUE (a) WITH (smart = on) DEFERRABLE INITIALLY DEFERRED);
SQL
	return;
}

# ---- from run and chain ----

make_rows();
sql('SET smart.constraints = on; CREATE TABLE refers (c int REFERENCES rows (c))');
lose();
stays_lost('a run alone');
answers_are_right('a run alone');
stays_lost('nothing was waited for');

with_workers();
sql(q{DELETE FROM rows WHERE c % 3 = 0; VACUUM rows});
sql(q{INSERT INTO rows SELECT hashint8extended(g, 1), CASE WHEN g % 50 = 0 THEN 'added' ELSE md5(g::text) END, g FROM generate_series(20001, 26000) g});
sql(q{UPDATE rows SET b = b || 'x', a = a + 1 WHERE c % 10 = 1; DELETE FROM rows WHERE c % 11 = 0; VACUUM rows});
sql(q{INSERT INTO rows SELECT hashint8extended(g, 2), 'again', g FROM generate_series(33, 19999, 33) g ON CONFLICT DO NOTHING});
lose();
answers_are_right('a run and a chain');
stays_lost('a run and a chain');

# ---- while others write ----

my $mine = $node->background_psql('postgres');
my $old = $node->background_psql('postgres');
$old->query_safe('SET enable_seqscan = off; BEGIN ISOLATION LEVEL REPEATABLE READ');
my $before = $old->query_safe('SELECT count(*), sum(a::numeric) FROM rows WHERE a < 9000000000000000000');
$mine->query_safe(q{SET enable_seqscan = off; BEGIN; INSERT INTO rows VALUES (42, 'mine', 700042), (43, 'mine', 700043)});
is($mine->query_safe(q{SELECT a FROM rows WHERE b = 'mine' ORDER BY c}), "42\n43", 'a transaction sees its own rows');
$mine->query_safe(q{SAVEPOINT s; INSERT INTO rows VALUES (44, 'mine', 700044); UPDATE rows SET b = 'his' WHERE a = 43});
is($mine->query_safe(q{SELECT a FROM rows WHERE b = 'mine' ORDER BY c}), "42\n44", 'and those of its subtransaction');
$mine->query_safe('ROLLBACK TO s');
is($mine->query_safe(q{SELECT a FROM rows WHERE b = 'mine' ORDER BY c DESC}), "43\n42", 'and not those when it is rolled back');
is(sql(q{SET enable_seqscan = off; SELECT count(*) FROM rows WHERE b = 'mine'}), '0', 'others see none of it');
$mine->query_safe('COMMIT');
is(sql(q{SET enable_seqscan = off; SELECT count(*) FROM rows WHERE b = 'mine'}), '2', 'until it commits');
sql(q{DELETE FROM rows WHERE a = 43; UPDATE rows SET a = a - 1 WHERE c % 10 = 2});
answers_are_right('after other changes');
is($old->query_safe('SELECT count(*), sum(a::numeric) FROM rows WHERE a < 9000000000000000000'), $before, 'an older snapshot sees what it saw');
$old->query_safe('COMMIT');
stays_lost('others have written');

# ---- unique indexes ----

my @verbose = (extra_params => [ '-v', 'VERBOSITY=verbose' ]);
sub fails
{
	my ($statement, $code, $name) = @_;
	my (undef, undef, $complaint) = $node->psql('postgres', $statement, @verbose);

	like($complaint, qr/ERROR:  $code:/, $name);
	return;
}
fails('INSERT INTO rows VALUES (1, NULL, 500)', '23505', 'a duplicate of what the run has');
fails('INSERT INTO rows VALUES (1, NULL, 20003)', '23505', 'a duplicate of what the chain has');
fails('INSERT INTO rows VALUES (1, NULL, 700042)', '23505', 'a duplicate of what was inserted a moment ago');
fails('INSERT INTO rows VALUES (1, NULL, 200000), (2, NULL, 200000)', '23505', 'two rows of one statement');
fails('UPDATE rows SET c = 700042 WHERE a = (SELECT a FROM rows WHERE c = 500)', '23505', 'an update');
sql('INSERT INTO rows VALUES (1, NULL, 200000), (2, NULL, NULL), (3, NULL, NULL)');
sql('DELETE FROM rows WHERE c = 200000; INSERT INTO rows VALUES (4, NULL, 200000)');
is(sql(q{INSERT INTO rows VALUES (5, 'conflict', 200000), (6, 'no conflict', 200001) ON CONFLICT (c) DO UPDATE SET b = 'updated' RETURNING a, b, c}),
	"4|updated|200000\n6|no conflict|200001", 'ON CONFLICT');
sql(q{INSERT INTO excluded VALUES (11)});
fails('INSERT INTO excluded VALUES (5)', '23P01', 'a row that an exclusion constraint excludes');
fails('INSERT INTO excluded VALUES (11)', '23P01', 'by one of a moment ago');
sql('INSERT INTO deferred VALUES (1), (11); BEGIN; UPDATE deferred SET a = a + 1; UPDATE deferred SET a = 100 WHERE a = 12; COMMIT');
fails('BEGIN; UPDATE deferred SET a = 2 WHERE a = 100; COMMIT', '23505', 'a deferred constraint');
fails('INSERT INTO refers VALUES (7777777)', '23503', 'a foreign key that refers to no row');
sql('INSERT INTO refers VALUES (700042)');
fails('DELETE FROM rows WHERE c = 700042', '23503', 'a row that is referred to');

# Who inserts the same key waits for the other.
$mine->query_safe('BEGIN; INSERT INTO rows VALUES (7, NULL, 300000)');
my $waits = $node->background_psql('postgres', on_error_stop => 0);
$waits->query_until(qr/begun/, "\\echo begun\nINSERT INTO rows VALUES (8, NULL, 300000);\n");
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%300000%'}) or die 'nobody waits';
$mine->query_safe('COMMIT');
$waits->quit;
is(sql('SELECT string_agg(a::text, $$,$$) FROM rows WHERE c = 300000'), '7', 'the second of two inserts of one key fails');
stays_lost('duplicates were looked for');

# ---- VACUUM ----

# It removes entries without a tree, and their places serve other rows.
sql(q{DELETE FROM rows WHERE c BETWEEN 5000 AND 9000; VACUUM rows});
stays_lost('VACUUM');
answers_are_right('VACUUM');
sql(q{INSERT INTO rows SELECT hashint8extended(g, 5), 'in their places', g FROM generate_series(5000, 7000) g});
answers_are_right('rows in the places of others');
is(sql(q{SET enable_seqscan = off; SELECT count(*) FROM rows WHERE c BETWEEN 7001 AND 9000}), '0', 'what was removed stays so');

# ---- files that change ----

sql("SET allow_in_place_tablespaces = on; CREATE TABLESPACE place LOCATION ''");
sql("BEGIN; ALTER INDEX rows_a SET TABLESPACE place; INSERT INTO rows VALUES (77, 'moved', 800000); ROLLBACK");
answers_are_right('a move to a tablespace was rolled back');
sql("BEGIN; ALTER INDEX rows_a SET TABLESPACE place; COMMIT; INSERT INTO rows VALUES (77, 'moved', 800000)");
answers_are_right('moved to a tablespace');
sql('SET enable_seqscan = off; SELECT count(*) FROM gone WHERE a > 50; DROP TABLE gone');
stays_lost('files have changed');

# What was read before the end of its WAL may be gone after a crash, and is read again.
my $killed = $node->background_psql('postgres');
my $pid = $killed->query_safe('SELECT pg_backend_pid()');
$mine->query_safe("BEGIN; SET LOCAL synchronous_commit = off; INSERT INTO rows SELECT g, 'lost', NULL FROM generate_series(1, 100) g; COMMIT");
is(sql(q{SET enable_seqscan = off; SELECT count(*) FROM rows WHERE b = 'lost'}), '100', 'rows of a moment ago');
kill 'KILL', $pid;
is_gone($node, $pid);
foreach my $session ($killed, $mine, $old)
{
	$session->{run}->kill_kill;
}
$node->poll_query_until('postgres', 'SELECT true') or die 'the server does not come back';
stays_lost('a backend has crashed');
answers_are_right('a backend has crashed');
($mine, $old) = map { $node->background_psql('postgres') } 1 .. 2;

# Many sessions, few keys.
$node->pgbench('--client=6 --transactions=300 --no-vacuum', 0, [qr/processed: 1800/], [qr/^$/], 'sessions that insert the same keys',
	{'paged_unique' => <<'SQL'});
\set c random(400000, 400200)
INSERT INTO rows VALUES (:c, 'unique', :c) ON CONFLICT (c) DO NOTHING;
\set d random(400000, 400200)
DELETE FROM rows WHERE c = :d;
SQL
is(sql('SET enable_indexscan = off; SET enable_bitmapscan = off; SELECT count(*) FROM (SELECT c FROM rows WHERE c IS NOT NULL GROUP BY c HAVING count(*) > 1) twice'), '0',
	'no key is there twice');
answers_are_right('unique keys');

# Many changes, read from time to time by several sessions at once.
$node->pgbench('--client=4 --transactions=150 --no-vacuum', 0, [qr/processed: 600/], [qr/^$/], 'sessions that write and read',
	{'paged_write' => <<'SQL', 'paged_read' => <<'SQL'});
\set c random(100000, 100400)
SET enable_seqscan = off;
BEGIN;
DELETE FROM rows WHERE b = 'k' || :c;
INSERT INTO rows VALUES (:c, 'k' || :c);
SELECT 1 / (count(*) - count(*) + 1) FROM rows WHERE b = 'k' || :c;
COMMIT;
SQL
\set c random(100000, 100400)
SET enable_seqscan = off;
SELECT count(*) FROM rows WHERE b >= 'k' AND b < 'l';
SELECT b FROM rows WHERE b >= 'k' AND b < 'l' ORDER BY b DESC, c DESC LIMIT 20;
SQL
answers_are_right('after sessions that write and read');

# ---- cursors ----

my $by_table = sql(q{SELECT string_agg(a::text, ',' ORDER BY a) FROM rows});
my @all = split ',', $by_table;
my $cursor = $node->background_psql('postgres');
$cursor->query_safe(q{SET enable_seqscan = off; SET enable_sort = off; BEGIN; DECLARE c SCROLL CURSOR FOR SELECT a FROM rows ORDER BY a});
is($cursor->query_safe('FETCH 100 FROM c'), join("\n", @all[0 .. 99]), 'a cursor forward');
is($cursor->query_safe('FETCH BACKWARD 50 FROM c'), join("\n", reverse @all[49 .. 98]), 'and backward');
is($cursor->query_safe('FETCH 1000 FROM c'), join("\n", @all[50 .. 1049]), 'and forward again');
is($cursor->query_safe('FETCH LAST FROM c'), $all[-1], 'to its end');
is($cursor->query_safe('MOVE BACKWARD 10 FROM c; FETCH BACKWARD 3 FROM c'), join("\n", reverse @all[-14 .. -12]), 'and back');
$cursor->query_safe('FETCH ABSOLUTE 2000 FROM c');

# ---- a tree comes ----

# A session that keeps workers out loads an index itself, if it must have the tree.
with_workers();
$cursor->quit;
answers_are_right('loaded');
index_is_sound($node, 'postgres', $_, 'loaded') foreach ('rows_a', 'rows_b', 'rows_c', 'rows_part');
no_delta_is_left('loaded');
$_->quit foreach ($mine, $old);

# ---- damage ----

sql(<<'SQL');
CREATE TABLE harmed AS SELECT g AS a, md5(g::text) AS b FROM generate_series(1, 10000) g;
CREATE UNIQUE INDEX harmed_a ON harmed USING smart (a) INCLUDE (b);
BEGIN;
LOCK TABLE harmed IN SHARE MODE;
PREPARE TRANSACTION 'keeps out';
CHECKPOINT;
SQL
my $path = $node->data_dir . '/' . sql(q{SELECT pg_relation_filepath('harmed_a')});
lose_power($node);
open my $file, '+<:raw', $path or die "$path: $!";
seek $file, 3 * 8192, 0 or die $!;
print $file "\0" x 8192 or die $!;
close $file or die $!;
start_again($node);
my $offset = -s $node->logfile;
fails('SET enable_seqscan = off; SELECT count(b) FROM harmed WHERE a > 0', 'XX00[12]', 'a damaged page');
is(sql('SET enable_seqscan = off; SELECT a FROM harmed WHERE a < 10 ORDER BY a LIMIT 1'), '1', 'others answer');
sql(q{COMMIT PREPARED 'keeps out'});
becomes($node, 'harmed_a', 'ready');
ok($node->log_contains(qr/smart index "harmed_a" has been rebuilt/, $offset), 'it is rebuilt by itself');
index_is_sound($node, 'postgres', 'harmed_a', 'rebuilt');

# ---- pages that go ----

# Workers are kept out by a lock until a cursor is open. Then the index is loaded, its run is written anew, and the pages of the
# run that the cursor reads are used for other things.
sql(<<'SQL');
CREATE TABLE large (a bigint, b text COLLATE "C");
INSERT INTO large SELECT hashint8extended(g, 0), md5(g::text) FROM generate_series(1, 100000) g;
CREATE INDEX large_a ON large USING smart (a);
CREATE UNIQUE INDEX large_b ON large USING smart (b);
DELETE FROM large WHERE a % 5 <> 0;
BEGIN;
LOCK TABLE large IN SHARE MODE;
PREPARE TRANSACTION 'keeps out';
SQL
lose_power($node);
start_again($node);
is(state_of($node, 'large_a'), 'lost', 'a worker is kept out');
my @large = split "\n", sql('SELECT a FROM large ORDER BY a');
my @texts = split "\n", sql('SELECT b FROM large ORDER BY b');
my @cursors = map { $node->background_psql('postgres') } 1 .. 3;
$_->query_safe('SET enable_seqscan = off; SET enable_sort = off; BEGIN') foreach (@cursors);
$cursors[0]->query_safe('DECLARE c SCROLL CURSOR FOR SELECT a FROM large ORDER BY a');
$cursors[1]->query_safe('SET enable_indexonlyscan = off; DECLARE c SCROLL CURSOR FOR SELECT b FROM large ORDER BY b DESC');
$cursors[2]->query_safe('DECLARE c SCROLL CURSOR FOR SELECT a FROM large ORDER BY a');
is($cursors[0]->query_safe('FETCH 500 FROM c'), join("\n", @large[0 .. 499]), 'an index-only scan');
is($cursors[1]->query_safe('FETCH 500 FROM c'), join("\n", reverse @texts[-500 .. -1]), 'a scan backward');
is(sql('SET enable_seqscan = off; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_index_scan_size = 0; SET max_parallel_workers_per_gather = 3;
	SET min_parallel_table_scan_size = 0; SELECT count(*), sum(a::numeric) FROM large WHERE a > -9000000000000000000'),
	sql('SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off; SELECT count(*), sum(a::numeric) FROM large WHERE a > -9000000000000000000'),
	'a parallel scan');
is(state_of($node, 'large_a'), 'lost', 'it is still kept out');
sql(q{COMMIT PREPARED 'keeps out'});
ok(indexes_become($node, q{'ready', 'empty'}), 'it is loaded');
my %run = map { $_ => sql("SELECT run FROM smart_index_pages('$_')") } ('large_a', 'large_b');
my $vacuum = $node->background_psql('postgres');
my $before_vacuum = -s $node->logfile;
# It waits for the first cursor, which pins what it has read.
$vacuum->query_until(qr/begun/, "\\echo begun\nVACUUM large;\n");
ok($node->wait_for_log(qr/bulk deletion in index "large_a" waits for scans/, $before_vacuum), 'VACUUM waits for a scan that has begun on pages');
is($cursors[0]->query_safe('FETCH 5000 FROM c'), join("\n", @large[500 .. 5499]), 'the index-only scan goes on in the tree');
$vacuum->quit;
foreach my $index (sort keys %run)
{
	ok($node->poll_query_until('postgres', "SELECT run > $run{$index} AND unfinished_pages = 0 FROM smart_index_pages('$index')"), "$index has another run");
}
# The worker has told which pages are free when it ends. The chain takes those of the run before, so the file does not grow.
compaction_ends($node);
my $size = sql(q{SELECT pg_relation_size('large_b')});
sql('INSERT INTO large SELECT hashint8extended(g, 1), md5(-g || $$new$$) FROM generate_series(1, 80000) g');
is(sql(q{SELECT pg_relation_size('large_b')}), $size, 'pages are used anew');
cmp_ok(sql(q{SELECT chain_pages FROM smart_index_pages('large_b')}), '>', 200, 'many of them');
is($cursors[0]->query_safe('FETCH 500 FROM c'), join("\n", @large[5500 .. 5999]), 'and on, where the run has gone');
is($cursors[1]->query_safe('FETCH 18000 FROM c'), join("\n", reverse @texts[-18500 .. -501]), 'a scan goes on where pages have been used anew');
is($cursors[1]->query_safe('FETCH BACKWARD 5 FROM c'), join("\n", @texts[-18499 .. -18495]), 'and back');
is($cursors[2]->query_safe('FETCH 3 FROM c'), join("\n", @large[0 .. 2]), 'one that begins then');
$_->quit foreach (@cursors);
is(sql(q{SELECT string_agg(state, ' ') FROM smart_index_state WHERE state NOT IN ('ready', 'empty')}), '', 'all is there');
index_is_sound($node, 'postgres', $_, 'after all') foreach ('large_a', 'large_b');
no_delta_is_left('after all');
my $log = slurp_file($node->logfile);
unlike($log, qr/PANIC|TRAP:|assertion/, 'the server log has no crash');
is(scalar(() = $log =~ /terminated by signal/g), 1, 'but the one that was wanted');
$node->stop;
done_testing;
