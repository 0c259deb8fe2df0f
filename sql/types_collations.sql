-- Strings under collations that do not sort by bytes: keys, conditions and orders as in types_all.sql.
SET client_min_messages = warning;
SET jit = off;
CREATE SCHEMA types_collations;
SET search_path = types_collations, public;
\getenv abs_srcdir PG_ABS_SRCDIR
\set check_type :abs_srcdir /test/regress/check_type.sql
\set ECHO none
\i :check_type
\set ECHO all

-- Strings under collations of ICU, also such as take different strings for equal
CREATE COLLATION ignore_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE COLLATION ignore_accent (provider = icu, locale = 'und-u-ks-level1-kc-true', deterministic = false);
CREATE COLLATION digits (provider = icu, locale = 'en-u-kn-true');
CREATE FUNCTION strings() RETURNS SETOF text LANGUAGE sql IMMUTABLE AS
$$
	SELECT unnest(ARRAY['', ' ', 'a', 'A', 'á', 'Á', 'ä', 'a' || U&'\0301', 'a ', 'ab', 'aB', 'AB', 'a-b', 'a b', 'b', 'B', 'é', 'e', 'f', 'z', 'ß',
		'ss', 'SS', 'ﬁ', 'fi', 'ch', 'cz', 'h', 'a1', 'a10', 'a2', 'a02', chr(1), 'a' || chr(1), chr(127), chr(55295), chr(65535),
		chr(1114111), '中', '文', repeat('a', 130), repeat('a', 131), repeat('á', 130), repeat('ab', 400)])
	UNION ALL SELECT unnest(ARRAY['Hello', 'hEllO', chr(1) || 'Hello', 'Hello' || chr(1), 'foo.bar+1@x-y.com', repeat('w', 98) || 'W'])
	UNION ALL SELECT substr(translate(md5(i::text), '0123456789', ' aÁbB%_zzé'), 1, i % 6) FROM generate_series(1, 10) i
$$;
SELECT t.name, c.* FROM (VALUES ('text COLLATE "en-x-icu"'), ('varchar(900) COLLATE digits'),
	('text COLLATE ignore_case'), ('varchar COLLATE ignore_accent')) t (name),
	check_type(name, 'SELECT strings()', compare => 'bttextcmp') c;
SELECT t.name, c.* FROM (VALUES ('char(810) COLLATE "en-x-icu"'), ('bpchar COLLATE "de-x-icu"'),
	('char(810) COLLATE ignore_case')) t (name),
	check_type(name, 'SELECT strings()', compare => 'bpcharcmp') c;
SELECT * FROM check_type('name COLLATE "en-x-icu"', 'SELECT substr(strings(), 1, 30)', compare => 'btnamecmp');

-- Of the C library an index has equality, and no order; ranges are asked of every row, and the planner knows that. (This is
-- C.UTF-8, by a name that does not tell.)
CREATE COLLATION of_libc (provider = libc, locale = 'C.utf8@other');
CREATE TABLE words (id int, x text COLLATE of_libc, y text COLLATE "en-x-icu", z text COLLATE "C");
INSERT INTO words SELECT i, md5(i::text), md5(i::text), md5(i::text) FROM generate_series(1, 3000) i;
CREATE INDEX words_x ON words USING smart (x);
CREATE INDEX words_y ON words USING smart (y);
CREATE INDEX words_z ON words USING smart (z);
ANALYZE words;
CREATE FUNCTION plan(query text) RETURNS SETOF text LANGUAGE sql AS
$$
	SELECT trim(line) FROM unnest(string_to_array(plan_of(query), E'\n')) line WHERE line <> ''
$$;
SELECT plan('SELECT id FROM words WHERE x = ''a''');
SELECT plan('SELECT id FROM words WHERE x > ''ffe''');
SELECT plan('SELECT id FROM words WHERE x LIKE ''ffe%''');
SELECT plan('SELECT id FROM words ORDER BY x LIMIT 1');
SELECT plan('SELECT id FROM words WHERE y > ''ffe''');
SELECT plan('SELECT id FROM words WHERE y LIKE ''ffe%''');
SELECT plan('SELECT id FROM words ORDER BY y LIMIT 1');
-- The same goes for patterns in which nothing is fixed at the beginning
SELECT plan('SELECT id FROM words WHERE z LIKE ''ffe%''');
SELECT plan('SELECT id FROM words WHERE z LIKE ''%ffe''');
SELECT plan('SELECT id FROM words WHERE z ~ ''^ffe.*0''');
SELECT plan('SELECT id FROM words WHERE z ~ ''ffe''');
-- A string that its sort key tells is not stored behind that
SELECT pg_relation_size('words_y') < 1.3 * pg_relation_size('words_z') AS small;
-- A check compares what it has with its neighbours, as the collation does
CREATE INDEX words_desc ON words USING smart ((id % 5) NULLS FIRST, y DESC, (nullif(y, md5('1')) COLLATE digits) NULLS FIRST);
SELECT smart_index_check('words_y'), smart_index_check('words_desc', true);
SELECT x FROM words WHERE x > 'ffe' ORDER BY x;
SELECT y FROM words WHERE y > 'ffe' ORDER BY y;

-- Whatever builtin collations the server has sort by bytes
SELECT coalesce(sum(keys + prefixes + conditions + orders + lookups), 0) AS wrong FROM pg_collation,
	check_type(format('text COLLATE %I', collname), 'SELECT strings()', compare => 'bttextcmp')
WHERE collprovider = 'b' AND collencoding IN (-1, pg_char_to_encoding('UTF8'));

-- Conditions between text and name, of which some do not fit into the other
CREATE FUNCTION check_pairs(valuetype text, argtype text) RETURNS int LANGUAGE plpgsql AS
$$
DECLARE
	wrong int := 0;
	operator text;
BEGIN
	EXECUTE format('CREATE TEMP TABLE sample (x %s COLLATE "en-x-icu")', valuetype);
	INSERT INTO sample SELECT strings() UNION ALL SELECT repeat('x', 63);
	EXECUTE format('CREATE TEMP TABLE argument (y %s COLLATE "en-x-icu")', argtype);
	INSERT INTO argument SELECT strings() UNION ALL SELECT repeat('x', i) FROM generate_series(62, 65) i;
	CREATE INDEX ON sample USING smart (x);
	FOREACH operator IN ARRAY ARRAY['<', '<=', '=', '>=', '>']
	LOOP
		wrong := wrong + differs(format('SELECT count(*) || '' '' || sum(hashtext(x::text || y::text)::bigint)
			FROM argument, sample WHERE x %s y', operator), 'index', 'Index Cond:.*x')::int;
	END LOOP;
	DROP TABLE sample, argument;
	RETURN wrong;
END
$$;
SELECT v.t, a.t, check_pairs(v.t, a.t) AS wrong FROM (VALUES ('name'), ('text')) v (t), (VALUES ('name'), ('text')) a (t);
DROP SCHEMA types_collations CASCADE;

-- A database whose own collation is one of ICU
SELECT current_database() AS regression \gset
CREATE DATABASE types_collations TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en' LOCALE 'C' ENCODING 'UTF8';
\c types_collations
SET client_min_messages = warning;
CREATE EXTENSION smart;
CREATE TABLE words (t text, c char(3), n name, a text[]);
INSERT INTO words SELECT w, w, w, ARRAY[w, 'z'] FROM unnest('{b,A,a,B,ä,Z,é,e,f}'::text[]) w;
CREATE INDEX ON words USING smart (t);
CREATE INDEX ON words USING smart (c);
CREATE INDEX ON words USING smart (n);
CREATE INDEX ON words USING smart (a);
SET enable_seqscan = off;
SET enable_sort = off;
SELECT array_agg(t) FROM (SELECT t FROM words ORDER BY t) q;
SELECT array_agg(c) FROM (SELECT c FROM words ORDER BY c) q;
SELECT array_agg(n) FROM (SELECT n FROM words ORDER BY n) q;
SELECT array_agg(a[1]) FROM (SELECT a FROM words WHERE a > '{ä}' ORDER BY a DESC) q;
EXPLAIN (COSTS off) SELECT a FROM words WHERE a > '{ä}' ORDER BY a DESC;
\c :regression
DROP DATABASE types_collations;
