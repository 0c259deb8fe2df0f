-- Types that come with extensions: each of smart_citext, smart_cube, ... brings the classes for those of one.
SET client_min_messages = warning;
SET jit = off;
CREATE SCHEMA types_extensions;
SET search_path = types_extensions, public;
\getenv abs_srcdir PG_ABS_SRCDIR
\set check_type :abs_srcdir /test/regress/check_type.sql
\set compare :abs_srcdir /test/regress/compare.sql
\set ECHO none
\i :check_type
\i :compare
\set ECHO all
CREATE EXTENSION citext;
CREATE TABLE extended (id int, name citext);
-- Without it there is none; nor has this class of btree a counterpart.
\set VERBOSITY sqlstate
CREATE INDEX ON extended USING smart (name);
CREATE INDEX ON extended USING smart ((extended.*) record_image_ops);
\set VERBOSITY default
CREATE EXTENSION smart_citext;
CREATE EXTENSION smart_cube CASCADE;
CREATE EXTENSION smart_hstore CASCADE;
CREATE EXTENSION smart_isn CASCADE;
CREATE EXTENSION smart_ltree CASCADE;
CREATE EXTENSION smart_seg CASCADE;
SELECT opcname, opcintype::regtype, opcdefault, amvalidate(c.oid) FROM pg_opclass c JOIN pg_am a ON a.oid = opcmethod
WHERE amname = 'smart' AND opcnamespace = 'types_extensions'::regnamespace ORDER BY 1;

-- citext, in the order of its collation, and in that of its bytes
CREATE COLLATION of_libc (provider = libc, locale = 'C.utf8@other');
CREATE COLLATION ignore_accent (provider = icu, locale = 'und-u-ks-level1-kc-true', deterministic = false);
CREATE FUNCTION strings() RETURNS SETOF text LANGUAGE sql IMMUTABLE AS
$$
	SELECT unnest(ARRAY['', ' ', 'a', 'A', 'ab', 'Ab', 'a-b', 'A b', 'B', 'b', 'É', 'é', 'e', 'ÄRGER', 'ärger', 'ß', 'SS', chr(1), 'z', '中', repeat('aB', 300), repeat('AB', 300)])
	UNION ALL SELECT substr(translate(md5(i::text), '0123456789', ' aÁbB%_zzé'), 1, i % 6) FROM generate_series(1, 20) i
$$;
SELECT t.name, c.* FROM (VALUES ('citext'), ('citext COLLATE "en-x-icu"'), ('citext COLLATE "C.utf8"')) t (name), check_type(name, 'SELECT strings()', compare => 'citext_cmp') c;
SELECT * FROM check_type('citext COLLATE "en-x-icu"', 'SELECT strings()', 'citext_pattern_ops', 'citext_pattern_cmp', '{~<~,~<=~,=,~>=~,~>~}');
INSERT INTO extended SELECT i, (ARRAY['Ann', 'bob', 'CLEO', 'Dan'])[1 + i % 4] || ' ' || i FROM generate_series(1, 2000) i;
CREATE UNIQUE INDEX extended_name ON extended USING smart (name);
ANALYZE extended;
SELECT pg_temp.compare_all(ARRAY['SELECT id FROM extended WHERE name = ''aNN 4''', 'SELECT id FROM extended WHERE name IN (''ann 8'', ''bOB 5'', ''no'')',
	'SELECT name FROM extended WHERE name > ''Cleo 19'' AND name < ''dAN 3'' ORDER BY name'], ARRAY['index']);
INSERT INTO extended VALUES (0, 'BOB 1');
INSERT INTO extended VALUES (0, 'BOB 1') ON CONFLICT (name) DO UPDATE SET id = -1 RETURNING *;
CREATE INDEX extended_libc ON extended USING smart (name COLLATE of_libc);
SELECT pg_index_column_has_property('extended_name', 1, 'orderable') AS c, pg_index_column_has_property('extended_libc', 1, 'orderable') AS libc;
SELECT pg_temp.compare('SELECT id FROM extended WHERE name COLLATE of_libc = ''aNN 4''');
CREATE INDEX ON extended USING smart (name COLLATE ignore_accent);
-- Arrays of them, too
CREATE TABLE lists (l citext[]);
INSERT INTO lists SELECT ARRAY[name, 'X'] FROM extended;
CREATE INDEX lists_l ON lists USING smart (l);
SELECT pg_temp.compare_all(ARRAY['SELECT l FROM lists WHERE l = ''{ann 4,x}''', 'SELECT l FROM lists WHERE l > ''{dan 9}'' ORDER BY l'], ARRAY['index']);

-- ltree (labels may have hyphens from version 16 on)
SELECT * FROM check_type('ltree', $$SELECT text2ltree(x) FROM unnest(ARRAY['', 'a', 'A', 'a.b', 'a.B', 'a_.b', 'a0', 'b.a.a', 'ab', 'ab.a', 'a.a.a.a', 'b', 'Z.b', repeat('a', 200) || '.b', repeat('a.', 200) || 'b',
	CASE WHEN current_setting('server_version_num')::int < 160000 THEN 'a_b' ELSE 'a-b' END]) x UNION ALL SELECT text2ltree('a.' || i || '.x') FROM generate_series(1, 15) i$$, compare => 'ltree_cmp');

-- isn: eight types, of which index-only scans give the values back
SELECT t.name, c.* FROM unnest('{ean13,isbn,isbn13,ismn,ismn13,issn,issn13,upc}'::text[], '{97712345%s?,03930%s?,97803930%s?,M2306%s?,97902306%s?,143%s?,977143%s00?,2203564%s?}'::text[]) t (name, form),
	check_type(name, format('SELECT format(%L, lpad((i * 7919 %% 9973)::text, 4, ''0''))::%s FROM generate_series(1, 20) i', form, name), compare => format('bt%scmp', name)) c;
CREATE TABLE books (id int, number isbn13, subject ltree);
INSERT INTO books SELECT i, make_valid(isbn13('978' || lpad((i * 7919 % 99991)::text, 9, '0') || '?!')), text2ltree('Top.s' || i % 100) FROM generate_series(1, 2000) i;
CREATE UNIQUE INDEX books_number ON books USING smart (number);
CREATE INDEX books_subject ON books USING smart (subject DESC, number);
VACUUM ANALYZE books;
SELECT pg_temp.compare_all(ARRAY['SELECT number FROM books WHERE number > (SELECT number FROM books WHERE id = 250) ORDER BY number',
	'SELECT number FROM books WHERE number = (SELECT number FROM books WHERE id = 250)'], ARRAY['index', 'only']);
SELECT pg_temp.compare_all(ARRAY['SELECT subject, number FROM books WHERE subject >= ''Top.s3'' AND subject < ''Top.s4'' ORDER BY subject DESC, number',
	'SELECT number FROM books WHERE (subject, number) < (''Top.s33'', ''9780000000002'')'], ARRAY['index']);
SELECT smart_index_check('books_number', true), smart_index_check('books_subject', true), smart_index_check('extended_name', true);

-- hstore: empty ones, empty strings, NULLs, and strings that are alike put together
SELECT * FROM check_type('hstore', $$SELECT unnest(ARRAY['', '""=>""', '""=>NULL', 'a=>b', 'a=>NULL', 'ab=>""', 'a=>"", b=>""', 'ab=>NULL', 'a=>NULL, b=>NULL', 'b=>a', 'a=>1, b=>2', 'a=>12, b=>""', 'a=>1, b=>2, c=>3', 'é=>中',
	'a=>"=>,\"", b=>" "']::hstore[]) UNION ALL SELECT hstore(repeat('k', 100), repeat('v', 500)) UNION ALL SELECT hstore(i::text, md5(i::text)) FROM generate_series(1, 15) i$$,
	compare => 'hstore_cmp', operators => '{#<#,#<=#,=,#>=#,#>#}');

-- seg: bounds that are open, vague, and more or less precise
SELECT * FROM check_type('seg', $$SELECT unnest(ARRAY['1', '1.0', '1.00', '~1', '~1.0', '<1', '>1', '1 .. 2', '1 .. ~2', '~1 .. 2', '1 .. 2.0', '1 .. <2', '1 .. >2', '1 ..', '.. 1', '.. <1', '>1 ..', '-1', '-1.5 .. 1', '0', '-0', '0.00',
	'1e-30', '1e30', '-1e30', '5(+-)0.3', '<1 .. 2', '>1 .. 2', '.. 2']::seg[]) UNION ALL SELECT (i || ' .. ' || i + i % 3)::seg FROM generate_series(1, 15) i$$, compare => 'seg_cmp');

-- cube: what it has is no order, as these three show, but cubes can be equal
SELECT a < b AS a_b, b < c AS b_c, c < a AS c_a FROM (VALUES ('(0,-1),(5,-1)'::cube, '(0,1),(3,1)'::cube, '(0),(4)'::cube)) v (a, b, c);
CREATE TABLE cubes (id int, c cube);
INSERT INTO cubes SELECT i, cube(ARRAY[i % 10, i], ARRAY[i % 7, -i]) FROM generate_series(1, 500) i;
INSERT INTO cubes VALUES (501, '(0),(5)'), (502, '(5),(0)'), (503, '(1,2)'), (504, '(1,2),(1,2)'), (505, '()'), (506, '(0)'), (507, '(-0)'), (508, '(0,0)'), (509, '(1e300,-1e300),(inf,-inf)');
CREATE INDEX cubes_c ON cubes USING smart (c);
VACUUM ANALYZE cubes;
SELECT pg_index_column_has_property('cubes_c', 1, 'orderable');
SELECT count(*) AS pairs, count(*) FILTER (WHERE (smart_normalized_key('cubes_c', a.c) = smart_normalized_key('cubes_c', b.c)) <> (a.c = b.c)) AS wrong
FROM cubes a, cubes b WHERE a.id > 400 AND b.id > 400;
SELECT pg_temp.compare_all(ARRAY['SELECT id FROM cubes WHERE c = ''(5),(0)''', 'SELECT id FROM cubes WHERE c = ''(1,2)''', 'SELECT id FROM cubes WHERE c IN (''(0)'', ''()'', ''(3,3),(3,-3)'')'], ARRAY['index', 'bitmap']);
INSERT INTO cubes VALUES (510, '(NaN)');
SELECT smart_index_check('cubes_c', true);

-- The classes go with the types.
DROP EXTENSION citext CASCADE;
SELECT extname FROM pg_extension WHERE extname LIKE 'smart%' ORDER BY 1;
DROP SCHEMA types_extensions CASCADE;
