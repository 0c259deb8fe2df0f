-- The costs that the planner expects of smart are about those of btree for the same work, and round trips have a price.
CREATE TABLE cost_rows (id int, mixed int, few int, word text COLLATE "C", flag boolean) WITH (autovacuum_enabled = off);
INSERT INTO cost_rows SELECT i, i * 7919 % 30011, i % 100, md5(i::text), i % 50 = 0 FROM generate_series(1, 30000) i;
CREATE TABLE cost_shapes (name text, query text);
INSERT INTO cost_shapes VALUES
	('point in the order of the table', 'SELECT * FROM cost_rows WHERE id = 5000'),
	('point elsewhere', 'SELECT * FROM cost_rows WHERE mixed = 5000'),
	('point of text', 'SELECT * FROM cost_rows WHERE word = ''abc'''),
	('no condition', 'SELECT id FROM cost_rows ORDER BY id'),
	('short range, correlated', 'SELECT * FROM cost_rows WHERE id BETWEEN 5000 AND 5100'),
	('short range, not correlated', 'SELECT * FROM cost_rows WHERE mixed BETWEEN 5000 AND 5100'),
	('long range, correlated', 'SELECT * FROM cost_rows WHERE id BETWEEN 5000 AND 12000'),
	('long range, not correlated', 'SELECT * FROM cost_rows WHERE mixed BETWEEN 5000 AND 12000'),
	('list', 'SELECT * FROM cost_rows WHERE mixed IN (1, 20, 300, 4000, 5000, 10000, 17000, 18000, 19000, 20000)'),
	('list and range', 'SELECT * FROM cost_rows WHERE few IN (1, 20, 30) AND mixed < 1000'),
	('first rows', 'SELECT * FROM cost_rows ORDER BY mixed LIMIT 10'),
	('last rows', 'SELECT * FROM cost_rows ORDER BY mixed DESC LIMIT 100'),
	('first rows of a range', 'SELECT * FROM cost_rows WHERE word > ''5'' ORDER BY word LIMIT 10'),
	('index only', 'SELECT mixed FROM cost_rows WHERE mixed BETWEEN 5000 AND 9000'),
	('index only, text', 'SELECT word FROM cost_rows WHERE word > ''f'''),
	('two columns', 'SELECT * FROM cost_rows WHERE few = 7 AND mixed = 50'),
	('first of two columns', 'SELECT * FROM cost_rows WHERE few = 7'),
	('range of the second column', 'SELECT * FROM cost_rows WHERE few = 7 AND mixed > 5000 AND mixed < 9000'),
	('null', 'SELECT * FROM cost_rows WHERE mixed IS NULL'),
	('partial', 'SELECT * FROM cost_rows WHERE flag AND id BETWEEN 10 AND 1000'),
	('expression', 'SELECT * FROM cost_rows WHERE mixed + few BETWEEN 100 AND 300'),
	('unique', 'SELECT * FROM cost_rows WHERE id = 17'),
	('inner side of a join', 'SELECT * FROM generate_series(1, 100) n JOIN cost_rows r ON r.mixed = n');
CREATE TABLE cost_told (method text, scans text, name text, startup float8, total float8);

CREATE FUNCTION cost_of(query text, OUT startup float8, OUT total float8) LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	startup := (plan->0->'Plan'->>'Startup Cost')::float8;
	total := (plan->0->'Plan'->>'Total Cost')::float8;
END $$;
CREATE FUNCTION cost_index(method text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE UNIQUE INDEX %1$s_id ON cost_rows USING %1$s (id)', method);
	EXECUTE format('CREATE INDEX %1$s_mixed ON cost_rows USING %1$s (mixed)', method);
	EXECUTE format('CREATE INDEX %1$s_word ON cost_rows USING %1$s (word)', method);
	EXECUTE format('CREATE INDEX %1$s_both ON cost_rows USING %1$s (few, mixed)', method);
	EXECUTE format('CREATE INDEX %1$s_flag ON cost_rows USING %1$s (id) WHERE flag', method);
	EXECUTE format('CREATE INDEX %1$s_sum ON cost_rows USING %1$s ((mixed + few))', method);
END $$;
SET enable_seqscan = off;
SET enable_sort = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET max_parallel_workers_per_gather = 0;
SET jit = off;

SELECT bool_or(transport <> 'local') AS remote FROM smart_memory_nodes \gset
SELECT cost_index('btree');
VACUUM ANALYZE cost_rows;
INSERT INTO cost_told SELECT 'btree', 'plain', name, (cost_of(query)).* FROM cost_shapes;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
INSERT INTO cost_told SELECT 'btree', 'bitmap', name, (cost_of(query)).* FROM cost_shapes WHERE query !~ 'ORDER';
RESET enable_indexscan;
RESET enable_indexonlyscan;
DROP INDEX btree_id, btree_mixed, btree_word, btree_both, btree_flag, btree_sum;
SELECT cost_index('smart');
VACUUM ANALYZE cost_rows;
INSERT INTO cost_told SELECT 'smart', 'plain', name, (cost_of(query)).* FROM cost_shapes;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
INSERT INTO cost_told SELECT 'smart', 'bitmap', name, (cost_of(query)).* FROM cost_shapes WHERE query !~ 'ORDER';
RESET enable_indexscan;
RESET enable_indexonlyscan;
SELECT scans, count(*), bool_or(s.total >= 1e10) AS without_index
	FROM cost_told b JOIN cost_told s USING (scans, name) WHERE b.method = 'btree' AND s.method = 'smart' GROUP BY scans ORDER BY scans;
-- Leaves on memory nodes are not the same work as pages.
SELECT scans, name, b.total AS btree, s.total AS smart
	FROM cost_told b JOIN cost_told s USING (scans, name)
	WHERE b.method = 'btree' AND s.method = 'smart' AND NOT :'remote' AND (s.total > 2 * b.total OR b.total > 2 * s.total) ORDER BY 1, 2;

-- One round trip for a point, and one for a few; without memory nodes they cost nothing.
CREATE FUNCTION cost_in_trips(query text) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
	without float8;
BEGIN
	SET LOCAL smart.round_trip_cost = 0;
	without := (cost_of(query)).total;
	SET LOCAL smart.round_trip_cost = 1000;
	RETURN round((((cost_of(query)).total - without) / 1000)::numeric, 1);
END $$;
SELECT name, cost_in_trips(query) = CASE WHEN :'remote' THEN trips ELSE 0 END AS as_expected
	FROM cost_shapes JOIN (VALUES ('point elsewhere', 1), ('list', 1), ('two columns', 1)) t (name, trips) USING (name) ORDER BY 1;
SELECT cost_in_trips('SELECT id FROM cost_rows WHERE id > 0') BETWEEN CASE WHEN :'remote' THEN 5 ELSE 0 END AND
	CASE WHEN :'remote' THEN 30 ELSE 0 END AS as_expected;
-- A scan that leaps from group to group goes down to each of them: round trips as they are counted, within a factor of four.
CREATE TABLE cost_leaps AS SELECT 'SELECT count(*) FROM cost_rows WHERE mixed ' || condition AS query
	FROM unnest(ARRAY['= 50', '> 25000', 'BETWEEN 50 AND 60 AND few < 20', '= 15000 AND few > 89']) condition;
CREATE FUNCTION round_trips_of(query text) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
	before bigint;
BEGIN
	-- The second time all is open that a scan needs.
	EXECUTE query;
	before := (SELECT session_round_trips FROM smart_stat_fabric);
	EXECUTE query;
	RETURN (SELECT session_round_trips FROM smart_stat_fabric) - before;
END $$;
BEGIN;
DROP INDEX smart_mixed;
SET LOCAL enable_bitmapscan = off;
SELECT query FROM cost_leaps
	WHERE NOT cost_in_trips(query) BETWEEN round_trips_of(query) / 4 AND round_trips_of(query) * 4 ORDER BY query;
ROLLBACK;

-- Both are there: the cheaper one is taken.
CREATE INDEX btree_mixed ON cost_rows (mixed);
CREATE FUNCTION cost_choice(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN plan->0->'Plan'->>'Index Name';
END $$;
SET smart.round_trip_cost = 1;
SELECT cost_choice('SELECT * FROM cost_rows WHERE mixed = 5000') AS point,
	cost_choice('SELECT mixed FROM cost_rows WHERE mixed > 0 ORDER BY mixed') AS long_scan;
SET smart.round_trip_cost = 100;
SELECT cost_choice('SELECT * FROM cost_rows WHERE mixed = 5000') =
	CASE WHEN :'remote' THEN 'btree_mixed' ELSE 'smart_mixed' END AS as_expected;

-- As measured.
SELECT boot_val FROM pg_settings WHERE name = 'smart.round_trip_cost';
SET smart.round_trip_cost = -1;
SELECT (cost_of('SELECT * FROM cost_rows WHERE id = 5000')).total > 0 AS told;
SET smart.round_trip_cost = -2;
DROP TABLE cost_rows, cost_shapes, cost_told, cost_leaps;
DROP FUNCTION cost_of, cost_index, cost_in_trips, cost_choice, round_trips_of;
