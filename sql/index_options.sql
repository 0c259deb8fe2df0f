-- Storage parameters, properties, statistics.
CREATE TABLE index_options (a int, b text COLLATE "C");
INSERT INTO index_options SELECT i, i::text FROM generate_series(1, 20000) i;

CREATE INDEX index_options_bad ON index_options USING smart (a) WITH (leaf_size = 100);
CREATE INDEX index_options_bad ON index_options USING smart (a) WITH (leaf_size = 32);
CREATE INDEX index_options_bad ON index_options USING smart (a) WITH (leaf_size = 8192);
CREATE INDEX index_options_bad ON index_options USING smart (a) WITH (fillfactor = 5);
CREATE INDEX index_options_bad ON index_options USING smart (a) WITH (pages_per_range = 5);
CREATE INDEX index_options_bad ON index_options USING smart (a) WITH (resident = sometimes);
CREATE INDEX index_options_bad ON index_options USING smart (a point_ops);
CREATE INDEX index_options_bad ON index_options USING smart (a text_ops);

CREATE INDEX index_options_64 ON index_options USING smart (a) WITH (leaf_size = 64);
CREATE INDEX index_options_4096 ON index_options USING smart (a) WITH (leaf_size = 4096, fillfactor = 50);
CREATE INDEX index_options_plain ON index_options USING smart (a);
SELECT entries, leaves > 100 AS has_leaves, nodes = node6 + node14 + node30 + node62 + node126 + node256 AS nodes_add_up,
	bytes_used <= bytes_allocated AS fits, fill BETWEEN 0.3 AND 1 AS fill, height BETWEEN 2 AND 10 AS height
FROM smart_index_stats('index_options_plain');
SELECT (SELECT leaves FROM smart_index_stats('index_options_64')) > 5 * (SELECT leaves FROM smart_index_stats('index_options_plain')) AS small_leaves,
	(SELECT leaves FROM smart_index_stats('index_options_4096')) < (SELECT leaves FROM smart_index_stats('index_options_plain')) AS large_leaves;
ALTER INDEX index_options_plain SET (leaf_size = 65);
ALTER INDEX index_options_plain SET (fillfactor = 70);
REINDEX INDEX index_options_plain;
SELECT smart_index_check('index_options_64', true), smart_index_check('index_options_4096', true), smart_index_check('index_options_plain', true);

SELECT p, pg_indexam_has_property(oid, p) FROM pg_am, unnest(ARRAY['can_order', 'can_unique', 'can_multi_col', 'can_exclude', 'can_include']) p
WHERE amname = 'smart';
SELECT p, pg_index_has_property('index_options_plain', p) FROM unnest(ARRAY['clusterable', 'index_scan', 'bitmap_scan', 'backward_scan']) p;

-- Scans are counted.
SET enable_seqscan = off;
SET enable_bitmapscan = off;
DROP INDEX index_options_64, index_options_4096;
SELECT a FROM index_options WHERE a = 77;
SELECT a FROM index_options WHERE a = 78;
SELECT pg_stat_force_next_flush();
SELECT idx_scan, idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = 'index_options_plain';

-- The server's own function tells the pages on disk.
SELECT pg_relation_size(index) > 50000 AS pages, bytes > 100000 AS tree FROM smart_index_state
WHERE index = 'index_options_plain'::regclass;

-- All of them at a glance
CREATE UNLOGGED TABLE index_options_unlogged (a int);
CREATE INDEX index_options_u ON index_options_unlogged USING smart (a);
CREATE TEMPORARY TABLE index_options_temp (a int);
CREATE INDEX index_options_t ON index_options_temp USING smart (a);
SELECT index, state, bytes BETWEEN 0 AND 100 * 8192 AS small FROM smart_index_state
WHERE index::text LIKE 'index\_options%' ORDER BY index::text COLLATE "C";
DROP TABLE index_options_unlogged, index_options_temp;

-- Permissions to read a whole index
CREATE ROLE regress_smart_user;
SET ROLE regress_smart_user;
SELECT bytes > 8192 AS visible FROM smart_index_state WHERE index = 'index_options_plain'::regclass;
SELECT smart_index_stats('index_options_plain');
SELECT smart_index_check('index_options_plain');
RESET ROLE;
DROP ROLE regress_smart_user;

-- Not one of ours
CREATE INDEX index_options_btree ON index_options (a);
SELECT smart_index_stats('index_options_btree');
SELECT smart_index_check('index_options_btree');
SELECT smart_index_condition('index_options');
SELECT smart_index_condition('index_options_btree');
SELECT smart_index_condition(1);
SELECT count(*) FROM smart_index_state WHERE index = 'index_options_btree'::regclass;
SELECT smart_index_check(1);
DROP TABLE index_options;
