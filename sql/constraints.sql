-- PRIMARY KEY and UNIQUE constraints with smart indexes. Version 18 has them on partitioned tables, too (constraints_1.out).
SET client_min_messages = warning;

-- What constraints a table has, and of which access method their indexes are.
CREATE FUNCTION constraints_of(of regclass) RETURNS TABLE (name name, method name, definition text, options text[]) LANGUAGE sql AS $$
	SELECT o.conname, a.amname, pg_get_constraintdef(o.oid), c.reloptions
	FROM pg_constraint o JOIN pg_class c ON c.oid = o.conindid JOIN pg_am a ON a.oid = c.relam
	WHERE o.conrelid = of AND o.contype IN ('p', 'u', 'x') ORDER BY 1
$$;

-- By its option a constraint gets a smart index.
CREATE TABLE keyed (id int PRIMARY KEY WITH (smart = on), n int UNIQUE, word text COLLATE "C", at int,
	UNIQUE NULLS NOT DISTINCT (at, n) INCLUDE (word) WITH (smart, leaf_size = 1024),
	CONSTRAINT keyed_late UNIQUE (word) WITH (smart = true) DEFERRABLE INITIALLY DEFERRED);
SELECT * FROM constraints_of('keyed');
INSERT INTO keyed SELECT i, i, 'w' || i, i FROM generate_series(1, 1000) i;
INSERT INTO keyed VALUES (500, -1, 'twice', -1);
INSERT INTO keyed VALUES (NULL, -1, 'null', -1);
INSERT INTO keyed VALUES (-1, NULL, 'nulls', NULL);
INSERT INTO keyed VALUES (-2, NULL, 'nulls again', NULL);
BEGIN;
UPDATE keyed SET word = 'w' || (id % 1000 + 1) WHERE id > 0;
INSERT INTO keyed VALUES (-3, -3, 'w7', -3);
COMMIT;
BEGIN;
UPDATE keyed SET word = 'w' || (id % 1000 + 1) WHERE id > 0;
SET CONSTRAINTS keyed_late IMMEDIATE;
COMMIT;
INSERT INTO keyed VALUES (7, -7, 'w-7', -7) ON CONFLICT (id) DO UPDATE SET n = excluded.n RETURNING *;
INSERT INTO keyed VALUES (7, -8, 'w-8', -8) ON CONFLICT ON CONSTRAINT keyed_pkey DO NOTHING;
INSERT INTO keyed VALUES (8, -8, 'w-8', -8) ON CONFLICT DO NOTHING;
INSERT INTO keyed VALUES (-8, -8, 'w1', -8) ON CONFLICT (word) DO NOTHING;
MERGE INTO keyed k USING (VALUES (7, -70), (2000, 2000)) v (id, n) ON k.id = v.id
	WHEN MATCHED THEN UPDATE SET n = v.n WHEN NOT MATCHED THEN INSERT VALUES (v.id, v.n, 'merged', v.n);
SELECT id, n, at FROM keyed WHERE id IN (7, 2000) ORDER BY id;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT n FROM keyed WHERE id = 7;
EXPLAIN (COSTS OFF) SELECT id FROM keyed ORDER BY id DESC LIMIT 1;
RESET enable_seqscan;
SELECT count(smart_index_check(conindid, true)::text) FROM pg_constraint o JOIN pg_class c ON c.oid = conindid JOIN pg_am a ON a.oid = relam
	WHERE conrelid = 'keyed'::regclass AND amname = 'smart';

-- The option says what it does, or that it cannot.
CREATE TABLE keyed_wrong (id int PRIMARY KEY WITH (smart = on, smart = off));
CREATE TABLE keyed_wrong (id int PRIMARY KEY WITH (smart = perhaps));
CREATE TABLE keyed_wrong (id point PRIMARY KEY WITH (smart = on));
CREATE TABLE keyed_wrong (id int, EXCLUDE USING gist (id WITH =) WITH (smart = on));
CREATE INDEX keyed_wrong ON keyed USING btree (n) WITH (smart = on);
CREATE INDEX keyed_wrong ON keyed USING smart (n) WITH (smart = off);
CREATE INDEX keyed_harmless ON keyed USING smart (n) WITH (smart = on);
ALTER INDEX keyed_harmless RESET (smart);
ALTER INDEX keyed_harmless SET (smart = on, fillfactor = 50);
DROP INDEX keyed_harmless;
ALTER INDEX keyed_pkey SET (smart = off);
ALTER INDEX keyed_pkey RESET (smart);
ALTER INDEX keyed_pkey SET (leaf_size = 256);
ALTER INDEX keyed_n_key SET (smart = on);

-- ALTER TABLE
CREATE TABLE altered (id int, n int);
INSERT INTO altered SELECT i, i FROM generate_series(1, 100) i;
ALTER TABLE altered ADD PRIMARY KEY (id) WITH (smart = on), ADD UNIQUE (n) WITH (smart = off),
	ADD COLUMN other bigserial UNIQUE WITH (smart = on), ADD COLUMN spare text COLLATE "C", ADD UNIQUE (spare, n) WITH (smart = on, fillfactor = 80);
SELECT * FROM constraints_of('altered');
ALTER TABLE altered ADD UNIQUE (id) WITH (smart = on) DEFERRABLE;
ALTER TABLE altered DROP CONSTRAINT altered_id_key;
ALTER TABLE altered RENAME CONSTRAINT altered_pkey TO altered_key;
INSERT INTO altered VALUES (1, 1000);
ALTER TABLE IF EXISTS not_there ADD PRIMARY KEY (id) WITH (smart = on);
ALTER TABLE not_there ADD PRIMARY KEY (id) WITH (smart = on);
ALTER TABLE altered ADD UNIQUE (not_there) WITH (smart = on);
CREATE FUNCTION adds(name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	CREATE TABLE added (id int PRIMARY KEY WITH (smart = on), n int);
	ALTER TABLE added ADD UNIQUE (n) WITH (smart = on);
	ALTER TABLE added RENAME TO added_too;
	EXECUTE format('DROP TABLE %I', name);
END $$;
SELECT adds('added_too'), adds('added_too');
CREATE SCHEMA keyed_schema CREATE TABLE inside (id int PRIMARY KEY WITH (smart = on));
SELECT * FROM constraints_of('keyed_schema.inside');
DROP SCHEMA keyed_schema CASCADE;

-- The setting
SET smart.constraints = on;
CREATE TABLE set_on (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, word text UNIQUE WITH (smart = off), n int UNIQUE, at point,
	EXCLUDE USING gist (at WITH ~=), EXCLUDE USING btree (n WITH =));
SELECT * FROM constraints_of('set_on');
CREATE TABLE set_like (LIKE set_on INCLUDING ALL, more int UNIQUE);
SELECT * FROM constraints_of('set_like');
CREATE TEMP TABLE set_temporary (id int PRIMARY KEY) ON COMMIT DELETE ROWS;
BEGIN;
INSERT INTO set_temporary VALUES (1), (2), (2);
ROLLBACK;
CREATE UNLOGGED TABLE set_unlogged (id int PRIMARY KEY);
ALTER TABLE set_unlogged SET LOGGED;
CREATE TABLE set_child (UNIQUE (n)) INHERITS (set_on);
SELECT name, method FROM constraints_of('set_temporary') UNION ALL SELECT name, method FROM constraints_of('set_unlogged')
	UNION ALL SELECT name, method FROM constraints_of('set_child');
-- A type that smart has no class of its own for has a btree all the same.
CREATE DOMAIN set_domain AS int CHECK (VALUE > 0);
CREATE TYPE set_enum AS ENUM ('a', 'b');
CREATE TABLE set_types (a set_domain UNIQUE, b set_enum UNIQUE, c int[] UNIQUE, d int4range UNIQUE, e money UNIQUE, f xid8 UNIQUE);
ALTER TABLE set_types ADD COLUMN g money UNIQUE, ADD COLUMN h serial UNIQUE, ALTER COLUMN d TYPE money USING NULL, ADD CONSTRAINT set_d UNIQUE (d, a);
SELECT * FROM constraints_of('set_types');
RESET smart.constraints;
CREATE TABLE set_off (LIKE set_on INCLUDING INDEXES);
SELECT * FROM constraints_of('set_off');
DROP TABLE set_off, set_like, set_temporary, set_unlogged, set_child, set_on, set_types;
DROP DOMAIN set_domain;
DROP TYPE set_enum;
SET smart.constraints = on;
CREATE EXTENSION citext;
CREATE TABLE set_citext (word citext PRIMARY KEY);
ALTER TABLE set_citext ADD COLUMN n int, ADD UNIQUE (n, word), ADD COLUMN other citext UNIQUE, ADD UNIQUE (n);
SELECT * FROM constraints_of('set_citext');
INSERT INTO set_citext VALUES ('Word'), ('wORD');
DROP TABLE set_citext;
RESET smart.constraints;
DROP EXTENSION citext;
-- Nor does one whose operators are in btree's family only.
CREATE TYPE set_alias;
CREATE FUNCTION set_alias_in(cstring) RETURNS set_alias STRICT IMMUTABLE LANGUAGE internal AS 'int8in';
CREATE FUNCTION set_alias_out(set_alias) RETURNS cstring STRICT IMMUTABLE LANGUAGE internal AS 'int8out';
CREATE TYPE set_alias (INPUT = set_alias_in, OUTPUT = set_alias_out, LIKE = int8);
CREATE CAST (set_alias AS int8) WITHOUT FUNCTION AS IMPLICIT;
CREATE FUNCTION set_alias_equal(set_alias, set_alias) RETURNS bool STRICT IMMUTABLE LANGUAGE internal AS 'int8eq';
CREATE OPERATOR = (PROCEDURE = set_alias_equal, LEFTARG = set_alias, RIGHTARG = set_alias, COMMUTATOR = =, MERGES);
SET smart.constraints = on;
CREATE TABLE set_aliased (a set_alias UNIQUE);
ALTER OPERATOR FAMILY integer_ops USING btree ADD OPERATOR 3 = (set_alias, set_alias);
CREATE TABLE set_aliased_btree (a set_alias UNIQUE, b varchar UNIQUE, c cidr UNIQUE, d int[] UNIQUE);
RESET smart.constraints;
SELECT name, method FROM constraints_of('set_aliased') UNION ALL SELECT name, method FROM constraints_of('set_aliased_btree');
DROP TABLE set_aliased, set_aliased_btree;
ALTER OPERATOR FAMILY integer_ops USING btree DROP OPERATOR 3 (set_alias, set_alias);
SET client_min_messages = error;
DROP TYPE set_alias CASCADE;
SET client_min_messages = warning;

-- Partitions
SET smart.constraints = on;
CREATE TABLE parts (id int PRIMARY KEY, n int) PARTITION BY RANGE (id);
CREATE TABLE parts_low PARTITION OF parts FOR VALUES FROM (0) TO (100);
CREATE TABLE parts_own PARTITION OF parts (UNIQUE (n)) FOR VALUES FROM (100) TO (200);
CREATE TABLE parts_later (id int NOT NULL, n int);
ALTER TABLE parts ATTACH PARTITION parts_later FOR VALUES FROM (200) TO (300);
CREATE TABLE parts_keyed (id int PRIMARY KEY, n int);
ALTER TABLE parts ATTACH PARTITION parts_keyed FOR VALUES FROM (300) TO (400);
CREATE TABLE parts_liked (LIKE parts INCLUDING ALL);
ALTER TABLE parts ATTACH PARTITION parts_liked FOR VALUES FROM (500) TO (600);
CREATE TABLE parts_other (id int PRIMARY KEY WITH (smart = off), n int);
ALTER TABLE parts ATTACH PARTITION parts_other FOR VALUES FROM (400) TO (500);
RESET smart.constraints;
INSERT INTO parts SELECT i, i FROM generate_series(0, 299) i;
INSERT INTO parts VALUES (5, 5);
INSERT INTO parts VALUES (150, 0), (250, 0) ON CONFLICT (id) DO UPDATE SET n = -parts.n;
SELECT * FROM parts WHERE n < 0 ORDER BY id;
SELECT tree.relid::regclass AS part, c.name, c.method FROM pg_partition_tree('parts') tree, constraints_of(tree.relid) c ORDER BY 1, 2;
SET smart.constraints = on;
CREATE TABLE parts_narrow (id int, n int, PRIMARY KEY (id, n)) PARTITION BY RANGE (id);
RESET smart.constraints;
CREATE TABLE parts_narrow_low PARTITION OF parts_narrow FOR VALUES FROM (0) TO (100);
CREATE TABLE parts_narrow_high PARTITION OF parts_narrow FOR VALUES FROM (100) TO (200) PARTITION BY LIST (id);
CREATE TABLE parts_narrow_all PARTITION OF parts_narrow_high DEFAULT;
INSERT INTO parts_narrow SELECT i, i FROM generate_series(0, 199) i;
ALTER TABLE parts_narrow ALTER n TYPE bigint, ADD COLUMN m int;
INSERT INTO parts_narrow VALUES (1, 1);
INSERT INTO parts_narrow VALUES (101, 101);
SELECT tree.relid::regclass AS part, c.name, c.method, c.options FROM pg_partition_tree('parts_narrow') tree, constraints_of(tree.relid) c ORDER BY 1, 2;
DROP TABLE parts_narrow;
DROP TABLE parts_other;
DROP TABLE IF EXISTS parts_keyed;
DROP TABLE parts;
CREATE TABLE parts_wanted (id int PRIMARY KEY WITH (smart = on)) PARTITION BY RANGE (id);
CREATE TABLE parts_added (id int) PARTITION BY RANGE (id);
ALTER TABLE parts_added ADD PRIMARY KEY (id) WITH (smart = on);
CREATE TABLE parts_source (id int PRIMARY KEY WITH (smart = on));
CREATE TABLE parts_like (LIKE parts_source INCLUDING INDEXES) PARTITION BY RANGE (id);
CREATE TABLE parts_part PARTITION OF parts_added (UNIQUE (id) WITH (smart = on)) FOR VALUES FROM (0) TO (10);
INSERT INTO parts_added VALUES (1), (1);
SELECT t AS part, c.name, c.method FROM unnest(ARRAY['parts_wanted', 'parts_added', 'parts_like', 'parts_part']) t, constraints_of(to_regclass(t)) c;
DROP TABLE IF EXISTS parts_wanted, parts_added, parts_source, parts_like;

-- Indexes that are there become constraints.
CREATE TABLE taken (id int, n int, word text COLLATE "C", at int);
INSERT INTO taken SELECT i, i, 'w' || i, i FROM generate_series(1, 100) i;
CREATE UNIQUE INDEX taken_id ON taken USING smart (id) INCLUDE (at);
CREATE UNIQUE INDEX taken_n ON taken USING smart (n) WITH (leaf_size = 256);
CREATE UNIQUE INDEX taken_down ON taken USING smart (n DESC);
CREATE UNIQUE INDEX taken_pattern ON taken USING smart (word text_pattern_ops);
CREATE UNIQUE INDEX taken_collated ON taken USING smart (word COLLATE "POSIX");
CREATE UNIQUE INDEX taken_sum ON taken USING smart ((n + at));
CREATE UNIQUE INDEX taken_part ON taken USING smart (at) WHERE at > 10;
CREATE INDEX taken_many ON taken USING smart (at);
ALTER TABLE taken ADD PRIMARY KEY USING INDEX taken_down;
ALTER TABLE taken ADD UNIQUE USING INDEX taken_pattern;
ALTER TABLE taken ADD UNIQUE USING INDEX taken_collated;
ALTER TABLE taken ADD UNIQUE USING INDEX taken_sum;
ALTER TABLE taken ADD UNIQUE USING INDEX taken_part;
ALTER TABLE taken ADD UNIQUE USING INDEX taken_many;
ALTER TABLE taken ADD UNIQUE USING INDEX keyed_pkey;
ALTER TABLE keyed ADD UNIQUE USING INDEX keyed_pkey;
ALTER TABLE altered ADD UNIQUE USING INDEX taken_id;
ALTER TABLE taken ADD UNIQUE USING INDEX taken_not_there;
INSERT INTO taken VALUES (NULL, 1000, 'null', 1000);
ALTER TABLE taken ADD PRIMARY KEY USING INDEX taken_id;
DELETE FROM taken WHERE id IS NULL;
ALTER TABLE taken ADD PRIMARY KEY USING INDEX taken_id, ADD CONSTRAINT taken_late UNIQUE USING INDEX taken_n DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE taken ADD PRIMARY KEY USING INDEX taken_id;
SELECT * FROM constraints_of('taken');
SELECT attname, attnotnull FROM pg_attribute WHERE attrelid = 'taken'::regclass AND attnum IN (1, 2) ORDER BY 1;
INSERT INTO taken VALUES (1, 1001, 'twice', 1001);
DROP INDEX taken_down, taken_sum, taken_part;
BEGIN;
UPDATE taken SET n = n + 1;
COMMIT;
SELECT smart_index_check('taken_id', true), smart_index_check('taken_late', true);
DROP TABLE taken;

-- Foreign keys
CREATE TABLE refers (id int PRIMARY KEY WITH (smart = on), keyed int REFERENCES keyed ON UPDATE CASCADE ON DELETE SET NULL,
	own int REFERENCES refers ON DELETE CASCADE, wide bigint REFERENCES keyed (id) DEFERRABLE);
INSERT INTO refers VALUES (1, 1, NULL, 1), (2, 2, 1, 3), (3, 3, 2, 3);
INSERT INTO refers VALUES (4, 5000, NULL, NULL);
INSERT INTO refers VALUES (4, NULL, 5000, NULL);
UPDATE keyed SET id = 10001 WHERE id = 1;
BEGIN;
SET CONSTRAINTS ALL DEFERRED;
UPDATE keyed SET id = 10001 WHERE id = 1;
UPDATE refers SET wide = 10001 WHERE id = 1;
COMMIT;
DELETE FROM keyed WHERE id = 2;
DELETE FROM keyed WHERE id = 3;
SELECT * FROM refers ORDER BY id;
DELETE FROM refers WHERE id = 1;
SELECT * FROM refers ORDER BY id;
CREATE TABLE pairs (a int, b int, PRIMARY KEY (a, b) WITH (smart = on));
CREATE TABLE refers_pairs (x int, y int);
INSERT INTO pairs VALUES (1, 1), (1, 2);
INSERT INTO refers_pairs VALUES (1, 1), (NULL, 3);
ALTER TABLE refers_pairs ADD FOREIGN KEY (y, x) REFERENCES pairs (b, a) MATCH FULL;
ALTER TABLE refers_pairs ADD CONSTRAINT refers_pairs_late FOREIGN KEY (x, y) REFERENCES pairs MATCH FULL NOT VALID;
ALTER TABLE refers_pairs VALIDATE CONSTRAINT refers_pairs_late;
DELETE FROM refers_pairs WHERE x IS NULL;
ALTER TABLE refers_pairs VALIDATE CONSTRAINT refers_pairs_late;
INSERT INTO refers_pairs VALUES (1, NULL);
INSERT INTO refers_pairs VALUES (1, 3);
DELETE FROM pairs WHERE b = 1;
DELETE FROM pairs WHERE b = 2;
CREATE TABLE refers_parts (n int REFERENCES pairs (a)) PARTITION BY LIST (n);
CREATE TABLE refers_parts (n int REFERENCES keyed) PARTITION BY LIST (n);
CREATE TABLE refers_parts_1 PARTITION OF refers_parts FOR VALUES IN (4);
CREATE TABLE refers_parts_2 (n int);
ALTER TABLE refers_parts ATTACH PARTITION refers_parts_2 DEFAULT;
INSERT INTO refers_parts VALUES (4), (5);
INSERT INTO refers_parts VALUES (6000);
DELETE FROM keyed WHERE id = 5;
-- What the statement has changed for a moment is as it was.
SELECT count(*) FROM pg_opclass c JOIN pg_am a ON a.oid = c.opcmethod WHERE amname = 'smart' AND opcname = 'int4_ops';
CREATE INDEX keyed_id_again ON keyed USING smart (id);
SELECT pg_get_indexdef('keyed_id_again'::regclass);
DROP INDEX keyed_id_again;
TRUNCATE keyed;
TRUNCATE keyed, refers, refers_parts;
ALTER TABLE keyed DROP CONSTRAINT keyed_pkey;
DROP TABLE refers, refers_parts, refers_pairs, pairs;

-- A column of another type: the constraint stays what it is.
CREATE TABLE retyped (id int, n int, word varchar(10) COLLATE "C", CONSTRAINT retyped_key PRIMARY KEY (id, n) WITH (smart = on, leaf_size = 256),
	CONSTRAINT retyped_late UNIQUE (word) INCLUDE (n) WITH (smart = on) DEFERRABLE, CONSTRAINT retyped_btree UNIQUE (n));
INSERT INTO retyped SELECT i, i, 'w' || i FROM generate_series(1, 100) i;
COMMENT ON CONSTRAINT retyped_key ON retyped IS 'described';
COMMENT ON INDEX retyped_key IS 'as an index, too';
-- 17 would warn.
SET client_min_messages = error;
ALTER TABLE retyped REPLICA IDENTITY USING INDEX retyped_key, CLUSTER ON retyped_key;
ALTER TABLE retyped ALTER n TYPE bigint, ALTER id TYPE numeric USING id + 0.5, ALTER word TYPE text COLLATE "C";
SELECT * FROM constraints_of('retyped');
SELECT id, n, word FROM retyped WHERE id = 7.5;
SELECT obj_description(oid, 'pg_constraint'), obj_description(conindid, 'pg_class'), indisreplident, indisclustered
	FROM pg_constraint JOIN pg_index ON indexrelid = conindid WHERE conname = 'retyped_key';
INSERT INTO retyped VALUES (7.5, 7, 'twice');
ALTER TABLE retyped ALTER id TYPE int;
ALTER TABLE retyped ALTER id TYPE bool USING true, DROP CONSTRAINT retyped_key;
ALTER TABLE retyped ALTER word TYPE int USING 1;
SELECT * FROM constraints_of('retyped');
SET client_min_messages = warning;
CREATE TABLE retyped_heir (UNIQUE (n) WITH (smart = on)) INHERITS (retyped);
ALTER TABLE retyped ALTER n TYPE int;
ALTER TABLE retyped_heir DROP CONSTRAINT retyped_heir_n_key;
ALTER TABLE retyped ALTER n TYPE int;
CREATE TABLE retyped_refers (word text COLLATE "C");
ALTER TABLE retyped DROP CONSTRAINT retyped_late, ADD CONSTRAINT retyped_word UNIQUE (word) WITH (smart = on);
ALTER TABLE retyped_refers ADD CONSTRAINT refers_word FOREIGN KEY (word) REFERENCES retyped (word);
ALTER TABLE retyped ALTER word TYPE varchar;
ALTER TABLE retyped_refers ALTER word TYPE varchar;
SELECT atttypid::regtype FROM pg_attribute WHERE attrelid = 'retyped_refers'::regclass AND attname = 'word';
INSERT INTO retyped_refers VALUES ('w5'), ('not there');
INSERT INTO retyped_refers VALUES ('w5');
DROP TABLE retyped_refers, retyped_heir, retyped;

-- As does another expression of a generated column, from 17 on.
CREATE TABLE regenerated (id int, twice int GENERATED ALWAYS AS (id * 2) STORED PRIMARY KEY WITH (smart = on));
INSERT INTO regenerated SELECT generate_series(1, 100);
DO $$ BEGIN
	EXECUTE 'ALTER TABLE regenerated ALTER twice SET EXPRESSION AS (id * 3)';
EXCEPTION WHEN syntax_error THEN NULL;
END $$;
SELECT * FROM constraints_of('regenerated');
INSERT INTO regenerated VALUES (0), (0);
SELECT smart_index_check('regenerated_pkey', true);
DROP TABLE regenerated;

-- Without overlaps, which 18 knows, an index is GiST's.
SET smart.constraints = on;
CREATE TABLE overlapping (id int4range, at daterange, n int UNIQUE, PRIMARY KEY (id, at WITHOUT OVERLAPS));
CREATE TABLE IF NOT EXISTS overlapping (id int4range, at daterange, n int UNIQUE);
ALTER TABLE overlapping ADD CONSTRAINT overlapping_at UNIQUE (id, at WITHOUT OVERLAPS);
ALTER TABLE overlapping ADD CONSTRAINT overlapping_smart UNIQUE (id, at WITHOUT OVERLAPS) WITH (smart = on);
SELECT * FROM constraints_of('overlapping');
RESET smart.constraints;
DROP TABLE overlapping;

-- What else is done with tables and indexes
INSERT INTO keyed SELECT i, i, 'w' || i, i FROM generate_series(1, 1000) i;
CLUSTER keyed USING keyed_pkey;
VACUUM FULL keyed;
REINDEX INDEX keyed_pkey;
REINDEX TABLE CONCURRENTLY keyed;
ALTER TABLE keyed SET UNLOGGED;
ALTER TABLE keyed SET LOGGED;
ALTER TABLE keyed ALTER n TYPE bigint;
TRUNCATE keyed;
INSERT INTO keyed SELECT i, i, 'w' || i, i FROM generate_series(1, 1000) i;
DELETE FROM keyed WHERE id % 2 = 0;
VACUUM keyed;
SELECT * FROM constraints_of('keyed');
SELECT smart_index_check('keyed_pkey', true), smart_index_check('keyed_late', true), smart_index_check('keyed_at_n_word_key', true);
SELECT pg_get_indexdef('keyed_pkey'::regclass);
SELECT k.* FROM keyed k JOIN keyed l USING (id) WHERE k.id = 501 GROUP BY k.id;
CREATE VIEW keyed_view AS SELECT id, n, word FROM keyed GROUP BY id;
ALTER TABLE keyed DROP CONSTRAINT keyed_pkey;
DROP VIEW keyed_view;
DROP INDEX keyed_pkey;
ALTER TABLE keyed DROP CONSTRAINT keyed_pkey;
INSERT INTO keyed VALUES (501, -501, 'no key', -501);
DROP TABLE keyed, altered;
DROP FUNCTION adds, constraints_of;
