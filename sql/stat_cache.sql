-- The cache of inner nodes: of indexes on memory nodes, and not there for the embedded one.
SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
WHERE attrelid = 'smart_stat_cache'::regclass AND attnum > 0 ORDER BY attnum;
SELECT bool_or(transport <> 'local') AS remote FROM smart_memory_nodes \gset

CREATE TABLE stat_cache WITH (autovacuum_enabled = off) AS SELECT i AS a FROM generate_series(1, 50000) i;
CREATE INDEX stat_cache_a ON stat_cache USING smart (a);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT count(*) FROM stat_cache WHERE a > 0;
SELECT hits AS before, misses AS missed, stores AS stored FROM smart_stat_cache \gset
SELECT a FROM stat_cache WHERE a = 30000;
SELECT (hits > :before) = :'remote' AS hits, misses = :missed AS no_miss, stores = :stored AS no_store,
	(size_bytes > 0) = :'remote' AS size, used_bytes <= size_bytes AS fits, (used_bytes > 0) = :'remote' AS used,
	used_bytes = node6_bytes + node14_bytes + node30_bytes + node62_bytes + node126_bytes + node256_bytes AS kinds,
	(node256_bytes > 0) = :'remote' AS large_ones, least(updates, drops, evictions, moves, skips) >= 0 AS others
FROM smart_stat_cache;

-- A reset sets the counters to zero, and leaves what is cached.
SELECT hits + misses + stores AS done, stats_reset AS since FROM smart_stat_cache \gset
SELECT smart_stat_reset('cache');
SELECT (hits + misses + stores < :done) = :'remote' AS reset, (used_bytes > 0) = :'remote' AS used, stats_reset > :'since' AS since
FROM smart_stat_cache;
DROP TABLE stat_cache;
CREATE ROLE regress_smart_user;
SET ROLE regress_smart_user;
SELECT count(*) FROM smart_stat_cache;
RESET ROLE;
DROP ROLE regress_smart_user;
