-- Row comparisons of columns of all kinds, across types, with NULLs, on indexes drawn at random, against a sequential scan.
\getenv abs_srcdir PG_ABS_SRCDIR
\set compare :abs_srcdir /test/regress/compare.sql
\set ECHO none
\i :compare
\set ECHO all

CREATE TYPE row_mood AS ENUM ('low', 'middle', 'high');
CREATE TYPE row_place AS (x int, y text COLLATE "C");
SELECT setseed(0.5);
CREATE TABLE row_types AS SELECT
	(ARRAY[NULL, 'ab', 'Ab', 'äb', 'b', 'B', ''])[1 + floor(random() * 7)]::text COLLATE "en-x-icu" AS word,
	(ARRAY[NULL, 1.0, 1.00, -3.5, 2, 'NaN', 1e30])[1 + floor(random() * 7)]::numeric AS number,
	date '2020-01-01' + (random() * 4)::int AS day,
	timestamptz '2020-01-01' + (random() * 4)::int * interval '12 hours' AS moment,
	(ARRAY[NULL, 'low', 'middle', 'high'])[1 + floor(random() * 4)]::row_mood AS mood,
	ARRAY[(random() * 2)::int, (random() * 2)::int] AS list,
	(ARRAY[NULL, '10.0.0.0/8', '10.1.0.0/16', '11.0.0.1'])[1 + floor(random() * 4)]::inet AS address,
	(ARRAY[NULL, -0.0, 0.0, 1.5, 'NaN', 'Infinity'])[1 + floor(random() * 6)]::float8 AS part,
	ROW((random() * 2)::int, chr(97 + (random() * 2)::int))::row_place AS place,
	(ARRAY['x', 'y', 'z '])[1 + floor(random() * 3)]::char(3) COLLATE "C" AS padded,
	(ARRAY['x', 'y', 'z'])[1 + floor(random() * 3)]::varchar(5) COLLATE "C" AS short
FROM generate_series(1, 1000);
CREATE TABLE row_columns AS
SELECT * FROM (VALUES ('word', '{text}'::text[]), ('number', '{numeric}'), ('day', '{date,timestamp,timestamptz}'),
	('moment', '{timestamptz,date}'), ('mood', '{row_mood}'), ('list', '{int[]}'), ('address', '{inet}'),
	('part', '{float8,float4}'), ('place', '{row_place}'), ('padded', '{char(3)}'), ('short', '{text}')) v (name, types);

-- A value that a column has, or NULL, as one of the types that the column can be compared with.
CREATE FUNCTION pg_temp.value_for(col text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	value text;
BEGIN
	IF random() < 0.05 THEN
		RETURN 'NULL';
	END IF;
	EXECUTE format('SELECT quote_literal(%1$I) FROM row_types WHERE %1$I IS NOT NULL ORDER BY random() LIMIT 1', col) INTO value;
	RETURN value || '::' || (SELECT types[1 + floor(random() * cardinality(types))] FROM row_columns WHERE name = col);
END
$$;
CREATE FUNCTION pg_temp.comparison_of(cols text[]) RETURNS text LANGUAGE sql VOLATILE AS $$
	SELECT format('(%s) %s (%s)', string_agg(col, ', ' ORDER BY place), min(operator),
		string_agg(pg_temp.value_for(col), ', ' ORDER BY place))
	FROM unnest(cols) WITH ORDINALITY u (col, place),
		(SELECT (ARRAY['<', '<=', '>=', '>'])[1 + floor(random() * 4)] AS operator) o
$$;
CREATE FUNCTION pg_temp.draw_indexes(how_many int) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	cols text[];
	ways text[];
	queries text[];
	result text;
BEGIN
	FOR i IN 1..how_many LOOP
		cols := ARRAY(SELECT name FROM row_columns ORDER BY random() LIMIT 3);
		ways := (ARRAY['{"","",""}', '{DESC,DESC,DESC}', '{"",NULLS FIRST,DESC}', '{DESC NULLS LAST,DESC,""}'])[1 + i % 4]::text[];
		EXECUTE format('CREATE INDEX row_types_drawn ON row_types USING smart (%s %s, %s %s, %s %s)',
			cols[1], ways[1], cols[2], ways[2], cols[3], ways[3]);
		queries := ARRAY(SELECT format('SELECT %s FROM row_types WHERE %s', array_to_string(cols, ', '),
			pg_temp.comparison_of(cols[1:2 + j % 2]) || CASE j
				WHEN 1 THEN ' AND ' || pg_temp.comparison_of(cols[1:2])
				WHEN 2 THEN ' AND ' || pg_temp.comparison_of(cols[2:3])
				WHEN 3 THEN format(' AND %s IN (%s, %s)', cols[1], pg_temp.value_for(cols[1]), pg_temp.value_for(cols[1]))
				ELSE '' END) FROM generate_series(1, 4) j);
		result := pg_temp.compare_all(queries, ARRAY['index', 'bitmap']);
		IF result <> 'all the same' THEN
			RETURN NEXT result;
		END IF;
		DROP INDEX row_types_drawn;
	END LOOP;
END
$$;
SELECT * FROM pg_temp.draw_indexes(24);
DROP TABLE row_types, row_columns;
DROP TYPE row_mood, row_place;
