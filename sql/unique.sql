-- Unique indexes.
SET client_min_messages = warning;

CREATE TABLE unique_rows (id int, word text, n int);
CREATE UNIQUE INDEX unique_id ON unique_rows USING smart (id);
INSERT INTO unique_rows SELECT i, 'w' || i, i FROM generate_series(1, 1000) i;
INSERT INTO unique_rows VALUES (500, 'again', 0);
INSERT INTO unique_rows VALUES (1001, 'a', 0), (1001, 'b', 0);
UPDATE unique_rows SET id = 3 WHERE id = 2;
UPDATE unique_rows SET id = id WHERE id < 10;
UPDATE unique_rows SET id = 2000 WHERE id = 2;
INSERT INTO unique_rows VALUES (2, 'two again', 0);
DELETE FROM unique_rows WHERE id = 700;
INSERT INTO unique_rows VALUES (700, 'after a delete', 0);
BEGIN;
DELETE FROM unique_rows WHERE id = 701;
INSERT INTO unique_rows VALUES (701, 'after a delete of its own', 0);
INSERT INTO unique_rows VALUES (701, 'too much', 0);
ROLLBACK;
SELECT count(*), count(DISTINCT id) FROM unique_rows;
SELECT smart_index_check('unique_id', true);

-- A statement that fails half way leaves dead rows; their keys are free.
INSERT INTO unique_rows SELECT i, 'half', i FROM generate_series(3000, 2000, -1) i;
INSERT INTO unique_rows SELECT i, 'whole', i FROM generate_series(3000, 2001, -1) i;
SELECT count(*) FROM unique_rows WHERE id > 2000;
SELECT smart_index_check('unique_id', true);

-- HOT chains: one entry stands for all versions of a row.
CREATE TABLE unique_hot (id int, n int) WITH (fillfactor = 50);
CREATE UNIQUE INDEX unique_hot_id ON unique_hot USING smart (id);
INSERT INTO unique_hot VALUES (1, 0);
UPDATE unique_hot SET n = n + 1;
UPDATE unique_hot SET n = n + 1;
INSERT INTO unique_hot VALUES (1, 99);
DELETE FROM unique_hot;
INSERT INTO unique_hot VALUES (1, 100);
SELECT * FROM unique_hot;

-- NULLs.
INSERT INTO unique_rows VALUES (NULL, 'null', 0), (NULL, 'null', 0);
CREATE UNIQUE INDEX unique_word ON unique_rows USING smart (word COLLATE "C", n) NULLS NOT DISTINCT;
DELETE FROM unique_rows WHERE id IS NULL;
CREATE UNIQUE INDEX unique_word ON unique_rows USING smart (word COLLATE "C", n) NULLS NOT DISTINCT;
INSERT INTO unique_rows VALUES (5001, NULL, NULL);
INSERT INTO unique_rows VALUES (5002, NULL, NULL);
INSERT INTO unique_rows VALUES (5002, NULL, 1);
INSERT INTO unique_rows VALUES (5003, NULL, 1);
DROP INDEX unique_word;
CREATE UNIQUE INDEX unique_word ON unique_rows USING smart (word COLLATE "C", n);
INSERT INTO unique_rows VALUES (5003, NULL, 1), (5004, NULL, 1);
SELECT smart_index_check('unique_word', true);

-- Builds that find duplicates, among NULLs too; what is not visible does not count.
CREATE TABLE unique_twice AS SELECT i % 1000 AS id, CASE WHEN i > 5 THEN i END AS n FROM generate_series(1, 1001) i;
CREATE UNIQUE INDEX unique_twice_id ON unique_twice USING smart (id);
CREATE UNIQUE INDEX unique_twice_n ON unique_twice USING smart (n);
CREATE UNIQUE INDEX unique_twice_null ON unique_twice USING smart (n) NULLS NOT DISTINCT;
CREATE UNIQUE INDEX unique_twice_even ON unique_twice USING smart (id DESC) WHERE n % 2 = 0;
CREATE UNIQUE INDEX unique_twice_sum ON unique_twice USING smart ((id + n));
CREATE UNIQUE INDEX CONCURRENTLY unique_twice_later ON unique_twice USING smart (id);
SELECT indisvalid FROM pg_index WHERE indexrelid = 'unique_twice_later'::regclass;
DROP INDEX unique_twice_later;
DELETE FROM unique_twice WHERE n = 1001;
CREATE UNIQUE INDEX CONCURRENTLY unique_twice_later ON unique_twice USING smart (id);
SELECT indisvalid FROM pg_index WHERE indexrelid = 'unique_twice_later'::regclass;
SELECT smart_index_check('unique_twice_later', true);

-- Included columns take no part in uniqueness; equal is what SQL calls equal.
CREATE TABLE unique_equal (f float8, b char(5), t text);
CREATE UNIQUE INDEX unique_equal_f ON unique_equal USING smart (f) INCLUDE (t);
CREATE UNIQUE INDEX unique_equal_b ON unique_equal USING smart (b COLLATE "C");
INSERT INTO unique_equal VALUES ('-0', 'a', 'x');
INSERT INTO unique_equal VALUES ('0', 'b', 'y');
INSERT INTO unique_equal VALUES ('NaN', 'a  ', 'y');
INSERT INTO unique_equal VALUES ('NaN', 'b', 'y');
INSERT INTO unique_equal VALUES ('NaN', 'c', 'z');

-- Many equal keys of dead rows in front of the live one.
CREATE TABLE unique_many (id int, n int);
CREATE UNIQUE INDEX unique_many_id ON unique_many USING smart (id);
CREATE INDEX unique_many_n ON unique_many USING smart (n);
INSERT INTO unique_many VALUES (1, 0);
DO $$
BEGIN
	FOR i IN 1..500 LOOP
		UPDATE unique_many SET n = i;
	END LOOP;
END
$$;
INSERT INTO unique_many VALUES (1, 0);
SELECT smart_index_check('unique_many_id', true);

DROP TABLE unique_rows, unique_hot, unique_twice, unique_equal, unique_many;
