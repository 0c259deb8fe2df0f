-- Bulk delete and vacuum clean-up.
SET client_min_messages = warning;
SET enable_seqscan = off;
SET enable_bitmapscan = off;

-- No other session's snapshot keeps dead rows of a temporary table.
CREATE TEMP TABLE vacuum_rows (id int, word text);
CREATE INDEX vacuum_id ON vacuum_rows USING smart (id);
CREATE INDEX vacuum_word ON vacuum_rows USING smart (word COLLATE "C");
CREATE INDEX vacuum_partial ON vacuum_rows USING smart (id) WHERE id % 10 = 0;
INSERT INTO vacuum_rows SELECT (i * 7919) % 20011, 'w' || (i % 700) FROM generate_series(1, 20000) i;
CREATE TEMP VIEW vacuum_entries AS
	SELECT c.relname, (smart_index_stats(c.oid)).entries
	FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid WHERE i.indrelid = 'vacuum_rows'::regclass ORDER BY 1;
SELECT * FROM vacuum_entries;

-- Every other row; the entries go, and new rows may use their places.
DELETE FROM vacuum_rows WHERE id % 2 = 0;
VACUUM vacuum_rows;
SELECT * FROM vacuum_entries;
SELECT (SELECT count(*) FROM vacuum_rows) AS rows;
SELECT smart_index_check('vacuum_id', true), smart_index_check('vacuum_word', true), smart_index_check('vacuum_partial', true);
SELECT relname, reltuples FROM pg_class WHERE relname IN ('vacuum_id', 'vacuum_word') ORDER BY 1;
INSERT INTO vacuum_rows SELECT 100000 + i, 'new ' || i FROM generate_series(1, 5000) i;
SELECT count(*) FROM vacuum_rows WHERE id >= 100000;
SELECT count(*) FROM vacuum_rows WHERE id < 100000;
SELECT smart_index_check('vacuum_id', true), smart_index_check('vacuum_word', true);

-- A whole range, then all rows.
DELETE FROM vacuum_rows WHERE id BETWEEN 5000 AND 15000;
VACUUM (INDEX_CLEANUP on) vacuum_rows;
SELECT count(*) FROM vacuum_rows WHERE id BETWEEN 4000 AND 16000;
SELECT smart_index_check('vacuum_id', true), smart_index_check('vacuum_word', true);
DELETE FROM vacuum_rows;
VACUUM vacuum_rows;
SELECT * FROM vacuum_entries;
SELECT smart_index_check('vacuum_id', true), smart_index_check('vacuum_word', true);
SELECT count(*) FROM vacuum_rows WHERE id > 0;

-- And it grows again.
INSERT INTO vacuum_rows SELECT i, 'w' || i FROM generate_series(1, 3000) i;
SELECT * FROM vacuum_entries;
SELECT count(*) FROM vacuum_rows WHERE id BETWEEN 1 AND 100;
VACUUM (ANALYZE) vacuum_rows;
SELECT relname, reltuples FROM pg_class WHERE relname IN ('vacuum_id', 'vacuum_word', 'vacuum_partial') ORDER BY 1;

-- Index-only scans use what VACUUM left all-visible.
SELECT count(*) FROM vacuum_rows WHERE id > 2000;

-- Workers, and the cost delay.
CREATE TABLE vacuum_parallel AS SELECT (i * 7919) % 60013 AS id, 'w' || i AS word FROM generate_series(1, 60000) i;
SET min_parallel_index_scan_size = 0;
CREATE INDEX vacuum_parallel_id ON vacuum_parallel USING smart (id);
CREATE INDEX vacuum_parallel_word ON vacuum_parallel USING smart (word COLLATE "C");
DELETE FROM vacuum_parallel WHERE id % 3 = 0;
SET vacuum_cost_delay = 1;
SET vacuum_cost_limit = 10000;
VACUUM (PARALLEL 2) vacuum_parallel;
RESET vacuum_cost_delay;
SELECT smart_index_check('vacuum_parallel_id', true), smart_index_check('vacuum_parallel_word', true);
SELECT count(*) FROM vacuum_parallel WHERE id BETWEEN 100 AND 199;

-- Indexes without a tree.
CREATE TABLE vacuum_empty (id int);
CREATE INDEX vacuum_empty_id ON vacuum_empty USING smart (id);
VACUUM (INDEX_CLEANUP on) vacuum_empty;
SELECT smart_index_check('vacuum_empty_id', true);

DROP VIEW vacuum_entries;
DROP TABLE vacuum_rows, vacuum_parallel, vacuum_empty;
