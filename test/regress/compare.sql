-- compare(query, way): does an index give the results that the table gives?
--
-- Runs a query by index ('index', 'only': index-only, 'bitmap') and by sequential scan. Tells how many rows both
-- returned, or what is wrong. Results must come in the same order if the query asks for one.

CREATE FUNCTION pg_temp.plan_with(seq bool, ind bool, ionly bool, bitmap bool) RETURNS void LANGUAGE sql AS $$
	SELECT set_config('enable_seqscan', seq::text, true), set_config('enable_indexscan', ind::text, true),
		set_config('enable_indexonlyscan', ionly::text, true), set_config('enable_bitmapscan', bitmap::text, true)
$$;

CREATE FUNCTION pg_temp.answers(query text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
	lines text[];
BEGIN
	EXECUTE format('SELECT coalesce(array_agg(q::text), ''{}'') FROM (%s) q', query) INTO lines;
	RETURN lines;
END
$$;

CREATE FUNCTION pg_temp.plan_of(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	plan text := '';
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		plan := plan || line || E'\n';
	END LOOP;
	RETURN plan;
END
$$;

CREATE FUNCTION pg_temp.compare(query text, way text DEFAULT 'index') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	by_index text[];
	by_table text[];
	plan text;
	node text := CASE way WHEN 'index' THEN '(^| )Index Scan' WHEN 'only' THEN 'Index Only Scan'
		ELSE 'Bitmap Index Scan' END;
BEGIN
	PERFORM pg_temp.plan_with(false, way <> 'bitmap', way = 'only', way = 'bitmap');
	plan := pg_temp.plan_of(query);
	-- Some versions see by themselves that conditions contradict each other.
	IF plan !~ node AND plan !~ 'One-Time Filter: false' THEN
		RETURN 'no ' || way || ' scan in the plan of ' || query || E':\n' || plan;
	END IF;
	by_index := pg_temp.answers(query);
	PERFORM pg_temp.plan_with(true, false, false, false);
	by_table := pg_temp.answers(query);
	IF query !~* 'order by [^)]*$' THEN
		by_index := ARRAY(SELECT unnest(by_index) ORDER BY 1);
		by_table := ARRAY(SELECT unnest(by_table) ORDER BY 1);
	END IF;
	IF by_index IS DISTINCT FROM by_table THEN
		RETURN format(E'%s\n%s scan: %s\nseq scan: %s', query, way, left(by_index::text, 300), left(by_table::text, 300));
	END IF;
	RETURN 'same ' || cardinality(by_index) || ' rows';
END
$$;

-- compare_all(queries): how many of them gave the same results, and the first that did not.
CREATE FUNCTION pg_temp.compare_all(queries text[], ways text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	query text;
	way text;
	result text;
	same int := 0;
	rows bigint := 0;
BEGIN
	FOREACH query IN ARRAY queries LOOP
		FOREACH way IN ARRAY ways LOOP
			result := pg_temp.compare(query, way);
			IF result !~ '^same' THEN
				RETURN result;
			END IF;
			same := same + 1;
			rows := rows + split_part(result, ' ', 2)::bigint;
		END LOOP;
	END LOOP;
	RETURN 'all the same' || CASE WHEN rows > same THEN '' ELSE ', but hardly any rows' END;
END
$$;
