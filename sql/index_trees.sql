-- Trees do not outlive what they were made for: rolled back, truncated, temporary.
CREATE FUNCTION trees() RETURNS bigint LANGUAGE sql AS 'SELECT sum(trees) FROM smart_memory_nodes()';
-- Waits until there are so many (a backend that was left needs a moment to exit).
CREATE FUNCTION trees_become(expected bigint) RETURNS bool LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1..30000 LOOP
		IF trees() = expected THEN
			RETURN true;
		END IF;
		PERFORM pg_sleep(0.01);
	END LOOP;
	RETURN false;
END
$$;
CREATE TABLE index_trees (a int);
INSERT INTO index_trees SELECT generate_series(1, 1000);
SELECT FROM smart_collect_orphans();
SELECT trees() AS before \gset

SELECT bool_and(allocated_bytes <= capacity_bytes) AS ascending FROM smart_memory_nodes();

BEGIN;
CREATE INDEX index_trees_a ON index_trees USING smart (a);
SELECT trees() - :before AS inside;
ROLLBACK;
SELECT trees() - :before AS rolled_back;

BEGIN;
SAVEPOINT s;
CREATE INDEX index_trees_a ON index_trees USING smart (a);
ROLLBACK TO s;
SELECT trees() - :before AS rolled_back;
SAVEPOINT s2;
CREATE INDEX index_trees_a ON index_trees USING smart (a);
RELEASE s2;
SELECT trees() - :before AS released;
ROLLBACK;
SELECT trees() - :before AS rolled_back;

-- The first insert makes the tree, in a subtransaction of the one that made the file.
BEGIN;
CREATE TABLE index_trees_late (a int);
CREATE INDEX index_trees_late_a ON index_trees_late USING smart (a);
SAVEPOINT s;
INSERT INTO index_trees_late VALUES (1);
ROLLBACK TO s;
SELECT trees() - :before AS inside;
INSERT INTO index_trees_late VALUES (2);
SELECT smart_index_check('index_trees_late_a', true);
ROLLBACK;
SELECT trees() - :before AS rolled_back;

-- An index that stays keeps its tree when another one is rolled back.
CREATE INDEX index_trees_a ON index_trees USING smart (a);
BEGIN;
REINDEX INDEX index_trees_a;
ROLLBACK;
SELECT trees() - :before AS one;
SELECT smart_index_check('index_trees_a', true);

-- A failed build leaves none.
CREATE TABLE index_trees_twice AS SELECT 1 AS a FROM generate_series(1, 2);
CREATE UNIQUE INDEX index_trees_unique ON index_trees_twice USING smart (a);
SELECT trees() - :before AS one;

-- Truncated by the transaction that made it: the same file gets another tree.
BEGIN;
CREATE TABLE index_trees_new (a int);
CREATE INDEX index_trees_new_a ON index_trees_new USING smart (a);
INSERT INTO index_trees_new VALUES (1), (2);
TRUNCATE index_trees_new;
INSERT INTO index_trees_new VALUES (3);
SELECT trees() - :before AS two;
SET LOCAL enable_seqscan = off;
SELECT a FROM index_trees_new WHERE a > 0;
COMMIT;
SELECT trees() - :before AS two;
SELECT smart_index_check('index_trees_new_a', true);

-- Temporary ones go with their backend, and ON COMMIT DELETE ROWS does not pile them up.
SELECT trees() AS before \gset
CREATE TEMPORARY TABLE index_trees_temp (a int) ON COMMIT DELETE ROWS;
CREATE INDEX index_trees_temp_a ON index_trees_temp USING smart (a);
INSERT INTO index_trees_temp VALUES (1);
INSERT INTO index_trees_temp VALUES (2);
INSERT INTO index_trees_temp VALUES (3);
SELECT trees() - :before <= 1 AS at_most_one;
CREATE TEMPORARY TABLE index_trees_temp2 AS SELECT 1 AS a;
CREATE INDEX index_trees_temp2_a ON index_trees_temp2 USING smart (a);
SELECT trees() > :before AS some;
\c -
SELECT trees_become(:before);

DROP TABLE index_trees, index_trees_twice, index_trees_new;
DROP FUNCTION trees, trees_become;
