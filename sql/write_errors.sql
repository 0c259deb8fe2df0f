-- What the writing side refuses, and that the table goes on afterwards.
SET client_min_messages = warning;
\set VERBOSITY verbose
\set SHOW_CONTEXT never

-- Entries that are too long.
CREATE TABLE error_rows (id int, word text, more text);
CREATE INDEX error_word ON error_rows USING smart (word COLLATE "C");
INSERT INTO error_rows VALUES (1, repeat('x', 4000));
\set VERBOSITY default
INSERT INTO error_rows SELECT 2, string_agg(md5(i::text), '') FROM generate_series(1, 200) i;
DROP INDEX error_word;
INSERT INTO error_rows SELECT 2, string_agg(md5(i::text), '') FROM generate_series(1, 200) i;
CREATE INDEX error_word ON error_rows USING smart (word COLLATE "C");
CREATE INDEX error_word ON error_rows USING smart (id) INCLUDE (word);
INSERT INTO error_rows SELECT 3, 'short', string_agg(md5(i::text), '') FROM generate_series(1, 300) i;
CREATE INDEX error_more ON error_rows USING smart (id) INCLUDE (more);
SELECT smart_index_check('error_word', true);
SELECT id, length(word) FROM error_rows ORDER BY id;

-- System tables.
CREATE INDEX error_system ON pg_class USING smart (relname);

DROP TABLE error_rows;

-- An index of a partitioned table.
CREATE TABLE error_parent (id int, n int) PARTITION BY RANGE (id);
CREATE TABLE error_low PARTITION OF error_parent FOR VALUES FROM (0) TO (100);
CREATE TABLE error_high PARTITION OF error_parent FOR VALUES FROM (100) TO (200);
CREATE INDEX ON error_parent USING smart (id);
INSERT INTO error_parent SELECT i, i FROM generate_series(0, 199) i;
INSERT INTO error_parent VALUES (1, 1) ON CONFLICT DO NOTHING;
SELECT count(*) FROM error_parent WHERE id = 1;
SELECT smart_index_check('error_low_id_idx', true), smart_index_check('error_high_id_idx', true);
DROP TABLE error_parent;
