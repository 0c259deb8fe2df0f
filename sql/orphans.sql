-- What a statement leaves of an index is found and freed, whatever the statement; what is in use is not.
SET client_min_messages = warning;
SELECT trees >= 0 AS done FROM smart_collect_orphans();

-- Trees of this database for which there is no index, after a collection, and what the view says then.
CREATE FUNCTION left_over(OUT trees bigint, OUT leaked_trees bigint, OUT leaked_bytes bigint) LANGUAGE plpgsql AS $$
BEGIN
	PERFORM FROM smart_collect_orphans();
	SELECT s.trees - (SELECT count(*) FROM smart_index_state WHERE state = 'ready'), s.leaked_trees, s.leaked_bytes
		INTO STRICT trees, leaked_trees, leaked_bytes FROM smart_stat_space s WHERE database = current_database();
END
$$;
-- The rows of a table, by each of its smart indexes.
CREATE FUNCTION sound(relation regclass) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE indexes bigint = 0; index regclass;
BEGIN
	FOR index IN SELECT indexrelid FROM pg_index WHERE indrelid = relation LOOP
		PERFORM smart_index_check(index, true);
		indexes := indexes + 1;
	END LOOP;
	RETURN indexes;
END
$$;
CREATE ROLE regress_orphans;
SET allow_in_place_tablespaces = true;
CREATE TABLESPACE regress_orphans LOCATION '';
GRANT CREATE ON TABLESPACE regress_orphans TO regress_orphans;
CREATE SCHEMA orphans;
GRANT ALL ON SCHEMA orphans TO regress_orphans;
SET search_path = orphans, public;
-- A table with three indexes, one of them to cluster on.
CREATE PROCEDURE make_rows() LANGUAGE plpgsql AS $$
BEGIN
	CREATE TABLE rows (a int, b varchar(10), c text COLLATE "C");
	ALTER TABLE rows OWNER TO regress_orphans;
	INSERT INTO rows SELECT i, i % 100, 'c' || i FROM generate_series(1, 1000) i;
	CREATE INDEX rows_a ON rows USING smart (a);
	CREATE INDEX rows_b ON rows USING smart (b);
	CREATE UNIQUE INDEX rows_c ON rows USING smart (c) WHERE a > 500;
END
$$;
CALL make_rows();
SELECT sound('rows'), * FROM left_over();

\echo -- rebuilt
REINDEX INDEX rows_a;
SELECT sound('rows'), * FROM left_over();
REINDEX TABLE rows;
SELECT sound('rows'), * FROM left_over();
REINDEX INDEX CONCURRENTLY rows_a;
SELECT sound('rows'), * FROM left_over();
REINDEX TABLE CONCURRENTLY rows;
SELECT sound('rows'), * FROM left_over();
VACUUM FULL rows;
SELECT sound('rows'), * FROM left_over();
CLUSTER rows USING rows_a;
SELECT sound('rows'), * FROM left_over();
ALTER TABLE rows ALTER a TYPE bigint;
SELECT sound('rows'), * FROM left_over();
ALTER TABLE rows SET UNLOGGED;
SELECT sound('rows'), * FROM left_over();
ALTER TABLE rows SET LOGGED;
SELECT sound('rows'), * FROM left_over();
\echo -- the same tree under another OID, and in another file
ALTER TABLE rows ALTER b TYPE varchar(20);
SELECT sound('rows'), * FROM left_over();
ALTER INDEX rows_b SET TABLESPACE regress_orphans;
SELECT sound('rows'), * FROM left_over();
ALTER TABLE rows SET TABLESPACE regress_orphans;
SELECT sound('rows'), * FROM left_over();
ALTER INDEX ALL IN TABLESPACE regress_orphans SET TABLESPACE pg_default;
SELECT sound('rows'), * FROM left_over();

\echo -- rolled back, and orphans collected before that
CREATE PROCEDURE public.roll_back(statement text) LANGUAGE plpgsql AS $$
DECLARE collected bigint;
BEGIN
	BEGIN
		EXECUTE statement;
		SELECT trees INTO STRICT collected FROM smart_collect_orphans();
		RAISE EXCEPTION 'rolled back';
	EXCEPTION
		WHEN raise_exception THEN NULL;
	END;
	IF collected <> 0 THEN
		RAISE EXCEPTION '"%" can still be rolled back, and % trees were freed', statement, collected;
	END IF;
END
$$;
CREATE TABLE statements (id int, statement text);
INSERT INTO statements VALUES
	(1, 'REINDEX INDEX rows_a'), (2, 'REINDEX TABLE rows'), (3, 'CLUSTER rows USING rows_a'),
	(4, 'ALTER TABLE rows ALTER a TYPE int'), (5, 'ALTER TABLE rows SET UNLOGGED'),
	(6, 'ALTER TABLE rows ALTER b TYPE varchar(30)'), (7, 'ALTER INDEX rows_b SET TABLESPACE regress_orphans'),
	(8, 'ALTER TABLE rows SET TABLESPACE regress_orphans'), (9, 'TRUNCATE rows'),
	(10, 'TRUNCATE rows; INSERT INTO rows VALUES (1, 2, 3)'), (11, 'DROP INDEX rows_a'), (12, 'DROP TABLE rows'),
	(13, 'ALTER TABLE rows DROP a'), (14, 'CREATE INDEX ON rows USING smart (c)'),
	(15, 'DROP TABLE rows; CREATE TABLE rows (a int); CREATE INDEX rows_a ON rows USING smart (a); INSERT INTO rows VALUES (1); DROP TABLE rows'),
	(16, 'ALTER TABLE rows SET SCHEMA public; DROP SCHEMA orphans CASCADE'), (17, 'DROP OWNED BY regress_orphans CASCADE'),
	(18, 'REINDEX INDEX rows_a; ALTER INDEX rows_a SET TABLESPACE regress_orphans; REINDEX TABLE rows; DROP INDEX rows_b');
SELECT format('CALL public.roll_back(%L); SELECT %s AS id, sound(''rows''), * FROM left_over()', statement, id)
	FROM statements ORDER BY id \gexec
\echo -- the whole transaction is rolled back, then a savepoint of one that commits
SELECT 'BEGIN', statement, 'ROLLBACK', format('SELECT %s AS id, sound(''rows''), * FROM left_over()', id)
	FROM statements ORDER BY id \gexec
SELECT 'BEGIN', 'SAVEPOINT s', statement, 'ROLLBACK TO s', 'COMMIT',
		format('SELECT %s AS id, sound(''rows''), * FROM left_over()', id)
	FROM statements ORDER BY id \gexec
\echo -- the same with several savepoints
BEGIN;
SAVEPOINT s;
REINDEX TABLE rows;
SAVEPOINT s2;
TRUNCATE rows;
INSERT INTO rows VALUES (-1, 'b', 'c');
SELECT trees FROM smart_collect_orphans();
ROLLBACK TO s2;
SELECT sound('rows');
RELEASE s2;
SELECT trees FROM smart_collect_orphans();
ROLLBACK TO s;
SELECT sound('rows');
DROP INDEX rows_a;
SELECT trees FROM smart_collect_orphans();
COMMIT;
SELECT sound('rows'), * FROM left_over();

\echo -- gone
SET ROLE regress_orphans;
CREATE TABLE owned AS SELECT i AS a FROM generate_series(1, 1000) i;
CREATE INDEX ON owned USING smart (a);
CREATE MATERIALIZED VIEW owned_view AS SELECT a FROM owned;
CREATE INDEX ON owned_view USING smart (a);
RESET ROLE;
REFRESH MATERIALIZED VIEW owned_view;
SELECT sound('owned'), * FROM left_over();
DROP OWNED BY regress_orphans CASCADE;
SELECT to_regclass('rows') IS NULL AS gone, * FROM left_over();
CALL make_rows();
CREATE SCHEMA orphans2 CREATE TABLE one (a int) PARTITION BY RANGE (a) CREATE TABLE three (a int);
CREATE TABLE orphans2.two PARTITION OF orphans2.one FOR VALUES FROM (1) TO (1000);
CREATE INDEX ON orphans2.one USING smart (a);
CREATE INDEX ON orphans2.three USING smart (a);
INSERT INTO orphans2.one SELECT generate_series(1, 500);
INSERT INTO orphans2.three SELECT generate_series(1, 500);
SELECT * FROM left_over();
DROP SCHEMA orphans2 CASCADE;
SELECT * FROM left_over();
DROP INDEX CONCURRENTLY rows_b;
SELECT sound('rows'), * FROM left_over();
TRUNCATE rows;
SELECT sound('rows'), * FROM left_over();
INSERT INTO rows SELECT i, i % 100, 'c' || i FROM generate_series(1, 1000) i;
SELECT sound('rows'), * FROM left_over();
DROP TABLE rows;
SELECT * FROM left_over();

\echo -- builds that fail
CREATE TABLE twice AS SELECT 1 + i % 500 AS a FROM generate_series(1, 1000) i;
\set VERBOSITY terse
CREATE UNIQUE INDEX twice_a ON twice USING smart (a);
CREATE UNIQUE INDEX CONCURRENTLY twice_a ON twice USING smart (a);
SELECT leaked_trees, leaked_bytes FROM left_over();
INSERT INTO twice VALUES (1000);
DROP INDEX twice_a;
SELECT * FROM left_over();
CREATE INDEX twice_a ON twice USING smart (a);
BEGIN;
INSERT INTO twice VALUES (2000);
SELECT 1 / 0;
ROLLBACK;
SELECT sound('twice'), * FROM left_over();

\echo -- prepared
BEGIN;
DROP TABLE twice;
CREATE TABLE other AS SELECT generate_series(1, 1000) AS a;
CREATE INDEX ON other USING smart (a);
PREPARE TRANSACTION 'regress_orphans';
SELECT trees FROM smart_collect_orphans();
SELECT trees, unfinished_trees, leaked_trees FROM smart_stat_space WHERE database = current_database();
ROLLBACK PREPARED 'regress_orphans';
SELECT sound('twice'), * FROM left_over();
BEGIN;
DROP TABLE twice;
CREATE TABLE other AS SELECT generate_series(1, 1000) AS a;
CREATE INDEX ON other USING smart (a);
PREPARE TRANSACTION 'regress_orphans';
SELECT trees FROM smart_collect_orphans();
COMMIT PREPARED 'regress_orphans';
SELECT sound('other'), * FROM left_over();
DROP TABLE other;
SELECT * FROM left_over();

\echo -- temporary
-- Trees of this session's temporary tables, and those that no index names, after a collection.
CREATE VIEW public.temporary_left AS
	SELECT temporary_trees, leaked_trees, leaked_bytes FROM smart_stat_space WHERE database = current_database();
CREATE TEMPORARY TABLE temp_one AS SELECT generate_series(1, 1000) AS a;
CREATE INDEX temp_one_a ON temp_one USING smart (a);
SELECT trees FROM smart_collect_orphans();
SELECT * FROM temporary_left;
SELECT sound('temp_one');
BEGIN;
DROP TABLE temp_one;
SELECT trees FROM smart_collect_orphans();
ROLLBACK;
SELECT sound('temp_one');
REINDEX TABLE temp_one;
TRUNCATE temp_one;
INSERT INTO temp_one VALUES (1);
SELECT trees FROM smart_collect_orphans();
SELECT * FROM temporary_left;
SELECT sound('temp_one');
DROP TABLE temp_one;
SELECT trees FROM smart_collect_orphans();
SELECT * FROM temporary_left;
-- Many of them one after another do not pile up until the session ends.
DO $$
BEGIN
	FOR i IN 1..100 LOOP
		CREATE TEMPORARY TABLE temp_many AS SELECT generate_series(1, 10) AS a;
		CREATE INDEX temp_many_a ON temp_many USING smart (a);
		DROP TABLE temp_many;
		COMMIT;
	END LOOP;
END
$$;
SELECT leaked_trees < 50 AS few FROM temporary_left;

\echo -- a database
SELECT current_database() AS original \gset
DROP DATABASE IF EXISTS regress_orphans;
CREATE DATABASE regress_orphans;
\connect regress_orphans
SET client_min_messages = warning;
CREATE EXTENSION smart;
CREATE TABLE here AS SELECT generate_series(1, 1000) AS a;
CREATE INDEX ON here USING smart (a);
\connect :original
-- What another database uses is seen, and left alone.
SELECT trees >= 0 AS done FROM smart_collect_orphans();
SELECT trees, leaked_trees FROM smart_stat_space WHERE database = 'regress_orphans';
DROP DATABASE regress_orphans;
SELECT trees >= 0 AS done FROM smart_collect_orphans();
SELECT count(*) FROM smart_stat_space WHERE database IS NULL OR database = 'regress_orphans';

\echo -- permissions
SET ROLE regress_orphans;
SELECT trees FROM smart_collect_orphans();
SELECT leaked_trees FROM smart_stat_space WHERE database = current_database();
RESET ROLE;
DROP SCHEMA orphans CASCADE;
DROP VIEW temporary_left;
DROP FUNCTION left_over, sound;
DROP PROCEDURE roll_back;
DROP TABLESPACE regress_orphans;
DROP ROLE regress_orphans;
