-- smart_index_check(heapallindexed) finds rows without entries, and entries without rows.
CREATE TABLE index_check AS SELECT i AS a, 'v' || i AS b FROM generate_series(1, 1000) i;
ALTER TABLE index_check SET (autovacuum_enabled = off);
CREATE INDEX index_check_a ON index_check USING smart (a, b);
SELECT smart_index_check('index_check_a', true);

-- Dead rows, HOT chains and rows of a transaction that was rolled back are as they should be.
DELETE FROM index_check WHERE a % 10 = 0;
UPDATE index_check SET b = b WHERE a % 10 = 1;
BEGIN;
INSERT INTO index_check SELECT i, 'rolled back' FROM generate_series(2000, 2100) i;
ROLLBACK;
SELECT smart_index_check('index_check_a', true);
VACUUM index_check;
SELECT smart_index_check('index_check_a', true);
DROP TABLE index_check;

-- An index that is not ready is passed over by INSERT and by VACUUM.
CREATE TABLE index_check AS SELECT i AS a FROM generate_series(1, 10) i;
ALTER TABLE index_check SET (autovacuum_enabled = off);
CREATE INDEX index_check_a ON index_check USING smart (a);
CREATE PROCEDURE pg_temp.set_ready(ready bool) LANGUAGE sql AS
	$$ UPDATE pg_index SET indisready = ready WHERE indexrelid = 'index_check_a'::regclass $$;
CALL pg_temp.set_ready(false);
INSERT INTO index_check VALUES (11);
CALL pg_temp.set_ready(true);
SELECT smart_index_check('index_check_a');
SELECT smart_index_check('index_check_a', true);
REINDEX INDEX index_check_a;
SELECT smart_index_check('index_check_a', true);

-- What was rolled back is removed also while another session's snapshot keeps what was deleted.
BEGIN;
INSERT INTO index_check VALUES (12);
ROLLBACK;
CALL pg_temp.set_ready(false);
VACUUM (FREEZE) index_check;
CALL pg_temp.set_ready(true);
SELECT smart_index_check('index_check_a');
SELECT smart_index_check('index_check_a', true);
REINDEX INDEX index_check_a;
SELECT smart_index_check('index_check_a', true);
DROP TABLE index_check;
