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
