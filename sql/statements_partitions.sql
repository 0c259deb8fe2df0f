-- Partitioned tables: an index of the whole is one of each; partitions that come and go bring theirs.
SET client_min_messages = warning;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET max_parallel_workers_per_gather = 0;
\getenv abs_srcdir PG_ABS_SRCDIR
\set sound :abs_srcdir /test/regress/sound.sql
\set ECHO none
\i :sound
\set ECHO all

CREATE TABLE measured (day int, place int, value int) PARTITION BY RANGE (day);
CREATE TABLE measured_1 PARTITION OF measured FOR VALUES FROM (1) TO (10);
CREATE TABLE measured_2 (day int, place int, value int);
INSERT INTO measured_2 SELECT d, p, d * p FROM generate_series(10, 19) d, generate_series(1, 50) p;
CREATE INDEX measured_2_own ON measured_2 USING smart (day, place);
CREATE INDEX measured_all ON measured USING smart (day, place);
INSERT INTO measured SELECT d, p, d * p FROM generate_series(1, 9) d, generate_series(1, 50) p;
ALTER TABLE measured ATTACH PARTITION measured_2 FOR VALUES FROM (10) TO (20);
CREATE TABLE measured_3 PARTITION OF measured FOR VALUES FROM (20) TO (30) PARTITION BY LIST (place);
CREATE TABLE measured_3_rest PARTITION OF measured_3 DEFAULT;
INSERT INTO measured SELECT d, p, d * p FROM generate_series(20, 29) d, generate_series(1, 50) p;
SELECT i.inhrelid::regclass AS index, i.inhparent::regclass AS parent FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
WHERE c.relkind IN ('i', 'I') AND i.inhparent::regclass::text LIKE 'measured%' ORDER BY i.inhrelid::regclass::text;
-- Trees are those of the partitions.
SELECT smart_index_condition('measured_all');
SELECT smart_normalized_key('measured_all', 1);
SELECT smart_normalized_key('measured', 1);
SELECT smart_normalized_key(1, 1) IS NULL AS gone;
EXPLAIN (COSTS OFF) SELECT * FROM measured ORDER BY day, place LIMIT 3;
SELECT * FROM measured WHERE day IN (9, 10, 19, 20) AND place = 7 ORDER BY day;
UPDATE measured SET day = 25 WHERE day = 5 AND place = 5;
SELECT * FROM measured WHERE day = 25 AND place = 5 ORDER BY value;
ALTER TABLE measured DETACH PARTITION measured_2;
ALTER TABLE measured DETACH PARTITION measured_1 CONCURRENTLY;
SELECT count(*) FROM measured WHERE day < 20;
SELECT t AS table, s.* FROM unnest(ARRAY['measured_1', 'measured_2', 'measured_3_rest']::regclass[]) t, pg_temp.sound(t) s;
CREATE INDEX measured_value ON ONLY measured USING smart (value);
CREATE INDEX measured_3_value ON ONLY measured_3 USING smart (value);
CREATE INDEX measured_3_rest_value ON measured_3_rest USING smart (value);
ALTER INDEX measured_3_value ATTACH PARTITION measured_3_rest_value;
ALTER INDEX measured_value ATTACH PARTITION measured_3_value;
SELECT indisvalid FROM pg_index WHERE indexrelid = 'measured_value'::regclass;
DROP INDEX measured_3_value;
DROP TABLE measured, measured_1, measured_2;
