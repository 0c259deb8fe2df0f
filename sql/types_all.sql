-- Every type: the bytes that an index makes of values compare like the values, and queries by index give what they give
-- without one. For all pairs of edge cases and random values, ascending and descending, NULLs first and last.
SET client_min_messages = warning;
SET jit = off;
CREATE SCHEMA types_all;
SET search_path = types_all, public;
\getenv abs_srcdir PG_ABS_SRCDIR
\set check_type :abs_srcdir /test/regress/check_type.sql
\set ECHO none
\i :check_type
\set ECHO all

-- The test can fail: an order that is not the index's, a query that has another answer, a plan that does not look so
SELECT keys > 0 AS keys, prefixes, conditions, orders, lookups
FROM check_type('oidvector', $$SELECT unnest('{"",0,1,"0 0","1 0","1 2","2 1"}'::oidvector[])$$, compare => 'btarraycmp');
SELECT differs('SELECT current_setting(''enable_seqscan'')', 'index', ''), differs('SELECT 1', 'index', 'Index'),
	differs('SELECT 1', 'index', 'Result');

-- Random words: 64 bits that depend on i alone
CREATE FUNCTION word(i int) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT hashint4extended(i, 4711)';

CREATE TABLE type (name text, source text);
INSERT INTO type VALUES
	('"char"', $$SELECT chr(i)::"char" FROM generate_series(1, 127, 9) i UNION ALL SELECT '\200'::"char" UNION ALL SELECT '\377'$$),
	('money', $$SELECT unnest('{-92233720368547758.08,-1,-0.01,0,0.01,1,92233720368547758.07}'::money[])
		UNION ALL SELECT ((word(i) >> (i % 60)) / 100.0)::money FROM generate_series(1, 20) i$$),
	('pg_lsn', $$SELECT unnest('{0/0,0/1,0/FFFFFFFF,1/0,7FFFFFFF/FFFFFFFF,80000000/0,FFFFFFFF/FFFFFFFF}'::pg_lsn[])$$),
	('xid8', $$SELECT unnest('{0,1,255,256,4294967296,9223372036854775807,9223372036854775808,18446744073709551615}'::xid8[])$$),
	('tid', $$SELECT format('(%s,%s)', b, o)::tid FROM unnest('{0,1,256,2147483648,4294967295}'::bigint[]) b,
		unnest('{0,1,255,256,65535}'::int[]) o$$),
	('oidvector', $$SELECT unnest('{"",0,1,4294967295,"0 0","1 0","1 2","2 1","1 2 3"}'::oidvector[])$$),
	('numeric', $$SELECT unnest('{NaN,Infinity,-Infinity,0,0.000,-0.0,1,1.0,1.00000000000000000000,-1,9999,10000,10001,99999999,
		0.1,0.10,0.01,0.0001,0.00010000,0.00001,12.34,-12.34,12.3400,12.34001,-12.34001,1e100,1e-100,-1e100,-1e-100,1e1000,
		1e350,-1e350,1.5e323,1e324,1e-80,1e-81,-1e-84,1e-1000,-1e1000,123456789012345678901234567890.123456789}'::numeric[])
		UNION ALL SELECT word(i) / 10::numeric ^ (i % 40 - 10) FROM generate_series(1, 60) i
		UNION ALL SELECT repeat('98765432', 200 + i)::numeric FROM generate_series(1, 2) i$$),
	('numeric(20, 3)', $$SELECT word(i) / 1000::numeric FROM generate_series(1, 20) i$$),
	('interval', $$SELECT unnest('{0,1 us,-1 us,24 hours,1 day,23:59:59.999999,1 month,30 days,29 days,720 hours,-1 month,-30 days,
		1 month -30 days,1 year,360 days,-1 day 24 hours,-1 day 23:59:59.999999,178000000 years,-178000000 years,
		2147483647 days,-2147483648 days,2562047788:00:54.775807,-2562047788:00:54.775807,1 day -1 us}'::interval[])
		UNION ALL SELECT word(i) * interval '1 us' + (word(-i) % 1000000) * interval '1 day' FROM generate_series(1, 30) i$$),
	('timetz', $$SELECT unnest('{00:00+00,00:00+15:59,00:00-15:59,24:00-15:59,24:00+15:59,12:00+00,13:00+01,11:00-01,
		12:00:00.000001+00,12:00+00:00:01,23:59:59.999999+00}'::timetz[])$$),
	('inet', $$SELECT unnest('{0.0.0.0/0,0.0.0.0/1,0.0.0.0,10.0.0.0/8,10.0.0.0/16,10.1.0.0/16,10.0.0.1/8,10.0.0.1/16,10.0.0.1,
		10.255.255.255/8,10.255.255.255,11.0.0.0/7,11.0.0.0/8,127.255.255.255/1,128.0.0.0/1,192.168.1.77/28,192.168.1.78/28,
		192.168.1.64/28,192.168.1.64/27,255.255.255.255,255.255.255.255/0,::/0,::,::1,::1/64,fe80::1/10,fe80::/10,
		fe80::/11,fe80::1/127,fe80::1,ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff,ffff::/3}'::inet[])
		UNION ALL SELECT set_masklen('0.0.0.0'::inet + (word(i) & 4294967295), i) FROM generate_series(0, 32) i
		UNION ALL SELECT set_masklen('1000::'::inet + word(i), 4 * i) FROM generate_series(1, 32) i$$),
	('cidr', $$SELECT unnest('{0.0.0.0/0,10.0.0.0/8,10.0.0.0/16,10.1.0.0/16,10.0.0.1,11.0.0.0/8,::/0,::1,fe80::/10}'::cidr[])$$),
	('macaddr', $$SELECT unnest('{00:00:00:00:00:00,00:00:00:00:00:01,00:00:00:ff:ff:ff,00:00:01:00:00:00,7f:ff:ff:ff:ff:ff,
		80:00:00:00:00:00,ff:ff:ff:ff:ff:ff}'::macaddr[])$$),
	('macaddr8', $$SELECT unnest('{00:00:00:00:00:00:00:00,00:00:00:00:00:00:00:01,00:00:00:00:ff:ff:ff:ff,
		00:00:00:01:00:00:00:00,7f:ff:ff:ff:ff:ff:ff:ff,80:00:00:00:00:00:00:00,ff:ff:ff:ff:ff:ff:ff:ff}'::macaddr8[])$$),
	('varbit', $$SELECT unnest(ARRAY[B'', B'0', B'1', B'00', B'01', B'10', B'0000000', B'00000000', B'000000000', B'00000001',
		B'0000000100000000', B'10000000', B'100000000', B'1000000000000000', B'1000000000000001', B'11111111',
		B'111111111']::varbit[]) UNION ALL SELECT substring(word(i)::bit(64), 1, i)::varbit FROM generate_series(1, 30) i$$),
	('bit(9)', $$SELECT word(i)::bit(9) FROM generate_series(1, 30) i$$),
	('int[]', $$SELECT unnest(ARRAY['{}', '{NULL}', '{1}', '{1,2}', '{1,NULL}', '{NULL,1}', '{2}', '{-1}', '{-1,5}', '[0:0]={1}',
		'[2:2]={1}', '[-5:-5]={1}', '{{1}}', '{{1,2}}', '{{1},{2}}', '{{1,2},{3,4}}', '{1,2,3,4}', '[2:3][0:1]={{1,2},{3,4}}',
		'[2:3][-1:0]={{1,2},{3,4}}', '{{{1}}}', '{{NULL,2},{3,4}}', '[1:1][1:4]={{1,2,3,4}}',
		'[-2147483648:-2147483647]={1,2}', '[2147483645:2147483646]={1,2}'])::int[] LIMIT 100$$),
	('text[] COLLATE "C"', $$SELECT unnest(ARRAY['{}', '{""}', '{NULL}', '{a}', '{a,b}', '{ab}', '{a,""}', '{b}', '{A}', '{a,NULL}',
		'{"",""}'])::text[]$$),
	('varchar(5)[] COLLATE "en-x-icu"', $$SELECT unnest(ARRAY['{}', '{""}', '{a}', '{a,b}', '{ab}', '{A}', '{B}', '{a,B}', '{é,a}',
		'{e,a}', '{e,b}'])::varchar[]$$),
	('numeric[]', $$SELECT unnest(ARRAY['{}', '{0}', '{-1}', '{-1,0}', '{-1.5}', '{1}', '{1.0,2}', '{1,2.00}', '{NaN}', '{NULL}'])
		::numeric[]$$),
	('int4range', $$SELECT unnest('{empty,"(,)","(,5)","[1,)","[1,2)","[1,5)","[2,5)","[-5,1)","[-2147483648,2147483647)"}'::int4range[])$$),
	('numrange', $$SELECT unnest(ARRAY['empty', '(,)', '[,5]', '(,5)', '[1,)', '(1,)', '[1,1]', '[1,2)', '(1,2)', '[1,2]', '(1,2]',
		'[1.0,2]', '[-1,2]', '[-1.5,NaN]', '[-Infinity,Infinity]', '[1,Infinity)', '[1,Infinity]'])::numrange$$),
	('tstzrange', $$SELECT unnest('{empty,"[-infinity,infinity]","[2020-01-01,)","(2020-01-01,2020-01-02]","[2020-01-01,2020-01-02)"}'::tstzrange[])$$),
	('int4multirange', $$SELECT unnest('{"{}","{[1,2)}","{[1,2),[3,4)}","{[1,2),[3,)}","{[1,3)}","{(,1)}","{(,)}","{[1,2),[4,5)}",
		"{[0,1),[5,6),[7,8)}"}'::int4multirange[])$$),
	('nummultirange', $$SELECT unnest('{"{}","{[1,2]}","{[1,2)}","{(1,2)}","{[1,2),(3,4]}","{[1,2),[3,)}","{[1.0,3]}","{(,1)}",
		"{(,)}"}'::nummultirange[])$$);
SELECT name, c.* FROM type, check_type(name, source) c;

-- Enums, values added between others
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
ALTER TYPE mood ADD VALUE 'fine' BEFORE 'happy';
ALTER TYPE mood ADD VALUE 'awful' BEFORE 'sad';
ALTER TYPE mood ADD VALUE 'worst' BEFORE 'awful';
ALTER TYPE mood ADD VALUE 'so so' AFTER 'ok';
ALTER TYPE mood ADD VALUE 'great' AFTER 'happy';
CREATE TYPE mood_range AS RANGE (subtype = mood);
SELECT t.name, c.* FROM (VALUES ('mood', 'SELECT unnest(enum_range(NULL::mood)) FROM generate_series(1, 3)'),
	('mood[]', 'SELECT ARRAY[a, b] FROM unnest(enum_range(NULL::mood)) a, unnest(enum_range(NULL::mood)) b'),
	('mood_range', 'SELECT mood_range(a, b, c) FROM unnest(enum_range(NULL::mood)) a, unnest(enum_range(NULL::mood)) b,
		unnest(''{(),[]}''::text[]) c WHERE a <= b')) t (name, source),
	check_type(name, source) c;

DROP SCHEMA types_all CASCADE;
