-- smart_index_pages() tells what the pages of an index's journal hold, and what compaction makes of them.
CREATE TABLE journal_pages (a int, b text COLLATE "C");
ALTER TABLE journal_pages SET (autovacuum_enabled = off);
CREATE INDEX journal_pages_a ON journal_pages USING smart (a) INCLUDE (b);
CREATE VIEW journal_pages_of_a AS SELECT journal, run, run_pages, run_kept, run_entries, run_fences, round(run_fill::numeric, 1) AS fill,
	compacted IS NOT NULL AS compacted, chain_pages, adds, removals, previous_pages, unfinished_pages, free_pages
	FROM smart_index_pages('journal_pages_a');
SELECT * FROM journal_pages_of_a;

-- Operations are counted, also those of a row that comes to nothing.
INSERT INTO journal_pages SELECT i, 'v' FROM generate_series(1, 100) i;
BEGIN;
INSERT INTO journal_pages VALUES (101, 'rolled back');
ROLLBACK;
DELETE FROM journal_pages WHERE a <= 10;
SELECT * FROM journal_pages_of_a;
VACUUM journal_pages;
SELECT * FROM journal_pages_of_a;
SELECT smart_index_check('journal_pages_a', true);

-- A build writes a run.
REINDEX INDEX journal_pages_a;
SELECT * FROM journal_pages_of_a;
TRUNCATE journal_pages;
SELECT * FROM journal_pages_of_a;

-- A worker writes one where half of the journal is superfluous, or most entries of the run have gone.
CREATE PROCEDURE pg_temp.wait_for_compaction(index regclass) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. 600 LOOP
		EXIT WHEN (SELECT 4 * removals < run_entries + adds + removals AND unfinished_pages = 0 FROM smart_index_pages(index));
		PERFORM pg_sleep(0.1);
	END LOOP;
END $$;
INSERT INTO journal_pages SELECT i, md5(i::text) || md5((-i)::text) || md5(i::text || '.') FROM generate_series(1, 12000) i;
VACUUM journal_pages;
SELECT journal, run, chain_pages > 128 AS long FROM journal_pages_of_a;
DELETE FROM journal_pages WHERE a > 5000;
VACUUM journal_pages;
CALL pg_temp.wait_for_compaction('journal_pages_a');
SELECT journal, run > 0 AS run, run_pages > 50 AS pages, run_entries, run_fences, chain_pages < 130 AS short, unfinished_pages
	FROM journal_pages_of_a;
INSERT INTO journal_pages SELECT i, md5(i::text) || md5((-i)::text) || md5(i::text || '.') FROM generate_series(5001, 12000) i;
REINDEX INDEX journal_pages_a;
CREATE INDEX journal_pages_b ON journal_pages USING smart (b, a);
UPDATE journal_pages SET b = repeat('x', 50) || a WHERE a <= 4000;
SELECT smart_index_check('journal_pages_b', true);
CALL pg_temp.wait_for_compaction('journal_pages_b');
DELETE FROM journal_pages WHERE a % 20 <> 0;
VACUUM journal_pages;
CALL pg_temp.wait_for_compaction('journal_pages_b');
SELECT journal, run > 1 AS run, run_entries < 10000 AS small, chain_pages < 130 AS short, unfinished_pages
	FROM smart_index_pages('journal_pages_b');
SELECT smart_index_check('journal_pages_a', true), smart_index_check('journal_pages_b', true);

-- What is not logged has no pages but one.
CREATE TEMPORARY TABLE journal_pages_temp (a int);
CREATE INDEX journal_pages_temp_a ON journal_pages_temp USING smart (a);
INSERT INTO journal_pages_temp SELECT generate_series(1, 1000);
SELECT * FROM smart_index_pages('journal_pages_temp_a');
CREATE INDEX journal_pages_off ON journal_pages USING smart (a) WITH (logged = off);
SELECT journal, run, chain_pages FROM smart_index_pages('journal_pages_off');
SELECT * FROM smart_index_pages('journal_pages');
SELECT smart_index_pages(NULL);

DROP VIEW journal_pages_of_a;
DROP TABLE journal_pages;
