-- Temporary and unlogged tables.
SET client_min_messages = warning;
SET enable_seqscan = off;
SET enable_bitmapscan = off;

CREATE TEMP TABLE temporary_rows (id int, word text);
CREATE UNIQUE INDEX temporary_id ON temporary_rows USING smart (id);
INSERT INTO temporary_rows SELECT i, 'w' || i FROM generate_series(1, 2000) i;
INSERT INTO temporary_rows VALUES (5, 'again');
INSERT INTO temporary_rows VALUES (5, 'again') ON CONFLICT (id) DO UPDATE SET word = 'updated' RETURNING *;
SELECT count(*) FROM temporary_rows WHERE id BETWEEN 10 AND 19;
DELETE FROM temporary_rows WHERE id > 100;
VACUUM temporary_rows;
SELECT smart_index_check('temporary_id', true);
SELECT (smart_index_stats('temporary_id')).entries;

-- ON COMMIT DELETE ROWS builds the index anew in the same file, at each commit.
CREATE TEMP TABLE temporary_commit (id int) ON COMMIT DELETE ROWS;
CREATE INDEX temporary_commit_id ON temporary_commit USING smart (id);
BEGIN;
INSERT INTO temporary_commit SELECT generate_series(1, 1000);
SELECT count(*) FROM temporary_commit WHERE id > 500;
COMMIT;
SELECT count(*) FROM temporary_commit WHERE id > 500;
BEGIN;
INSERT INTO temporary_commit SELECT generate_series(1, 10);
SELECT count(*) FROM temporary_commit WHERE id > 5;
ROLLBACK;
BEGIN;
INSERT INTO temporary_commit VALUES (7);
SELECT count(*) FROM temporary_commit WHERE id > 5;
COMMIT;
SELECT smart_index_check('temporary_commit_id', true);

CREATE UNLOGGED TABLE temporary_unlogged (id int, word text);
CREATE INDEX temporary_unlogged_id ON temporary_unlogged USING smart (id);
INSERT INTO temporary_unlogged SELECT i, 'w' || i FROM generate_series(1, 2000) i;
SELECT count(*) FROM temporary_unlogged WHERE id BETWEEN 10 AND 19;
DELETE FROM temporary_unlogged WHERE id % 2 = 0;
VACUUM temporary_unlogged;
SELECT smart_index_check('temporary_unlogged_id', true);
ALTER TABLE temporary_unlogged SET LOGGED;
SELECT count(*) FROM temporary_unlogged WHERE id BETWEEN 10 AND 19;
ALTER TABLE temporary_unlogged SET UNLOGGED;
SELECT count(*) FROM temporary_unlogged WHERE id BETWEEN 10 AND 19;
SELECT smart_index_check('temporary_unlogged_id', true);
DROP TABLE temporary_rows, temporary_commit, temporary_unlogged;
