-- Partial indexes and indexes on expressions; what the planner knows of them.
\getenv abs_srcdir PG_ABS_SRCDIR
\set compare :abs_srcdir /test/regress/compare.sql
\set ECHO none
\i :compare
\set ECHO all

CREATE TABLE scan_partial AS SELECT i AS a, i % 100 AS b, 'Row ' || i AS t FROM generate_series(1, 5000) i;
CREATE INDEX scan_partial_p ON scan_partial USING smart (a) WHERE b < 10;
CREATE INDEX scan_partial_e ON scan_partial USING smart (lower(t) COLLATE "C", (a + b));
VACUUM ANALYZE scan_partial;
SELECT pg_temp.compare_all(ARRAY[
	'SELECT a FROM scan_partial WHERE b < 10 AND a > 4000 ORDER BY a',
	'SELECT a FROM scan_partial WHERE b < 5 AND a BETWEEN 100 AND 900',
	'SELECT t FROM scan_partial WHERE lower(t) COLLATE "C" = ''row 77''',
	'SELECT t FROM scan_partial WHERE lower(t) COLLATE "C" LIKE ''row 12%'' AND a + b > 200 ORDER BY lower(t) COLLATE "C"'], ARRAY['index', 'bitmap']);

-- The planner is told the entries of a partial index.
SELECT relname, reltuples FROM pg_class WHERE relname LIKE 'scan_partial_%' ORDER BY 1;
SELECT p.bytes BETWEEN 8192 AND e.bytes AS plausible FROM smart_index_state p, smart_index_state e
WHERE p.index = 'scan_partial_p'::regclass AND e.index = 'scan_partial_e'::regclass;

UPDATE scan_partial SET b = 50 WHERE a = 4001;
UPDATE scan_partial SET b = 5 WHERE a = 4050;
SELECT pg_temp.compare_all(ARRAY['SELECT a FROM scan_partial WHERE b < 10 AND a > 4000 ORDER BY a'], ARRAY['index', 'bitmap']);
SELECT smart_index_check('scan_partial_p', true), smart_index_check('scan_partial_e', true);
DROP TABLE scan_partial;
