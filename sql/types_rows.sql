-- Composite types: keys and results as in types_all.sql, and what becomes of an index when its type is altered.
SET client_min_messages = warning;
SET jit = off;
CREATE SCHEMA types_rows;
SET search_path = types_rows, public;
\getenv abs_srcdir PG_ABS_SRCDIR
\set check_type :abs_srcdir /test/regress/check_type.sql
\set ECHO none
\i :check_type
\set ECHO all

CREATE TYPE pair AS (a int, b text COLLATE "C");
CREATE TYPE grade AS ENUM ('low', 'high');
CREATE TYPE nested AS (g grade, p pair, n numeric, i text COLLATE "en-x-icu", ps pair[], r int4range);
CREATE DOMAIN lone AS pair CHECK ((VALUE).a IS NULL OR (VALUE).a < 10);
-- A column that was dropped lies between the others
CREATE TABLE parted (a smallint, gone int, b date, c bytea);
ALTER TABLE parted DROP COLUMN gone;

-- A row of NULLs is NULL and is not: it is looked at by itself below
CREATE TABLE type (name text, source text);
INSERT INTO type VALUES
	('pair', $$SELECT ROW(a, b)::pair FROM unnest('{-1,0,256,NULL}'::int[]) a, unnest('{"",a,ab,b,NULL}'::text[]) b
		WHERE a IS NOT NULL OR b IS NOT NULL$$),
	('lone', $$SELECT ROW(a, b)::pair::lone FROM unnest('{-1,NULL}'::int[]) a, unnest('{a,b}'::text[]) b$$),
	('parted', $$SELECT ROW(a, b, c)::parted FROM unnest('{1,2,NULL}'::int[]) a, unnest('{2020-01-01,NULL}'::date[]) b,
		unnest('{"\\x","\\x00","\\x0000","\\xff"}'::bytea[]) c$$),
	('nested', $$SELECT ROW(g, ROW(1, b), n, i, ARRAY[ROW(n, b)::pair, NULL], int4range(0, n::int))::nested FROM unnest('{low,high}'::grade[]) g,
		unnest('{z,NULL}'::text[]) b, unnest('{0.0,2.50,NULL}'::numeric[]) n, unnest('{a,A,B}'::text[]) i$$),
	('pair[]', $$SELECT unnest(ARRAY['{}', '{NULL}', '{"(1,2)"}', '{"(,)"}', '{"(,)","(,)"}', '{"(1,2)","(,3)"}', '{"(1,)",NULL}'])::pair[]
		LIMIT 9$$);
SELECT name, c.* FROM type, check_type(name, source, compare => CASE WHEN name LIKE '%[]' THEN 'btarraycmp' ELSE 'btrecordcmp' END) c;

-- Results, uniqueness, index-only scans
CREATE TABLE things (id int, p pair, n nested);
INSERT INTO things SELECT i, ROW(i / 10, (i % 10)::text)::pair, ROW('low', ROW(i, i::text), i / 4.0, i::text, '{}', NULL)::nested FROM generate_series(1, 500) i;
INSERT INTO things VALUES (501, ROW(NULL, NULL)), (502, ROW(7, NULL)), (503, ROW(NULL, 'x')), (504, NULL);
CREATE UNIQUE INDEX things_p ON things USING smart (p) INCLUDE (id);
CREATE INDEX things_n ON things USING smart (n DESC, id);
VACUUM ANALYZE things;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_sort = off;
EXPLAIN (COSTS off) SELECT p FROM things WHERE p > ROW(49, '8')::pair ORDER BY p;
SELECT p, id FROM things WHERE p > ROW(49, '8')::pair ORDER BY p;
SELECT p, id FROM things WHERE p <= ROW(0, '2')::pair ORDER BY p DESC;
SELECT p, id FROM things WHERE p IN (ROW(7, NULL)::pair, ROW(7, '3')::pair, ROW(77, '')::pair) ORDER BY p;
SELECT id, p, p IS NULL AS is_null FROM things WHERE p = ROW(NULL, NULL)::pair;
SELECT (SELECT count(*) FROM things WHERE p IS NULL) AS nulls, (SELECT count(*) FROM things WHERE n IS NOT NULL) AS others;
EXPLAIN (COSTS off) SELECT id FROM things WHERE n < ROW('low', ROW(3, '1'), 0, '', NULL, NULL)::nested ORDER BY n DESC, id;
SELECT id FROM things WHERE n < ROW('low', ROW(3, '1'), 0, '', NULL, NULL)::nested ORDER BY n DESC, id;
SELECT count(*) FROM things WHERE n = ROW('low', ROW(8, '8'), 2.0000, '8', '{}', NULL)::nested;
INSERT INTO things VALUES (505, ROW(7, '3'));
INSERT INTO things VALUES (505, ROW(7, NULL));
INSERT INTO things VALUES (7, ROW(7, '3')) ON CONFLICT (p) DO UPDATE SET id = -things.id RETURNING *;
-- Rows without a name, and of another type with the same columns; what cannot be compared is an error as elsewhere
CREATE TYPE other AS (x int, y text COLLATE "C");
SELECT id FROM things WHERE p = ROW(7, '4'::text COLLATE "C");
SELECT id FROM things WHERE p = ROW(7, '4')::other::record;
\set VERBOSITY sqlstate
SELECT id FROM things WHERE p = ROW(7, 4);
SELECT id FROM things WHERE p = ROW(7);
\set VERBOSITY default
RESET enable_seqscan;
SELECT smart_index_check('things_p', true), smart_index_check('things_n', true);

-- Rows are given back as they were, whatever is in them
CREATE TYPE whole AS (a smallint, b date, c bytea, d uuid, e text COLLATE "en-x-icu", f inet, g pair, h name, i varbit, j "char", k int4range,
	l int[], m timetz, n bool);
CREATE TABLE wholes (w whole);
INSERT INTO wholes SELECT ROW(nullif(i % 5, 0), date '2000-01-01' + nullif(i % 7, 1), decode(repeat('00ff', i % 4), 'hex'), md5(i::text)::uuid,
	nullif(repeat('é', i % 150), ''), inet '10.0.0.0/8' + nullif(i, 9), CASE WHEN i % 3 < 2 THEN ROW(i, nullif(i % 4, 2)::text)::pair END, 'name ' || i,
	substring(B'0110101011110' FOR i % 13), chr(65 + i % 26), int4range(i, nullif(i * 2, 50)), CASE WHEN i % 6 > 0 THEN ARRAY[i, NULL, 0] END,
	CASE WHEN i % 4 = 0 THEN timetz '12:00+01' END, CASE WHEN i % 8 = 0 THEN true END)::whole FROM generate_series(1, 300) i;
CREATE INDEX wholes_w ON wholes USING smart (w DESC);
VACUUM ANALYZE wholes;
SELECT differs('SELECT md5(string_agg(w::text, '';'' ORDER BY w)) FROM wholes', 'only', 'Index Only Scan');

-- Values that have no order, in a row or in an array of rows
CREATE TYPE unordered AS (a int, p point);
CREATE TABLE points (u unordered, us unordered[]);
\set VERBOSITY sqlstate
CREATE INDEX points_u ON points USING smart (u);
CREATE INDEX points_us ON points USING smart (us);
CREATE INDEX ON points USING smart ((ROW(u, us)));
\set VERBOSITY default
-- A column whose collation is of the C library: equality, and no order. (This is C.UTF-8, by a name that does not tell.)
CREATE COLLATION of_libc (provider = libc, locale = 'C.utf8@other');
CREATE TYPE place AS (name text COLLATE of_libc, n int);
CREATE TABLE places (p place);
INSERT INTO places SELECT ROW('place ' || i, i)::place FROM generate_series(1, 100) i;
CREATE INDEX places_p ON places USING smart (p);
ANALYZE places;
SELECT pg_index_column_has_property('places_p', 1, 'orderable') AS places, pg_index_column_has_property('things_p', 1, 'orderable') AS things;
SET enable_seqscan = off;
EXPLAIN (COSTS off) SELECT p FROM places WHERE p = ROW('place 7', 7)::place;
SELECT p FROM places WHERE p = ROW('place 7', 7)::place;
SELECT count(*) FROM places WHERE p < ROW('place 2', 1)::place;

-- An enum in a row keeps its order, too
DO $$
BEGIN
	FOR i IN 1..40 LOOP
		EXECUTE format('ALTER TYPE grade ADD VALUE %L BEFORE ''high''', 'grade ' || i);
	END LOOP;
EXCEPTION WHEN dependent_objects_still_exist THEN
	RAISE WARNING '%', regexp_replace(SQLERRM, '[0-9]+', 'N');
END
$$;
DROP INDEX things_n;

-- New attributes: what is there has the keys that it had. Index, scan and prepared statement are those of before
SET plan_cache_mode = force_generic_plan;
PREPARE pairs(pair) AS SELECT id, p FROM things WHERE p >= $1 ORDER BY p;
EXECUTE pairs('(49,9)');
ALTER TYPE pair ADD ATTRIBUTE c int;
EXECUTE pairs('(49,9,)');
INSERT INTO things VALUES (506, ROW(49, '9', 1)), (507, ROW(50, '0', 1));
INSERT INTO things VALUES (508, ROW(49, '9', NULL));
EXECUTE pairs('(49,9,1)');
EXPLAIN (COSTS off) EXECUTE pairs('(49,9,1)');
SELECT id FROM things WHERE p = ROW(50, '0', NULL)::pair;
SELECT smart_index_check('things_p', true);

-- What is dropped changes the order: the index is not used until it is built again
ALTER TYPE pair DROP ATTRIBUTE b;
SELECT plan_of('SELECT id FROM things WHERE p = ROW(50, 1)::pair') ~ 'Index' AS is_used;
SELECT id FROM things WHERE p = ROW(50, 1)::pair;
INSERT INTO things VALUES (509, ROW(50, 1));
DELETE FROM things WHERE id NOT IN (20, 507, 501);
REINDEX INDEX things_p;
SELECT plan_of('SELECT id FROM things WHERE p = ROW(50, 1)::pair') ~ 'Index' AS is_used;
SELECT id FROM things WHERE p = ROW(50, 1)::pair;
SELECT id, p FROM things ORDER BY p;
SELECT smart_index_check('things_p', true);
-- The type of an attribute cannot be changed while there are values
\set VERBOSITY sqlstate
ALTER TYPE pair ALTER ATTRIBUTE a TYPE bigint;
\set VERBOSITY default

-- Attributes of a transaction that is rolled back leave entries with columns that are not there, or of another type
CREATE TYPE grown AS (a int, b text COLLATE "C");
CREATE TABLE growing (id int, p grown) WITH (autovacuum_enabled = off);
INSERT INTO growing SELECT i, ROW(i / 10, (i % 10)::text)::grown FROM generate_series(1, 500) i;
CREATE UNIQUE INDEX growing_p ON growing USING smart (p);
VACUUM ANALYZE growing;
BEGIN;
ALTER TYPE grown ADD ATTRIBUTE c text COLLATE "C", ADD ATTRIBUTE d int4range;
INSERT INTO growing SELECT 600 + i, ROW(48, '9', 'c' || i, int4range(i, 9))::grown FROM generate_series(1, 5) i;
SELECT id, p FROM growing WHERE p > ROW(48, '9', 'c3', NULL)::grown ORDER BY p LIMIT 3;
ROLLBACK;
SELECT p FROM growing WHERE p > ROW(48, '8')::grown AND p < ROW(49, '1')::grown ORDER BY p;
ALTER TYPE grown ADD ATTRIBUTE c int4range, ADD ATTRIBUTE d int;
SELECT p FROM growing WHERE p > ROW(48, '8', '[1,1]', NULL)::grown AND p < ROW(49, '1', NULL, NULL)::grown ORDER BY p;
INSERT INTO growing SELECT 600 + i, ROW(48, '9', int4range(i, 9), i)::grown FROM generate_series(1, 2) i;
CREATE INDEX growing_two ON growing USING smart (p DESC, id);
SELECT id FROM growing WHERE p > ROW(48, '8', '[1,1]', NULL)::grown AND id IN (489, 490, 601, 602) ORDER BY p DESC, id;
SELECT smart_index_check('growing_p', true), smart_index_check('growing_two', true);
-- A row and a column after it
BEGIN;
ALTER TYPE grown ADD ATTRIBUTE e int[];
INSERT INTO growing VALUES (603, ROW(48, '9', 'empty', 3, '{0,1}'));
ROLLBACK;
SELECT id FROM growing WHERE p > ROW(48, '8', '[1,1]', NULL)::grown AND id IN (489, 490, 601, 602) ORDER BY p DESC, id;

DROP SCHEMA types_rows CASCADE;
