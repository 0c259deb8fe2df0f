-- Views and functions about memory nodes, the same for the embedded one and for others.
SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
WHERE attrelid = 'smart_memory_nodes'::regclass AND attnum > 0 ORDER BY attnum;
SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
WHERE attrelid = 'smart_stat_fabric'::regclass AND attnum > 0 ORDER BY attnum;

CREATE TABLE memory_nodes (a int);
INSERT INTO memory_nodes SELECT generate_series(1, 10000);
CREATE INDEX memory_nodes_a ON memory_nodes USING smart (a);
CREATE INDEX memory_nodes_empty ON memory_nodes USING smart (a) WHERE a < 0;
CREATE INDEX memory_nodes_btree ON memory_nodes (a);

SELECT bool_and(state = 'up') AS up, bool_and(transport IN ('local', 'tcp', 'verbs')) AS transport,
	bool_and(capacity_bytes > 0) AS capacity, sum(used_bytes) > 0 AS used, sum(trees) >= 1 AS trees FROM smart_memory_nodes;

-- How full each is
SELECT bool_and(fill ~ '^#*[+]*-*$' AND length(fill) = 20 AND (fill LIKE '#%') = (used_bytes > 0)) AS fill FROM smart_memory_nodes;

-- An index is on some of them, one that is empty on none.
SELECT count(*) > 0 AS somewhere, bool_and(m.address = n.address) AS same,
	sum(n.bytes) BETWEEN 0.9 * min(i.bytes) AND min(i.bytes) AS bytes
FROM smart_index_nodes('memory_nodes_a') n JOIN smart_memory_nodes m USING (node), smart_index_state i
WHERE i.index = 'memory_nodes_a'::regclass;
SELECT count(*) FROM smart_index_nodes('memory_nodes_empty');
SELECT * FROM smart_index_nodes('memory_nodes_btree');
SELECT count(*) FROM smart_index_nodes(1);

-- Counters
SELECT bool_and(c IS NOT NULL) AS counted FROM smart_stat_fabric,
	LATERAL (VALUES (reads), (read_bytes), (writes), (write_bytes), (compare_and_swaps), (fetch_and_adds), (doorbells),
		(round_trips), (round_trips_ahead), (session_round_trips), (connections), (timeouts), (failures), (offloaded), (offloaded_busy), (offloaded_stopped),
		(delegated_reads), (read_batches), (combined_entries), (combined_batches), (leaf_waits), (leaf_withdrawals),
		(leaf_refusals), (leaf_failures)) v(c);
SELECT session_round_trips >= 0 AS round_trips FROM smart_stat_fabric;
SELECT stats_reset AS before FROM smart_stat_fabric \gset
SELECT stats_reset AS cache_before FROM smart_stat_cache \gset
SELECT smart_stat_reset('fabric');
SELECT f.stats_reset > :'before' AS reset, timeouts, failures, c.stats_reset = :'cache_before' AS other_kept
FROM smart_stat_fabric f, smart_stat_cache c;
SELECT smart_stat_reset('Fabric');

-- Permissions to see each column
CREATE ROLE regress_smart_user;
SET ROLE regress_smart_user;
SELECT count(*) > 0 AS rows, count(address) AS addresses, count(problem) AS problems FROM smart_memory_nodes;
SELECT count(*) > 0 AS rows, count(address) AS addresses FROM smart_index_nodes('memory_nodes_a');
SELECT count(*) FROM smart_stat_fabric;
SELECT smart_stat_reset();
SELECT count(*) FROM pg_settings WHERE name IN ('smart.memory_nodes', 'smart.secret_file');
SET smart.fabric_timeout = '5s';
RESET ROLE;
GRANT pg_monitor TO regress_smart_user;
SET ROLE regress_smart_user;
SELECT count(*) = count(address) AS addresses FROM smart_memory_nodes;
RESET ROLE;
DROP ROLE regress_smart_user;

-- Settings
SET smart.fabric_timeout = '5s';
SHOW smart.fabric_timeout;
DO $$ BEGIN SET smart.fabric_timeout = 50; EXCEPTION WHEN invalid_parameter_value THEN RAISE INFO 'too short'; END $$;
RESET smart.fabric_timeout;
SET smart.offload = off;
SET smart.memory_nodes = 'localhost:1';
SET smart.rdma_device = 'none';
ALTER SYSTEM SET smart.rdma_device = 'none';
ALTER SYSTEM SET smart.rdma_device = 'mlx5_0:1:256';
ALTER SYSTEM SET smart.rdma_device = 'mlx5_0:one';
ALTER SYSTEM SET smart.rdma_device = 'mlx5_0:1:2:3';
ALTER SYSTEM SET smart.rdma_device = 'mlx5_0:1:255';
ALTER SYSTEM SET smart.rdma_device = '::3';
ALTER SYSTEM RESET smart.rdma_device;
ALTER SYSTEM SET smart.memory_nodes = 'localhost:1, [::1:2';
ALTER SYSTEM SET smart.memory_nodes = 'localhost:100000';
ALTER SYSTEM SET smart.memory_nodes = 'localhost:1, shop@one two';
ALTER SYSTEM SET smart.memory_nodes = 'a.b@one';
SELECT name, context FROM pg_settings
WHERE name ~ '^smart\.(fabric|memory_nodes|rdma|secret)' ORDER BY name COLLATE "C";
DROP TABLE memory_nodes;
