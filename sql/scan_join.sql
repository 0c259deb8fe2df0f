-- Joins: rescans, and merge joins that mark and restore positions.
\getenv abs_srcdir PG_ABS_SRCDIR
\set compare :abs_srcdir /test/regress/compare.sql
\set ECHO none
\i :compare
\set ECHO all

CREATE TABLE scan_outer AS SELECT (i * 31) % 200 AS a, i AS n FROM generate_series(1, 600) i;
CREATE TABLE scan_inner AS SELECT (i * 17) % 300 AS a, i AS n FROM generate_series(1, 3000) i;
INSERT INTO scan_outer VALUES (NULL, 0), (5000, 0);
INSERT INTO scan_inner SELECT 77, i FROM generate_series(1, 500) i;
INSERT INTO scan_inner VALUES (NULL, 0), (NULL, 1);
CREATE INDEX scan_outer_a ON scan_outer USING smart (a, n);
CREATE INDEX scan_inner_a ON scan_inner USING smart (a, n);
VACUUM ANALYZE scan_outer;
VACUUM ANALYZE scan_inner;

SET enable_hashjoin = off;
SET enable_material = off;
SET enable_memoize = off;
SET enable_sort = off;

SET enable_mergejoin = off;
SELECT pg_temp.compare_all(ARRAY[
	'SELECT o.n, i.n FROM scan_outer o JOIN scan_inner i USING (a)',
	'SELECT o.n, i.n FROM scan_outer o LEFT JOIN scan_inner i ON i.a = o.a AND i.n < o.n',
	'SELECT n FROM scan_outer o WHERE EXISTS (SELECT FROM scan_inner i WHERE i.a = o.a)',
	'SELECT n FROM scan_outer o WHERE NOT EXISTS (SELECT FROM scan_inner i WHERE i.a = o.a)',
	'SELECT o.n, i.n FROM scan_outer o, LATERAL (SELECT n FROM scan_inner i WHERE i.a <= o.a ORDER BY a DESC, n DESC LIMIT 2) i',
	'SELECT o.n, i.n FROM scan_outer o JOIN scan_inner i ON i.a = ANY (ARRAY[o.a, o.a + 1, o.n])'], ARRAY['index', 'only']);

SET enable_nestloop = off;
SET enable_mergejoin = on;
EXPLAIN (COSTS OFF) SELECT o.n, i.n FROM scan_outer o JOIN scan_inner i USING (a);
SELECT pg_temp.compare_all(ARRAY[
	'SELECT o.n, i.n FROM scan_outer o JOIN scan_inner i USING (a)',
	'SELECT o.n, i.n FROM scan_outer o LEFT JOIN scan_inner i USING (a)',
	'SELECT count(*), sum(o.n * i.n) FROM scan_outer o JOIN scan_inner i USING (a)',
	'SELECT count(*), sum(o.n * i.n) FROM scan_inner o JOIN scan_inner i USING (a)'], ARRAY['index', 'only']);

-- Over an array the inner side has many ranges to come back to.
SELECT pg_temp.compare_all(ARRAY[
	'SELECT o.n, i.n FROM scan_outer o JOIN scan_inner i USING (a)
	 WHERE o.a IN (3, 5, 77, 78, 90, 5000) AND i.a IN (3, 5, 77, 78, 79, 90, 5000) AND i.n > 10'],
	ARRAY['index', 'only']);

-- The processes of a parallel plan scan the index too.
SET enable_nestloop = on;
SET enable_mergejoin = off;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
-- On memory nodes the join looks ahead, which the plan tells.
SET smart.batching = off;
EXPLAIN (COSTS OFF) SELECT count(*), sum(i.n) FROM scan_outer o JOIN scan_inner i ON i.a = o.a;
RESET smart.batching;
SELECT count(*), sum(i.n) FROM scan_outer o JOIN scan_inner i ON i.a = o.a;
RESET ALL;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SELECT count(*), sum(i.n) FROM scan_outer o JOIN scan_inner i ON i.a = o.a;
DROP TABLE scan_outer, scan_inner;
