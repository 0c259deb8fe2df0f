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

-- A unique index that proves that a join adds no rows
EXPLAIN (COSTS OFF) SELECT a.n FROM needs_btree a LEFT JOIN needs_btree b ON b.id = a.n;

-- The replica identity of a subscriber's table
ALTER TABLE needs_btree REPLICA IDENTITY USING INDEX needs_btree_id;
DO $$ BEGIN ALTER TABLE needs_btree REPLICA IDENTITY FULL, REPLICA IDENTITY USING INDEX needs_btree_id; END $$;
SELECT relreplident FROM pg_class WHERE oid = 'needs_btree'::regclass;
ALTER TABLE needs_btree REPLICA IDENTITY DEFAULT;
DROP TABLE needs_btree;
