-- Order: both directions, NULLs at either end, DESC, LIMIT, min and max.
\getenv abs_srcdir PG_ABS_SRCDIR
\set compare :abs_srcdir /test/regress/compare.sql
\set ECHO none
\i :compare
\set ECHO all

CREATE TABLE scan_order (a int, b text COLLATE "C") WITH (autovacuum_enabled = off);
SELECT setseed(0.25);
INSERT INTO scan_order
SELECT CASE WHEN random() < 0.1 THEN NULL ELSE (random() * 400)::int - 200 END,
	CASE WHEN random() < 0.1 THEN NULL ELSE md5((random() * 300)::int::text) END
FROM generate_series(1, 2000);

CREATE INDEX scan_order_asc ON scan_order USING smart (a);
VACUUM ANALYZE scan_order;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT a FROM scan_order WHERE a > 190 ORDER BY a;
RESET ALL;
SELECT pg_temp.compare_all(ARRAY[
	'SELECT a FROM scan_order ORDER BY a',
	'SELECT a FROM scan_order ORDER BY a DESC',
	'SELECT a FROM scan_order ORDER BY a LIMIT 7',
	'SELECT a FROM scan_order ORDER BY a DESC LIMIT 300',
	'SELECT a FROM scan_order WHERE a BETWEEN -10 AND 10 ORDER BY a',
	'SELECT a FROM scan_order WHERE a BETWEEN -10 AND 10 ORDER BY a DESC',
	'SELECT a FROM scan_order WHERE a < -150 ORDER BY a DESC',
	'SELECT a FROM scan_order WHERE a >= 150 ORDER BY a',
	'SELECT a FROM scan_order WHERE a IS NULL ORDER BY a',
	'SELECT a FROM scan_order WHERE a IS NOT NULL ORDER BY a OFFSET 1500'], ARRAY['index', 'only']);
SET enable_seqscan = off;
SELECT regexp_replace(pg_temp.plan_of('SELECT min(a), max(a) FROM scan_order'), ' \(returns .*?\)', '', 'g') AS plan;
SELECT min(a), max(a) FROM scan_order;
RESET ALL;
DROP INDEX scan_order_asc;

CREATE INDEX scan_order_desc ON scan_order USING smart (a DESC);
SELECT pg_temp.compare_all(ARRAY[
	'SELECT a FROM scan_order ORDER BY a DESC',
	'SELECT a FROM scan_order ORDER BY a',
	'SELECT a FROM scan_order WHERE a > 100 AND a <= 120 ORDER BY a DESC',
	'SELECT a FROM scan_order WHERE a > 100 AND a <= 120 ORDER BY a'], ARRAY['index', 'only']);
DROP INDEX scan_order_desc;

CREATE INDEX scan_order_mixed ON scan_order USING smart (b DESC NULLS LAST, a NULLS FIRST);
SELECT pg_temp.compare_all(ARRAY[
	'SELECT b, a FROM scan_order ORDER BY b DESC NULLS LAST, a NULLS FIRST',
	'SELECT b, a FROM scan_order ORDER BY b NULLS FIRST, a DESC NULLS LAST',
	'SELECT b, a FROM scan_order WHERE b >= ''c'' ORDER BY b DESC NULLS LAST, a NULLS FIRST LIMIT 100',
	'SELECT b, a FROM scan_order WHERE b < ''3'' ORDER BY b NULLS FIRST, a DESC NULLS LAST'], ARRAY['index', 'only']);
SELECT smart_index_check('scan_order_mixed', true);
DROP TABLE scan_order;
