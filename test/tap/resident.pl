# Indexes that have no tree and are to have none (resident = never): the pages of their journals answer. CREATE INDEX, lookups,
# scans, duplicates, VACUUM and compaction as with a tree, in a region that would be too small for one; and they get a tree, and
# give it up, as the storage parameter says.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SmartTest;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', <<'CONF');
shared_preload_libraries = 'smart'
autovacuum = off
smart.wait_timeout = '60s'
smart.embedded_max_size = '16MB'
shared_buffers = 32MB
max_parallel_workers_per_gather = 0
CONF
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION smart');

sub sql
{
	return $node->safe_psql('postgres', $_[0]);
}

sub are_paged
{
	my ($name) = @_;

	is(sql(q{SELECT string_agg(DISTINCT state, ' ') FROM smart_index_state WHERE index::text LIKE 'rows_%'}), 'paged', "$name: no tree");
	return;
}

my @queries = (
	'SELECT a, c FROM rows WHERE a BETWEEN -100000000000000000 AND 100000000000000000 ORDER BY a',
	'SELECT a FROM rows WHERE a BETWEEN -100000000000000000 AND 100000000000000000 ORDER BY a DESC LIMIT 300',
	'SELECT count(*), sum(a::numeric) FROM rows WHERE a > 8000000000000000000',
	q{SELECT b, c FROM rows WHERE b = 'k77' ORDER BY c}, q{SELECT b, c FROM rows WHERE b >= 'new' ORDER BY b DESC, c DESC LIMIT 500},
	'SELECT b, c FROM rows WHERE c IN (1, 7, 500, 501, 9999, 19999, 1500005, 1000000) ORDER BY c',
	'SELECT c FROM rows WHERE c >= 1499990 ORDER BY c LIMIT 1000', 'SELECT count(*), sum(c) FROM rows WHERE c BETWEEN 100 AND 15000');

sub answers_are_right
{
	my ($name) = @_;

	same_answers($node, 'postgres', $_, "$name: $_") foreach (@queries);
	return;
}

sub all_are_sound
{
	my ($name) = @_;

	index_is_sound($node, 'postgres', $_, $name) foreach ('rows_a', 'rows_b', 'rows_c');
	return;
}

sub fails
{
	my ($statement, $code, $name) = @_;
	my (undef, undef, $complaint) = $node->psql('postgres', $statement, extra_params => [ '-v', 'VERBOSITY=verbose' ]);

	like($complaint, qr/ERROR:  $code:/, $name);
	return;
}

# ---- more than the region holds ----

sql(<<'SQL');
CREATE TABLE rows (a bigint, b text COLLATE "C", c int);
INSERT INTO rows SELECT hashint8extended(g, 0), 'k' || g % 5000, g FROM generate_series(1, 1500000) g;
SQL
fails('CREATE INDEX too_large ON rows USING smart (a) WITH (resident = always)', '53200', 'a tree has no room');
sql(<<'SQL');
CREATE INDEX rows_a ON rows USING smart (a) WITH (resident = never);
CREATE INDEX rows_b ON rows USING smart (b, c) WITH (resident = never);
ALTER TABLE rows ADD PRIMARY KEY (c) WITH (smart = on, resident = never);
ALTER INDEX rows_pkey RENAME TO rows_c;
SQL
are_paged('built');
is(sql('SELECT coalesce(sum(trees), 0) FROM smart_stat_space'), '0', 'there is no tree');
is(sql(q{SELECT sum(bytes) FROM smart_index_state}), '0', 'nor memory of any of them');
answers_are_right('built');
all_are_sound('built');
fails(q{SELECT smart_index_stats('rows_a')}, '55000', 'what only a tree has');

# Far more than the region's memory goes into the chains, in one transaction, which looks for duplicates all the time.
sql(q{INSERT INTO rows SELECT hashint8extended(g, 1), 'new' || g % 1000, g FROM generate_series(1500001, 2000000) g});
answers_are_right('500,000 rows more in one transaction');
fails('INSERT INTO rows VALUES (1, NULL, 500)', '23505', 'a duplicate of what the run has');
fails('INSERT INTO rows VALUES (1, NULL, 1699999)', '23505', 'a duplicate of what the chain has');
is(sql(q{INSERT INTO rows VALUES (5, 'conflict', 1500005), (6, 'none', 2000001) ON CONFLICT (c) DO UPDATE SET b = 'newer' RETURNING a <> 5, b, c}),
	"t|newer|1500005\nt|none|2000001", 'ON CONFLICT');
ok($node->poll_query_until('postgres', q{SELECT bool_and(run > 1) FROM smart_index_state, smart_index_pages(index)}), 'runs are written anew, without trees');
compaction_ends($node);
are_paged('compacted');
answers_are_right('compacted');
all_are_sound('compacted');

# ---- VACUUM ----

my $cursor = $node->background_psql('postgres');
sql('DELETE FROM rows WHERE c % 3 <> 0');
$cursor->query_safe('SET enable_seqscan = off; SET enable_sort = off; BEGIN; DECLARE c CURSOR FOR SELECT a FROM rows ORDER BY a');
my @all = split "\n", sql('SET enable_indexscan = off; SET enable_indexonlyscan = off; SELECT a FROM rows ORDER BY a');
is($cursor->query_safe('FETCH 100 FROM c'), join("\n", @all[0 .. 99]), 'an index-only scan begins');
my $offset = -s $node->logfile;
my $vacuum = $node->background_psql('postgres');
$vacuum->query_until(qr/begun/, "\\echo begun\nVACUUM rows;\n");
ok($node->wait_for_log(qr/bulk deletion in index "rows_[a-c]" waits for scans/, $offset), 'VACUUM waits for it');
is($cursor->query_safe('FETCH 900 FROM c'), join("\n", @all[100 .. 999]), 'it goes on meanwhile');
$cursor->query_safe('COMMIT');
$vacuum->quit;
are_paged('vacuumed');
answers_are_right('vacuumed');
my $table_size = sql('SELECT pg_relation_size($$rows$$)');
sql(q{INSERT INTO rows SELECT hashint8extended(g, 2), 'new' || g % 10, g FROM generate_series(1, 600000, 3) g});
cmp_ok(sql('SELECT pg_relation_size($$rows$$)'), '<=', $table_size * 1.01, 'the places of rows that were removed are used again');
answers_are_right('rows in their places');
fails('INSERT INTO rows VALUES (1, NULL, 4)', '23505', 'a duplicate of one of these');
compaction_ends($node);
sql('VACUUM rows');
compaction_ends($node);
all_are_sound('vacuumed twice');
is(sql('SELECT count(*) FROM rows WHERE c = 2'), '0', 'what was removed stays so');

# Nor does a scan return what was removed since it looked there: the table, whose pages are all visible then, is not asked for it.
sql('DELETE FROM rows WHERE c % 60 = 0');
$cursor->query_safe('SET enable_seqscan = off; SET enable_sort = off; BEGIN; DECLARE c CURSOR FOR SELECT a FROM rows ORDER BY a');
@all = split "\n", sql('SET enable_indexscan = off; SET enable_indexonlyscan = off; SELECT a FROM rows ORDER BY a');
is($cursor->query_safe('FETCH 10 FROM c'), join("\n", @all[0 .. 9]), 'another one begins');
$offset = -s $node->logfile;
$vacuum = $node->background_psql('postgres');
$vacuum->query_until(qr/begun/, "\\echo begun\nVACUUM rows;\n");
ok($node->wait_for_log(qr/bulk deletion in index "rows_a" waits for scans/, $offset), 'VACUUM waits for it');
is($cursor->query_safe('FETCH 100 FROM c'), join("\n", @all[10 .. 109]), 'it has the next entries');
$vacuum->quit;
is($cursor->query_safe('FETCH ALL FROM c'), join("\n", @all[110 .. $#all]), 'and all others when VACUUM has ended');
$cursor->query_safe('COMMIT');

# A statement that looks for each of its rows holds back no memory of what it has looked at before.
sql(q{INSERT INTO rows SELECT hashint8extended(g, 2), 'many', g FROM generate_series(1, 500000) g ON CONFLICT DO NOTHING});
is(sql('SELECT count(*) FROM rows WHERE c BETWEEN 1 AND 500000'), '500000', 'ON CONFLICT, half a million times');
compaction_ends($node);
answers_are_right('many conflicts');

# A cursor lasts while runs are written and pages are used anew, several times.
@all = split "\n", sql('SET enable_indexscan = off; SET enable_indexonlyscan = off; SELECT a FROM rows WHERE a > 8000000000000000000 ORDER BY a DESC');
$cursor->query_safe('SET enable_indexonlyscan = off; BEGIN; DECLARE c CURSOR FOR SELECT a FROM rows WHERE a > 8000000000000000000 ORDER BY a DESC');
is($cursor->query_safe('FETCH 10 FROM c'), join("\n", @all[0 .. 9]), 'a scan backward');
my $at = 10;
foreach my $round (1 .. 3)
{
	my $run = sql(q{SELECT run FROM smart_index_pages('rows_a')});

	sql("INSERT INTO rows SELECT hashint8extended(g, 3), 'later', g FROM generate_series(${round}000001 + 2000000, ${round}300000 + 2000000) g");
	ok($node->poll_query_until('postgres', "SELECT run > $run FROM smart_index_pages('rows_a')"), "round $round: another run");
	compaction_ends($node);
	is($cursor->query_safe('FETCH 1000 FROM c'), join("\n", @all[$at .. $at + 999]), 'the scan goes on');
	$at += 1000;
}
is($cursor->query_safe('FETCH ALL FROM c'), join("\n", @all[$at .. $#all]), 'to its end');
$cursor->query_safe('COMMIT');
$cursor->quit;

# ---- losses ----

lose_power($node);
start_again($node);
answers_are_right('after a power loss');
are_paged('after a power loss');
$node->stop('immediate');
$node->start;
answers_are_right('after a crash');
are_paged('after a crash');
my $path = $node->data_dir . '/' . sql(q{SELECT pg_relation_filepath('rows_a')});
my $root = sql(q{CHECKPOINT; SELECT pg_relation_size('rows_a') / 8192});
$node->stop;
open my $file, '+<:raw', $path or die "$path: $!";
foreach my $block (1 .. $root / 2)
{
	seek $file, $block * 8192, 0 or die $!;
	print $file "\0" x 8192 or die $!;
}
close $file or die $!;
$node->start;
fails('SET enable_seqscan = off; SELECT count(*) FROM rows WHERE a > -9000000000000000000', 'XX00[12]', 'damaged pages');
sql('DROP INDEX rows_a');
are_paged('the others');

# ---- it gets a tree, and gives it up ----

sql(<<'SQL');
TRUNCATE rows;
CREATE INDEX rows_a ON rows USING smart (a);
INSERT INTO rows SELECT hashint8extended(g, 0), 'k' || g % 5000, g FROM generate_series(1, 20000) g;
SET enable_seqscan = off;
SELECT count(*) FROM rows WHERE a > 0;
SQL
is(state_of($node, 'rows_a'), 'ready', 'an index with a tree');
is(state_of($node, 'rows_c'), 'paged', 'and, after TRUNCATE, one without');
# Sessions write and read while it comes and goes.
my $flips = $node->background_psql('postgres');
$flips->query_until(qr/begun/, join("\n", '\echo begun', map { "ALTER INDEX rows_a SET (resident = never);\nSELECT pg_sleep(0.3);\nALTER INDEX rows_a SET (resident = always);\nSELECT pg_sleep(0.3);" } 1 .. 8) . "\n");
$node->pgbench('--client=4 --time=5 --no-vacuum', 0, [qr/processed/], [qr/^$/], 'sessions that write and read', {'resident' => <<'SQL'});
\set c random(1, 25000)
SET enable_seqscan = off;
BEGIN;
DELETE FROM rows WHERE a = :c;
INSERT INTO rows VALUES (:c, 'k' || :c, 100000 + :c) ON CONFLICT (c) DO NOTHING;
SELECT count(*) FROM rows WHERE a = :c;
COMMIT;
SELECT count(*) FROM rows WHERE a BETWEEN :c AND :c + 50;
SQL
$flips->quit;
sql('ALTER INDEX rows_a SET (resident = never)');
ok($node->poll_query_until('postgres', q{SELECT count(*) >= 0 AND (SELECT state FROM smart_index_state WHERE index = 'rows_a'::regclass) = 'paged' FROM rows WHERE a = 1}), 'it gives up its tree');
ok($node->poll_query_until('postgres', q{SELECT coalesce(sum(trees), 0) <= 3 FROM smart_stat_space}), 'which is freed');
answers_are_right('sessions have written');
all_are_sound('sessions have written');
sql('ALTER INDEX rows_a RESET (resident)');
ok($node->poll_query_until('postgres', q{SELECT count(*) >= 0 AND (SELECT state FROM smart_index_state WHERE index = 'rows_a'::regclass) = 'ready' FROM rows WHERE a = 1}), 'it has a tree again');
answers_are_right('with a tree');
all_are_sound('with a tree');

# ---- transactions that make files ----

sql("SET allow_in_place_tablespaces = on; CREATE TABLESPACE place LOCATION ''");
is(sql(<<'SQL'), "1\n1\n1\n1\n0", 'an index of this transaction answers');
SET enable_seqscan = off;
BEGIN;
CREATE TABLE made (a int, b text);
CREATE UNIQUE INDEX made_a ON made USING smart (a) WITH (resident = never);
INSERT INTO made VALUES (1, 'x'), (2, 'y');
SELECT count(*) FROM made WHERE a = 1;
SAVEPOINT s;
ALTER INDEX made_a SET TABLESPACE place;
INSERT INTO made VALUES (3, 'z') ON CONFLICT DO NOTHING;
SELECT count(*) FROM made WHERE a = 3;
ROLLBACK TO s;
INSERT INTO made VALUES (3, 'again');
SELECT count(*) FROM made WHERE a = 3;
TRUNCATE made;
INSERT INTO made VALUES (3, 'truncated');
SELECT count(*) FROM made WHERE a = 3;
SELECT count(*) FROM made WHERE a = 1;
COMMIT;
SQL
is(state_of($node, 'made_a'), 'paged', 'and afterwards');
index_is_sound($node, 'postgres', 'made_a', 'made in a transaction');
sql('BEGIN; TRUNCATE made; INSERT INTO made VALUES (7, $$gone$$); ROLLBACK');
is(sql('SET enable_seqscan = off; SELECT a FROM made WHERE a > 0'), '3', 'a truncation was rolled back');
sql('REINDEX INDEX made_a; REINDEX INDEX CONCURRENTLY made_a; ALTER TABLE made ALTER a TYPE bigint');
is(state_of($node, 'made_a'), 'paged', 'built anew');
sql('CREATE INDEX CONCURRENTLY made_b ON made USING smart (b) WITH (resident = never)');
is(state_of($node, 'made_b'), 'paged', 'built concurrently');
index_is_sound($node, 'postgres', $_, 'built anew') foreach ('made_a', 'made_b');

# A page that is damaged: the index is rebuilt from its table, and then without a tree again.
sql('INSERT INTO made SELECT g, g FROM generate_series(100, 5000) g; REINDEX INDEX made_a; CHECKPOINT');
$path = $node->data_dir . '/' . sql(q{SELECT pg_relation_filepath('made_a')});
$node->stop;
open $file, '+<:raw', $path or die "$path: $!";
seek $file, 8192, 0 or die $!;
print $file "\0" x 8192 or die $!;
close $file or die $!;
$offset = -s $node->logfile;
$node->start;
fails('SET enable_seqscan = off; SELECT count(*) FROM made WHERE a > 0', 'XX00[12]', 'a damaged page');
ok($node->wait_for_log(qr/smart index "made_a" has been rebuilt/, $offset), 'it is rebuilt by itself');
# Without a query in between, which would hide that it is rebuilt a second time.
ok($node->wait_for_log(qr/smart index "made_a" has left memory/, $offset), 'and leaves memory');
ok($node->poll_query_until('postgres', q{SELECT count(*) = 1 AND (SELECT state FROM smart_index_state WHERE index = 'made_a'::regclass) = 'paged' FROM made WHERE a = 3}), 'and without a tree again');
is(sql('SET enable_seqscan = off; SELECT count(*) FROM made WHERE a > 0'), '4902', 'with all rows');
index_is_sound($node, 'postgres', 'made_a', 'rebuilt');

# The damage is forgotten: a worker that looks at all indexes leaves this one alone.
$offset = -s $node->logfile;
foreach my $way ([ 'always', 'ready' ], [ 'never', 'paged' ])
{
	sql("ALTER INDEX made_b SET (resident = $way->[0]); SELECT count(*) FROM made WHERE b = '3'");
	becomes($node, 'made_b', $way->[1]);
}
unlike(slurp_file($node->logfile, $offset), qr/"made_a"/, 'it is rebuilt once');
index_is_sound($node, 'postgres', 'made_a', 'rebuilt once');

# Where there is no journal the parameter has no effect.
sql(<<'SQL');
CREATE UNLOGGED TABLE unlogged (a int);
CREATE INDEX unlogged_a ON unlogged USING smart (a) WITH (resident = never);
INSERT INTO unlogged VALUES (1);
CREATE INDEX made_none ON made USING smart (b) WITH (resident = never, logged = off);
SQL
is(state_of($node, $_), 'ready', "$_ has a tree") foreach ('unlogged_a', 'made_none');
sql('DROP TABLE unlogged; DROP INDEX made_none');
sql('DROP TABLESPACE place');

# ---- a standby ----

$node->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'backup', has_streaming => 1);
$standby->start;
sql(q{DELETE FROM rows WHERE c % 5 = 0; VACUUM rows; INSERT INTO made VALUES (10, 'ten')});
$node->wait_for_catchup($standby);
is(state_of($standby, 'made_a'), 'paged', 'a standby has none either');
is($standby->safe_psql('postgres', 'SET enable_seqscan = off; SELECT a FROM made WHERE a BETWEEN 4 AND 50'), '10', 'and answers');
$node->stop;
$standby->promote;
$node = $standby;
$node->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die;
ok($node->poll_query_until('postgres', q{SELECT count(*) = 1 AND (SELECT state FROM smart_index_state WHERE index = 'made_a'::regclass) = 'paged' FROM made WHERE a = 10}), 'nor after its promotion');
fails(q{INSERT INTO made VALUES (10, 'twice')}, '23505', 'which answers, too');
answers_are_right('promoted');
all_are_sound('promoted');
log_is_quiet($node);
$node->stop;
done_testing;
