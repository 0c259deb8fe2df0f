-- Cursors: a random walk in both directions must see the rows at their places.
CREATE TABLE scan_cursor AS SELECT (i * 7919) % 1000 AS a, i % 10 AS b FROM generate_series(1, 3000) i;
CREATE INDEX scan_cursor_a ON scan_cursor USING smart (a, b);
VACUUM ANALYZE scan_cursor;

CREATE FUNCTION pg_temp.walk(query text, steps int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	expected text[];
	walker refcursor;
	place int := 0;				-- 0 before the first row, cardinality + 1 behind the last
	stride int;
	got record;
	row_text text;
	moved int;
BEGIN
	EXECUTE format('SELECT array_agg(q::text) FROM (%s) q', query) INTO expected;
	OPEN walker SCROLL FOR EXECUTE query;
	FOR i IN 1..steps LOOP
		stride := CASE WHEN random() < 0.1 THEN (random() * 2000)::int - 1000 ELSE (random() * 10)::int - 5 END;
		FETCH RELATIVE stride FROM walker INTO got;
		place := greatest(0, least(place + stride, cardinality(expected) + 1));
		row_text := CASE WHEN got IS NULL THEN NULL ELSE got::text END;
		IF row_text IS DISTINCT FROM expected[place] THEN
			RETURN format('step %s at %s: %s instead of %s', i, place, row_text, expected[place]);
		END IF;
	END LOOP;
	CLOSE walker;
	RETURN 'as expected';
END
$$;

SELECT setseed(0.125);
SET enable_seqscan = off;
SET enable_sort = off;
SET enable_bitmapscan = off;
SET enable_indexonlyscan = off;
SELECT pg_temp.walk('SELECT a, b FROM scan_cursor ORDER BY a, b', 600);
SELECT pg_temp.walk('SELECT a, b FROM scan_cursor ORDER BY a DESC, b DESC', 600);
SELECT pg_temp.walk('SELECT a, b FROM scan_cursor WHERE a IN (1, 2, 5, 77, 78, 500, 999, 2000) AND b IN (0, 1, 4, 8)', 600);
SELECT pg_temp.walk('SELECT a, b FROM scan_cursor WHERE a < 50 AND b = 3 ORDER BY a, b', 300);
SET enable_indexonlyscan = on;
SET enable_indexscan = off;
SELECT pg_temp.walk('SELECT a, b FROM scan_cursor ORDER BY a, b', 600);
SELECT pg_temp.walk('SELECT a, b FROM scan_cursor WHERE a IN (1, 2, 5, 77, 78, 500, 999, 2000) AND b > 3 ORDER BY a, b', 600);

-- Over hundreds of rows of one value
CREATE INDEX scan_cursor_b ON scan_cursor USING smart (b);
SELECT pg_temp.walk('SELECT b FROM scan_cursor WHERE b > 2 ORDER BY b', 600);
SET enable_indexscan = on;
SET enable_indexonlyscan = off;
SELECT pg_temp.walk('SELECT b, ctid FROM scan_cursor WHERE b > 2 ORDER BY b', 600);
SELECT pg_temp.walk('SELECT b, ctid FROM scan_cursor WHERE b > 2 ORDER BY b DESC', 600);
DROP INDEX scan_cursor_b;
SET enable_indexscan = off;
SET enable_indexonlyscan = on;

-- By hand, at the ends
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT a, b FROM scan_cursor WHERE a BETWEEN 10 AND 11 ORDER BY a, b;
FETCH BACKWARD 1 FROM c;
FETCH 4 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH ALL FROM c;
FETCH 1 FROM c;
FETCH BACKWARD 3 FROM c;
FETCH LAST FROM c;
FETCH FIRST FROM c;
COMMIT;
DROP TABLE scan_cursor;
