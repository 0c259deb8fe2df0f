-- Entries of dead rows go when a scan meets them: rows of a transaction that was rolled back are dead for all snapshots.
-- The tables are not logged, since else an entry stays until the WAL of its row is durable.  On memory nodes a leaf with
-- one or two dead rows is not worth the way, so there are five of each, and a few may stay.
CREATE FUNCTION pg_temp.entries(index regclass, expected bigint) RETURNS text LANGUAGE sql AS $$
	SELECT CASE WHEN entries BETWEEN expected AND expected + 6 THEN 'as expected' ELSE entries::text END
	FROM smart_index_stats($1)
$$;
SET enable_seqscan = off;
SET enable_bitmapscan = off;

CREATE UNLOGGED TABLE scan_dead (a int, b text) WITH (autovacuum_enabled = off);
CREATE INDEX scan_dead_a ON scan_dead USING smart (a);
INSERT INTO scan_dead SELECT i, 'stays' FROM generate_series(1, 500) i;
BEGIN;
INSERT INTO scan_dead SELECT i, 'goes' FROM generate_series(401, 1000) i, generate_series(1, 5);
ROLLBACK;
SELECT pg_temp.entries('scan_dead_a', 3500);
EXPLAIN (COSTS OFF) SELECT count(b) FROM scan_dead WHERE a > 600;
SELECT count(b) FROM scan_dead WHERE a > 600;
SELECT pg_temp.entries('scan_dead_a', 1500);

-- Others that it met stay, also where a scan changes its direction in the middle of them.
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT a, b FROM scan_dead WHERE a BETWEEN 395 AND 440 ORDER BY a;
FETCH 8 FROM c;
FETCH BACKWARD 3 FROM c;
FETCH 3 FROM c;
MOVE FORWARD ALL FROM c;
FETCH BACKWARD 2 FROM c;
COMMIT;
SELECT pg_temp.entries('scan_dead_a', 1300);
SELECT count(*) FROM (SELECT a FROM scan_dead WHERE a < 1000 ORDER BY a DESC) s;
SELECT pg_temp.entries('scan_dead_a', 500);
SELECT smart_index_check('scan_dead_a', true);

-- A bitmap does not look at rows one by one.
BEGIN;
INSERT INTO scan_dead SELECT i, 'goes' FROM generate_series(1001, 1100) i, generate_series(1, 5);
ROLLBACK;
SET enable_indexscan = off;
SET enable_bitmapscan = on;
SELECT count(b) FROM scan_dead WHERE a > 1000;
RESET enable_indexscan;
SET enable_bitmapscan = off;
SELECT pg_temp.entries('scan_dead_a', 1000);

-- Nested loops: each search tidies up behind itself.
SELECT count(b) FROM generate_series(1001, 1050) i, LATERAL (SELECT b FROM scan_dead WHERE a = i OFFSET 0) s;
SELECT pg_temp.entries('scan_dead_a', 750);
DROP TABLE scan_dead;

-- The check of a unique index meets the dead rows of its key.
CREATE UNLOGGED TABLE scan_dead (a int, b text) WITH (autovacuum_enabled = off);
CREATE UNIQUE INDEX scan_dead_unique ON scan_dead USING smart (b, a);
DO $$
BEGIN
	FOR i IN 1..20 LOOP
		BEGIN
			INSERT INTO scan_dead SELECT 7, 'seven';
			RAISE EXCEPTION 'not this one';
		EXCEPTION WHEN raise_exception THEN
			NULL;
		END;
	END LOOP;
END
$$;
INSERT INTO scan_dead VALUES (7, 'seven');
SELECT pg_temp.entries('scan_dead_unique', 1);
INSERT INTO scan_dead VALUES (7, 'seven');
SELECT pg_temp.entries('scan_dead_unique', 1);
SELECT smart_index_check('scan_dead_unique', true);
DROP TABLE scan_dead;

-- What a scan has found dead it does not look at again, until VACUUM frees the places for other rows.
CREATE TABLE scan_dead (a int, b text) WITH (autovacuum_enabled = off);
CREATE INDEX scan_dead_a ON scan_dead USING smart (a);
CREATE INDEX scan_dead_b ON scan_dead USING smart (b text_ops, a);
INSERT INTO scan_dead SELECT i, 'first' FROM generate_series(1, 300) i;
DELETE FROM scan_dead WHERE a <= 200;
CREATE FUNCTION pg_temp.heap_fetches(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) ' || query INTO plan;
	RETURN plan #>> '{0,Plan,Plans,0,Heap Fetches}';
END
$$;
-- Another session may still have an older snapshot.
DO $$
BEGIN
	FOR i IN 1..30000 LOOP
		EXIT WHEN pg_temp.heap_fetches('SELECT count(a) FROM scan_dead WHERE a <= 250') = 50;
		PERFORM pg_sleep(0.01);
	END LOOP;
END
$$;
SELECT pg_temp.heap_fetches('SELECT count(a) FROM scan_dead WHERE a <= 250');
SELECT count(b) FROM scan_dead WHERE b = 'first' AND a BETWEEN 100 AND 210;
SELECT count(b), min(a), max(a) FROM scan_dead WHERE a > 0;
SELECT a FROM scan_dead WHERE a < 205 ORDER BY a DESC;
VACUUM (TRUNCATE off) scan_dead;
INSERT INTO scan_dead SELECT i, 'second' FROM generate_series(1, 200) i;
SELECT count(b), min(a), max(a) FROM scan_dead WHERE a > 0;
SELECT count(*) FROM scan_dead WHERE a BETWEEN 150 AND 250;
SELECT smart_index_check('scan_dead_a', true);

-- Rows of a transaction that is prepared are not dead.
BEGIN;
DELETE FROM scan_dead WHERE a <= 100;
PREPARE TRANSACTION 'scan_dead';
SELECT count(b) FROM scan_dead WHERE a <= 100;
SELECT count(b) FROM scan_dead WHERE a <= 100;
ROLLBACK PREPARED 'scan_dead';
SELECT count(b) FROM scan_dead WHERE a <= 100;
DROP TABLE scan_dead;
