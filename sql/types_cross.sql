-- Conditions between all types of a family select what a sequential scan selects, and use the index for it.
SET client_min_messages = warning;
SET jit = off;
CREATE SCHEMA types_cross;
SET search_path = types_cross, public;
SET timezone = 'Europe/Berlin';
SET datestyle = ISO;

-- Joins the values of a column with arguments by each operator, by sequential scan and by index, as a nested loop and,
-- with the arguments as constants, one by one. Returns how many pairs were selected, in how many ways the two
-- differed, and how often the index was not used.
CREATE FUNCTION check_conditions(valuetype text, source text, argtype text, arguments text,
	operators text[] DEFAULT '{<,<=,=,>=,>}', class text DEFAULT '')
	RETURNS TABLE (direction text, selected bigint, wrong bigint, not_used bigint) LANGUAGE plpgsql AS
$$
DECLARE
	operator text;
	argument text;
	query text;
	expected text;
	found text;
	line text;
	used bool;
BEGIN
	EXECUTE format('CREATE TEMP TABLE sample (id int GENERATED ALWAYS AS IDENTITY, x %s)', valuetype);
	EXECUTE 'INSERT INTO sample (x) SELECT NULL UNION ALL ' || source;
	EXECUTE format('CREATE TEMP TABLE argument (id int GENERATED ALWAYS AS IDENTITY, y %s)', argtype);
	EXECUTE 'INSERT INTO argument (y) SELECT NULL UNION ALL ' || arguments;
	SET LOCAL enable_hashjoin = off;
	SET LOCAL enable_mergejoin = off;
	SET LOCAL enable_material = off;
	FOREACH direction IN ARRAY ARRAY['ASC', 'DESC', 'ASC NULLS FIRST']
	LOOP
		selected := 0;
		wrong := 0;
		not_used := 0;
		EXECUTE format('CREATE INDEX sample_smart ON sample USING smart (x %s %s)', class, direction);
		FOREACH operator IN ARRAY operators
		LOOP
			FOR query IN
				SELECT format('SELECT count(*) || '' '' || coalesce(sum(hashint8(1000 * s.id::bigint + a.id)), 0)
					FROM argument a, LATERAL (SELECT id FROM sample WHERE x %s a.y OFFSET 0) s', operator)
			LOOP
				SET LOCAL enable_seqscan = on;
				SET LOCAL enable_indexscan = off;
				SET LOCAL enable_indexonlyscan = off;
				SET LOCAL enable_bitmapscan = off;
				EXECUTE query INTO expected;
				SET LOCAL enable_seqscan = off;
				SET LOCAL enable_indexscan = on;
				SET LOCAL enable_indexonlyscan = on;
				used := false;
				FOR line IN EXECUTE 'EXPLAIN (COSTS off) ' || query
				LOOP
					used := used OR line ~ 'Index Cond:.*x';
				END LOOP;
				EXECUTE query INTO found;
				selected := selected + split_part(expected, ' ', 1)::bigint;
				wrong := wrong + (found IS DISTINCT FROM expected)::int;
				not_used := not_used + (NOT used)::int;
			END LOOP;
			FOR argument IN EXECUTE 'SELECT y::text FROM argument WHERE y IS NOT NULL'
			LOOP
				query := format('SELECT array_agg(id ORDER BY id) FROM sample WHERE x %s %L::%s', operator, argument,
					split_part(argtype, ' COLLATE', 1));
				SET LOCAL enable_seqscan = on;
				SET LOCAL enable_indexscan = off;
				SET LOCAL enable_indexonlyscan = off;
				SET LOCAL enable_bitmapscan = off;
				EXECUTE query INTO expected;
				SET LOCAL enable_seqscan = off;
				SET LOCAL enable_bitmapscan = on;
				EXECUTE query INTO found;
				wrong := wrong + (found IS DISTINCT FROM expected)::int;
			END LOOP;
		END LOOP;
		RETURN NEXT;
		DROP INDEX sample_smart;
	END LOOP;
	DROP TABLE sample, argument;
END
$$;

-- Integers: each bound of each type and its neighbours
CREATE FUNCTION integers(lowest bigint, highest bigint) RETURNS SETOF bigint LANGUAGE sql AS
$$
	SELECT v FROM unnest(ARRAY[-9223372036854775808, -9223372036854775807, -2147483649, -2147483648, -2147483647, -32769,
		-32768, -32767, -1, 0, 1, 7, 32766, 32767, 32768, 2147483646, 2147483647, 2147483648, 9223372036854775806,
		9223372036854775807]) v
	WHERE v BETWEEN lowest AND highest
$$;
CREATE TABLE integer_type (name text, lowest bigint, highest bigint);
INSERT INTO integer_type VALUES ('smallint', -32768, 32767), ('integer', -2147483648, 2147483647),
	('bigint', -9223372036854775808, 9223372036854775807);
SELECT v.name, a.name, c.* FROM integer_type v, integer_type a,
	check_conditions(v.name, format('SELECT integers(%s, %s)', v.lowest, v.highest),
		a.name, format('SELECT integers(%s, %s)', a.lowest, a.highest)) c
ORDER BY v.highest, a.highest, direction;

-- Floating point: neighbours of float4 in float8, above its range and below its least
CREATE TABLE float_type (name text, source text);
INSERT INTO float_type VALUES ('real', $$SELECT unnest('{-Infinity,-3.4028235e38,-1.5,-1e-45,-0,0,1e-45,0.1,0.3,1,
	1.0000001,16777216,3.4028235e38,Infinity,NaN}'::real[])$$),
	('double precision', $$SELECT unnest('{-Infinity,-1e300,-3.4028236e38,-3.40282346638528859812e38,-1.5,
	-1.401298464324817e-45,-5e-324,-0,0,1e-60,1.401298464324817e-45,0.1,0.10000000149011612,0.3,1,1.00000003,1.0000001,
	16777217,3.40282346638528859812e38,3.4028236e38,1e39,Infinity,NaN}'::float8[])$$);
SELECT v.name, a.name, c.* FROM float_type v, float_type a, check_conditions(v.name, v.source, a.name, a.source) c
ORDER BY v.name, a.name, direction;

-- Dates and times: about midnight, about both changes of the clocks, and at the ends of what each type can say
CREATE TABLE time_type (name text, source text);
INSERT INTO time_type VALUES
	('date', $$SELECT unnest('{-infinity,4714-11-24 BC,4714-11-25 BC,1999-12-31,294276-12-31,294277-01-01,294277-01-02,
	5874897-12-31,infinity}'::date[]) UNION ALL SELECT date '2021-03-26' + i FROM generate_series(0, 4) i
	UNION ALL SELECT date '2021-10-29' + i FROM generate_series(0, 4) i$$),
	('timestamp', $$SELECT unnest('{-infinity,4714-11-24 00:00:00 BC,4714-11-25 00:00:00 BC,294276-12-31 00:00:00,
	294276-12-31 23:59:59.999999,infinity}'::timestamp[])
	UNION ALL SELECT timestamp '2021-03-28' + i * interval '30 min' FROM generate_series(-1, 10) i
	UNION ALL SELECT timestamp '2021-10-31' + i * interval '30 min' FROM generate_series(-1, 10) i$$),
	('timestamptz', $$SELECT unnest('{-infinity,4714-11-24 00:00:00+00 BC,4714-11-25 00:00:00+00 BC,
	294276-12-31 00:00:00+00,294276-12-31 23:59:59.999999+00,infinity}'::timestamptz[])
	UNION ALL SELECT timestamptz '2021-03-28 00:00+01' + i * interval '30 min' FROM generate_series(-1, 10) i
	UNION ALL SELECT timestamptz '2021-10-31 00:00+02' + i * interval '30 min' FROM generate_series(-1, 12) i$$);
CREATE FUNCTION check_times() RETURNS TABLE (value name, argument name, selected bigint, wrong bigint, not_used bigint)
LANGUAGE sql AS
$$
	SELECT v.name, a.name, sum(selected), sum(wrong), sum(not_used)
	FROM time_type v, time_type a, check_conditions(v.name, v.source, a.name, a.source) c
	GROUP BY v.name, a.name ORDER BY v.name, a.name
$$;
SELECT * FROM check_times();
-- A zone that left out a whole day (30 December 2011), and one that no place on earth has
SET timezone = 'Pacific/Apia';
UPDATE time_type SET source = source || CASE name
	WHEN 'date' THEN $$ UNION ALL SELECT date '2011-12-28' + i FROM generate_series(0, 5) i$$
	WHEN 'timestamp' THEN
		$$ UNION ALL SELECT timestamp '2011-12-29' + i * interval '6 hour' FROM generate_series(0, 12) i$$
	ELSE $$ UNION ALL SELECT timestamptz '2011-12-29 12:00+00' + i * interval '6 hour' FROM generate_series(0, 12) i$$
	END;
SELECT * FROM check_times();
SET timezone = 'AAA-15BBB+12,J87/1,J304/3';
SELECT * FROM check_times();
RESET timezone;

-- Strings
CREATE TABLE string_type (name text, source text);
INSERT INTO string_type VALUES
	('name', $$SELECT unnest(ARRAY['', 'a', 'a ', 'ab', 'B', repeat('x', 62), repeat('x', 63), repeat('x', 62) || 'y',
	'y', repeat('y', 63)])$$),
	('text COLLATE "C"', $$SELECT unnest(ARRAY['', 'a', 'a ', 'ab', 'B', repeat('x', 62), repeat('x', 63),
	repeat('x', 64), repeat('x', 63) || 'y', 'y', repeat('y', 64), repeat('y', 4000)])$$);
SELECT v.name, a.name, c.* FROM string_type v, string_type a, check_conditions(v.name, v.source, a.name, a.source) c
ORDER BY v.name, a.name, direction;

-- Arguments that no entry could have
SELECT * FROM check_conditions('text COLLATE "C"', $$SELECT unnest(ARRAY['a', repeat('y', 3999), repeat('y', 4000), 'z'])$$,
	'text COLLATE "C"', $$SELECT unnest(ARRAY[repeat('y', 4087), repeat('y', 4088), repeat('y', 100000),
	repeat('y', 3999) || 'z' || repeat('y', 1000)])$$);
SELECT * FROM check_conditions('bytea', $$SELECT decode(repeat('00', i), 'hex') FROM generate_series(1998, 2002) i$$,
	'bytea', $$SELECT decode(repeat('00', i), 'hex') FROM unnest(ARRAY[0, 1, 1999, 2000, 2042, 2050, 4000, 8000]) i$$);
SELECT t.name, c.* FROM (VALUES
	('numeric', 'SELECT unnest(ARRAY[0, 1, 10::numeric ^ 7000 - 1, 10::numeric ^ 7000, -(10::numeric ^ 7000)])',
		$$SELECT unnest(ARRAY[10::numeric ^ 8000 - 1, -(10::numeric ^ 8000 - 1), ('0.' || repeat('3', 8000))::numeric,
			10::numeric ^ 7000 + ('0.' || repeat('3', 8000))::numeric])$$),
	('varbit', $$SELECT unnest(ARRAY[B'', B'1', repeat('1', 16000)::varbit])$$,
		$$SELECT unnest(ARRAY[repeat('1', 16001), repeat('1', 15999) || repeat('0', 20000)])::varbit$$),
	('int[]', 'SELECT array_fill(v, ARRAY[i]) FROM unnest(ARRAY[1, 2]) v, unnest(ARRAY[699, 700]) i',
		'SELECT array_fill(1, ARRAY[i]) FROM unnest(ARRAY[699, 700, 701, 5000]) i'),
	('oidvector', $$SELECT repeat('1 ', i)::oidvector FROM unnest(ARRAY[0, 1, 1000]) i$$,
		$$SELECT repeat('1 ', i)::oidvector FROM unnest(ARRAY[1000, 1001, 1500]) i$$),
	('numrange', $$SELECT unnest('{"[1,2]","(,1]","empty"}'::numrange[])$$,
		$$SELECT unnest(ARRAY[numrange(10::numeric ^ 8000 - 1, NULL), numrange(1, 10::numeric ^ 8000 - 1, '[]')])$$)) t (name, source, arguments),
	check_conditions(name, source, name, arguments) c;

-- Collations whose order is not that of the bytes, and the classes that order by bytes all the same
SELECT * FROM check_conditions('text COLLATE "en-x-icu"', $$SELECT unnest(ARRAY['', 'a', 'A', 'ab', 'B', 'é', 'f'])$$,
	'text COLLATE "en-x-icu"', $$SELECT unnest(ARRAY['', 'a', 'B', 'é', 'ez', repeat('A', 2000), repeat('é', 3000), repeat('x', 9000)])$$);
SELECT * FROM check_conditions('char(4) COLLATE "en-x-icu"', $$SELECT unnest(ARRAY['', 'a', 'A', 'ab', 'B', 'é', 'f'])$$,
	'bpchar COLLATE "en-x-icu"', $$SELECT unnest(ARRAY['', 'a', 'a      ', 'B', 'é', 'ez'])$$);
SELECT * FROM check_conditions('varchar COLLATE "en-x-icu"', $$SELECT unnest(ARRAY['', 'a', 'A', 'ab', 'B', 'é', 'f'])$$,
	'text COLLATE "en-x-icu"', $$SELECT unnest(ARRAY['', 'a', 'B', 'é', 'ez'])$$, '{~<~,~<=~,=,~>=~,~>~}',
	'varchar_pattern_ops');

DROP SCHEMA types_cross CASCADE;
