-- Enums to which values are added: an index has their order, and keeps it.
SET client_min_messages = warning;
CREATE SCHEMA types_enum;
SET search_path = types_enum, public;
CREATE TYPE step AS ENUM ('first', 'last');
CREATE TABLE steps (id int, s step);
INSERT INTO steps SELECT i, (ARRAY['first', 'last'])[1 + i % 2]::step FROM generate_series(1, 20) i;
CREATE INDEX steps_smart ON steps USING smart (s);
CREATE INDEX steps_array ON steps USING smart ((ARRAY[s]));

-- One value after the other right before the last one, until there is no number left between it and its neighbour
CREATE PROCEDURE add_values(most int) LANGUAGE plpgsql AS
$$
BEGIN
	FOR i IN 1..most
	LOOP
		EXECUTE format('ALTER TYPE step ADD VALUE IF NOT EXISTS %L BEFORE ''last''', 'step ' || i);
		COMMIT;
		INSERT INTO steps VALUES (100 + i, ('step ' || i)::step);
	END LOOP;
END
$$;
CREATE FUNCTION in_order() RETURNS bool LANGUAGE sql SET enable_seqscan = off SET enable_sort = off SET enable_bitmapscan = off AS
$$
	SELECT bool_and(s >= t) FROM (SELECT s, lag(s) OVER () AS t FROM (SELECT s FROM steps ORDER BY s) o) q
$$;
CREATE FUNCTION found() RETURNS bigint LANGUAGE sql SET enable_seqscan = off SET enable_hashjoin = off AS
$$
	SELECT count(*) FROM unnest(enum_range(NULL::step)) e, LATERAL (SELECT id FROM steps WHERE s = e OFFSET 0) q
$$;
CALL add_values(20);
SELECT count(*) AS values, in_order(), found() FROM unnest(enum_range(NULL::step));
\set VERBOSITY terse
CALL add_values(40);
\set VERBOSITY default
SELECT count(*) < 40 AS refused, in_order() AND found() = (SELECT count(*) FROM steps) AS right FROM unnest(enum_range(NULL::step));
SELECT smart_index_check('steps_smart', true);

-- At other places there is room, and a value may be renamed
ALTER TYPE step ADD VALUE 'zero' BEFORE 'first';
ALTER TYPE step ADD VALUE 'after all';
ALTER TYPE step RENAME VALUE 'step 1' TO 'step one';
INSERT INTO steps VALUES (1000, 'zero'), (1001, 'after all');
SELECT in_order() AND found() = (SELECT count(*) FROM steps) AS right;

-- Without the indexes the values are numbered anew; nothing of it stays in their way
DROP INDEX steps_smart;
\set VERBOSITY terse
CALL add_values(40);
DROP INDEX steps_array;
BEGIN;
ALTER TYPE step ADD VALUE 'never' BEFORE 'last';
ROLLBACK;
CALL add_values(40);
CREATE INDEX steps_smart ON steps USING smart (s);
SELECT count(*), in_order(), found() = (SELECT count(*) FROM steps) AS right FROM unnest(enum_range(NULL::step));
ALTER TYPE missing ADD VALUE 'x';
ALTER TYPE step ADD VALUE 'last';
DROP SCHEMA types_enum CASCADE;
