-- EXPLAIN (ANALYZE, ROUND_TRIPS), from version 18 on: as many as the session counts.
SELECT current_setting('server_version_num')::int >= 180000 AS extended \gset
\if :extended
CREATE TABLE round_trips AS SELECT i % 1000 AS a, 'word ' || i AS b FROM generate_series(1, 20000) i;
CREATE INDEX round_trips_a ON round_trips USING smart (a);
VACUUM ANALYZE round_trips;
CREATE FUNCTION pg_temp.told(node json) RETURNS bigint LANGUAGE sql AS $$
	SELECT coalesce((node->>'Round Trips')::bigint, 0) +
		coalesce((SELECT sum(pg_temp.told(child)) FROM json_array_elements(node->'Plans') child), 0)
$$;
CREATE FUNCTION pg_temp.round_trips_told(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	before bigint;
	plan json;
BEGIN
	-- The second time all is open that a scan needs.
	FOR i IN 1 .. 2 LOOP
		before := smart_round_trips();
		EXECUTE 'EXPLAIN (ANALYZE, ROUND_TRIPS, FORMAT JSON) ' || query INTO plan;
		before := smart_round_trips() - before;
	END LOOP;
	plan := plan->0->'Plan';
	RETURN CASE WHEN pg_temp.told(plan) = before THEN 'as counted' ELSE pg_temp.told(plan) || ', but ' || before END ||
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
RESET ALL;
EXPLAIN (COSTS OFF, ROUND_TRIPS) SELECT a FROM round_trips WHERE a = 17;
EXPLAIN (ROUND_TRIPS maybe) SELECT 1;
DROP TABLE round_trips;
\else
EXPLAIN (ROUND_TRIPS) SELECT 1;
\endif
