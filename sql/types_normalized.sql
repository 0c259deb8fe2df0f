-- The bytes that an index makes of values compare like the values: for every pair of edge cases and random values of
-- each type, ascending and descending, NULLs first and last.
SET client_min_messages = warning;
CREATE SCHEMA types_images;
SET search_path = types_images, public;

-- Pairs whose normalized keys do not compare as compare(a, b) does, and pairs where one normalized key begins another.
-- control reverses the expected order, so that all pairs of different values must come out as wrong.
CREATE FUNCTION check_keys(valuetype text, compare text, source text, class text DEFAULT '', control int DEFAULT 1)
	RETURNS TABLE (direction text, samples bigint, wrong bigint, prefixes bigint) LANGUAGE plpgsql AS
$$
DECLARE
	turn int;
	nulls int;
BEGIN
	EXECUTE format('CREATE TEMP TABLE sample (x %s)', valuetype);
	EXECUTE format('INSERT INTO sample SELECT NULL UNION ALL %s', source);
	FOREACH direction IN ARRAY ARRAY['ASC NULLS LAST', 'ASC NULLS FIRST', 'DESC NULLS FIRST', 'DESC NULLS LAST']
	LOOP
		turn := control * CASE WHEN direction LIKE 'ASC%' THEN 1 ELSE -1 END;
		nulls := CASE WHEN direction LIKE '%FIRST' THEN -1 ELSE 1 END;
		EXECUTE format('CREATE INDEX sample_smart ON sample USING smart (x %s %s)', class, direction);
		EXECUTE format(
			$query$
			WITH keyed AS MATERIALIZED (SELECT x, smart_normalized_key('sample_smart', x) AS key FROM sample)
			SELECT sqrt(count(*))::bigint,
				count(*) FILTER (WHERE sign(byteacmp(a.key, b.key)) IS DISTINCT FROM CASE
					WHEN a.x IS NULL AND b.x IS NULL THEN 0
					WHEN a.x IS NULL THEN %1$s
					WHEN b.x IS NULL THEN -1 * %1$s
					ELSE %2$s * sign(%3$s(a.x, b.x)) END),
				count(*) FILTER (WHERE a.key <> b.key AND substring(b.key FOR length(a.key)) = a.key)
			FROM keyed a, keyed b
			$query$, nulls, turn, compare)
			INTO samples, wrong, prefixes;
		RETURN NEXT;
		DROP INDEX sample_smart;
	END LOOP;
	DROP TABLE sample;
END
$$;

-- Random words: 64 bits that depend on i alone
CREATE FUNCTION word(i int) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT hashint4extended(i, 4711)';

-- The test can fail: with the order turned round every pair of different values is wrong (5 * 4 of the 6 * 6)
SELECT * FROM check_keys('integer', 'btint4cmp', 'VALUES (-2147483648), (-1), (0), (1), (2147483647)', '', -1);

SELECT * FROM check_keys('boolean', 'btboolcmp', 'VALUES (false), (true)');
SELECT * FROM check_keys('oid', 'btoidcmp',
	'SELECT o::oid FROM unnest(ARRAY[0, 1, 255, 256, 2147483647, 2147483648, 4294967295]) o
	UNION ALL SELECT (word(i) & 4294967295)::oid FROM generate_series(1, 100) i');
SELECT * FROM check_keys('smallint', 'btint2cmp',
	'SELECT unnest(ARRAY[-32768, -32767, -257, -256, -255, -1, 0, 1, 255, 256, 257, 32766, 32767])
	UNION ALL SELECT (word(i) % 32768) FROM generate_series(1, 100) i');
SELECT * FROM check_keys('integer', 'btint4cmp',
	'SELECT unnest(ARRAY[-2147483648, -2147483647, -65536, -256, -1, 0, 1, 255, 256, 65536, 2147483646, 2147483647])
	UNION ALL SELECT (word(i) % 2147483648) >> (i % 32) FROM generate_series(1, 100) i');
SELECT * FROM check_keys('bigint', 'btint8cmp',
	'SELECT unnest(ARRAY[-9223372036854775808, -9223372036854775807, -4294967296, -256, -1, 0, 1, 255, 256, 4294967296,
		9223372036854775806, 9223372036854775807])
	UNION ALL SELECT word(i) >> (i % 64) FROM generate_series(1, 100) i');
SELECT * FROM check_keys('real', 'btfloat4cmp',
	$$SELECT unnest('{-Infinity,-3.4028235e38,-1.5,-1,-1.1754944e-38,-1e-45,-0,0,1e-45,1.1754944e-38,1,1.0000001,1.5,
		3.4028235e38,Infinity,NaN}'::real[])
	UNION ALL SELECT '-NaN'::real * -1 UNION ALL SELECT -('NaN'::real)
	UNION ALL SELECT (word(i)::float8 / 2.0 ^ (i % 128))::real FROM generate_series(1, 100) i$$);
SELECT * FROM check_keys('double precision', 'btfloat8cmp',
	$$SELECT unnest('{-Infinity,-1.7976931348623157e308,-1.5,-1,-2.2250738585072014e-308,-5e-324,-0,0,5e-324,1,
		1.0000000000000002,1.5,1.7976931348623157e308,Infinity,NaN}'::float8[])
	UNION ALL SELECT -('NaN'::float8)
	UNION ALL SELECT word(i)::float8 / 2.0 ^ (10 * i % 1000) FROM generate_series(1, 100) i$$);
SELECT * FROM check_keys('date', 'date_cmp',
	$$SELECT unnest('{-infinity,4714-11-24 BC,0001-01-01,1999-12-31,2000-01-01,2000-01-02,294276-12-31,5874897-12-31,
		infinity}'::date[])
	UNION ALL SELECT date '2000-01-01' + (word(i) % 2000000)::int FROM generate_series(1, 100) i$$);
SELECT * FROM check_keys('time', 'time_cmp',
	$$SELECT unnest('{00:00,00:00:00.000001,00:00:01,12:00,23:59:59.999999,24:00}'::time[])
	UNION ALL SELECT time '00:00' + word(i) % 86400000000 * interval '1 microsecond' FROM generate_series(1, 100) i$$);
SELECT * FROM check_keys('timestamp', 'timestamp_cmp',
	$$SELECT unnest('{-infinity,4714-11-24 00:00:00 BC,1999-12-31 23:59:59.999999,2000-01-01,2000-01-01 00:00:00.000001,
		294276-12-31 23:59:59.999999,infinity}'::timestamp[])
	UNION ALL SELECT timestamp '2000-01-01' + word(i) % 100000000000000000 * interval '1 microsecond'
		FROM generate_series(1, 100) i$$);
SELECT * FROM check_keys('timestamptz', 'timestamptz_cmp',
	$$SELECT unnest('{-infinity,4714-11-24 00:00:00+00 BC,1999-12-31 23:59:59.999999+00,2000-01-01 00:00+00,
		294276-12-31 23:59:59.999999+00,infinity}'::timestamptz[])
	UNION ALL SELECT timestamptz '2000-01-01 00:00+00' + word(i) % 100000000000000000 * interval '1 microsecond'
		FROM generate_series(1, 100) i$$);
SELECT * FROM check_keys('uuid', 'uuid_cmp',
	$$SELECT unnest('{00000000-0000-0000-0000-000000000000,00000000-0000-0000-0000-000000000001,
		7fffffff-ffff-ffff-ffff-ffffffffffff,80000000-0000-0000-0000-000000000000,
		ffffffff-ffff-ffff-ffff-ffffffffffff}'::uuid[])
	UNION ALL SELECT md5(i::text)::uuid FROM generate_series(1, 100) i$$);

-- Strings: short ones over a few bytes, one the beginning of another, long ones that are compressed or out of line
CREATE FUNCTION strings() RETURNS SETOF text LANGUAGE sql IMMUTABLE AS
$$
	SELECT unnest(ARRAY['', ' ', '  ', 'a', 'a ', 'a  ', 'ab', 'a b', 'a' || chr(1), 'a' || chr(31), 'A', 'b', 'z', '~',
		chr(1), chr(127), chr(128), chr(255), chr(256), chr(55295), chr(65535), chr(1114111), 'a' || chr(1114111),
		repeat('a', 125), repeat('a', 126), repeat('a', 127), repeat('a', 128), repeat('a', 2700), repeat('a', 4000)])
	UNION ALL SELECT substr(translate(md5(i::text), '0123456789', '  aabb%_zz'), 1, i % 7) FROM generate_series(1, 80) i
	UNION ALL SELECT string_agg(md5((100 * i + j)::text), '') FROM generate_series(1, 5) i, generate_series(1, 100) j
		GROUP BY i
$$;

SELECT * FROM check_keys('text COLLATE "C"', 'bttextcmp', 'SELECT strings()');
SELECT * FROM check_keys('varchar COLLATE "POSIX"', 'bttextcmp', 'SELECT strings()');
SELECT * FROM check_keys('text COLLATE "C"', 'bttextcmp', 'SELECT strings()', 'varchar_ops');
SELECT * FROM check_keys('name', 'btnamecmp', 'SELECT substr(strings(), 1, 60)');
SELECT * FROM check_keys('bpchar COLLATE "C"', 'bpcharcmp', 'SELECT strings()');
SELECT * FROM check_keys('char(4000) COLLATE "C"', 'bpcharcmp', 'SELECT strings()');
SELECT * FROM check_keys('text COLLATE "en-x-icu"', 'bttext_pattern_cmp', 'SELECT strings()', 'text_pattern_ops');
SELECT * FROM check_keys('varchar(4000) COLLATE "C.utf8"', 'bttext_pattern_cmp', 'SELECT strings()',
	'varchar_pattern_ops');
SELECT * FROM check_keys('bpchar COLLATE "en-x-icu"', 'btbpchar_pattern_cmp', 'SELECT strings()',
	'bpchar_pattern_ops');
SELECT * FROM check_keys('bytea', 'byteacmp',
	$$SELECT unnest(ARRAY['', '\x00', '\x0000', '\x000000', '\x00ff', '\x00ff00', '\x0001', '\x01', '\x0100', '\x0101',
		'\xff', '\xff00', '\xffff', '\xff00ff', '\x00ffff']::bytea[])
	UNION ALL SELECT convert_to(strings(), 'UTF8')
	UNION ALL SELECT decode(translate(substr(md5(i::text), 1, 2 * (i % 9)), '23456789abcde', '000000ffffff1'), 'hex')
		FROM generate_series(1, 100) i$$);

-- Under collations of the C library keys tell equality, and nothing else is asked of them (y); of those of ICU there
-- are more in types_all.sql
CREATE COLLATION of_libc (provider = libc, locale = 'C.utf8@other');
CREATE TABLE words (x text COLLATE "en-x-icu", y text COLLATE of_libc, z char(4000) COLLATE "en-x-icu");
INSERT INTO words SELECT s, s, s FROM strings() s WHERE length(s) < 1000;
CREATE INDEX words_x ON words USING smart (x);
CREATE INDEX words_y ON words USING smart (y DESC);
CREATE INDEX words_z ON words USING smart (z);
WITH keyed AS MATERIALIZED
	(SELECT x, y, z, smart_normalized_key('words_x', x) AS xi, smart_normalized_key('words_y', y) AS yi,
		smart_normalized_key('words_z', z) AS zi FROM words)
SELECT count(*) FILTER (WHERE a.x = b.x) > count(DISTINCT a.x) AS has_equal_pairs,
	count(*) FILTER (WHERE (a.xi = b.xi) <> (a.x = b.x)) AS wrong_x,
	count(*) FILTER (WHERE (a.yi = b.yi) <> (a.y = b.y)) AS wrong_y,
	count(*) FILTER (WHERE (a.zi = b.zi) <> (a.z = b.z)) AS wrong_z
FROM keyed a, keyed b;

-- Several columns: the ranks of the rows are those of their normalized keys
CREATE TABLE rows (a smallint, b text COLLATE "C", c float8, d bytea, e bpchar COLLATE "C");
INSERT INTO rows
	SELECT nullif(i % 3, 0), nullif(substr(md5(i::text), 1, i % 4), ''), nullif(i % 5, 2) - 2,
		nullif(decode(repeat('00', i % 3), 'hex'), ''), nullif(repeat(' ', i % 3) || repeat('x', i % 2), '')
	FROM generate_series(1, 2000) i;
CREATE INDEX rows_smart ON rows USING smart (a, b DESC, c NULLS FIRST, d DESC NULLS LAST, e);
WITH ranks AS
	(SELECT dense_rank() OVER (ORDER BY a, b DESC, c NULLS FIRST, d DESC NULLS LAST, e) AS by_value,
		dense_rank() OVER (ORDER BY smart_normalized_key('rows_smart', a, b, c, d, e)) AS by_key FROM rows)
SELECT count(DISTINCT by_value) > 500 AS many, count(*) FILTER (WHERE by_value <> by_key) AS wrong FROM ranks;

-- The normalized key of a few of the columns begins that of more
SELECT count(*) AS wrong FROM rows
WHERE substring(smart_normalized_key('rows_smart', a, b, c) FOR length(smart_normalized_key('rows_smart', a, b)))
	<> smart_normalized_key('rows_smart', a, b);

-- What it looks like
SELECT smart_normalized_key('rows_smart', 1::smallint), smart_normalized_key('rows_smart', NULL::smallint),
	smart_normalized_key('rows_smart', 1::smallint, 'a'::text), smart_normalized_key('rows_smart', (-2)::smallint, NULL);
CREATE INDEX rows_btree ON rows (a);
\set VERBOSITY sqlstate
SELECT smart_normalized_key('rows_btree', 1::smallint);
SELECT smart_normalized_key('rows', 1::smallint);
SELECT smart_normalized_key('rows_smart', 1::bigint);
SELECT smart_normalized_key('rows_smart', 'x');
SELECT smart_normalized_key('rows_smart', 1::smallint, '', 1::float8, ''::bytea, ''::bpchar, 2);
SELECT smart_normalized_key(NULL, 1), smart_normalized_key('rows_smart', VARIADIC NULL::int[]);
\set VERBOSITY default

DROP SCHEMA types_images CASCADE;
