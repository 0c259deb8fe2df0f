-- LIKE and ^@ through the index: constants, parameters and other columns, every kind of string.
SET client_min_messages = warning;
SET jit = off;
CREATE SCHEMA types_patterns;
SET search_path = types_patterns, public;

-- As in types_cross: a nested loop and constants, by sequential scan and by index
CREATE FUNCTION check_patterns(valuetype text, source text, operator text, patterns text, class text DEFAULT '')
	RETURNS TABLE (direction text, selected bigint, wrong bigint, not_used bigint) LANGUAGE plpgsql AS
$$
DECLARE
	pattern text;
	query text;
	expected text;
	found text;
	line text;
	argtype text := CASE WHEN valuetype IN ('bytea', 'inet') THEN valuetype ELSE 'text' END;
BEGIN
	EXECUTE format('CREATE TEMP TABLE sample (id int GENERATED ALWAYS AS IDENTITY, x %s)', valuetype);
	EXECUTE 'INSERT INTO sample (x) SELECT NULL UNION ALL ' || source;
	EXECUTE format('CREATE TEMP TABLE pattern (id int GENERATED ALWAYS AS IDENTITY, y %s)', argtype);
	EXECUTE 'INSERT INTO pattern (y) SELECT NULL UNION ALL ' || patterns;
	SET LOCAL enable_hashjoin = off;
	SET LOCAL enable_mergejoin = off;
	SET LOCAL enable_material = off;
	FOREACH direction IN ARRAY ARRAY['ASC', 'DESC', 'ASC NULLS FIRST']
	LOOP
		selected := 0;
		wrong := 0;
		not_used := 0;
		EXECUTE format('CREATE INDEX sample_smart ON sample USING smart (x %s %s)', class, direction);
		FOR query IN EXECUTE format(
			$queries$
			SELECT 'SELECT array_agg(s.id || ''-'' || p.id ORDER BY s.id, p.id) FROM pattern p, sample s WHERE s.x %1$s p.y'
			UNION ALL
			SELECT format('SELECT array_agg(id ORDER BY id) FROM sample WHERE x %1$s %%L::%2$s', y)
			FROM pattern WHERE y IS NOT NULL
			$queries$, operator, argtype)
		LOOP
			SET LOCAL enable_seqscan = on;
			SET LOCAL enable_indexscan = off;
			SET LOCAL enable_indexonlyscan = off;
			SET LOCAL enable_bitmapscan = off;
			EXECUTE query INTO expected;
			SET LOCAL enable_seqscan = off;
			SET LOCAL enable_indexscan = on;
			SET LOCAL enable_indexonlyscan = on;
			EXECUTE query INTO found;
			selected := selected + coalesce(array_length(expected::text[], 1), 0);
			wrong := wrong + (found IS DISTINCT FROM expected)::int;
			not_used := not_used + 1;
			FOR line IN EXECUTE 'EXPLAIN (COSTS off) ' || query
			LOOP
				not_used := not_used - (line ~ 'Index Cond:.*x')::int;
			END LOOP;
		END LOOP;
		RETURN NEXT;
		DROP INDEX sample_smart;
	END LOOP;
	DROP TABLE sample, pattern;
END
$$;

CREATE TABLE samples (source text);
INSERT INTO samples VALUES
	($$SELECT unnest(ARRAY['', ' ', 'a', 'a ', 'a  ', 'ab', 'abc', 'abd', 'a%', 'a%b', 'a\', 'a\b', 'a_b', 'axb', 'b', 'é', 'éa',
	'%', '_', '\', 'A', 'AB', 'á', 'ö%'])$$);
CREATE TABLE patterns (source text);
INSERT INTO patterns VALUES
	($$SELECT unnest(ARRAY['', '%', '%%', '_', '__', 'a', 'a%', 'a%%', 'a_', 'a_%', 'a%_', 'ab%', 'ab', '_b', '%b', 'a%b', 'a\%',
	'a\%%', 'a\%b', 'a\_b', 'a\\', 'a\\%', 'a\\b', '\a%', '\%', '\_', '\\', 'é%', 'é', 'é_', 'a ', 'a %', 'a  ', ' %',
	'   ', 'A%', 'ö\%', 'z%', repeat('z', 9000), repeat('z', 9000) || '%'])$$);

SELECT * FROM check_patterns('text COLLATE "C"', (TABLE samples), '~~', (TABLE patterns));
SELECT * FROM check_patterns('text COLLATE "C"', (TABLE samples), '^@', (TABLE patterns));
SELECT * FROM check_patterns('varchar(10) COLLATE "C"', (TABLE samples), '~~', (TABLE patterns));
SELECT * FROM check_patterns('text COLLATE "en-x-icu"', (TABLE samples), '~~', (TABLE patterns));
SELECT * FROM check_patterns('text COLLATE "C.utf8"', (TABLE samples), '^@', (TABLE patterns));
SELECT * FROM check_patterns('text COLLATE "en-x-icu"', (TABLE samples), '~~', (TABLE patterns), 'text_pattern_ops');
SELECT * FROM check_patterns('name', (TABLE samples), '~~', (TABLE patterns));
SELECT * FROM check_patterns('char(4) COLLATE "C"', (TABLE samples), '~~', (TABLE patterns));
SELECT * FROM check_patterns('bpchar COLLATE "C"', (TABLE samples), '~~', (TABLE patterns));
SELECT * FROM check_patterns('bpchar COLLATE "en-x-icu"', (TABLE samples), '~~', (TABLE patterns), 'bpchar_pattern_ops');
SELECT * FROM check_patterns('bytea',
	$$SELECT unnest(ARRAY['', '\x00', '\x0000', '\x00ff', '\x00ff00', 'a', 'ab', '\x6100', '\x610062', '\x61ff', 'a%', 'a_b', 'axb',
	'\x61255c', '\xff', '\xffff']::bytea[])$$, '~~',
	$$SELECT unnest(ARRAY['', '%', '_', 'a', 'a%', 'a_', 'a_b', '\x00', '\x0025', '\x000025', '\x00ff25', '\x6100', '\x610025',
	'\x5c2561', '\x615c25', '\x615c5c25', '\xff25', '\x005f']::bytea[])$$);

-- Regular expressions
CREATE TABLE expressions (source text);
INSERT INTO expressions VALUES
	($$SELECT unnest(ARRAY['', '^', '^a', '^ab', 'ab', '^a.', '^a.*', '^a+', '^ab?', '^a|^b', '^(a|b)', '^ab$', '^a *$', '^$', '^a%', '^a\\',
	'^a\.b', '^é', '^\w', '^[ab]', '^A', '(?i)^A', '***=a', '^a{2}', '^ +', '^a ', '^a  $', '^' || repeat('z', 2000), '$', 'b$'])$$);
SELECT t.name, p.* FROM (VALUES ('text COLLATE "C"', ''), ('varchar(10) COLLATE "C.utf8"', ''), ('text COLLATE "en-x-icu"', ''),
		('text COLLATE "en-x-icu"', 'text_pattern_ops'), ('name', ''), ('char(4) COLLATE "C"', ''),
		('bpchar COLLATE "en-x-icu"', 'bpchar_pattern_ops')) t (name, class),
	check_patterns(t.name, (TABLE samples), '~', (TABLE expressions), t.class) p;

-- Networks in networks
SELECT o.op, p.* FROM (VALUES ('<<'), ('<<=')) o (op), check_patterns('inet',
	$$SELECT unnest('{0.0.0.0/0,10.0.0.0/8,10.0.0.0/7,10.0.0.1,10.0.0.1/8,10.1.0.0/16,10.1.2.3,10.255.255.255,11.0.0.0/8,
		192.168.1.64/26,192.168.1.64/27,192.168.1.96,192.168.1.127,192.168.1.128,::/0,::1,fe80::1,fe80::/10,fe80::/64}'::inet[])$$,
	op, $$SELECT unnest('{0.0.0.0/0,10.0.0.0/8,10.9.9.9/8,10.0.0.0/7,10.1.0.0/15,10.0.0.1,192.168.1.64/26,192.168.1.64/28,
		255.255.255.255,::/0,fe80::/10,fe80::/12,::1}'::inet[])$$) p;

-- Patterns that end with an escape are the operator's error, when it gets that far
CREATE TABLE words (x text COLLATE "C");
INSERT INTO words VALUES ('a'), ('ab'), ('b');
CREATE INDEX ON words USING smart (x);
SET enable_seqscan = off;
SELECT x FROM words WHERE x LIKE 'a\';
SELECT x FROM words WHERE x LIKE 'c\';

-- Several conditions at once
EXPLAIN (COSTS off) SELECT x FROM words WHERE x LIKE 'a%' AND x > 'a' AND x ^@ 'ab';
SELECT x FROM words WHERE x LIKE 'a%' AND x > 'a' AND x ^@ 'ab';
SELECT x FROM words WHERE x LIKE ANY (ARRAY['a%', 'ab%', '%', NULL]) ORDER BY x;
SELECT x FROM words WHERE x LIKE ANY (ARRAY['b', 'a', 'a%']) ORDER BY x DESC;

DROP SCHEMA types_patterns CASCADE;
