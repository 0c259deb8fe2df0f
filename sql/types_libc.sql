-- C.UTF-8 of the C library sorts by code points, and so by bytes: an index under it has the order.
SET client_min_messages = warning;
SET jit = off;
CREATE SCHEMA types_libc;
SET search_path = types_libc, public;
\getenv abs_srcdir PG_ABS_SRCDIR
\set check_type :abs_srcdir /test/regress/check_type.sql
\set ECHO none
\i :check_type
\set ECHO all
CREATE FUNCTION strings() RETURNS SETOF text LANGUAGE sql IMMUTABLE AS
$$
	SELECT unnest(ARRAY['', ' ', 'a', 'A', 'á', 'Á', 'a' || U&'\0301', 'a ', 'ab', 'aB', 'AB', 'a-b', 'a b', 'b', 'é', 'z', 'ß', 'ss', 'ﬁ', chr(1),
		'a' || chr(1), chr(127), chr(128), chr(2047), chr(2048), chr(55295), chr(57344), chr(65535), chr(65536), chr(1114111), '中', repeat('a', 800), repeat('á', 400)])
	UNION ALL SELECT substr(translate(md5(i::text), '0123456789', ' aÁbB%_zzé'), 1, i % 6) FROM generate_series(1, 10) i
$$;

-- In each spelling, and of each type of strings; alone, and in what is made of strings
CREATE COLLATION "c-utf8" (provider = libc, locale = 'C.UTF-8');
CREATE COLLATION "c-utf_8" (provider = libc, lc_collate = 'C.utf-8', lc_ctype = 'C');
SELECT t.name, c.* FROM (VALUES ('text COLLATE "C.utf8"'), ('varchar(900) COLLATE "c-utf8"'), ('text COLLATE "c-utf_8"')) t (name),
	check_type(name, 'SELECT strings()', compare => 'bttextcmp') c;
SELECT * FROM check_type('char(810) COLLATE "C.utf8"', 'SELECT strings()', compare => 'bpcharcmp');
SELECT * FROM check_type('name COLLATE "C.utf8"', 'SELECT substr(strings(), 1, 15)', compare => 'btnamecmp');
SELECT * FROM check_type('text[] COLLATE "C.utf8"', 'SELECT ARRAY[a, b] FROM strings() a, unnest(''{a,B,é}''::text[]) b WHERE length(a) < 5', compare => 'btarraycmp');

-- What an ordered index is used for, without a sort
CREATE TABLE words (id int, w text COLLATE "C.utf8");
INSERT INTO words SELECT i, translate(md5(i::text), '0123', 'éA中z') FROM generate_series(1, 3000) i;
CREATE INDEX words_w ON words USING smart (w);
CREATE TABLE others AS SELECT id, w FROM words WHERE id % 3 = 0;
CREATE INDEX others_w ON others USING smart (w);
VACUUM ANALYZE words, others;
SELECT pg_index_column_has_property('words_w', 1, 'orderable');
EXPLAIN (COSTS off) SELECT w FROM words WHERE w > '中f' AND w <= '中ff' ORDER BY w;
EXPLAIN (COSTS off) SELECT w FROM words ORDER BY w DESC LIMIT 2;
SELECT plan_of('SELECT min(w), max(w) FROM words') ~ 'Limit\s+->\s+Index Only Scan using.*Limit\s+->\s+Index Only Scan Backward using' AS ends;
EXPLAIN (COSTS off) SELECT w FROM words WHERE w LIKE '中ff%';
EXPLAIN (COSTS off) SELECT w FROM words WHERE w ^@ '中f4';
SET enable_hashjoin = off;
SET enable_nestloop = off;
EXPLAIN (COSTS off) SELECT count(*) FROM words JOIN others USING (w);
SELECT count(*) FROM words JOIN others USING (w);
RESET enable_hashjoin;
RESET enable_nestloop;
SELECT w FROM words WHERE w > '中f' AND w <= '中ff' ORDER BY w;
SELECT w FROM words ORDER BY w DESC LIMIT 2;
SELECT (SELECT min(w) FROM words) = (SELECT w FROM words ORDER BY w || '' LIMIT 1) AS least,
	(SELECT max(w) FROM words) = (SELECT w FROM words ORDER BY w || '' DESC LIMIT 1) AS greatest;
SELECT w FROM words WHERE w LIKE '中f8%' ORDER BY w;
SELECT smart_index_check('words_w', true);
DROP SCHEMA types_libc CASCADE;

-- A database whose own collation it is, which goes for jsonb as well
SELECT current_database() AS regression \gset
CREATE DATABASE types_libc TEMPLATE template0 LOCALE 'C.UTF-8' ENCODING 'UTF8';
\c types_libc
SET client_min_messages = warning;
CREATE EXTENSION smart;
CREATE TABLE words (t text, c char(3), a text[], j jsonb);
INSERT INTO words SELECT w, w, ARRAY[w, 'z'], to_jsonb(w) FROM unnest('{b,A,a,B,ä,Z,é,e,f,中}'::text[]) w;
CREATE INDEX ON words USING smart (t);
CREATE INDEX ON words USING smart (c);
CREATE INDEX ON words USING smart (a);
CREATE INDEX ON words USING smart (j);
SET enable_seqscan = off;
SET enable_sort = off;
EXPLAIN (COSTS off) SELECT t FROM words WHERE t >= 'a' ORDER BY t;
SELECT array_agg(t) FROM (SELECT t FROM words WHERE t >= 'a' ORDER BY t) q;
SELECT array_agg(c) FROM (SELECT c FROM words ORDER BY c DESC) q;
EXPLAIN (COSTS off) SELECT a FROM words WHERE a > '{ä}' ORDER BY a DESC;
SELECT array_agg(a[1]) FROM (SELECT a FROM words WHERE a > '{ä}' ORDER BY a DESC) q;
EXPLAIN (COSTS off) SELECT j FROM words WHERE j < '"a"' ORDER BY j;
SELECT array_agg(j) FROM (SELECT j FROM words WHERE j < '"a"' ORDER BY j) q;
\c :regression
DROP DATABASE types_libc;
