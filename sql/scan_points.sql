-- Arrays: the leaves of many keys are asked for together where the index is on memory nodes.
\getenv abs_srcdir PG_ABS_SRCDIR
\set compare :abs_srcdir /test/regress/compare.sql
\set ECHO none
\i :compare
\set ECHO all
CREATE TABLE scan_points AS
	SELECT i AS a, i % 100 AS b, repeat(md5((i % 50)::text), 20) || i AS c FROM generate_series(1, 20000) i;
CREATE INDEX scan_points_a ON scan_points USING smart (a);
CREATE INDEX scan_points_b ON scan_points USING smart (b, a);
CREATE INDEX scan_points_c ON scan_points USING smart (c COLLATE "C");
VACUUM ANALYZE scan_points;

-- How often a query waits for memory nodes when inner nodes are in the cache; the embedded one never lets it wait.
-- Of three times the fewest: a worker may be changing the tree.
CREATE FUNCTION pg_temp.trips(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	before bigint;
	fewest bigint;
BEGIN
	PERFORM pg_temp.plan_with(false, true, true, false), pg_temp.answers(query);
	FOR i IN 1..3 LOOP
		before := (SELECT session_round_trips FROM smart_stat_fabric);
		PERFORM pg_temp.answers(query);
		fewest := least(fewest, (SELECT session_round_trips FROM smart_stat_fabric) - before);
	END LOOP;
	RETURN fewest;
END
$$;
-- The multiples of a number
CREATE FUNCTION pg_temp.keys(gap int, how_many int) RETURNS int[] LANGUAGE sql IMMUTABLE AS
	'SELECT array_agg(i * gap) FROM generate_series(1, how_many) i';

SELECT pg_temp.trips('SELECT a FROM scan_points WHERE a = ANY (pg_temp.keys(300, 64))') <= 2 AS forward,
	pg_temp.trips('SELECT a FROM scan_points WHERE a = ANY (pg_temp.keys(300, 64)) ORDER BY a DESC') <= 2 AS backward,
	pg_temp.trips('SELECT a FROM scan_points WHERE a = ANY (pg_temp.keys(20, 1000))') <= 17 AS many,
	pg_temp.trips('SELECT a FROM scan_points WHERE a = ANY (pg_temp.keys(300, 64)) LIMIT 10') <= 1 AS some,
	pg_temp.trips('SELECT a FROM scan_points WHERE b = ANY (pg_temp.keys(2, 20)) AND a = ANY (pg_temp.keys(250, 40)::int8[])') <= 16 AS both,
	pg_temp.trips('SELECT a FROM scan_points WHERE a IN (7)') <= 1 AS one;

-- Dense, sparse, absent, in many leaves each, with a condition on the column behind, as long as a leaf; and to LIMIT
SELECT pg_temp.compare_all(ARRAY[
	'SELECT a FROM scan_points WHERE a = ANY (pg_temp.keys(1, 200)) ORDER BY a',
	'SELECT a FROM scan_points WHERE a = ANY (pg_temp.keys(1, 200)) ORDER BY a DESC',
	'SELECT a FROM scan_points WHERE a = ANY (pg_temp.keys(300, 100)) ORDER BY a',
	'SELECT a FROM scan_points WHERE a = ANY (pg_temp.keys(-1, 70)) OR a = ANY (pg_temp.keys(111, 500)) ORDER BY a',
	'SELECT b, a FROM scan_points WHERE b = ANY (pg_temp.keys(3, 100)) ORDER BY b, a',
	'SELECT b, a FROM scan_points WHERE b = ANY (pg_temp.keys(3, 100)) ORDER BY b DESC, a DESC',
	'SELECT b, a FROM scan_points WHERE b = ANY (pg_temp.keys(1, 70)) AND a BETWEEN 500 AND 5000 ORDER BY b, a',
	'SELECT b, a FROM scan_points WHERE b = ANY (pg_temp.keys(1, 70)) AND a BETWEEN 500 AND 5000 ORDER BY b DESC, a DESC',
	'SELECT b, a FROM scan_points WHERE b = ANY (pg_temp.keys(1, 99)) AND a > 19000 ORDER BY b DESC, a DESC LIMIT 333',
	'SELECT c FROM scan_points WHERE c COLLATE "C" = ANY (SELECT repeat(md5((i % 50)::text), 20) || i FROM generate_series(1, 30000, 97) i) ORDER BY c COLLATE "C"',
	'SELECT c FROM scan_points WHERE c COLLATE "C" IN (repeat(md5(''7''), 20) || 7, repeat(md5(''8''), 20) || 58) ORDER BY c COLLATE "C" DESC'],
	ARRAY['index', 'only', 'bitmap']);

-- A merge join, which marks positions and comes back to them
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_material = off;
SET enable_sort = off;
EXPLAIN (COSTS OFF) SELECT o.a, i.a FROM scan_points o JOIN scan_points i USING (b)
WHERE o.b = ANY ('{3, 4, 6, 7, 50, 51, 98}') AND i.b = ANY ('{3, 4, 6, 7, 50, 52, 98}') AND o.a < 1000 AND i.a < 1000;
SELECT pg_temp.compare_all(ARRAY['SELECT o.a, i.a FROM scan_points o JOIN scan_points i USING (b)
	WHERE o.b = ANY (''{3, 4, 6, 7, 50, 51, 98}'') AND i.b = ANY (''{3, 4, 6, 7, 50, 52, 98}'') AND o.a < 1000 AND i.a < 1000'],
	ARRAY['index', 'only']);
DROP TABLE scan_points;
