-- check_type(type, values): does an index of the type have the order, and give the results, that the table gives?
--
-- The functions come into the first schema of the search path.

-- By index (how = 'index', 'only') or without one
CREATE FUNCTION plan_with(how text) RETURNS void LANGUAGE sql AS
$$
	SELECT set_config('enable_seqscan', (how = 'table')::text, true),
		set_config('enable_indexscan', (how = 'index' OR how = 'only')::text, true),
		set_config('enable_indexonlyscan', (how = 'only')::text, true), set_config('enable_bitmapscan', 'off', true),
		set_config('enable_sort', (how = 'table')::text, true), set_config('enable_hashjoin', 'off', true),
		set_config('enable_mergejoin', 'off', true), set_config('enable_material', 'off', true)
$$;

CREATE FUNCTION plan_of(query text) RETURNS text LANGUAGE plpgsql AS
$$
DECLARE
	line text;
	plan text := '';
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS off) ' || query
	LOOP
		plan := plan || line || E'\n';
	END LOOP;
	RETURN plan;
END
$$;

-- Is the result the same without an index, and does the plan with one look so?
CREATE FUNCTION differs(query text, how text, plan text) RETURNS bool LANGUAGE plpgsql AS
$$
DECLARE
	expected text;
	found text;
	looks_so bool;
BEGIN
	PERFORM plan_with('table');
	EXECUTE query INTO expected;
	PERFORM plan_with(how);
	looks_so := plan_of(query) ~ plan;
	EXECUTE query INTO found;
	RETURN expected IS DISTINCT FROM found OR NOT looks_so;
END
$$;

-- Pairs of values whose keys do not compare as the type's btree comparison does, and pairs where one begins the other;
-- conditions, orders and lookups that went wrong
CREATE FUNCTION check_type(valuetype text, source text, class text DEFAULT '', compare text DEFAULT NULL,
	operators text[] DEFAULT '{<,<=,=,>=,>}',
	OUT samples bigint, OUT keys bigint, OUT prefixes bigint, OUT conditions int, OUT orders int, OUT lookups int)
LANGUAGE plpgsql AS
$$
DECLARE
	direction text;
	operator text;
	turn int;
	nulls int;
	back int;
	found record;
BEGIN
	EXECUTE format('CREATE TEMP TABLE sample (id int GENERATED ALWAYS AS IDENTITY, x %s)', valuetype);
	EXECUTE format('INSERT INTO sample (x) SELECT NULL UNION ALL %s', source);
	EXECUTE 'CREATE TEMP TABLE argument AS SELECT id, x AS y FROM sample WHERE id % 3 = 1 OR x IS NULL';
	ANALYZE sample, argument;
	SELECT count(*), 0, 0, 0, 0, 0 INTO samples, keys, prefixes, conditions, orders, lookups FROM sample;
	IF compare IS NULL THEN
		SELECT p.amproc::regproc INTO compare
		FROM pg_attribute a, pg_type t, pg_opclass c JOIN pg_am m ON m.oid = opcmethod AND amname = 'btree'
			JOIN pg_amproc p ON amprocfamily = opcfamily AND amproclefttype = opcintype AND amprocrighttype = opcintype
				AND amprocnum = 1
		WHERE attrelid = 'sample'::regclass AND attname = 'x' AND opcdefault AND t.oid = atttypid
			AND opcintype = CASE WHEN t.oid = 'oidvector'::regtype THEN t.oid::regtype WHEN typtype = 'd' THEN typbasetype::regtype WHEN typtype = 'e' THEN 'anyenum'::regtype
				WHEN typtype = 'r' THEN 'anyrange'::regtype WHEN typtype = 'm' THEN 'anymultirange'::regtype
				WHEN typsubscript = 'array_subscript_handler'::regproc THEN 'anyarray'::regtype WHEN typname = 'cidr' THEN 'inet'::regtype
				ELSE atttypid::regtype END;
	END IF;
	FOREACH direction IN ARRAY ARRAY['ASC NULLS LAST', 'ASC NULLS FIRST', 'DESC NULLS FIRST', 'DESC NULLS LAST']
	LOOP
		turn := CASE WHEN direction LIKE 'ASC%' THEN 1 ELSE -1 END;
		nulls := CASE WHEN direction LIKE '%FIRST' THEN -1 ELSE 1 END;
		EXECUTE format('CREATE INDEX sample_smart ON sample USING smart (x %s %s)', class, direction);
		EXECUTE format(
			$query$
			WITH keyed AS MATERIALIZED (SELECT x, smart_normalized_key('sample_smart', x) AS key FROM sample)
			SELECT count(*) FILTER (WHERE sign(byteacmp(a.key, b.key)) IS DISTINCT FROM CASE
					WHEN a.x IS NULL AND b.x IS NULL THEN 0
					WHEN a.x IS NULL THEN %1$s
					WHEN b.x IS NULL THEN -1 * %1$s
					ELSE %2$s * sign(%3$s(a.x, b.x)) END) AS wrong,
				count(*) FILTER (WHERE a.key <> b.key AND substring(b.key FOR length(a.key)) = a.key) AS prefixes
			FROM keyed a, keyed b
			$query$, nulls, turn, compare)
			INTO found;
		keys := keys + found.wrong;
		prefixes := prefixes + found.prefixes;
		FOREACH operator IN ARRAY operators
		LOOP
			conditions := conditions + differs(format(
				'SELECT array_agg(s.id || '' '' || a.id ORDER BY s.id, a.id) FROM argument a, sample s WHERE s.x %s a.y', operator),
				'index', 'Index Cond:.*x')::int;
		END LOOP;
		-- An array of arrays is none
		IF valuetype NOT LIKE '%[]%' THEN
			lookups := lookups + differs(
				'SELECT array_agg(id ORDER BY id) FROM sample WHERE x = ANY (ARRAY(SELECT y FROM argument WHERE id % 2 = 0))',
				'index', 'Index Cond:.*x.*= ANY')::int;
		END IF;
		-- Forward and backward: every row, none below the one before it, the NULL at its end
		FOREACH back IN ARRAY ARRAY[1, -1]
		LOOP
			orders := orders + differs(format(
				$query$
				SELECT count(*) || ' ' || count(*) FILTER (WHERE %s * %s(x, y) < 0) || ' ' || (array_agg(x IS NULL))[1]
				FROM (SELECT x, lag(x) OVER () AS y FROM (SELECT x FROM sample ORDER BY x USING %s NULLS %s OFFSET 0) s) q
				$query$, turn * back, compare, operators[3 - 2 * turn * back],
				CASE nulls * back WHEN 1 THEN 'LAST' ELSE 'FIRST' END), 'index', '^((?!Sort).)*$')::int;
		END LOOP;
		EXECUTE 'DROP INDEX sample_smart';
	END LOOP;
	DROP TABLE argument, sample;
END
$$;
