-- Types that come with extensions: none has a class by itself, and for some of them one is a few lines of SQL, as
-- doc/types.md shows.
\getenv abs_srcdir PG_ABS_SRCDIR
\set compare :abs_srcdir /test/regress/compare.sql
\set ECHO none
\i :compare
\set ECHO all
SET client_min_messages = warning;
CREATE SCHEMA types_extensions;
SET search_path = types_extensions, public;
CREATE EXTENSION citext;
CREATE EXTENSION ltree;
CREATE EXTENSION isn;
CREATE TABLE extended (id int, name citext, path ltree, book isbn13);
CREATE INDEX extended_path ON extended USING smart (path);
CREATE INDEX extended_book ON extended USING smart (book);
-- This class has no counterpart, either.
CREATE INDEX extended_row ON extended USING smart ((extended.*) record_image_ops);

-- citext in the order of its bytes without case, which every collation has
CREATE FUNCTION citext_key(citext) RETURNS bytea LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN textsend(lower($1::text COLLATE "default"));
CREATE OPERATOR CLASS citext_ops DEFAULT FOR TYPE citext USING smart AS
	OPERATOR 1 ~<~, OPERATOR 2 ~<=~, OPERATOR 3 =, OPERATOR 4 ~>=~, OPERATOR 5 ~>~,
	FUNCTION 1 citext_pattern_cmp(citext, citext), FUNCTION 12 citext_key(citext);
-- Under the collation C, which compares bytes, that is the order of the type.
CREATE OPERATOR CLASS citext_c_ops FOR TYPE citext USING smart AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 citext_cmp(citext, citext), FUNCTION 12 citext_key(citext);
-- ltree: what ends a label is below all that a label may have.
CREATE FUNCTION ltree_key(ltree) RETURNS bytea LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN textsend(translate(ltree2text($1), '.', E'\x01'));
CREATE OPERATOR CLASS ltree_ops DEFAULT FOR TYPE ltree USING smart AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 ltree_cmp(ltree, ltree), FUNCTION 12 ltree_key(ltree);
-- Those of isn are stored and compared as bigint.
CREATE OPERATOR CLASS isbn13_ops DEFAULT FOR TYPE isbn13 USING smart AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 btisbn13cmp(isbn13, isbn13), FUNCTION 11 smart_normalize_int8(internal);
SELECT opcname, amvalidate(c.oid) FROM pg_opclass c JOIN pg_am a ON a.oid = opcmethod
WHERE amname = 'smart' AND opcnamespace = 'types_extensions'::regnamespace ORDER BY 1;

-- Normalized keys compare as the values do. (Labels may have hyphens from version 16 on.)
INSERT INTO extended SELECT i, (ARRAY['Ann', 'ANN', 'ann b', 'Ann_', 'bob', 'BOB1', '', 'Ärger', 'ärger'])[1 + i % 9] || (ARRAY['', '', 'x', 'X', i::text])[1 + i % 5],
	text2ltree((ARRAY['', 'a', 'A', 'a.b', 'a.B', 'a_.b', 'a0', 'b.a.a', 'ab', CASE WHEN current_setting('server_version_num')::int < 160000 THEN 'a_b' ELSE 'a-b' END])[1 + i % 10] || CASE WHEN i % 10 <> 0 AND i % 3 = 0 THEN '.x' || i ELSE '' END),
	make_valid(isbn13('978' || lpad((i * 7919 % 99991)::text, 9, '0') || '?!'))
FROM generate_series(1, 500) i;
CREATE INDEX extended_name ON extended USING smart (name);
CREATE INDEX extended_name_c ON extended USING smart (name COLLATE "C" citext_c_ops);
CREATE INDEX extended_path ON extended USING smart (path DESC);
CREATE INDEX extended_book ON extended USING smart (book);
SELECT count(*) AS pairs,
	count(*) FILTER (WHERE sign(byteacmp(smart_normalized_key('extended_name', a.name), smart_normalized_key('extended_name', b.name))) <> sign(citext_pattern_cmp(a.name, b.name))) AS name,
	count(*) FILTER (WHERE sign(byteacmp(smart_normalized_key('extended_name_c', a.name), smart_normalized_key('extended_name_c', b.name))) <> sign(citext_cmp(a.name COLLATE "C", b.name))) AS name_c,
	count(*) FILTER (WHERE sign(byteacmp(smart_normalized_key('extended_path', b.path), smart_normalized_key('extended_path', a.path))) <> sign(ltree_cmp(a.path, b.path))) AS path,
	count(*) FILTER (WHERE sign(byteacmp(smart_normalized_key('extended_book', a.book), smart_normalized_key('extended_book', b.book))) <> sign(btisbn13cmp(a.book, b.book))) AS book
FROM extended a, extended b WHERE a.id < 200 AND b.id < 200;

-- And so scans find what the table has, in its order.
INSERT INTO extended SELECT 0, NULL, NULL, NULL FROM generate_series(1, 3);
VACUUM ANALYZE extended;
SELECT pg_temp.compare_all(ARRAY['SELECT id FROM extended WHERE name = ''aNN''', 'SELECT id FROM extended WHERE name IN (''annX'', ''bobx'', ''no'')',
	'SELECT name::text FROM extended WHERE name ~>=~ ''ANN'' AND name ~<~ ''Bob'' ORDER BY name USING ~<~, id', 'SELECT id FROM extended WHERE name IS NULL'], ARRAY['index', 'bitmap']);
SELECT pg_temp.compare_all(ARRAY['SELECT name::text FROM extended WHERE name COLLATE "C" > ''ANN'' ORDER BY name COLLATE "C", id',
	'SELECT id FROM extended WHERE name COLLATE "C" < ''b'''], ARRAY['index']);
SELECT pg_temp.compare_all(ARRAY['SELECT id FROM extended WHERE path = ''a.b''', 'SELECT path FROM extended WHERE path >= ''a'' AND path < ''b'' ORDER BY path, id',
	'SELECT path FROM extended WHERE path > ''A'' ORDER BY path DESC, id', 'SELECT id FROM extended WHERE path <= '''''], ARRAY['index']);
SELECT pg_temp.compare_all(ARRAY['SELECT book FROM extended WHERE book > (SELECT book FROM extended WHERE id = 250) ORDER BY book',
	'SELECT book FROM extended WHERE book = (SELECT book FROM extended WHERE id = 250)'], ARRAY['index', 'only']);
SELECT smart_index_check('extended_name', true), smart_index_check('extended_path', true), smart_index_check('extended_book', true);

-- Uniqueness, as the types have it
CREATE UNIQUE INDEX extended_book_unique ON extended USING smart (book);
CREATE UNIQUE INDEX extended_name_unique ON extended USING smart (name) WHERE id > 1000;
INSERT INTO extended VALUES (1001, 'Cleo');
INSERT INTO extended VALUES (1002, 'CLEO');
INSERT INTO extended VALUES (1002, 'CLEO') ON CONFLICT (name) WHERE id > 1000 DO UPDATE SET id = 1003 RETURNING id, name;

DROP SCHEMA types_extensions CASCADE;
