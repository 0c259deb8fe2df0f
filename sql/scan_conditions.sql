-- Conditions of all kinds on three columns, drawn at random, against a sequential scan.
\getenv abs_srcdir PG_ABS_SRCDIR
\set compare :abs_srcdir /test/regress/compare.sql
\set ECHO none
\i :compare
\set ECHO all

CREATE TABLE scan_conditions (a int, b text COLLATE "C", c int8, filler text);
SELECT setseed(0.5);
INSERT INTO scan_conditions
SELECT CASE WHEN random() < 0.1 THEN NULL ELSE (random() * 20)::int END,
	CASE WHEN random() < 0.1 THEN NULL ELSE chr(97 + (random() * 3)::int) || repeat(chr(97 + (random() * 3)::int), (random() * 3)::int) END,
	CASE WHEN random() < 0.1 THEN NULL ELSE (random() * 50)::int END, 'x'
FROM generate_series(1, 5000);

-- Draws a condition, and a value for each # (a's), & (b's) and ~ (c's) in it.
CREATE FUNCTION pg_temp.condition() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	conditions text[] := ARRAY[
		'a = #', 'a = #', 'a = #', 'a < #', 'a >= #', 'a > # AND a <= #', 'a IN (#, #, NULL, #, #)', 'a IN (#, #, #)',
		'a IS NULL', 'a IS NOT NULL', 'a = ANY (''{}'')', 'a > ANY (''{#, #}'')', 'a <= ANY (''{#, #}'')', 'a = #::int8',
		'a < #::int2', 'a BETWEEN # AND #', 'a = ANY (ARRAY[#, #, 5000000000]::int8[])',
		'b = &', 'b = &', 'b = &', 'b < &', 'b >= &', 'b > & AND b < &', 'b IN (&, &, &, &)', 'b IN (&, &)',
		'b IS NULL', 'b IS NOT NULL', 'b LIKE & || ''%''', 'b LIKE ''_'' || &', 'b LIKE &', 'b ^@ &',
		'b LIKE ANY (ARRAY[& || ''%'', &])', 'b = &::name', 'b < ANY (ARRAY[&, &])',
		'c = ~', 'c = ~', 'c = ~', 'c > ~', 'c <= ~', 'c IN (~, ~, ~, ~)', 'c IN (~, ~)', 'c IS NULL', 'c IS NOT NULL',
		'c BETWEEN ~ AND ~', 'c = ANY (ARRAY[~, ~]::int2[])', 'a > # AND (a, c) > (#, ~)'];
	condition text := conditions[1 + floor(random() * cardinality(conditions))];
BEGIN
	WHILE condition ~ '[#&~]' LOOP
		condition := regexp_replace(condition, '#', (random() * 20)::int::text);
		condition := regexp_replace(condition, '&', quote_literal(
			chr(97 + (random() * 3)::int) || repeat(chr(97 + (random() * 3)::int), (random() * 2)::int)));
		condition := regexp_replace(condition, '~', (random() * 50)::int::text);
	END LOOP;
	RETURN condition;
END
$$;
CREATE FUNCTION pg_temp.queries(how_many int, order_by text) RETURNS text[] LANGUAGE sql VOLATILE AS $$
	SELECT array_agg('SELECT a, b, c FROM scan_conditions WHERE ' || pg_temp.condition()
		|| CASE WHEN i % 4 > 0 THEN ' AND ' || pg_temp.condition() ELSE '' END
		|| CASE WHEN i % 4 > 1 THEN ' AND ' || pg_temp.condition() ELSE '' END
		|| CASE WHEN i % 4 > 2 THEN ' AND ' || pg_temp.condition() ELSE '' END || order_by)
	FROM generate_series(1, how_many) i
$$;

CREATE INDEX scan_conditions_plain ON scan_conditions USING smart (a, b, c);
SELECT pg_temp.compare_all(pg_temp.queries(200, ''), ARRAY['index', 'only', 'bitmap']);
SELECT pg_temp.compare_all(pg_temp.queries(100, ' ORDER BY a, b, c'), ARRAY['index', 'only']);
SELECT pg_temp.compare_all(pg_temp.queries(100, ' ORDER BY a DESC, b DESC, c DESC'), ARRAY['index', 'only']);
DROP INDEX scan_conditions_plain;

CREATE INDEX scan_conditions_mixed ON scan_conditions USING smart (c DESC NULLS LAST, a NULLS FIRST, b DESC);
SELECT pg_temp.compare_all(pg_temp.queries(200, ''), ARRAY['index', 'only', 'bitmap']);
SELECT pg_temp.compare_all(pg_temp.queries(50, ' ORDER BY c DESC NULLS LAST, a NULLS FIRST, b DESC'), ARRAY['index', 'only']);
SELECT pg_temp.compare_all(pg_temp.queries(50, ' ORDER BY c NULLS FIRST, a DESC NULLS LAST, b'), ARRAY['index', 'only']);
DROP INDEX scan_conditions_mixed;

-- Conditions that contradict each other, and NULL arguments.
SELECT count(*) FROM scan_conditions WHERE a = 3 AND a = 4;
SELECT count(*) FROM scan_conditions WHERE a > 10 AND a < 5;
SELECT count(*) FROM scan_conditions WHERE a IS NULL AND a = 3;
SELECT count(*) FROM scan_conditions WHERE a = (SELECT NULL::int);
SELECT count(*) FROM scan_conditions WHERE a = ANY ((SELECT NULL::int[])::int[]);
DROP TABLE scan_conditions;
