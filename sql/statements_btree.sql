-- Where the server asks for a btree by name. Version 18 (statements_btree_2.out) asks what an index can do instead; 17
-- (_1.out) differs from 15 in what a subscriber can apply.
CREATE TABLE needs_btree (id int NOT NULL, n int NOT NULL);
CREATE UNIQUE INDEX needs_btree_id ON needs_btree USING smart (id);

-- Foreign keys that refer to a smart index, which is no constraint's
CREATE TABLE needs_btree_too (id int);
ALTER TABLE needs_btree_too ADD FOREIGN KEY (id) REFERENCES needs_btree (id) ON UPDATE CASCADE;
INSERT INTO needs_btree VALUES (1, 1), (2, 2), (3, 3);
INSERT INTO needs_btree_too VALUES (1), (2);
INSERT INTO needs_btree_too VALUES (4);
DELETE FROM needs_btree WHERE id = 1;
UPDATE needs_btree SET id = 20 WHERE id = 2;
SELECT id FROM needs_btree_too ORDER BY id;
DROP TABLE needs_btree_too;

-- Unique indexes of partitioned tables
CREATE TABLE needs_btree_parts (id int, n int) PARTITION BY RANGE (id);
CREATE TABLE needs_btree_low PARTITION OF needs_btree_parts FOR VALUES FROM (0) TO (100);
CREATE TABLE needs_btree_high PARTITION OF needs_btree_parts FOR VALUES FROM (100) TO (200);
CREATE UNIQUE INDEX needs_btree_parts_n ON needs_btree_parts USING smart (n);
CREATE UNIQUE INDEX needs_btree_parts_id ON needs_btree_parts USING smart (id);
INSERT INTO needs_btree_parts VALUES (1, 1), (101, 1), (1, 2);
INSERT INTO needs_btree_parts VALUES (1, 1), (101, 1);
INSERT INTO needs_btree_parts VALUES (1, 2), (101, 2), (102, 2) ON CONFLICT (id) DO UPDATE SET n = -excluded.n;
SELECT * FROM needs_btree_parts ORDER BY id, n;
DROP TABLE needs_btree_parts;

-- REFRESH MATERIALIZED VIEW CONCURRENTLY finds the rows by a unique index.
CREATE MATERIALIZED VIEW needs_btree_view AS SELECT id, n FROM needs_btree;
CREATE UNIQUE INDEX needs_btree_view_id ON needs_btree_view USING smart (id);
DELETE FROM needs_btree;
INSERT INTO needs_btree VALUES (3, 30), (4, 40);
REFRESH MATERIALIZED VIEW CONCURRENTLY needs_btree_view;
SELECT * FROM needs_btree_view WHERE id > 2 ORDER BY id;
SELECT smart_index_check('needs_btree_view_id', true);
DROP MATERIALIZED VIEW needs_btree_view;

-- The same of a view whose rows come from a function that plans queries of the view, with event triggers; of indexes that
-- do not serve; and by who may not
CREATE FUNCTION needs_btree_rows() RETURNS SETOF needs_btree LANGUAGE plpgsql
	SET enable_sort = off SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
	rows bigint := 0;
	line text;
BEGIN
	IF to_regclass('public.needs_btree_view') IS NOT NULL THEN
		EXECUTE 'SELECT count(*) FROM public.needs_btree_view v JOIN public.needs_btree_view w ON w.id = v.id + 1
			WHERE v.id BETWEEN 1 AND 1000' INTO rows;
		EXECUTE 'EXPLAIN SELECT name, id FROM public.needs_btree_view ORDER BY name, id' INTO line;
		IF to_regclass('public.needs_btree_view_name') IS NOT NULL AND line !~ 'needs_btree_view_name' THEN
			RAISE WARNING 'not in the order of the index: %', line;
		END IF;
	END IF;
	RETURN QUERY SELECT b.id, b.n + rows::int FROM public.needs_btree b;
END
$$;
CREATE FUNCTION needs_btree_event() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM count(*) FROM public.needs_btree WHERE id = 3;
END
$$;
CREATE MATERIALIZED VIEW needs_btree_view AS SELECT id, n, id::text COLLATE "C" AS name FROM needs_btree_rows();
CREATE UNIQUE INDEX needs_btree_view_part ON needs_btree_view USING smart (id) WHERE id > 0;
CREATE UNIQUE INDEX needs_btree_view_sum ON needs_btree_view USING smart ((id + 1));
CREATE INDEX needs_btree_view_n ON needs_btree_view USING smart (n);
REFRESH MATERIALIZED VIEW CONCURRENTLY needs_btree_view;
CREATE UNIQUE INDEX needs_btree_view_name ON needs_btree_view USING smart (name, id) INCLUDE (n);
CREATE EVENT TRIGGER needs_btree_event ON ddl_command_start EXECUTE FUNCTION needs_btree_event();
INSERT INTO needs_btree SELECT i, i FROM generate_series(5, 500) i;
\c -
REFRESH MATERIALIZED VIEW CONCURRENTLY needs_btree_view;
DELETE FROM needs_btree WHERE id % 3 = 0;
UPDATE needs_btree SET n = -n WHERE id % 5 = 0;
DO $$ BEGIN REFRESH MATERIALIZED VIEW CONCURRENTLY needs_btree_view; END $$;
SELECT count(*), sum(id), sum(n) FROM needs_btree_view;
SELECT relname, smart_index_check(c.oid, true), a.amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam
	WHERE relname ~ '^needs_btree_view_' ORDER BY 1;
DROP EVENT TRIGGER needs_btree_event;
INSERT INTO needs_btree VALUES (500, 0);
DROP INDEX needs_btree_id;
INSERT INTO needs_btree VALUES (500, 0);
CREATE UNIQUE INDEX needs_btree_id ON needs_btree USING smart (id, n);
INSERT INTO needs_btree VALUES (500, 1);
\set VERBOSITY sqlstate
REFRESH MATERIALIZED VIEW CONCURRENTLY needs_btree_view;
CREATE ROLE needs_btree_role;
SET ROLE needs_btree_role;
REFRESH MATERIALIZED VIEW CONCURRENTLY needs_btree_view;
REFRESH MATERIALIZED VIEW CONCURRENTLY needs_btree_none;
RESET ROLE;
REFRESH MATERIALIZED VIEW CONCURRENTLY needs_btree;
\set VERBOSITY default
DROP ROLE needs_btree_role;
DROP MATERIALIZED VIEW needs_btree_view;
DROP FUNCTION needs_btree_rows, needs_btree_event;
DROP INDEX needs_btree_id;
DELETE FROM needs_btree WHERE id = 500;
CREATE UNIQUE INDEX needs_btree_id ON needs_btree USING smart (id);

-- A unique index that proves that a join adds no rows
EXPLAIN (COSTS OFF) SELECT a.n FROM needs_btree a LEFT JOIN needs_btree b ON b.id = a.n;

-- The replica identity of a subscriber's table
ALTER TABLE needs_btree REPLICA IDENTITY USING INDEX needs_btree_id;
DO $$ BEGIN ALTER TABLE needs_btree REPLICA IDENTITY FULL, REPLICA IDENTITY USING INDEX needs_btree_id; END $$;
SELECT relreplident FROM pg_class WHERE oid = 'needs_btree'::regclass;
ALTER TABLE needs_btree REPLICA IDENTITY DEFAULT;
DROP TABLE needs_btree;
