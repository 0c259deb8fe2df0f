-- Extensions such as pg_repack exchange the files of two tables, and those of their indexes, by the catalog, in the transaction
-- that has inserted the last rows. These are in the journals then, too: pages answer for indexes with "resident = never".
CREATE TABLE old_rows (a int, b text);
CREATE INDEX old_rows_a ON old_rows USING smart (a) WITH (resident = never);
CREATE INDEX old_rows_b ON old_rows USING smart (b COLLATE "C") WITH (resident = never);
CREATE TABLE new_rows (LIKE old_rows);
CREATE INDEX new_rows_a ON new_rows USING smart (a) WITH (resident = never);
CREATE INDEX new_rows_b ON new_rows USING smart (b COLLATE "C") WITH (resident = never);
INSERT INTO old_rows SELECT g, 'old ' || g FROM generate_series(1, 10) g;
INSERT INTO new_rows SELECT g, 'new ' || g FROM generate_series(1, 20) g;

CREATE FUNCTION exchange_files(one regclass, other regclass) RETURNS void LANGUAGE sql AS $$
	UPDATE pg_class c SET relfilenode = d.relfilenode, relpages = 0 FROM pg_class d
		WHERE (c.oid, d.oid) IN ((one, other), (other, one))
$$;
CREATE FUNCTION rows_by_index(condition text) RETURNS SETOF text LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) SELECT FROM old_rows WHERE ' || condition LOOP
		CONTINUE WHEN line !~ 'Index.* on old_rows';
		RETURN NEXT line;
	END LOOP;
	RETURN QUERY EXECUTE 'SELECT a || '', '' || b FROM old_rows WHERE ' || condition || ' ORDER BY 1';
END
$$;
CREATE FUNCTION check_all() RETURNS bigint LANGUAGE sql AS $$
	SELECT count(smart_index_check(index, true)::text) FROM unnest('{old_rows_a, old_rows_b, new_rows_a, new_rows_b}'::regclass[]) index
$$;

SET allow_system_table_mods = on;
SET allow_in_place_tablespaces = on;
BEGIN;
INSERT INTO new_rows VALUES (21, 'staged');
SELECT exchange_files('old_rows', 'new_rows'), exchange_files('old_rows_a', 'new_rows_a'), exchange_files('old_rows_b', 'new_rows_b');
COMMIT;
SELECT count(*) FROM old_rows;
SELECT rows_by_index('a > 19');
SELECT rows_by_index('b > ''new 9''');
SELECT check_all();

-- Rows before and after it, in both; one in a subtransaction that comes to nothing.
BEGIN;
INSERT INTO new_rows VALUES (11, 'before, in the one');
INSERT INTO old_rows VALUES (22, 'before, in the other');
SELECT exchange_files('old_rows', 'new_rows'), exchange_files('old_rows_a', 'new_rows_a'), exchange_files('old_rows_b', 'new_rows_b');
INSERT INTO old_rows VALUES (12, 'after, in the one');
SAVEPOINT nothing;
INSERT INTO old_rows VALUES (13, 'nothing');
ROLLBACK TO nothing;
INSERT INTO new_rows VALUES (23, 'after, in the other');
COMMIT;
SELECT rows_by_index('a > 10');
SELECT rows_by_index('b < ''b''');
SELECT count(*) FROM new_rows;
SELECT check_all();

-- The exchange is rolled back with them.
BEGIN;
INSERT INTO new_rows VALUES (24, 'nothing');
SELECT exchange_files('old_rows', 'new_rows'), exchange_files('old_rows_a', 'new_rows_a'), exchange_files('old_rows_b', 'new_rows_b');
INSERT INTO old_rows VALUES (25, 'nothing');
ROLLBACK;
SELECT rows_by_index('a > 10');
SELECT check_all();
RESET allow_system_table_mods;

-- In another tablespace the file has the same pages, until that is rolled back: what was read of the one is not of the other.
CREATE TABLESPACE regress_files LOCATION '';
SELECT rows_by_index('a > 22');
BEGIN;
ALTER INDEX old_rows_a SET TABLESPACE regress_files;
INSERT INTO old_rows VALUES (31, 'nothing');
SELECT rows_by_index('a > 22');
ROLLBACK;
INSERT INTO old_rows VALUES (32, 'afterwards');
SELECT rows_by_index('a > 22');
SELECT check_all();
DROP TABLESPACE regress_files;
DROP TABLE old_rows, new_rows;
DROP FUNCTION exchange_files(regclass, regclass), rows_by_index(text), check_all();
