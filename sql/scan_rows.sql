-- Row comparisons as index conditions, against a sequential scan.
\getenv abs_srcdir PG_ABS_SRCDIR
\set compare :abs_srcdir /test/regress/compare.sql
\set ECHO none
\i :compare
\set ECHO all

CREATE TABLE scan_rows (a int, b int2, c text COLLATE "C", d int8, filler text);
SELECT setseed(0.25);
INSERT INTO scan_rows
SELECT CASE WHEN random() < 0.1 THEN NULL ELSE (random() * 12)::int END,
	CASE WHEN random() < 0.1 THEN NULL ELSE (random() * 6)::int END,
	CASE WHEN random() < 0.1 THEN NULL ELSE chr(97 + (random() * 3)::int) || repeat(chr(97 + (random() * 3)::int), (random() * 3)::int) END,
	CASE WHEN random() < 0.1 THEN NULL ELSE (random() * 9)::int END, 'x'
FROM generate_series(1, 4000);

-- Draws a condition with a row comparison, and values for the columns in it.
CREATE FUNCTION pg_temp.condition() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	rows text[] := ARRAY['a, b', 'a, b, c', 'a, b, c, d', 'b, c', 'b, d', 'a, d', 'c, d', 'a, c', 'd, a', 'c, b'];
	row text := rows[1 + floor(random() * cardinality(rows))];
	operators text[] := ARRAY['<', '<=', '>=', '>'];
	operator text := operators[1 + floor(random() * 4)];
	others text[] := ARRAY['', '', ' AND a = 5', ' AND a IN (2, 4, NULL, 9)', ' AND b = 3', ' AND b < 4', ' AND c IS NOT NULL',
		' AND d IS NULL', ' AND a >= 4', ' AND c LIKE ''b%''', ' AND (a, b) <= (9, 3)', ' AND (a, b, d) >= (2, 1, 3)'];
BEGIN
	RETURN format('(%s) %s (%s)', row, operator, replace(replace(replace(replace(row,
		'a', CASE WHEN random() < 0.2 THEN '5::int8' ELSE (random() * 12)::int::text END),
		'b', CASE WHEN random() < 0.1 THEN '100000::int' ELSE (random() * 6)::int::text || '::int2' END),
		'c', quote_literal(chr(97 + (random() * 3)::int) || repeat('c', (random() * 2)::int))),
		'd', CASE WHEN random() < 0.1 THEN 'NULL' ELSE (random() * 9)::int::text || '::int8' END))
		|| others[1 + floor(random() * cardinality(others))];
END
$$;
CREATE FUNCTION pg_temp.queries(how_many int, order_by text) RETURNS text[] LANGUAGE sql VOLATILE AS $$
	SELECT array_agg('SELECT a, b, c, d FROM scan_rows WHERE ' || pg_temp.condition() || order_by)
	FROM generate_series(1, how_many) i
$$;

CREATE INDEX scan_rows_plain ON scan_rows USING smart (a, b, c, d);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_sort = off;
EXPLAIN (COSTS OFF) SELECT * FROM scan_rows WHERE (a, b) > (3, 2) ORDER BY a, b LIMIT 5;
EXPLAIN (COSTS OFF) SELECT * FROM scan_rows WHERE (a, d) <= (3, 2) AND b = 2;
PREPARE page (int, int2) AS SELECT a, b FROM scan_rows WHERE (a, b) > ($1, $2) ORDER BY a, b LIMIT 3;
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE page (3, 2);
EXECUTE page (3, 6);
EXECUTE page (11, 6);
EXECUTE page (12, NULL);
EXECUTE page (NULL, 1);
EXPLAIN (COSTS OFF) SELECT count(*) FROM (VALUES (3, 2::int2), (9, 4)) v (x, y), LATERAL (SELECT 1 FROM scan_rows WHERE (a, b) > (x, y) OFFSET 0) s;
SELECT x, count(*), (SELECT count(*) FROM scan_rows WHERE a > x OR a = x AND b > y) AS expected
FROM (VALUES (3, 2::int2), (9, 4)) v (x, y), LATERAL (SELECT 1 FROM scan_rows WHERE (a, b) > (x, y) OFFSET 0) s
GROUP BY x, y ORDER BY x;
RESET plan_cache_mode;
RESET enable_seqscan;
RESET enable_bitmapscan;
RESET enable_sort;
SELECT pg_temp.compare_all(pg_temp.queries(50, ''), ARRAY['index', 'only', 'bitmap']);
SELECT pg_temp.compare_all(pg_temp.queries(20, ' ORDER BY a, b, c, d'), ARRAY['index', 'only']);
SELECT pg_temp.compare_all(pg_temp.queries(20, ' ORDER BY a DESC, b DESC, c DESC, d DESC'), ARRAY['index', 'only']);
DROP INDEX scan_rows_plain;

-- Columns that descend, all of them or some, and NULLs on either side.
CREATE INDEX scan_rows_down ON scan_rows USING smart (a DESC, b DESC NULLS LAST, c DESC, d DESC);
SELECT pg_temp.compare_all(pg_temp.queries(50, ''), ARRAY['index', 'only', 'bitmap']);
DROP INDEX scan_rows_down;
CREATE INDEX scan_rows_mixed ON scan_rows USING smart (b NULLS FIRST, a DESC NULLS LAST, d, c DESC);
SELECT pg_temp.compare_all(pg_temp.queries(40, ''), ARRAY['index', 'only', 'bitmap']);
DROP INDEX scan_rows_mixed;
DROP TABLE scan_rows;
