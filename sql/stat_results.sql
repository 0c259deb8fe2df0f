-- Cached results: on memory nodes a key that is looked up again costs no round trip, until an entry of it comes or goes.
SELECT bool_or(transport <> 'local') AS remote FROM smart_memory_nodes \gset
CREATE TABLE stat_results (a int, b text COLLATE "C", c int) WITH (autovacuum_enabled = off);
INSERT INTO stat_results SELECT i, 'word ' || i % 2000, i FROM generate_series(1, 4000) i WHERE i <> 70;
CREATE INDEX stat_answers_a ON stat_results USING smart (a DESC);
CREATE INDEX stat_answers_ab ON stat_results USING smart (b, a) INCLUDE (c);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET plan_cache_mode = force_generic_plan;
PREPARE one AS SELECT a, c FROM stat_results WHERE a = $1;
PREPARE pair AS SELECT b, a, c FROM stat_results WHERE b = $1 AND a = $2;
PREPARE many AS SELECT a, c FROM stat_results WHERE a = ANY ($1) ORDER BY a;
EXPLAIN (COSTS OFF) EXECUTE one(1);
EXPLAIN (COSTS OFF) EXECUTE pair('word 1', 1);
EXPLAIN (COSTS OFF) EXECUTE many('{1}');

-- The second time it is known, a key that is not there, too.
EXECUTE one(7);
EXECUTE one(70);
EXECUTE pair('word 7', 2007);
SELECT session_round_trips AS before, result_hits FROM smart_stat_fabric, smart_stat_cache \gset
EXECUTE one(7);
EXECUTE one(70);
EXECUTE pair('word 7', 2007);
SELECT session_round_trips = :before AS no_round_trip, (result_hits - :result_hits >= 3) = :'remote' AS hits
FROM smart_stat_fabric, smart_stat_cache;

-- Several keys: those that are not known cost what they would without the others; both directions.
SELECT session_round_trips AS before FROM smart_stat_fabric \gset
EXECUTE many('{7, 70, 7}');
SELECT session_round_trips = :before AS no_round_trip FROM smart_stat_fabric;
EXECUTE many('{7, 70, 8, 1000, 2000, 3000}');
SELECT session_round_trips AS before FROM smart_stat_fabric \gset
EXECUTE many('{7, 70, 8, 1000, 2000, 3000}');
SELECT a FROM stat_results WHERE a = ANY ('{7, 70, 8, 1000, 2000, 3000}') ORDER BY a DESC LIMIT 3;
SELECT session_round_trips = :before AS no_round_trip FROM smart_stat_fabric;

-- A row comparison cuts a part of the key's entries off.
SELECT a FROM stat_results WHERE b = 'word 7' AND a = 2007 AND (b, a) > ('word 7', 2006);
SELECT a FROM stat_results WHERE b = 'word 7' AND a = 2007 AND (b, a) > ('word 7', 2007);
SELECT a FROM stat_results WHERE b = 'word 7' AND a = 2007 AND (b, a) <= ('word 7', 2007);

-- A cursor goes to and fro over what is known.
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT a FROM stat_results WHERE a = ANY ('{7, 8, 1000, 1001, 2000}') ORDER BY a;
FETCH FORWARD ALL FROM c;
FETCH BACKWARD 3 FROM c;
FETCH FORWARD 2 FROM c;
COMMIT;
-- And a merge join goes back to a mark in it.
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT x.a, y.a FROM stat_results x JOIN stat_results y USING (a) WHERE y.a = ANY ('{7, 8, 1000}') AND x.a = ANY ('{7, 8, 1000}');
RESET enable_hashjoin;
RESET enable_nestloop;

-- Processes that share a scan take what is known in their turn.
CREATE FUNCTION stat_answers_slow(int) RETURNS boolean LANGUAGE plpgsql PARALLEL SAFE COST 100000 AS 'BEGIN RETURN true; END';
BEGIN;
SET LOCAL enable_indexonlyscan = off;
SET LOCAL enable_sort = off;
SET LOCAL parallel_setup_cost = 0;
SET LOCAL parallel_tuple_cost = 0;
SET LOCAL min_parallel_index_scan_size = 0;
SET LOCAL min_parallel_table_scan_size = 0;
SET LOCAL max_parallel_workers_per_gather = 2;
PREPARE shared AS SELECT a, c FROM stat_results WHERE a = ANY ('{7, 70, 8, 1000, 1001, 2000}') AND stat_answers_slow(c) ORDER BY a;
EXPLAIN (COSTS OFF) EXECUTE shared;
SELECT result_hits FROM smart_stat_cache \gset
EXECUTE shared;
SELECT (result_hits - :result_hits >= 6) = :'remote' AS hits FROM smart_stat_cache;
SET LOCAL parallel_leader_participation = off;
EXECUTE shared;
COMMIT;
DROP FUNCTION stat_answers_slow;

-- Every change of an entry is seen at once: insert, update, delete, rollback.
INSERT INTO stat_results VALUES (7, 'word 7', -1), (70, 'word 70', -2);
EXECUTE one(7);
EXECUTE one(70);
UPDATE stat_results SET a = 8 WHERE c = -1;
EXECUTE one(7);
EXECUTE one(8);
DELETE FROM stat_results WHERE a = 8 AND c = 8;
EXECUTE one(8);
BEGIN;
INSERT INTO stat_results VALUES (7, 'word 7', -3);
EXECUTE one(7);
ROLLBACK;
EXECUTE one(7);
EXECUTE one(7);
VACUUM stat_results;
EXECUTE one(7);
EXECUTE one(8);
INSERT INTO stat_results SELECT 5000 + i, 'new', i FROM generate_series(1, 100) i;
EXECUTE one(7);
EXECUTE one(8);

-- NULLs, and a key with more entries than a cached result has room for.
CREATE INDEX stat_answers_c ON stat_results USING smart (c);
INSERT INTO stat_results SELECT 6000, 'null', NULL FROM generate_series(1, 3);
SELECT count(*) FROM stat_results WHERE c IS NULL;
SELECT count(*) FROM stat_results WHERE c IS NULL;
INSERT INTO stat_results VALUES (6000, 'null', NULL);
SELECT count(*) FROM stat_results WHERE c IS NULL;
SELECT count(*) FROM stat_results WHERE a = 6000;
INSERT INTO stat_results SELECT 6000, 'null', NULL FROM generate_series(1, 500);
SELECT count(*) FROM stat_results WHERE c IS NULL;
SELECT count(*), sum(a) FROM stat_results WHERE a = 6000;

-- Unique keys, by conflict and by error.
CREATE TABLE stat_answers_once (k text COLLATE "C", n int);
CREATE UNIQUE INDEX stat_answers_once_k ON stat_answers_once USING smart (k);
SELECT n FROM stat_answers_once WHERE k = 'x';
INSERT INTO stat_answers_once SELECT 'x', 1 FROM generate_series(1, 1) ON CONFLICT DO NOTHING;
SELECT n FROM stat_answers_once WHERE k = 'x';
INSERT INTO stat_answers_once VALUES ('x', 2);
DELETE FROM stat_answers_once;
SELECT n FROM stat_answers_once WHERE k = 'x';
INSERT INTO stat_answers_once VALUES ('x', 3);
SELECT n FROM stat_answers_once WHERE k = 'x';

-- A new tree: nothing of the old one is known.
REINDEX INDEX stat_answers_a;
EXECUTE one(7);
TRUNCATE stat_results;
EXECUTE one(7);
INSERT INTO stat_results VALUES (7, 'word', 1);
EXECUTE one(7);
SELECT smart_index_check('stat_answers_a', true), smart_index_check('stat_answers_once_k', true);
DROP TABLE stat_results, stat_answers_once;
