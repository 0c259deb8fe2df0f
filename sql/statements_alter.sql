-- ALTER TABLE and ALTER INDEX, and what rewrites or moves a table: after each the indexes hold what the table does.
SET client_min_messages = warning;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET max_parallel_workers_per_gather = 0;
\getenv abs_srcdir PG_ABS_SRCDIR
\set sound :abs_srcdir /test/regress/sound.sql
\set ECHO none
\i :sound
\set ECHO all

CREATE TABLE changing (id int, word varchar(10), at timestamp, n int, gone text);
INSERT INTO changing SELECT i, 'w' || i, timestamp '2020-01-01' + i * interval '1 hour', i % 7, 'x' FROM generate_series(1, 2000) i;
CREATE UNIQUE INDEX changing_id ON changing USING smart (id) INCLUDE (n);
CREATE INDEX changing_word ON changing USING smart (word COLLATE "C" DESC, id) WHERE n < 6;
CREATE INDEX changing_at ON changing USING smart (at, (n + 1));
CREATE INDEX changing_gone ON changing USING smart (gone COLLATE "C");

-- ALTER TABLE: types with and without a rewrite, columns, storage, owners of names.
ALTER TABLE changing ALTER COLUMN word TYPE varchar(20);
ALTER TABLE changing ALTER COLUMN word TYPE text;
ALTER TABLE changing ALTER COLUMN id TYPE bigint, ALTER COLUMN at TYPE timestamptz USING at AT TIME ZONE 'UTC';
ALTER TABLE changing ALTER COLUMN n TYPE smallint USING (n * 2)::smallint;
SELECT * FROM pg_temp.sound('changing');
SELECT n FROM changing WHERE id = 1000;
ALTER TABLE changing ALTER COLUMN id SET NOT NULL, ALTER COLUMN word SET STORAGE EXTERNAL, ALTER COLUMN word SET STATISTICS 10;
ALTER TABLE changing ADD COLUMN later int DEFAULT 5, ADD COLUMN summed bigint GENERATED ALWAYS AS (id + n) STORED;
CREATE INDEX changing_later ON changing USING smart (later, summed);
ALTER TABLE changing DROP COLUMN gone;
ALTER TABLE changing RENAME COLUMN word TO term;
ALTER TABLE changing RENAME TO changed;
ALTER INDEX changing_id RENAME TO changed_id;
ALTER INDEX changing_at SET (leaf_size = 1024, fillfactor = 80);
ALTER INDEX changing_at RESET (fillfactor);
ALTER INDEX changing_at ALTER COLUMN 2 SET STATISTICS 100;
ALTER TABLE changed ADD CONSTRAINT changed_check CHECK (id > 0) NOT VALID;
ALTER TABLE changed VALIDATE CONSTRAINT changed_check;
CREATE SCHEMA statements_schema;
ALTER TABLE changed SET SCHEMA statements_schema;
SELECT * FROM pg_temp.sound('statements_schema.changed');
SELECT count(*) FROM statements_schema.changed WHERE later = 5 AND summed BETWEEN 100 AND 200;
ALTER TABLE statements_schema.changed SET SCHEMA public;
DROP SCHEMA statements_schema;
ALTER TABLE changed SET UNLOGGED;
ALTER TABLE changed SET LOGGED;
ALTER TABLE changed SET (fillfactor = 60);
ANALYZE changed;
SELECT count(*) > 0 AS statistics FROM pg_stats WHERE tablename = 'changing_at';

-- Rewrites and moves of the table and of the index
ALTER TABLE changed CLUSTER ON changing_at;
CLUSTER changed;
CLUSTER changed USING changed_id;
SELECT count(*) AS rows_out_of_order FROM (SELECT id, lag(id) OVER (ORDER BY ctid) AS before FROM changed) s WHERE id < before;
ALTER TABLE changed SET WITHOUT CLUSTER;
VACUUM (FULL, ANALYZE) changed;
VACUUM (FREEZE, INDEX_CLEANUP off) changed;
VACUUM (PARALLEL 2) changed;
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE regress_smart_space LOCATION '';
ALTER INDEX changed_id SET TABLESPACE regress_smart_space;
ALTER TABLE changed SET TABLESPACE regress_smart_space;
INSERT INTO changed (id, term, at, n) VALUES (5001, 'moved', now(), 3);
SELECT n FROM changed WHERE id = 5001;
REINDEX (TABLESPACE pg_default) TABLE changed;
ALTER TABLE changed SET TABLESPACE pg_default;
DROP TABLESPACE regress_smart_space;
REINDEX TABLE CONCURRENTLY changed;
SELECT * FROM pg_temp.sound('changed');

-- TRUNCATE, also undone, and COPY
BEGIN;
TRUNCATE changed;
INSERT INTO changed (id, term, at, n) VALUES (1, 'again', now(), 1);
SELECT count(*) FROM changed WHERE id < 10;
ROLLBACK;
SELECT count(*) FROM changed WHERE id < 10;
TRUNCATE changed;
COPY changed (id, term, at, n) FROM stdin;
7	seven	2020-01-01	0
5	five	2020-01-02	0
6	six	2020-01-03	\N
\.
COPY (SELECT id, term FROM changed WHERE id > 4 ORDER BY id) TO stdout;
SELECT index FROM pg_temp.sound('changed');

-- Definitions that are copied
CREATE TABLE changed_like (LIKE changed INCLUDING ALL);
INSERT INTO changed_like (id, term, at, n) SELECT id, term, at, n FROM changed;
INSERT INTO changed_like (id) VALUES (5);
SELECT state, definition FROM pg_temp.sound('changed_like');
COMMENT ON INDEX changed_id IS 'a comment';
DROP TABLE changed, changed_like;
