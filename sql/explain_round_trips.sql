-- EXPLAIN tells as many round trips as the session counts: of each scan from version 18 on, before of the statement. With VERBOSE,
-- if there are memory nodes: so there are four outputs.
SELECT current_setting('server_version_num')::int >= 180000 AS extended \gset
SELECT bool_or(transport <> 'local') AS remote FROM smart_memory_nodes;
\if :extended
CREATE TABLE round_trips WITH (autovacuum_enabled = off) AS SELECT i % 1000 AS a, 'word ' || i AS b FROM generate_series(1, 20000) i;
CREATE INDEX round_trips_a ON round_trips USING smart (a);
-- Without statistics, since planning would look for the ends of a column, which takes round trips, too.
VACUUM round_trips;
CREATE FUNCTION pg_temp.told(node json) RETURNS bigint LANGUAGE sql AS $$
	SELECT coalesce((node->>'Round Trips')::bigint, 0) +
		coalesce((SELECT sum(pg_temp.told(child)) FROM json_array_elements(node->'Plans') child), 0)
$$;
CREATE FUNCTION pg_temp.round_trips_told(query text, options text DEFAULT 'ANALYZE, ROUND_TRIPS') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	before bigint;
	plan json;
BEGIN
	-- The second time all is open that a scan needs.
	FOR i IN 1 .. 2 LOOP
		before := (SELECT session_round_trips FROM smart_stat_fabric);
		EXECUTE format('EXPLAIN (%s, FORMAT JSON) %s', options, query) INTO plan;
		before := (SELECT session_round_trips FROM smart_stat_fabric) - before;
	END LOOP;
	plan := plan->0->'Plan';
	RETURN CASE WHEN pg_temp.told(plan) = before THEN 'as counted' WHEN pg_temp.told(plan) < before THEN 'less than counted' ELSE pg_temp.told(plan) || ', but ' || before END ||
		CASE WHEN plan::text ~ 'Round Trips' THEN ', told' ELSE '' END;
END
$$;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT pg_temp.round_trips_told('SELECT * FROM round_trips WHERE a = 17');
SELECT pg_temp.round_trips_told('SELECT a FROM round_trips WHERE a BETWEEN 17 AND 400');
SELECT pg_temp.round_trips_told('SELECT * FROM round_trips x JOIN round_trips y ON y.a = x.a + 1 WHERE x.a < 3');
RESET enable_bitmapscan;
SET enable_indexscan = off;
SELECT pg_temp.round_trips_told('SELECT * FROM round_trips WHERE a BETWEEN 17 AND 400');
SELECT pg_temp.round_trips_told('SELECT * FROM round_trips WHERE a BETWEEN 17 AND 400', 'ANALYZE, VERBOSE');
-- What planning asks memory nodes, if it asks them, is not of the statement.
ANALYZE round_trips;
CREATE FUNCTION pg_temp.planning_asks(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	before bigint := (SELECT session_round_trips FROM smart_stat_fabric);
BEGIN
	EXECUTE 'EXPLAIN ' || query;
	RETURN (SELECT session_round_trips FROM smart_stat_fabric) > before;
END
$$;
SELECT CASE WHEN told LIKE 'not told%' THEN 'as expected' WHEN told LIKE CASE WHEN asks THEN 'less than counted%' ELSE 'as counted%' END THEN 'as expected' ELSE told END AS told
	FROM (SELECT pg_temp.planning_asks(query) AS asks, pg_temp.round_trips_told(query) AS told
		FROM (VALUES ('SELECT * FROM round_trips x JOIN round_trips y ON y.a = x.a + 1 WHERE x.a < 3')) AS _ (query) OFFSET 0) AS _;
RESET ALL;
EXPLAIN (COSTS OFF, ROUND_TRIPS) SELECT a FROM round_trips WHERE a = 17;
EXPLAIN (ROUND_TRIPS maybe) SELECT 1;
DROP TABLE round_trips;
\else
EXPLAIN (ROUND_TRIPS) SELECT 1;
CREATE TABLE round_trips WITH (autovacuum_enabled = off) AS SELECT i % 1000 AS a, 'word ' || i AS b FROM generate_series(1, 20000) i;
CREATE INDEX round_trips_a ON round_trips USING smart (a);
-- Without statistics, since planning would look for the ends of a column, which takes round trips, too.
VACUUM round_trips;
CREATE FUNCTION pg_temp.round_trips_told(query text, options text DEFAULT 'ANALYZE, VERBOSE') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	before bigint;
	plan json;
	told bigint;
BEGIN
	-- The second time all is open that the plan needs.
	FOR i IN 1 .. 2 LOOP
		before := (SELECT session_round_trips FROM smart_stat_fabric);
		EXECUTE format('EXPLAIN (%s, FORMAT JSON) %s', options, query) INTO plan;
		before := (SELECT session_round_trips FROM smart_stat_fabric) - before;
	END LOOP;
	told := (plan->0->>'Round Trips')::bigint;
	RETURN CASE WHEN told IS NULL THEN 'not told' WHEN told = before THEN 'as counted' WHEN told < before THEN 'less than counted' ELSE told || ', but ' || before END;
END
$$;
-- The lines of EXPLAIN, with N for what differs from one server to another.
CREATE FUNCTION pg_temp.lines_of(statement text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE statement LOOP
		RETURN NEXT regexp_replace(line, '(Round.Trips"?[:>] ?)\d+', '\1N');
	END LOOP;
END
$$;
SELECT pg_temp.round_trips_told('SELECT * FROM round_trips WHERE a = 17', 'ANALYZE') AS not_verbose;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT pg_temp.round_trips_told('SELECT * FROM round_trips WHERE a = 17');
SELECT pg_temp.round_trips_told('SELECT a FROM round_trips WHERE a BETWEEN 17 AND 400');
SELECT pg_temp.round_trips_told('SELECT * FROM round_trips x JOIN round_trips y ON y.a = x.a + 1 WHERE x.a < 3');
SELECT pg_temp.round_trips_told('INSERT INTO round_trips SELECT 2000 + i, '''' FROM generate_series(1, 1000) i');
-- A statement that explains another one: each has its own.
CREATE FUNCTION pg_temp.inner_plan() RETURNS text LANGUAGE sql AS
	$$ SELECT pg_temp.round_trips_told('SELECT count(*) FROM round_trips WHERE a = 18') $$;
SELECT pg_temp.round_trips_told('SELECT pg_temp.inner_plan(), count(*) FROM round_trips WHERE a = 17');
-- All formats, and only of what has run.
SELECT pg_temp.lines_of('EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT b FROM round_trips WHERE a = 17');
SELECT pg_temp.lines_of('EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT JSON) SELECT 1');
SELECT pg_temp.lines_of('EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT YAML) SELECT 1');
SELECT pg_temp.lines_of('EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT XML) SELECT 1');
SELECT pg_temp.lines_of('EXPLAIN (VERBOSE, COSTS OFF) SELECT b FROM round_trips WHERE a = 17');
-- One that fails leaves nothing behind.
EXPLAIN (ANALYZE, VERBOSE) SELECT 1 / (a - 17) FROM round_trips WHERE a = 17;
SELECT pg_temp.round_trips_told('SELECT a FROM round_trips WHERE a = 17', 'ANALYZE');
-- What planning asks memory nodes, if it asks them, is not of the statement.
ANALYZE round_trips;
CREATE FUNCTION pg_temp.planning_asks(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	before bigint := (SELECT session_round_trips FROM smart_stat_fabric);
BEGIN
	EXECUTE 'EXPLAIN ' || query;
	RETURN (SELECT session_round_trips FROM smart_stat_fabric) > before;
END
$$;
SELECT CASE WHEN told LIKE 'not told%' THEN 'as expected' WHEN told LIKE CASE WHEN asks THEN 'less than counted%' ELSE 'as counted%' END THEN 'as expected' ELSE told END AS told
	FROM (SELECT pg_temp.planning_asks(query) AS asks, pg_temp.round_trips_told(query) AS told
		FROM (VALUES ('SELECT * FROM round_trips x JOIN round_trips y ON y.a = x.a + 1 WHERE x.a < 3')) AS _ (query) OFFSET 0) AS _;
RESET ALL;
DROP TABLE round_trips;
\endif
