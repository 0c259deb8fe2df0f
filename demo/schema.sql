-- The tables of the demo, and a function that measures as EXPLAIN ANALYZE does.
CREATE EXTENSION smart;

CREATE TABLE packages
(
	name text COLLATE "C",
	version text COLLATE "C",
	section text COLLATE "C",
	installed_kb bigint,
	maintainer text,
	description text
);

-- One row for each "package needs another one".
CREATE TABLE depends
(
	package text COLLATE "C",
	needs text COLLATE "C"
);

-- Median execution time of a query in microseconds, planning left out.
CREATE FUNCTION median_us(query text, runs int) RETURNS numeric LANGUAGE plpgsql AS
$$
DECLARE
	plan json;
	times numeric[] = '{}';
BEGIN
	FOR run IN 1 .. runs LOOP
		EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) ' || query INTO plan;
		times = times || (1000 * (plan -> 0 ->> 'Execution Time')::numeric);
	END LOOP;
	RETURN (SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY t) FROM unnest(times) AS t);
END
$$;

-- Which of the two kinds of index the planner may see from now on.
CREATE FUNCTION use_only(kind text) RETURNS void LANGUAGE sql AS
$$
	UPDATE pg_index SET indisvalid = c.relname LIKE '%\_' || kind
	FROM pg_class AS c
	WHERE c.oid = indexrelid AND (c.relname LIKE '%\_nbtree' OR c.relname LIKE '%\_smart');
$$;
