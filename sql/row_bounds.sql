-- Row comparisons narrow an index scan down by all columns: what the plan says, and how many rows are read in vain.
CREATE TABLE row_bounds (t int, a int, b int, c text COLLATE "C", d int8);
INSERT INTO row_bounds SELECT 1, 5, i, 'c' || i, i FROM generate_series(1, 10000) i;
INSERT INTO row_bounds SELECT i % 2, i % 10, i, 'c' || i, i FROM generate_series(1, 500) i;
INSERT INTO row_bounds SELECT 1, 8, -i, 'c', 458 FROM generate_series(1, 1000) i;
CREATE INDEX row_bounds_abc ON row_bounds USING smart (a, b) INCLUDE (d);
CREATE INDEX row_bounds_tad ON row_bounds USING smart (t, a DESC, d DESC);
CREATE INDEX row_bounds_mixed ON row_bounds USING smart (c, (a + 0), b DESC, d);
ANALYZE row_bounds;
SET max_parallel_workers_per_gather = 0;

-- The index conditions of a query, and how many rows its filters removed.
CREATE FUNCTION pg_temp.removed(query text) RETURNS TABLE (condition text, parallel bool, removed bigint) LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT JSON) ' || query INTO plan;
	condition := string_agg(value #>> '{}', ' | ') FROM jsonb_path_query(plan, 'strict $.**."Index Cond"') value;
	parallel := plan::text ~ '"Parallel Aware": true';
	removed := sum((value #>> '{}')::numeric) FROM jsonb_path_query(plan, 'strict $.**."Rows Removed by Filter"') value;
	RETURN NEXT;
END
$$;

-- A page of rows from either side, and by both ends.
SELECT * FROM pg_temp.removed('SELECT * FROM row_bounds WHERE (a, b) > (5, 9000) ORDER BY a, b LIMIT 10');
SELECT * FROM pg_temp.removed('SELECT * FROM row_bounds WHERE (a, b) < (5, 9000) ORDER BY a DESC, b DESC LIMIT 10');
SET enable_seqscan = off;
SELECT * FROM pg_temp.removed('SELECT a, b, d FROM row_bounds WHERE (a, b) >= (5, 9000) AND (a, b) < (5, 9003)');
SELECT * FROM pg_temp.removed('SELECT a, b FROM row_bounds WHERE (5, 9000) <= (a, b) AND (5::int8, 9003::int2) >= (a, b)');
SELECT a, b, d FROM row_bounds WHERE (a, b) >= (5, 9000) AND (a, b) < (5, 9003) ORDER BY b;

-- Behind equality, on columns that descend, and where equality is on the row's columns themselves
SELECT * FROM pg_temp.removed('SELECT * FROM row_bounds WHERE t = 1 AND (a, d) < (5, 9000) ORDER BY a DESC, d DESC LIMIT 10');
SELECT * FROM pg_temp.removed('SELECT * FROM row_bounds WHERE t IN (0, 1) AND (a, d) > (5, 9990::int2) AND (a, d) <= (5, 9992)');
SELECT * FROM pg_temp.removed('SELECT * FROM row_bounds WHERE a IN (4, 5, 6) AND (a, b) >= (5, 9990) AND (a, b) < (6, 100)');
SELECT count(*), min(b), max(b) FROM row_bounds WHERE a IN (4, 5, 6) AND (a, b) >= (5, 9990) AND (a, b) < (6, 100);

-- Parameters, NULL among them
PREPARE page (int, int8) AS SELECT a, b FROM row_bounds WHERE (a, b) > ($1, $2) ORDER BY a, b LIMIT 2;
SET plan_cache_mode = force_generic_plan;
SELECT * FROM pg_temp.removed('EXECUTE page (5, 9000)');
EXECUTE page (5, 9000);
EXECUTE page (5, 10000000000);
EXECUTE page (5, NULL);
EXECUTE page (NULL, 5);
SELECT * FROM pg_temp.removed('EXECUTE page (5, NULL)');
RESET plan_cache_mode;
SET enable_hashjoin = off;
SELECT * FROM pg_temp.removed('SELECT * FROM (VALUES (5, 9000), (8, 490)) v (x, y),
	LATERAL (SELECT b FROM row_bounds WHERE (a, b) >= (x, y) AND (a, b) <= (x, y + 3) OFFSET 0) s');
CREATE TABLE row_outer AS SELECT i AS x, 90 * i AS y FROM generate_series(1, 5) i;
CREATE TABLE row_inner AS SELECT a, b FROM row_bounds;
CREATE INDEX row_inner_ab ON row_inner USING smart (a, b);
ANALYZE row_outer, row_inner;
SELECT * FROM pg_temp.removed('SELECT count(*) FROM row_outer JOIN row_inner ON (a, b) > (x, y) AND (a, b) <= (x, y + 20)');
SELECT count(*) FROM row_outer JOIN row_inner ON (a, b) > (x, y) AND (a, b) <= (x, y + 20);
SELECT count(*) FROM row_outer JOIN row_inner ON a = x AND b > y AND b <= y + 20;
DROP TABLE row_outer, row_inner;

-- By an expression; up to the column that goes the other way, and then with equality
SELECT * FROM pg_temp.removed('SELECT * FROM row_bounds WHERE (c, a + 0) > (''c9'', 5) AND (c, a + 0) <= (''c900'', 5)');
SELECT * FROM pg_temp.removed('SELECT * FROM row_bounds WHERE (c, a + 0, b) > (''c9000'', 5, 9000) AND (c, b) < (''c9001'', 1)');

-- A column behind one that has no condition; bitmap scans
SELECT * FROM pg_temp.removed('SELECT * FROM row_bounds WHERE t >= 0 AND (a, d) > (5, 9990) AND (a, d) <= (5, 9992)');
SET enable_sort = off;
SELECT * FROM pg_temp.removed('SELECT * FROM row_bounds WHERE t >= 0 AND a = 8 AND (a, d) > (8, 458) ORDER BY t, a DESC, d DESC');
SELECT * FROM pg_temp.removed('SELECT * FROM row_bounds WHERE t >= 0 AND a = 8 AND (a, d) > (8, 458) ORDER BY t DESC, a, d');
SELECT count(*), min(d), max(d) FROM (SELECT d FROM row_bounds WHERE t >= 0 AND a = 8 AND (a, d) > (8, 458) ORDER BY t DESC, a, d OFFSET 0) s;
SELECT * FROM pg_temp.removed('SELECT * FROM row_bounds WHERE t >= 0 AND a = 3 AND (a, d) < (3, 53) ORDER BY t DESC, a, d');
RESET enable_sort;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SELECT * FROM pg_temp.removed('SELECT * FROM row_bounds WHERE (a, b) >= (5, 9000) AND (a, b) < (5, 9003)');
RESET enable_indexscan;
RESET enable_indexonlyscan;

-- A column that the index has twice, in two orders
CREATE TABLE row_twice AS SELECT b % 10 AS b, (b % 7)::text COLLATE "C" AS c FROM row_bounds;
CREATE INDEX row_twice_index ON row_twice USING smart (c text_pattern_ops, b, c, (b + 1));
ANALYZE row_twice;
SELECT count(*) FROM row_twice WHERE (c, b + 1) >= ('6', 10);
SELECT count(*) FROM row_twice WHERE c = '6' AND b + 1 >= 10;
DROP TABLE row_twice;

-- A cursor that changes its direction
BEGIN;
DECLARE pages SCROLL CURSOR FOR SELECT a, b FROM row_bounds WHERE (a, b) > (5, 9998) ORDER BY a, b;
FETCH 4 FROM pages;
FETCH BACKWARD 5 FROM pages;
FETCH 1 FROM pages;
COMMIT;

-- In the arms of an OR, beside other indexes, some of which begin with the same column.  NULL is in none.
CREATE TABLE row_or AS SELECT i / 100 AS a, nullif(i % 100, 99) AS b, -(i % 100) AS c, i AS d FROM generate_series(1, 20000) i;
CREATE INDEX row_or_ab ON row_or USING smart (a, b);
CREATE INDEX row_or_ac ON row_or USING smart (a, c);
CREATE INDEX row_or_d ON row_or USING smart (d);
ANALYZE row_or;
EXPLAIN (COSTS OFF) SELECT * FROM row_or WHERE (a, b) > (199, 90) OR d = 7;
SELECT count(*), min(d), max(d) FROM row_or WHERE (a, b) > (199, 90) OR d = 7;
SELECT count(*), min(d), max(d) FROM row_or WHERE a > 199 OR (a = 199 AND b > 90) OR d = 7;
SELECT * FROM pg_temp.removed('SELECT * FROM row_or WHERE (a, b) > (199, 90) OR (a, b) < (0, 5)');
SELECT count(*), min(d), max(d) FROM row_or WHERE (a, b) > (199, 90) OR (a, b) < (0, 5);
SELECT count(*), min(d), max(d) FROM row_or WHERE a > 199 OR (a = 199 AND b > 90) OR a < 0 OR (a = 0 AND b < 5);
SELECT * FROM pg_temp.removed('SELECT * FROM row_or WHERE (a, c) > (199, -5) OR (a, b) > (199, 97)');
SELECT count(*), min(d), max(d) FROM row_or WHERE (a, c) > (199, -5) OR (a, b) > (199, 97);
SELECT count(*), min(d), max(d) FROM row_or WHERE a > 199 OR (a = 199 AND (b > 97 OR c > -5));
SELECT * FROM pg_temp.removed('SELECT * FROM row_or WHERE ((a, b) > (199, 90) AND c > -95) OR d IN (7, 8)');
SELECT count(*), min(d), max(d) FROM row_or WHERE ((a, b) > (199, 90) AND c > -95) OR d IN (7, 8);
SELECT count(*), min(d), max(d) FROM row_or WHERE ((a > 199 OR (a = 199 AND b > 90)) AND c > -95) OR d IN (7, 8);
DROP INDEX row_or_ac;
PREPARE either (int, int) AS SELECT count(*), min(d), max(d) FROM row_or WHERE (a, b) > ($1, $2) OR d = 7;
SET plan_cache_mode = force_generic_plan;
SELECT * FROM pg_temp.removed('EXECUTE either (199, 90)');
EXECUTE either (199, 90);
EXECUTE either (199, NULL);
EXECUTE either (NULL, 90);
RESET plan_cache_mode;
DROP TABLE row_or;

-- Several processes
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_index_scan_size = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SELECT * FROM pg_temp.removed('SELECT count(*) FROM row_bounds WHERE (a, b) > (5, 100) AND (a, b) <= (5, 9900)');
SELECT count(*) FROM row_bounds WHERE (a, b) > (5, 100) AND (a, b) <= (5, 9900);
SELECT count(*) FROM row_bounds WHERE a = 5 AND b > 100 AND b <= 9900;
SET max_parallel_workers_per_gather = 0;

-- Partitions
CREATE TABLE row_parts (a int, b int) PARTITION BY RANGE (a);
CREATE TABLE row_parts_1 PARTITION OF row_parts FOR VALUES FROM (0) TO (5);
CREATE TABLE row_parts_2 PARTITION OF row_parts FOR VALUES FROM (5) TO (10);
CREATE INDEX row_parts_ab ON row_parts USING smart (a, b);
INSERT INTO row_parts SELECT a, b FROM row_bounds;
EXPLAIN (COSTS OFF) SELECT * FROM row_parts WHERE (a, b) > (4, 490) ORDER BY a, b LIMIT 5;
SELECT * FROM row_parts WHERE (a, b) > (4, 490) ORDER BY a, b LIMIT 5;
DROP TABLE row_parts;

-- The operators are in every family of the extension.  In a query they are an error.
SELECT opfname FROM pg_opfamily f JOIN pg_depend ON classid = 'pg_opfamily'::regclass AND objid = f.oid
	AND refclassid = 'pg_extension'::regclass
WHERE opfmethod = (SELECT oid FROM pg_am WHERE amname = 'smart')
	AND 4 <> (SELECT count(*) FROM pg_amop WHERE amopfamily = f.oid AND amopstrategy IN (11, 12, 14, 15));
SELECT count(*) FROM row_bounds WHERE a >* ROW(5, 1);

-- A family without them goes by the first column, and by all when it has got them.
CREATE OPERATOR CLASS row_ops FOR TYPE int USING smart AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 btint4cmp(int, int), FUNCTION 11 smart_normalize_int4(internal);
CREATE TABLE row_own AS SELECT a, b FROM row_bounds;
CREATE INDEX row_own_ab ON row_own USING smart (a row_ops, b);
ANALYZE row_own;
EXPLAIN (COSTS OFF) SELECT * FROM row_own WHERE (a, b) > (7, 100);
ALTER OPERATOR FAMILY row_ops USING smart ADD OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);
EXPLAIN (COSTS OFF) SELECT * FROM row_own WHERE (a, b) > (7, 100);
SELECT amvalidate(oid) FROM pg_opclass WHERE opcname = 'row_ops';
ALTER OPERATOR FAMILY row_ops USING smart ADD OPERATOR 11 < (int, int8), OPERATOR 13 = (int, int8);
SELECT amvalidate(oid) FROM pg_opclass WHERE opcname = 'row_ops';
DROP TABLE row_own, row_bounds;
DROP OPERATOR FAMILY row_ops USING smart;
