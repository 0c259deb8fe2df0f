-- Leaf hints: an insert need not read the leaf on a memory node ahead of what it appends, where it goes by itself.
SET smart.batching = off;
SELECT bool_or(transport <> 'local') AS remote FROM smart_memory_nodes \gset
CREATE TABLE stat_hints (a bigint, b int) WITH (autovacuum_enabled = off);
CREATE INDEX stat_hints_a ON stat_hints USING smart (a) INCLUDE (b);
SELECT round_trips FROM smart_stat_fabric \gset
SELECT hint_hits, hint_stores FROM smart_stat_cache \gset
INSERT INTO stat_hints SELECT i * 7919 % 10007, i FROM generate_series(1, 5000) i;
SELECT round_trips - :round_trips < 7500 AS few_round_trips FROM smart_stat_fabric;
SELECT (hint_hits - :hint_hits > 4000) = :'remote' AS hits, (hint_stores - :hint_stores > 4000) = :'remote' AS stores,
	(hint_bytes > 0) = :'remote' AS kept FROM smart_stat_cache;
-- Nothing got lost, and everything can be found, duplicates too.
INSERT INTO stat_hints SELECT i * 7919 % 10007, -i FROM generate_series(4001, 6000) i;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT count(*), count(DISTINCT a), min(a), max(a), sum(b) FROM (SELECT a, b FROM stat_hints WHERE a >= 0 ORDER BY a) x;
SELECT a, b FROM stat_hints WHERE a = 4500::bigint * 7919 % 10007 ORDER BY b;
SELECT smart_index_check('stat_hints_a', true);
DROP TABLE stat_hints;
