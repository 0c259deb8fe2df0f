-- INSERT ... ON CONFLICT through a partitioned table some of whose partitions have unique smart indexes.
-- Version 18 (_1.out) differs where foreign tables are partitions, too.
CREATE TABLE routed (id int, n int) PARTITION BY RANGE (id);
CREATE TABLE routed_low PARTITION OF routed FOR VALUES FROM (0) TO (100);
CREATE TABLE routed_high PARTITION OF routed FOR VALUES FROM (100) TO (200);
INSERT INTO routed VALUES (1, 1) ON CONFLICT DO NOTHING;
CREATE UNIQUE INDEX routed_high_id ON routed_high USING smart (id);
INSERT INTO routed VALUES (2, 2), (102, 2), (102, 3), (2, 3) ON CONFLICT DO NOTHING RETURNING *;
INSERT INTO routed VALUES (3, 3), (103, 3);
INSERT INTO routed VALUES (103, 4) ON CONFLICT DO NOTHING;
INSERT INTO routed_high VALUES (103, 5) ON CONFLICT (id) DO UPDATE SET n = excluded.n RETURNING *;
INSERT INTO routed VALUES (300, 1) ON CONFLICT DO NOTHING;
DO $$ BEGIN EXECUTE 'EXPLAIN ANALYZE INSERT INTO routed VALUES (104, 1), (103, 1) ON CONFLICT DO NOTHING'; END $$;
SELECT * FROM routed WHERE id > 102 ORDER BY id;
DROP INDEX routed_high_id;

-- A prepared statement, and partitions of partitions.
PREPARE routed_insert AS INSERT INTO routed VALUES (5, $1), (155, $1), (255, $1) ON CONFLICT DO NOTHING RETURNING id;
EXECUTE routed_insert (5);
CREATE FUNCTION routed_side(id int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	IF to_regclass('routed_odd_id') IS NOT NULL THEN
		EXECUTE format('SELECT FROM routed_odd o JOIN routed_even e ON e.id = o.id + 1 WHERE o.id = %s', id);
	END IF;
	RETURN id % 2;
END
$$;
CREATE TABLE routed_far (n int, gone int, id int) PARTITION BY LIST (routed_side(id));
ALTER TABLE routed_far DROP COLUMN gone;
ALTER TABLE routed ATTACH PARTITION routed_far FOR VALUES FROM (200) TO (400);
CREATE TABLE routed_odd PARTITION OF routed_far FOR VALUES IN (1);
CREATE TABLE routed_even (id int, n int);
ALTER TABLE routed_far ATTACH PARTITION routed_even DEFAULT;
CREATE UNIQUE INDEX routed_odd_id ON routed_odd USING smart (id);
CREATE UNIQUE INDEX routed_even_id ON routed_even USING smart (id);
EXECUTE routed_insert (6);
EXECUTE routed_insert (7);
INSERT INTO routed_far (id, n) VALUES (200, 1), (255, 1), (200, 2) ON CONFLICT DO NOTHING RETURNING *;
SELECT tableoid::regclass, * FROM routed WHERE id > 150 ORDER BY id, n;
CREATE UNIQUE INDEX routed_high_id ON routed_high USING smart (id, n);
EXECUTE routed_insert (7);
EXECUTE routed_insert (8);

-- A statement that is part of another one, and is not read; functions that plan and alter while it runs
WITH inserted AS (INSERT INTO routed SELECT i, 1 FROM generate_series(201, 206) i ON CONFLICT DO NOTHING RETURNING id)
	SELECT 'not read';
WITH inserted AS (INSERT INTO routed SELECT i, 1 FROM generate_series(205, 208) i ON CONFLICT DO NOTHING RETURNING id)
	SELECT * FROM inserted ORDER BY id;
CREATE FUNCTION routed_trigger() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE 'INSERT INTO routed VALUES (155, 155), (209, 9) ON CONFLICT DO NOTHING';
	EXECUTE 'COMMENT ON INDEX routed_high_id IS ''triggered''';
	SET LOCAL enable_seqscan = off;
	new.n := (SELECT count(*) FROM routed_odd WHERE id = 209);
	RETURN new;
END
$$;
CREATE TRIGGER routed_trigger BEFORE INSERT ON routed_even FOR EACH ROW EXECUTE FUNCTION routed_trigger();
INSERT INTO routed VALUES (210, 0), (210, 0), (211, 0) ON CONFLICT DO NOTHING RETURNING *;
DROP TRIGGER routed_trigger ON routed_even;
DO $$
BEGIN
	INSERT INTO routed VALUES (301, 1), (500, 1) ON CONFLICT DO NOTHING;
EXCEPTION WHEN check_violation THEN
	INSERT INTO routed VALUES (301, 2), (301, 3) ON CONFLICT DO NOTHING;
END
$$;
SELECT * FROM routed WHERE id BETWEEN 209 AND 301 ORDER BY id, n;
SELECT c.relname, a.amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE c.relname ~ '^routed.*_id$' ORDER BY 1;
SELECT indexrelid::regclass, smart_index_check(indexrelid, true) FROM pg_index
	WHERE indrelid::regclass::text ~ '^routed_(high|even|odd)$' ORDER BY 1;

-- DO UPDATE, with the table's unique btree as arbiter and a unique smart index beside it
CREATE TABLE arbited (id int PRIMARY KEY, n int, note text) PARTITION BY HASH (id);
CREATE TABLE arbited_0 PARTITION OF arbited FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE arbited_1 PARTITION OF arbited FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE UNIQUE INDEX arbited_0_n ON arbited_0 USING smart (n);
CREATE UNIQUE INDEX arbited_1_n ON arbited_1 USING smart (n);
INSERT INTO arbited SELECT i, i, 'first' FROM generate_series(1, 8) i ON CONFLICT (id) DO UPDATE SET note = 'never';
INSERT INTO arbited SELECT i, -i, 'second' FROM generate_series(5, 12) i
	ON CONFLICT (id) DO UPDATE SET n = excluded.n, note = excluded.note || ' ' || arbited.note WHERE arbited.n <> 6;
SELECT * FROM arbited ORDER BY id;
\set VERBOSITY sqlstate
INSERT INTO arbited SELECT i + 20, 1, 'third' FROM generate_series(1, 8) i ON CONFLICT (id) DO UPDATE SET note = 'never';
\set VERBOSITY default
CREATE VIEW arbited_view AS SELECT id, n FROM arbited WHERE n < 100 WITH CHECK OPTION;
INSERT INTO arbited_view VALUES (1, 99), (31, 31) ON CONFLICT (id) DO UPDATE SET n = excluded.n RETURNING *;
INSERT INTO arbited_view VALUES (32, 101) ON CONFLICT DO NOTHING;
DROP TABLE arbited CASCADE;

-- Foreign tables among the partitions
CREATE FOREIGN DATA WRAPPER routed_wrapper;
CREATE SERVER routed_server FOREIGN DATA WRAPPER routed_wrapper;
CREATE FOREIGN TABLE routed_foreign PARTITION OF routed FOR VALUES FROM (400) TO (500) SERVER routed_server;
INSERT INTO routed VALUES (170, 1), (170, 1) ON CONFLICT DO NOTHING RETURNING *;
DROP FOREIGN DATA WRAPPER routed_wrapper CASCADE;

ALTER TABLE routed DETACH PARTITION routed_far;
DROP INDEX routed_high_id;
EXECUTE routed_insert (9);
INSERT INTO routed VALUES (4, 4), (104, 4) ON CONFLICT DO NOTHING;
SELECT count(*) FROM routed WHERE id IN (4, 104);
DROP TABLE routed, routed_far;
DROP FUNCTION routed_trigger, routed_side;
