-- CREATE INDEX, REINDEX and what else calls ambuild.
\set VERBOSITY default
SET client_min_messages = warning;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET max_parallel_workers_per_gather = 0;

CREATE TABLE build_rows (id bigint, word text, wide uuid, other int);
INSERT INTO build_rows
	SELECT (i * 7919) % 20011, 'word ' || md5(i::text), md5((i * 3)::text)::uuid, i % 10
	FROM generate_series(1, 20000) i;
INSERT INTO build_rows VALUES (NULL, NULL, NULL, NULL), (NULL, 'x', NULL, 1);

-- Every width of the sorter: fixed entries of 2 and 4 words, too long ones, and strings; each with the order of the heap and without.
CREATE INDEX build_id ON build_rows USING smart (id);
CREATE INDEX build_wide ON build_rows USING smart (wide);
CREATE INDEX build_wide2 ON build_rows USING smart (wide, id, other);
CREATE INDEX build_word ON build_rows USING smart (word COLLATE "C");
CREATE INDEX build_desc ON build_rows USING smart (other DESC NULLS LAST, id);
CREATE INDEX build_include ON build_rows USING smart (id) INCLUDE (word);
CREATE INDEX build_partial ON build_rows USING smart (id) WHERE other = 3;
CREATE INDEX build_expression ON build_rows USING smart (lower(word) COLLATE "C", (id / 2));
SELECT indexrelid::regclass AS index, smart_index_check(indexrelid, true) AS sound
	FROM pg_index WHERE indrelid = 'build_rows'::regclass ORDER BY 1;
SELECT c.relname, (smart_index_stats(c.oid)).entries, c.reltuples
	FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid WHERE i.indrelid = 'build_rows'::regclass ORDER BY 1;

-- The order of what was built.
SELECT count(*) AS rows, count(*) FILTER (WHERE id < before) AS out_of_order
	FROM (SELECT id, lag(id) OVER () AS before FROM (SELECT id FROM build_rows ORDER BY id) s) t;
SELECT count(*) AS rows, count(*) FILTER (WHERE word COLLATE "C" < before COLLATE "C") AS out_of_order
	FROM (SELECT word, lag(word) OVER () AS before FROM (SELECT word FROM build_rows ORDER BY word COLLATE "C") s) t;

-- Ascending input needs no sort.
CREATE TABLE build_ascending AS SELECT i AS id, lpad(i::text, 8, '0') AS word FROM generate_series(1, 20000) i;
CREATE INDEX build_ascending_id ON build_ascending USING smart (id);
CREATE INDEX build_ascending_word ON build_ascending USING smart (word COLLATE "C");
SELECT smart_index_check('build_ascending_id', true), smart_index_check('build_ascending_word', true);

-- A budget that is too small: sorted runs on disk.
SET maintenance_work_mem = '1MB';
CREATE TABLE build_spilled AS
	SELECT (i * 7919) % 200003 AS id, md5(i::text) || repeat('y', i % 40) AS word FROM generate_series(1, 100000) i;
CREATE INDEX build_spilled_id ON build_spilled USING smart (id);
CREATE INDEX build_spilled_word ON build_spilled USING smart (word COLLATE "C");
CREATE UNIQUE INDEX build_spilled_both ON build_spilled USING smart (word COLLATE "C", id);
SELECT smart_index_check('build_spilled_id', true), smart_index_check('build_spilled_word', true),
	smart_index_check('build_spilled_both', true);
SELECT count(*) AS rows, count(*) FILTER (WHERE id < before) AS out_of_order
	FROM (SELECT id, lag(id) OVER () AS before FROM (SELECT id FROM build_spilled ORDER BY id) s) t;
RESET maintenance_work_mem;

-- Empty tables, options, REINDEX.
CREATE TABLE build_empty (id int);
CREATE INDEX build_empty_id ON build_empty USING smart (id) WITH (leaf_size = 1024, fillfactor = 70);
SELECT smart_index_check('build_empty_id', true);
SELECT count(*) FROM build_empty WHERE id = 1;
INSERT INTO build_empty SELECT generate_series(1, 1000);
SELECT count(*) FROM build_empty WHERE id BETWEEN 10 AND 19;
REINDEX INDEX build_empty_id;
SELECT smart_index_check('build_empty_id', true);
REINDEX TABLE build_rows;
SELECT bool_and(smart_index_check(indexrelid, true) IS NOT NULL) AS sound FROM pg_index WHERE indrelid = 'build_rows'::regclass;
REINDEX INDEX CONCURRENTLY build_word;
SELECT smart_index_check('build_word', true);
CREATE INDEX CONCURRENTLY build_concurrently ON build_rows USING smart (other, id);
SELECT smart_index_check('build_concurrently', true);
SELECT indisvalid FROM pg_index WHERE indexrelid = 'build_concurrently'::regclass;

-- A build that fails leaves the statement's transaction as it was.
BEGIN;
CREATE TABLE build_failing (a int, b int);
INSERT INTO build_failing SELECT i, 10 - i FROM generate_series(1, 10) i;
SAVEPOINT before;
CREATE INDEX build_failing_index ON build_failing USING smart ((a / b));
ROLLBACK TO before;
CREATE INDEX build_failing_index ON build_failing USING smart (a);
SELECT count(*) FROM build_failing WHERE a = 3;
COMMIT;
SELECT smart_index_check('build_failing_index', true);

-- The same file again: TRUNCATE where the table was made, and in a later transaction.
BEGIN;
CREATE TABLE build_truncated (id int);
CREATE INDEX build_truncated_id ON build_truncated USING smart (id);
INSERT INTO build_truncated SELECT generate_series(1, 1000);
TRUNCATE build_truncated;
INSERT INTO build_truncated SELECT generate_series(1, 10);
SELECT count(*) FROM build_truncated WHERE id > 0;
COMMIT;
SELECT smart_index_check('build_truncated_id', true);
TRUNCATE build_truncated;
SELECT count(*) FROM build_truncated WHERE id > 0;
INSERT INTO build_truncated VALUES (5);
BEGIN;
TRUNCATE build_truncated;
INSERT INTO build_truncated VALUES (6), (7);
ROLLBACK;
SELECT id FROM build_truncated WHERE id > 0;
SELECT smart_index_check('build_truncated_id', true);

-- CLUSTER, VACUUM FULL, and changes of type that rewrite the table or keep the index's file.
CLUSTER build_rows USING build_id;
VACUUM FULL build_rows;
ALTER TABLE build_rows ALTER COLUMN other TYPE bigint;
ALTER TABLE build_rows ALTER COLUMN word TYPE varchar(100);
ALTER TABLE build_rows ALTER COLUMN word TYPE varchar(200);
SELECT indexrelid::regclass AS index, smart_index_check(indexrelid, true) AS sound
	FROM pg_index WHERE indrelid = 'build_rows'::regclass ORDER BY indexrelid::regclass::text COLLATE "C";

-- The rows that a transaction deleted are indexed while a snapshot may see them; they do not count for uniqueness.
CREATE TABLE build_dead (id int);
BEGIN;
INSERT INTO build_dead SELECT i % 5 FROM generate_series(1, 50) i;
DELETE FROM build_dead;
INSERT INTO build_dead SELECT generate_series(0, 4);
CREATE UNIQUE INDEX build_dead_id ON build_dead USING smart (id);
SELECT id FROM build_dead WHERE id >= 0 ORDER BY id;
COMMIT;
SELECT smart_index_check('build_dead_id', true);

-- Rows of every kind side by side: HOT chains with and without what a page keeps of the beginning, rows that were rolled back, those of
-- the transaction itself, and pages where it deletes. What is built is what nbtree builds, and the table counts as read once.
CREATE TABLE build_kinds (id int, n int, word text) WITH (fillfactor = 60, autovacuum_enabled = off);
INSERT INTO build_kinds SELECT i, i % 7, 'w' || i FROM generate_series(1, 20000) i;
UPDATE build_kinds SET n = n + 1 WHERE id % 3 = 0;
UPDATE build_kinds SET n = n + 1 WHERE id % 6 = 0;
BEGIN;
INSERT INTO build_kinds SELECT i, 1, 'rolled back' FROM generate_series(1, 500) i;
UPDATE build_kinds SET n = -1 WHERE id % 11 = 0;
ROLLBACK;
DELETE FROM build_kinds WHERE id BETWEEN 5000 AND 6000;
CREATE PROCEDURE build_kinds_alike(name text) LANGUAGE plpgsql AS $$
DECLARE
	method text;
	answers text[];
BEGIN
	FOREACH method IN ARRAY ARRAY['btree', 'smart'] LOOP
		EXECUTE format('CREATE INDEX build_kinds_plain ON build_kinds USING %s (n, id)', method);
		EXECUTE format('CREATE INDEX build_kinds_part ON build_kinds USING %s ((id / 2), lower(word) COLLATE "C") WHERE n > 3', method);
		answers := answers || (SELECT md5(string_agg(s::text, ' ')) FROM (SELECT n, id, ctid FROM build_kinds WHERE n > -10 ORDER BY n, id) s)
			|| (SELECT md5(string_agg(s::text, ' ')) FROM (SELECT id, word, ctid FROM build_kinds WHERE n > 3 AND id / 2 > 0
				ORDER BY id / 2, lower(word) COLLATE "C") s)
			|| (SELECT string_agg(indexrelid::regclass || ' ' || reltuples, ', ' ORDER BY 1) FROM pg_index JOIN pg_class ON oid = indexrelid
				WHERE indrelid = 'build_kinds'::regclass);
		IF method = 'smart' THEN
			PERFORM smart_index_check(indexrelid, true) FROM pg_index WHERE indrelid = 'build_kinds'::regclass;
		END IF;
		DROP INDEX build_kinds_plain, build_kinds_part;
	END LOOP;
	RAISE INFO '%: %', name, CASE WHEN answers[1:3] = answers[4:6] THEN 'alike' ELSE answers::text END;
END $$;
CALL build_kinds_alike('HOT chains');
BEGIN;
INSERT INTO build_kinds SELECT i, i % 9, 'mine' FROM generate_series(30001, 31000) i;
CALL build_kinds_alike('the transaction''s own rows');
DELETE FROM build_kinds WHERE id % 4000 = 0;
UPDATE build_kinds SET n = 5 WHERE id % 2500 = 0;
CALL build_kinds_alike('pages where it deletes');
DELETE FROM build_kinds WHERE id % 3 = 1;
CALL build_kinds_alike('nearly all pages');
ROLLBACK;
VACUUM build_kinds;
CALL build_kinds_alike('all is visible');
UPDATE build_kinds SET n = n + 1 WHERE id % 50 = 0;
CALL build_kinds_alike('after VACUUM');
BEGIN;
SELECT seq_scan AS scans, seq_tup_read AS rows FROM pg_stat_xact_user_tables WHERE relname = 'build_kinds' \gset
CREATE INDEX build_kinds_id ON build_kinds USING btree (id);
SELECT seq_scan - :scans AS scans, seq_tup_read - :rows >= 18999 AS rows FROM pg_stat_xact_user_tables WHERE relname = 'build_kinds';
ROLLBACK;
BEGIN;
SELECT seq_scan AS scans, seq_tup_read AS rows FROM pg_stat_xact_user_tables WHERE relname = 'build_kinds' \gset
CREATE INDEX build_kinds_id ON build_kinds USING smart (id);
SELECT seq_scan - :scans AS scans, seq_tup_read - :rows >= 18999 AS rows FROM pg_stat_xact_user_tables WHERE relname = 'build_kinds';
ROLLBACK;
DROP PROCEDURE build_kinds_alike;
DROP TABLE build_kinds;

-- The phases that pg_stat_progress_create_index names.
SELECT i, pg_indexam_progress_phasename(oid, i) FROM pg_am, generate_series(1, 5) i WHERE amname = 'smart' ORDER BY i;

DROP TABLE build_rows, build_ascending, build_spilled, build_empty, build_failing, build_truncated, build_dead;
