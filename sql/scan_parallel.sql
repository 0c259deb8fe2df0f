-- Parallel scans: the processes that share one return each row once, and in order where a plan merges them.
CREATE TABLE scan_parallel (a int, b int, c text COLLATE "C");
INSERT INTO scan_parallel SELECT i % 100, i, 'row ' || i FROM generate_series(1, 20000) i;
INSERT INTO scan_parallel SELECT NULL, i, NULL FROM generate_series(20001, 20100) i;
CREATE INDEX scan_parallel_ab ON scan_parallel USING smart (a, b);
CREATE INDEX scan_parallel_c ON scan_parallel USING smart (c) INCLUDE (b);
VACUUM ANALYZE scan_parallel;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_index_scan_size = 0;
SET min_parallel_table_scan_size = 0;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_sort = off;

SET enable_indexonlyscan = off;
EXPLAIN (COSTS OFF) SELECT count(*), sum(b), count(c) FROM scan_parallel WHERE a BETWEEN 10 AND 89;
SELECT count(*), sum(b), count(c) FROM scan_parallel WHERE a BETWEEN 10 AND 89;
SELECT count(*), sum(b), count(c) FROM scan_parallel WHERE a IN (3, 50, 51, 400, 99) AND b > 100;
SELECT count(*), sum(b), count(c) FROM scan_parallel WHERE a IN (3, 50, 51, 400, 99) AND b IN (3, 50, 103, 19999);
SELECT count(*), sum(b), count(c) FROM scan_parallel WHERE b IN (3, 50, 20050);
SELECT count(*), sum(b), count(c) FROM scan_parallel WHERE a >= 10 AND b BETWEEN 1000 AND 1200;
SELECT count(*), sum(b), count(c) FROM scan_parallel WHERE a IS NULL;
SELECT count(*), sum(b), count(c) FROM scan_parallel WHERE a > 1000;
SELECT count(*), sum(b), count(c) FROM scan_parallel WHERE a >= 0 AND b % 7 = 3;
RESET enable_indexonlyscan;

EXPLAIN (COSTS OFF) SELECT count(*), sum(b) FROM scan_parallel WHERE c LIKE 'row 1%';
SELECT count(*), sum(b) FROM scan_parallel WHERE c LIKE 'row 1%';
SELECT count(*), min(c), max(c) FROM scan_parallel WHERE c > 'row 5';

-- In order, forward and backward; the rank of each row is what it should be.
CREATE FUNCTION scan_parallel_slow(int) RETURNS boolean LANGUAGE plpgsql PARALLEL SAFE COST 10000 AS 'BEGIN RETURN true; END';
EXPLAIN (COSTS OFF) SELECT a, b, c FROM scan_parallel WHERE a > 20 AND scan_parallel_slow(b) ORDER BY a DESC, b DESC;
CREATE TEMP TABLE merged AS SELECT row_number() OVER () AS place, a, b
FROM (SELECT a, b, c FROM scan_parallel WHERE a > 20 AND scan_parallel_slow(b) ORDER BY a DESC, b DESC) s;
SELECT count(*), count(*) FILTER (WHERE place <> expected) AS elsewhere
FROM (SELECT place, row_number() OVER (ORDER BY a DESC, b DESC) AS expected FROM merged) s;
DROP TABLE merged;
CREATE TEMP TABLE merged AS SELECT row_number() OVER () AS place, a, b
FROM (SELECT a, b, c FROM scan_parallel WHERE a IN (7, 9, 80) AND scan_parallel_slow(b) ORDER BY a, b) s;
SELECT count(*), count(*) FILTER (WHERE place <> expected) AS elsewhere
FROM (SELECT place, row_number() OVER (ORDER BY a, b) AS expected FROM merged) s;
DROP TABLE merged;

-- It starts anew for each row of an outer table, and may end early.
SET enable_material = off;
EXPLAIN (COSTS OFF) SELECT x, rows FROM (SELECT count(c) AS rows FROM scan_parallel WHERE a > 89) s RIGHT JOIN (VALUES (1), (2), (3)) v (x) ON true;
SELECT x, rows FROM (SELECT count(c) AS rows FROM scan_parallel WHERE a > 89) s RIGHT JOIN (VALUES (1), (2), (3)) v (x) ON true;
EXPLAIN (COSTS OFF) SELECT c FROM scan_parallel WHERE a > 5 AND scan_parallel_slow(b) LIMIT 100;
SELECT count(*) FROM (SELECT c FROM scan_parallel WHERE a > 5 AND scan_parallel_slow(b) LIMIT 100) s;

-- The leader alone does all, or nothing.
SET parallel_leader_participation = off;
SELECT count(*), sum(b), count(c) FROM scan_parallel WHERE a BETWEEN 10 AND 89;
RESET parallel_leader_participation;
SET max_parallel_workers = 0;
SELECT count(*), sum(b), count(c) FROM scan_parallel WHERE a BETWEEN 10 AND 89;
RESET max_parallel_workers;

-- An index without a tree.
CREATE TABLE scan_parallel_empty (a int);
CREATE INDEX scan_parallel_empty_a ON scan_parallel_empty USING smart (a);
EXPLAIN (COSTS OFF) SELECT count(*) FROM scan_parallel_empty WHERE a > 0;
SELECT count(*) FROM scan_parallel_empty WHERE a > 0;
DROP TABLE scan_parallel_empty;
DROP FUNCTION scan_parallel_slow;
DROP TABLE scan_parallel;
