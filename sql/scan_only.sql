-- Index-only scans: INCLUDE, visibility, what is fetched from the heap.  (No snapshot of others keeps a temporary table from being all-visible.)
CREATE TEMP TABLE scan_only (a int, b text COLLATE "C", c text, d numeric, e bool);
INSERT INTO scan_only
SELECT CASE WHEN i % 10 = 0 THEN NULL ELSE i END, CASE WHEN i % 7 = 0 THEN NULL ELSE 'b' || i END,
	CASE WHEN i % 3 = 0 THEN NULL ELSE repeat('c', i % 20) END, i / 3.0, i % 2 = 0
FROM generate_series(1, 1000) i;
CREATE INDEX scan_only_include ON scan_only USING smart (a, b) INCLUDE (c, d, e);
VACUUM ANALYZE scan_only;
SET enable_seqscan = off;
SET enable_bitmapscan = off;

EXPLAIN (COSTS OFF) SELECT * FROM scan_only WHERE a BETWEEN 15 AND 25;
SELECT * FROM scan_only WHERE a BETWEEN 15 AND 25;
CREATE FUNCTION pg_temp.rows_and_heap_fetches(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) ' || query INTO plan;
	plan := plan->0->'Plan';
	RETURN (plan->>'Actual Rows')::float || ' ' || (plan->>'Heap Fetches');
END
$$;
SELECT pg_temp.rows_and_heap_fetches('SELECT * FROM scan_only WHERE a BETWEEN 15 AND 25');
SELECT count(*), count(a), count(b), count(c), sum(length(c)), sum(d), count(nullif(e, false)) FROM scan_only WHERE a IS NULL OR a > 0;
SELECT count(*), count(a), count(b), count(c), sum(length(c)), sum(d), count(nullif(e, false)) FROM scan_only WHERE a IS NOT NULL;
SELECT * FROM scan_only WHERE a IS NULL AND b < 'b2' ORDER BY b;

-- A row that was changed has to be looked at in the heap.
UPDATE scan_only SET c = 'changed' WHERE a = 17;
DELETE FROM scan_only WHERE a = 18;
SELECT a, c FROM scan_only WHERE a BETWEEN 16 AND 19;
BEGIN;
DELETE FROM scan_only WHERE a = 21;
SELECT count(*) FROM scan_only WHERE a BETWEEN 20 AND 22;
ROLLBACK;
SELECT count(*) FROM scan_only WHERE a BETWEEN 20 AND 22;
DROP TABLE scan_only;

-- Strings whose bytes a key has: of every length, some of them alike, with NULLs; entries of a built tree, and of one that has grown.
CREATE TEMP TABLE scan_strings (s text COLLATE "C");
CREATE INDEX scan_strings_grown ON scan_strings USING smart (s);
INSERT INTO scan_strings
SELECT CASE WHEN i % 50 = 49 THEN NULL WHEN i % 3 = 0 THEN repeat('s', i % 301) ELSE left(repeat(md5((i % 700)::text), 10), i % 311) END
FROM generate_series(1, 3000) i;
CREATE INDEX scan_strings_built ON scan_strings USING smart (s);
VACUUM ANALYZE scan_strings;
CREATE FUNCTION pg_temp.strings(direction text, index_only bool) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
	result text[];
	node text;
BEGIN
	PERFORM set_config('enable_indexonlyscan', index_only::text, true), set_config('enable_indexscan', 'off', true),
		set_config('enable_seqscan', (NOT index_only)::text, true), set_config('enable_sort', (NOT index_only)::text, true);
	EXECUTE format('EXPLAIN (COSTS OFF) SELECT s FROM scan_strings ORDER BY s %s', direction) INTO node;
	IF index_only <> (node ~ 'Index Only Scan') THEN
		RAISE 'the plan is a %', node;
	END IF;
	EXECUTE format('SELECT array_agg(s) FROM (SELECT s FROM scan_strings ORDER BY s %s) x', direction) INTO result;
	RETURN result;
END
$$;
SELECT direction, pg_temp.strings(direction, true) = pg_temp.strings(direction, false) AS same, cardinality(pg_temp.strings(direction, true))
FROM unnest('{ASC, DESC}'::text[]) direction;
DROP INDEX pg_temp.scan_strings_grown;
SELECT direction, pg_temp.strings(direction, true) = pg_temp.strings(direction, false) AS same, cardinality(pg_temp.strings(direction, true))
FROM unnest('{ASC, DESC}'::text[]) direction;
DROP TABLE scan_strings;
