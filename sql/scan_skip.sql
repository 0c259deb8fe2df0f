-- Conditions on later columns while the first one has none, or a range: scans leap from group to group.
\getenv abs_srcdir PG_ABS_SRCDIR
\set compare :abs_srcdir /test/regress/compare.sql
\set ECHO none
\i :compare
\set ECHO all

-- Groups of many leaves, of some, and of one row.
CREATE TABLE scan_skip (a int, b int, c text COLLATE "C");
INSERT INTO scan_skip SELECT i % 4, i, 'row ' || i % 100 FROM generate_series(1, 6000) i;
INSERT INTO scan_skip SELECT 10 + i % 40, i, 'row ' || i FROM generate_series(1, 4000) i;
CREATE INDEX scan_skip_up ON scan_skip USING smart (a, b, c);
-- The planner knows that few groups cost little.
VACUUM ANALYZE scan_skip;
CREATE FUNCTION pg_temp.cost_of(query text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN plan -> 0 -> 'Plan' -> 'Total Cost';
END
$$;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT pg_temp.cost_of('SELECT a FROM scan_skip WHERE a < 3 AND b = 5') < 0.35 * pg_temp.cost_of('SELECT a FROM scan_skip WHERE a < 3') AS less;
RESET enable_seqscan;
RESET enable_bitmapscan;
INSERT INTO scan_skip SELECT 100 + i, i % 7, NULL FROM generate_series(1, 500) i;
INSERT INTO scan_skip SELECT NULL, i, 'null' FROM generate_series(1, 500) i;
INSERT INTO scan_skip SELECT 2000000000 + i % 2, NULL, 'row' FROM generate_series(1, 500) i;

CREATE FUNCTION pg_temp.queries(order_by text) RETURNS text[] LANGUAGE sql AS $$
	SELECT array_agg('SELECT a, b, c FROM scan_skip WHERE ' || condition || order_by)
	FROM unnest(ARRAY['b = 3', 'b = 2222', 'b = 60000', 'b = -1', 'b IN (1, 2, 3, 3999, 6000)', 'b IN (-5, 7000)', 'b IS NULL',
		'b > 5990', 'b < 3', 'b BETWEEN 1000 AND 1005', 'b BETWEEN 3 AND 2', 'a > 2 AND b = 77', 'a BETWEEN 1 AND 30 AND b > 3990',
		'a < 3 AND b IN (50, 51, 5000)', 'a IS NULL AND c = ''null'' AND b > 400', 'c = ''row 77''', 'b IN (77, 177) AND c = ''row 77''',
		'b > 5000 AND c IN (''row 1'', ''row 50'', ''zzz'')', 'a IN (1, 3, 15) AND c = ''row 7''', 'a IS NOT NULL AND b = 250',
		'b > 3000 AND b < 3010 AND c LIKE ''row 9%''']) condition
$$;

SELECT pg_temp.compare_all(pg_temp.queries(''), ARRAY['index', 'only', 'bitmap']);
SELECT pg_temp.compare_all(pg_temp.queries(' ORDER BY a, b, c'), ARRAY['index', 'only']);
SELECT pg_temp.compare_all(pg_temp.queries(' ORDER BY a DESC, b DESC, c DESC'), ARRAY['index', 'only']);

-- A cursor that changes its direction.
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_sort = off;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT a, b FROM scan_skip WHERE b IN (2, 3, 5999) ORDER BY a, b, c;
FETCH 6 FROM c;
FETCH BACKWARD 4 FROM c;
FETCH 5 FROM c;
FETCH LAST FROM c;
FETCH BACKWARD 2 FROM c;
FETCH FORWARD ALL FROM c;
FETCH FIRST FROM c;
COMMIT;
DROP INDEX scan_skip_up;
RESET enable_seqscan;
RESET enable_bitmapscan;
RESET enable_sort;

CREATE INDEX scan_skip_down ON scan_skip USING smart (a DESC, b DESC NULLS LAST, c);
SELECT pg_temp.compare_all(pg_temp.queries(''), ARRAY['index', 'only', 'bitmap']);
SELECT pg_temp.compare_all(pg_temp.queries(' ORDER BY a, b NULLS FIRST, c DESC'), ARRAY['index', 'only']);
DROP TABLE scan_skip;
