-- Long values in INCLUDE columns: compressed by their column's method, as nbtree does, unless its storage forbids it.
SET client_min_messages = warning;

-- Bytes that no method makes shorter
CREATE FUNCTION noise(seed int, length int) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
	SELECT substring(string_agg(sha256((seed || ' ' || i)::bytea), '' ORDER BY i) FOR length) FROM generate_series(0, length / 32) i
$$;

-- The rows by an index-only scan, and by a sequential one; how many of them are in one alone
CREATE FUNCTION different_rows(name regclass) RETURNS bigint LANGUAGE plpgsql
	SET enable_bitmapscan = off SET enable_sort = off SET plan_cache_mode = force_custom_plan AS $$
DECLARE
	plan text;
	rows text := format('SELECT id, x, m, b FROM %s WHERE id > 0', name);
	found bigint;
BEGIN
	SET LOCAL enable_seqscan = off;
	FOR plan IN EXECUTE 'EXPLAIN (COSTS off) ' || rows LOOP
		EXIT;
	END LOOP;
	ASSERT plan LIKE 'Index Only Scan using %', plan;
	EXECUTE 'CREATE TEMP TABLE by_index ON COMMIT DROP AS ' || rows;
	SET LOCAL enable_seqscan = on;
	SET LOCAL enable_indexonlyscan = off;
	SET LOCAL enable_indexscan = off;
	EXECUTE format('SELECT count(*) FROM ((TABLE by_index EXCEPT ALL %s) UNION ALL (%1$s EXCEPT ALL TABLE by_index)) different', rows) INTO found;
	DROP TABLE by_index;
	RETURN found;
END
$$;

CREATE TABLE include_long (id int, x text, m text, b bytea);
ALTER TABLE include_long ALTER m SET STORAGE MAIN;
CREATE UNIQUE INDEX include_long_inserted ON include_long USING smart (id) INCLUDE (x, m, b);
INSERT INTO include_long
SELECT i, repeat('x', length), repeat(md5(i::text), length / 100), overlay(decode(repeat('00', length), 'hex') PLACING noise(i::int, 300) FROM 40)
FROM unnest('{100, 500, 3000, 8000, 30000, 100000}'::int[]) WITH ORDINALITY lengths(length, i);
INSERT INTO include_long VALUES (7, NULL, repeat('m', 40000), NULL), (8, noise(8, 1500)::text, NULL, noise(8, 3000));
VACUUM include_long;
SELECT different_rows('include_long');

-- What the scan gives is compressed, and no longer than in the table.
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT id, length(x), pg_column_size(x) < 2000 AS x_fits, length(m), pg_column_size(m) < 2000 AS m_fits, length(b), pg_column_size(b) < 3100 AS b_fits
FROM include_long WHERE id > 0 ORDER BY id;
RESET enable_seqscan;
RESET enable_bitmapscan;

-- Rows that change, go, and never came
UPDATE include_long SET x = repeat('changed', 5000) WHERE id = 3;
UPDATE include_long SET m = repeat('main', 10000), b = NULL WHERE id IN (4, 8);
DELETE FROM include_long WHERE id = 2;
BEGIN;
INSERT INTO include_long SELECT i, repeat('aborted', 10000) FROM generate_series(11, 30) i;
UPDATE include_long SET x = repeat('aborted', 5000) WHERE id = 5;
SAVEPOINT s;
DELETE FROM include_long WHERE id > 5;
ROLLBACK TO s;
ROLLBACK;
SELECT smart_index_check('include_long_inserted', true);
VACUUM include_long;
SELECT different_rows('include_long'), count(*) FROM include_long;
SELECT smart_index_check('include_long_inserted', true);

-- The places of rows that went, with other values
INSERT INTO include_long SELECT i, repeat('again', 10000), repeat('m' || i, 2000) FROM generate_series(11, 30) i;
VACUUM include_long;
SELECT different_rows('include_long'), count(*) FROM include_long;

-- Uniqueness, whatever comes with the key
INSERT INTO include_long VALUES (6, repeat('other', 10000));
INSERT INTO include_long VALUES (6, repeat('other', 10000)) ON CONFLICT (id) DO NOTHING;
INSERT INTO include_long VALUES (6, repeat('other', 10000)) ON CONFLICT (id) DO UPDATE SET x = excluded.x, b = NULL;
CREATE TABLE include_excluded (id int, x text, CONSTRAINT include_excluded_id EXCLUDE USING smart (id WITH =) INCLUDE (x) DEFERRABLE INITIALLY DEFERRED);
INSERT INTO include_excluded SELECT i, repeat('x' || i, 30000) FROM generate_series(1, 5) i;
UPDATE include_excluded SET id = id + 1;
INSERT INTO include_excluded VALUES (6, repeat('y', 30000));
SELECT smart_index_check('include_excluded_id', true);
DROP TABLE include_excluded;

-- Built from the rows
DROP INDEX include_long_inserted;
CREATE INDEX include_long_built ON include_long USING smart (id DESC) INCLUDE (x, m, b);
VACUUM include_long;
SELECT different_rows('include_long'), count(*) FROM include_long;
SELECT smart_index_check('include_long_built', true);
REINDEX INDEX include_long_built;
SELECT different_rows('include_long'), count(*) FROM include_long;

-- Several processes hand the rows on.
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET min_parallel_index_scan_size = 0;
SET enable_seqscan = off;
SELECT md5(string_agg(md5(x), ',' ORDER BY id)) AS parallel FROM include_long WHERE id > 0 \gset
SET max_parallel_workers_per_gather = 0;
SET enable_indexonlyscan = off;
SELECT md5(string_agg(md5(x), ',' ORDER BY id)) = :'parallel' FROM include_long WHERE id > 0;
RESET ALL;
SET client_min_messages = warning;
DROP TABLE include_long;

-- The server's method changes, and what was compressed stays.
CREATE TABLE include_method (id int, x text, m text, b bytea);
CREATE INDEX include_method_id ON include_method USING smart (id) INCLUDE (x, m, b);
SELECT 'lz4' = ANY (enumvals) AS lz4 FROM pg_settings WHERE name = 'default_toast_compression' \gset
\if :lz4
SET default_toast_compression = lz4;
\endif
INSERT INTO include_method SELECT i, repeat('method', 5000), repeat('m', 3000) FROM generate_series(1, 50) i;
SET default_toast_compression = pglz;
INSERT INTO include_method SELECT i, repeat('method', 5000), repeat('m', 3000) FROM generate_series(51, 100) i;
DELETE FROM include_method WHERE id % 3 = 0;
VACUUM include_method;
SELECT smart_index_check('include_method_id', true);
SELECT different_rows('include_method'), count(*) FROM include_method;

-- A column's own method counts, as it is now: pglz gives up on what begins with a thousand bytes of noise.
\set zeros 5000
\if :lz4
ALTER TABLE include_method ALTER b SET COMPRESSION lz4;
\set zeros 50000
\endif
TRUNCATE include_method;
INSERT INTO include_method VALUES (1, NULL, NULL, noise(1, 2000) || decode(repeat('00', :zeros), 'hex'));
ALTER TABLE include_method ALTER b SET COMPRESSION pglz;
\set VERBOSITY sqlstate
INSERT INTO include_method VALUES (2, NULL, NULL, noise(2, 2000) || decode(repeat('00', 50000), 'hex'));
\set VERBOSITY default
SELECT smart_index_check('include_method_id', true);
VACUUM include_method;
SELECT different_rows('include_method'), count(*) FROM include_method;
SELECT smart_index_check('include_method_id', true);
DROP TABLE include_method;

-- Not compressed where the column's storage forbids it; and too long although compressed
CREATE TABLE include_external (id int, x text, m text);
ALTER TABLE include_external ALTER m SET STORAGE EXTERNAL;
CREATE INDEX include_external_id ON include_external USING smart (id) INCLUDE (x, m);
INSERT INTO include_external VALUES (1, repeat('x', 100000), repeat('m', 6000));
INSERT INTO include_external VALUES (2, NULL, repeat('m', 9000));
INSERT INTO include_external VALUES (3, encode(noise(3, 20000), 'hex'));
DROP INDEX include_external_id;
INSERT INTO include_external VALUES (2, NULL, repeat('m', 9000));
CREATE INDEX include_external_id ON include_external USING smart (id) INCLUDE (x, m);
DROP TABLE include_external;
DROP FUNCTION noise, different_rows;
