-- jsonb, tsvector and tsquery: keys and results as in types_all.sql.
SET client_min_messages = warning;
SET jit = off;
CREATE SCHEMA types_documents;
SET search_path = types_documents, public;
\getenv abs_srcdir PG_ABS_SRCDIR
\set check_type :abs_srcdir /test/regress/check_type.sql
\set ECHO none
\i :check_type
\set ECHO all

CREATE TABLE type (name text, source text);
INSERT INTO type VALUES
	('jsonb', $$SELECT unnest('{[],null,0,1,1.0,-1.5e10,true,false,[null],[1],[1.00],"[1,2]","[[]]","[{}]","{}","[true]","[[],[]]","[[[1]]]"}'::jsonb[])
		UNION ALL SELECT unnest(ARRAY['""', '"a"', '"ab"', '"B"', '["a"]', '{"a":1}', '{"a":1.0}', '{"a":2}', '{"b":1}', '{"a":1,"b":0}',
			'{"b":0,"aa":1}', '{"aa":0,"b":0}', '{"a":[]}', '{"a":{}}', '{"a":{"b":[1,{"c":null}]}}', '{"a":{"b":[1,{"c":[]}]}}'])::jsonb
		UNION ALL SELECT to_jsonb(array_agg(j)) FROM generate_series(254, 256) i, generate_series(1, i) j GROUP BY i$$),
	('jsonb[]', $$SELECT unnest(ARRAY['{}', '{NULL}', '{null}', '{1,"[]"}', '{"{}"}'])::jsonb[] LIMIT 9$$),
	('tsvector', $$SELECT unnest('{"",a,b,ab,a b,a:1,a:2,"a:1,2",a:1A,a:1B,a:1 b,a:1 b:2,a:1B b:2C,a b:2,cc:1,a:16383}'::tsvector[])
		UNION ALL SELECT to_tsvector('simple', repeat('b a c ', i * 9)) FROM generate_series(1, 9) i$$),
	('tsquery', $$SELECT unnest('{"",a,b,ab,a:*,a:A,!a,a&b,b&a,a|b,a<->b,a<2>b,a<->b<->c,a<->(b<2>c),a&b&c,a&(b|c),!a&b,!(a&b),a|b|c,a|b&c,
		!(a<->b),!!a,a&!b}'::tsquery[])$$);
SELECT name, c.* FROM type, check_type(name, source) c;

-- Uniqueness, lists, descending, what is returned
CREATE TABLE documents (id int, j jsonb, v tsvector, q tsquery);
INSERT INTO documents SELECT i, jsonb_build_object('n', i / 2.0, 'name', 'name ' || i, 'tags', jsonb_build_array(i % 3, NULL)),
	to_tsvector('simple', 'word' || i % 50 || ' x'), ('word' || i || ' & x')::tsquery FROM generate_series(1, 300) i;
INSERT INTO documents VALUES (301, NULL, NULL, NULL), (302, '[]', '', ''), (303, '"text"', 'a', 'a');
CREATE UNIQUE INDEX documents_j ON documents USING smart (j);
CREATE INDEX documents_v ON documents USING smart (v DESC NULLS LAST, id) INCLUDE (v);
CREATE UNIQUE INDEX documents_q ON documents USING smart (q);
VACUUM ANALYZE documents;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_sort = off;
EXPLAIN (COSTS off) SELECT j FROM documents WHERE j < '{}' ORDER BY j;
SELECT id, j FROM documents WHERE j < '{}' ORDER BY j;
SELECT id FROM documents WHERE j IN ('"text"', '{"n": 1.0, "name": "name 2", "tags": [2.0, null]}', '{"n": 1}', NULL) ORDER BY j;
SELECT id FROM documents ORDER BY j DESC LIMIT 3;
EXPLAIN (COSTS off) SELECT id, v FROM documents WHERE v >= '''word8'':1 ''x'':2' ORDER BY v DESC NULLS LAST, id LIMIT 3;
SELECT id, v FROM documents WHERE v >= '''word8'':1 ''x'':2' ORDER BY v DESC NULLS LAST, id LIMIT 3;
SELECT count(*) FROM documents WHERE v = '''word9'':1 ''x'':2';
SELECT id FROM documents WHERE q = 'word77 & x' OR q IS NULL ORDER BY id;
\set VERBOSITY terse
INSERT INTO documents (id, j) VALUES (304, '{"name": "name 8", "tags": [2, null], "n": 4}');
INSERT INTO documents (id, q) VALUES (304, 'word77:* & x:A');
INSERT INTO documents VALUES (304, '{"name": "name 8", "tags": [2, null], "n": 4}') ON CONFLICT (j) DO UPDATE SET id = 1000 RETURNING id;
-- As long as other keys may be
INSERT INTO documents (id, j) VALUES (304, to_jsonb(repeat('x', 4085)));
INSERT INTO documents (id, j) VALUES (304, to_jsonb(repeat('x', 4085)));
INSERT INTO documents (id, j) VALUES (305, to_jsonb(repeat('x', 4086)));
\set VERBOSITY default
SELECT count(*) FROM documents WHERE j > to_jsonb(repeat('x', 10000)) AND j <= '[]';
SELECT count(*) FROM documents WHERE j = to_jsonb(repeat('x', 10000));
SELECT smart_index_check('documents_j', true), smart_index_check('documents_v', true), smart_index_check('documents_q', true);
DROP SCHEMA types_documents CASCADE;

-- The strings in jsonb compare under the database's collation: of ICU, and of the C library, which gives no order
\set original :DBNAME
DROP DATABASE IF EXISTS smart_icu;
DROP DATABASE IF EXISTS smart_libc;
CREATE DATABASE smart_icu TEMPLATE template0 ENCODING 'UTF8' LOCALE_PROVIDER icu ICU_LOCALE 'en' LC_COLLATE 'C' LC_CTYPE 'C.utf8';
CREATE DATABASE smart_libc TEMPLATE template0 ENCODING 'UTF8' LOCALE_PROVIDER libc LOCALE 'C.utf8@other';
\connect smart_icu
SET client_min_messages = warning;
SET jit = off;
CREATE EXTENSION smart;
\set ECHO none
\i :check_type
\set ECHO all
SELECT * FROM check_type('jsonb', $$SELECT to_jsonb(ARRAY[a, b]) FROM unnest('{a,A,b,B,é,ab}'::text[]) a, unnest('{a,A,z}'::text[]) b
	UNION ALL SELECT jsonb_build_object(a, 1) FROM unnest('{a,A,b,B,é,ab,aB}'::text[]) a$$);
\connect smart_libc
SET client_min_messages = warning;
CREATE EXTENSION smart;
CREATE TABLE documents AS SELECT i AS id, to_jsonb('text ' || i) AS j FROM generate_series(1, 300) i;
CREATE UNIQUE INDEX documents_j ON documents USING smart (j);
ANALYZE documents;
SET enable_seqscan = off;
SELECT pg_index_column_has_property('documents_j', 1, 'orderable');
EXPLAIN (COSTS off) SELECT id FROM documents WHERE j = '"text 7"';
SELECT id FROM documents WHERE j = '"text 7"';
SELECT count(*) FROM documents WHERE j < '"text 2"';
SELECT id FROM documents ORDER BY j DESC LIMIT 2;
\connect :original
DROP DATABASE smart_icu;
DROP DATABASE smart_libc;
