# Nested loops that look ahead: the same rows as without, for few round trips; in the plans, and only in those, that it is meant
# for; beside VACUUM, and what the statement itself changes.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartMemnode;
use SmartTest;

my @memory = map { SmartMemnode->new($_, '--size=256M') } ('one', 'two');
my $node = smart_node('main', 'autovacuum = off', 'smart.memory_nodes = ' . addresses(@memory), 'max_parallel_workers_per_gather = 0');

# Outer rows come in no order of the inner keys; one of ten has none, some have several, some are NULL.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE orders (id int, item bigint, word varchar, note text);
INSERT INTO orders SELECT g, CASE WHEN g % 17 > 0 THEN abs(hashint8(g)) % 24000 END, 'w' || abs(hashint8(g)) % 5000, repeat('x', g % 90)
FROM generate_series(1, 6000) g;
CREATE TABLE items (id bigint, part int, word text, name text);
INSERT INTO items SELECT abs(hashint8(g)) % 22000, g % 3, 'w' || g % 5000, 'name ' || g FROM generate_series(1, 30000) g;
CREATE INDEX items_id ON items USING smart (id, part) INCLUDE (name);
CREATE INDEX items_word ON items USING smart (word COLLATE "C");
CREATE TABLE pairs (a int, b int);
INSERT INTO pairs SELECT g % 100, g FROM generate_series(1, 4000) g;
CREATE INDEX pairs_b ON pairs USING smart (b);
CREATE SEQUENCE counter;
CREATE FUNCTION counted(int) RETURNS int LANGUAGE sql VOLATILE AS 'SELECT $1 + 0 * nextval(''counter'')::int';
VACUUM ANALYZE orders, items, pairs;
SQL

my $loops = 'SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off; SET enable_bitmapscan = off; ';
my $inner = $loops . 'SET enable_memoize = off; ';

# Answer and round trips of the inner scans, in a session of its own.
sub run_join
{
	my ($ahead, $query, $settings) = @_;
	my $out = $node->safe_psql('postgres', <<"SQL");
SET client_min_messages = warning; ${settings} SET smart.batching = $ahead;
SELECT session_round_trips AS before FROM smart_stat_fabric \\gset
$query;
SELECT 'trips', session_round_trips - :before FROM smart_stat_fabric;
SQL
	my ($answer, $trips) = $out =~ /(.*?)\n?trips\|(\d+)$/s;
	return ($answer, $trips);
}

sub shows
{
	my ($query, $settings) = @_;

	return $node->safe_psql('postgres', "$settings EXPLAIN (COSTS OFF) $query") =~ /Smart Lookahead/;
}

# ---- the plans that it is meant for ----

my %fit = (
	'heap' => 'SELECT count(*), sum(hashtext(i.name)::bigint), sum(o.id) FROM orders o JOIN items i ON i.id = o.item WHERE i.word IS NOT NULL',
	'index only' => 'SELECT count(*), sum(i.part) FROM orders o JOIN items i ON i.id = o.item',
	'two columns' => 'SELECT count(*), sum(hashtext(i.name)::bigint) FROM orders o JOIN items i ON i.id = o.item AND i.part = o.id % 1 + 1 AND i.part = 1',
	'range' => 'SELECT count(*), sum(i.part) FROM (SELECT * FROM orders WHERE id <= 700) o JOIN items i ON i.id > o.item AND i.id < 40',
	'left join' => 'SELECT count(*), count(i.id), sum(hashtext(i.name)::bigint) FROM orders o LEFT JOIN items i ON i.id = o.item AND i.word <> \'w1\'',
	'semijoin' => 'SELECT count(*), sum(o.id) FROM orders o WHERE EXISTS (SELECT FROM items i WHERE i.id = o.item AND i.word < \'w3\')',
	'antijoin' => 'SELECT count(*), sum(o.id) FROM orders o WHERE NOT EXISTS (SELECT FROM items i WHERE i.id = o.item AND i.word < \'w3\')',
	'varchar and text' => 'SELECT count(*), sum(hashtext(i.name)::bigint) FROM orders o JOIN items i ON i.word = o.word COLLATE "C"',
	'three tables' => 'SELECT count(*), sum(p.a) FROM orders o JOIN items i ON i.id = o.item JOIN pairs p ON p.b = i.part AND p.b = o.id',
	'lateral' => 'SELECT count(*), sum(x.part) FROM orders o, LATERAL (SELECT part FROM items i WHERE i.id = o.item ORDER BY part LIMIT 1) x',
	'union' => 'SELECT count(*), sum(i.part) FROM (SELECT item FROM orders WHERE id < 5000 UNION ALL SELECT id FROM items WHERE part = 2) o JOIN items i ON i.id = o.item',
	'subquery' => 'SELECT count(*), sum(i.part) FROM (SELECT item, count(*) AS n FROM orders GROUP BY item) o JOIN items i ON i.id = o.item AND i.word > \'w2\'',
);
for my $name (sort keys %fit)
{
	my ($expected) = run_join('off', $fit{$name}, 'SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off; ');
	my ($plain) = run_join('off', $fit{$name}, $inner);
	my ($ahead) = run_join('on', $fit{$name}, $inner);

	is($plain, $expected, "$name: without looking ahead");
	is($ahead, $expected, "$name: looking ahead");
	ok(shows($fit{$name}, $inner), "$name: the plan tells");
}
ok(!shows($fit{heap}, "$inner SET smart.batching = off;"), 'it can be turned off');

# Few round trips, with keys that were not asked for before.  What they come from is read without the index.
my $keys = 'SELECT count(*), sum(i.b) FROM (SELECT b FROM pairs WHERE a >= 0 ORDER BY hashint4(b)) o JOIN pairs i ON i.b = o.b';
my ($plain, $before) = run_join('off', "$keys AND o.b <= 2000", $inner);
my ($ahead, $after) = run_join('on', "$keys AND o.b > 2000", $inner);
is("$plain $ahead", '2000|2001000 2000|6001000', 'all keys are found');
cmp_ok($before, '>=', 2000, 'a round trip for each row');
cmp_ok($after, '<=', 60, 'or for each batch of them');
($ahead, $after) = run_join('on', "$keys AND o.b > 2000", $inner);
is("$ahead $after", '2000|6001000 0', 'what they found is cached, and costs none');

# Rows that are cached are passed on, one at a time; a row of another kind, and much of it, makes no difference.
is((run_join('on', 'SELECT count(*), sum(length(o.note)) FROM (SELECT b, repeat(\'x\', 300000) AS note FROM pairs WHERE b % 40 = 1 OFFSET 0) o JOIN pairs i ON i.b = o.b', $inner))[0],
	'100|30000000', 'large rows');

# ---- the plans that it is not meant for ----

my %unfit = (
	'expression' => 'SELECT count(*) FROM orders o JOIN items i ON i.id = 1000 / o.id',
	'volatile' => 'SELECT count(*) FROM (SELECT counted(id) AS id FROM orders OFFSET 0) o JOIN items i ON i.id = o.id',
	'volatile subquery' => 'SELECT count(*) FROM (SELECT (SELECT counted(o.id)) AS id FROM orders o OFFSET 0) o JOIN items i ON i.id = o.id',
	'volatile CTE' => 'WITH o AS MATERIALIZED (SELECT counted(id) AS id FROM orders) SELECT count(*) FROM o JOIN items i ON i.id = o.id',
	'array' => 'SELECT count(*) FROM orders o JOIN items i ON i.id = ANY (ARRAY[o.item, 7])',
	'row lock' => 'SELECT o.id FROM orders o JOIN items i ON i.id = o.item FOR UPDATE OF o SKIP LOCKED',
	'changes' => 'WITH o AS (DELETE FROM orders WHERE id < 0 RETURNING *) SELECT count(*) FROM o JOIN items i ON i.id = o.item',
);
ok(!shows($unfit{$_}, $inner), "not meant for: $_") for sort keys %unfit;
is((run_join('on', 'SELECT 1 FROM (SELECT counted(id) AS id FROM orders OFFSET 0) o JOIN items i ON i.id = o.id LIMIT 1', $inner))[0], 1, 'a volatile function');
is($node->safe_psql('postgres', 'SELECT last_value <= 10 FROM counter'), 't', 'is not called ahead');

# ---- forms of execution ----

my $analyzed = $node->safe_psql('postgres', "$inner EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF) $fit{heap}");
like($analyzed, qr/Custom Scan \(Smart Lookahead\) \(actual rows=6000(\.00)? loops=1\)\n\s+Output: o\.\w+/, 'EXPLAIN ANALYZE counts its rows');
my $parallel = $loops . 'SET enable_memoize = off; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET max_parallel_workers_per_gather = 2; ';
$analyzed = $node->safe_psql('postgres', "$parallel EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF) $fit{heap}");
like($analyzed, qr/Gather.*Smart Lookahead/s, 'below a Gather');
is((run_join('on', $fit{heap}, $parallel))[0], (run_join('off', $fit{heap}, $inner))[0], 'the same rows of several processes');
is((run_join('on', $fit{heap}, $loops . 'SET enable_memoize = on; '))[0], (run_join('off', $fit{heap}, $inner))[0], 'with Memoize');
is($node->safe_psql('postgres', <<"SQL"), "2|2|t", 'a prepared statement, and a join that is started again and again');
$inner SET plan_cache_mode = force_generic_plan;
PREPARE few(int) AS SELECT count(*) FROM generate_series(1, 2) g, LATERAL (SELECT 1 FROM pairs o JOIN pairs i ON i.b = o.b WHERE o.a = \$1 + g OFFSET 39 LIMIT 1) x;
EXECUTE few(5) \\g /dev/null
EXECUTE few(7) \\g /dev/null
SELECT count(*) AS first FROM generate_series(1, 2) g, LATERAL (SELECT 1 FROM pairs o JOIN pairs i ON i.b = o.b WHERE o.a = 5 + g OFFSET 39 LIMIT 1) x \\gset
SELECT count(*) AS second FROM generate_series(1, 3) g, LATERAL (SELECT 1 FROM pairs o JOIN pairs i ON i.b = o.b WHERE o.a = 97 + g OFFSET 39 LIMIT 1) x \\gset
SELECT :first, :second, true;
SQL
is((run_join('on', 'WITH RECURSIVE r(b) AS (SELECT 1 UNION ALL SELECT i.b + 1 FROM r JOIN pairs i ON i.b = r.b WHERE i.b < 500) SELECT count(*), max(b) FROM r', $inner))[0],
	'500|500', 'a recursive query');

# What a statement does itself it does not see, and what it changes is what it would have changed.
is($node->safe_psql('postgres', <<"SQL"), "4000\n4000|8000|2000", 'updates');
$inner
CREATE TABLE doubled AS SELECT a, b FROM pairs;
CREATE INDEX doubled_b ON doubled USING smart (b);
ANALYZE doubled;
BEGIN;
WITH changed AS (UPDATE doubled d SET b = d.b + 4000 FROM (SELECT b FROM pairs ORDER BY hashint4(b)) o WHERE d.b = o.b RETURNING 1) SELECT count(*) FROM changed;
SELECT count(*), max(b), count(*) FILTER (WHERE a < 50) FROM doubled;
COMMIT;
SQL
like($node->safe_psql('postgres', <<"SQL"), qr/^4000\|4000$/m, 'a function that inserts what the join would find');
$inner
CREATE FUNCTION add_pair(int) RETURNS int LANGUAGE sql VOLATILE AS 'INSERT INTO doubled VALUES (-1, \$1 + 4000) RETURNING 1';
SELECT count(*), sum(add_pair(d.b)) FROM (SELECT b + 4000 AS b FROM pairs ORDER BY hashint4(b)) o JOIN doubled d ON d.b = o.b;
SQL

# ---- VACUUM, which gives TIDs to other rows, and an index-only scan that is in the middle of a batch ----

$node->safe_psql('postgres', <<'SQL');
CREATE TABLE moving (k int, v int);
INSERT INTO moving SELECT g, 1 FROM generate_series(1, 5000) g;
CREATE INDEX moving_k ON moving USING smart (k, v);
VACUUM ANALYZE moving;
SQL
my $reader = $node->background_psql('postgres');
$reader->query_safe("$inner SET enable_seqscan = off; SET enable_sort = off; BEGIN; DECLARE walk CURSOR FOR SELECT i.k, i.v FROM (SELECT k FROM generate_series(1, 5000) k) o JOIN moving i ON i.k = o.k");
my @rows = split /\n/, $reader->query_safe('FETCH 40 FROM walk');
is(scalar @rows, 40, 'a cursor in a batch');
$node->safe_psql('postgres', 'UPDATE moving SET v = 2 WHERE k BETWEEN 20 AND 300; DELETE FROM moving WHERE k BETWEEN 30 AND 60');
# VACUUM may have to wait for the batch; it has to end when the cursor does.
my ($status) = $node->psql('postgres', "SET statement_timeout = '2s'; VACUUM moving");
$node->safe_psql('postgres', 'INSERT INTO moving SELECT g + 100000, 3 FROM generate_series(1, 400) g');
push @rows, split /\n/, $reader->query_safe('FETCH ALL FROM walk');
is(join(' ', @rows), join(' ', map { "$_|1" } 1 .. 5000), 'it sees the rows of its snapshot, and no others');
$reader->query_safe('COMMIT');
$node->safe_psql('postgres', "SET statement_timeout = '60s'; VACUUM moving");
index_is_sound($node, 'postgres', 'moving_k', 'after VACUUM');

# A join that has come to its end holds nothing that VACUUM would wait for, though its cursor is open.
$node->safe_psql('postgres', 'INSERT INTO moving SELECT g + 900000, 4 FROM generate_series(1, 400) g');
$node->safe_psql('postgres', 'DELETE FROM moving WHERE k > 900000');
$reader->query_safe('BEGIN; DECLARE walk CURSOR FOR SELECT i.k FROM (SELECT k FROM generate_series(1001, 3000) k) o JOIN moving i ON i.k = o.k');
@rows = split /\n/, $reader->query_safe('FETCH ALL FROM walk');
is(scalar @rows, 2000, 'a cursor at its end');
is($node->psql('postgres', "SET statement_timeout = '60s'; VACUUM moving"), 0, 'does not keep VACUUM waiting');
$reader->query_safe('COMMIT');
index_is_sound($node, 'postgres', 'moving_k', 'after the next VACUUM');
$reader->quit;

$node->stop;
is($_->stop, 0, 'a memory node stops cleanly') for @memory;
done_testing();
