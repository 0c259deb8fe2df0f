-- Statements that find, change and lock rows by an index.
SET client_min_messages = warning;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET max_parallel_workers_per_gather = 0;
\getenv abs_srcdir PG_ABS_SRCDIR
\set sound :abs_srcdir /test/regress/sound.sql
\set ECHO none
\i :sound
\set ECHO all

-- MERGE, cursors, rows that are locked
CREATE TABLE merged (id int, n int);
CREATE UNIQUE INDEX merged_id ON merged USING smart (id);
INSERT INTO merged SELECT i, 0 FROM generate_series(1, 20, 2) i;
MERGE INTO merged m USING (SELECT i FROM generate_series(1, 6) i) s ON m.id = s.i
	WHEN MATCHED AND s.i = 3 THEN DELETE
	WHEN MATCHED THEN UPDATE SET n = m.n + 1
	WHEN NOT MATCHED THEN INSERT VALUES (s.i, 100);
SELECT * FROM merged WHERE id < 8 ORDER BY id;
BEGIN;
DECLARE current CURSOR FOR SELECT * FROM merged WHERE id > 10 ORDER BY id FOR UPDATE;
FETCH 2 FROM current;
UPDATE merged SET n = -1 WHERE CURRENT OF current;
DELETE FROM merged WHERE CURRENT OF current;
COMMIT;
BEGIN;
DECLARE scrolled SCROLL CURSOR WITH HOLD FOR SELECT id FROM merged WHERE id > 10 ORDER BY id DESC;
FETCH LAST FROM scrolled;
FETCH PRIOR FROM scrolled;
COMMIT;
FETCH ABSOLUTE 1 FROM scrolled;
CLOSE scrolled;
SELECT id FROM merged WHERE id = 5 FOR UPDATE SKIP LOCKED;
SELECT index, state FROM pg_temp.sound('merged');

-- Prepared transactions
BEGIN;
INSERT INTO merged VALUES (50, 1);
CREATE INDEX merged_n ON merged USING smart (n);
PREPARE TRANSACTION 'regress_smart_prepared';
COMMIT PREPARED 'regress_smart_prepared';
BEGIN;
INSERT INTO merged VALUES (51, 1);
PREPARE TRANSACTION 'regress_smart_prepared';
ROLLBACK PREPARED 'regress_smart_prepared';
SELECT id FROM merged WHERE id >= 50;
SELECT index, state FROM pg_temp.sound('merged');
DROP TABLE merged;

-- Materialized views
CREATE TABLE counted (id int, n int);
INSERT INTO counted SELECT i, i % 3 FROM generate_series(1, 30) i;
CREATE MATERIALIZED VIEW counts AS SELECT n, count(*) AS rows FROM counted GROUP BY n;
CREATE UNIQUE INDEX counts_n ON counts USING smart (n);
INSERT INTO counted VALUES (31, 3);
REFRESH MATERIALIZED VIEW counts;
SELECT * FROM counts WHERE n >= 2 ORDER BY n;
SELECT index, state FROM pg_temp.sound('counts');
DROP MATERIALIZED VIEW counts;

-- What plain foreign keys, rules and triggers see of the side that refers: an index of any kind.
CREATE TABLE referred (id int PRIMARY KEY);
CREATE TABLE referring (id int REFERENCES referred ON DELETE CASCADE ON UPDATE CASCADE, n int);
CREATE INDEX referring_id ON referring USING smart (id);
INSERT INTO referred SELECT generate_series(1, 100);
INSERT INTO referring SELECT i, i FROM generate_series(1, 100) i;
DELETE FROM referred WHERE id <= 10;
UPDATE referred SET id = id + 1000 WHERE id > 90;
SELECT count(*), min(id), max(id) FROM referring WHERE id > 0;
SELECT index, state FROM pg_temp.sound('referring');
DROP TABLE referring, referred;
