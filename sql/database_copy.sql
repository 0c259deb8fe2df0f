-- A copied database has copies of the metapages, which name the trees of the original: they must not be used.  With a copy
-- of the journal an index is loaded.
\set original :DBNAME
SET client_min_messages = warning;
DROP DATABASE IF EXISTS smart_copy;
DROP DATABASE IF EXISTS smart_template;
CREATE DATABASE smart_template;
\connect smart_template
CREATE EXTENSION smart;
CREATE TABLE full_one (a int);
INSERT INTO full_one SELECT generate_series(1, 1000);
CREATE INDEX full_one_a ON full_one USING smart (a) WITH (logged = off);
CREATE TABLE unique_one (a int, b int) WITH (fillfactor = 50);
INSERT INTO unique_one SELECT i, i FROM generate_series(1, 100) i;
CREATE UNIQUE INDEX unique_one_a ON unique_one USING smart (a) WITH (logged = off);
CREATE TABLE logged_one (a int);
INSERT INTO logged_one SELECT generate_series(1, 1000);
CREATE UNIQUE INDEX logged_one_a ON logged_one USING smart (a);
INSERT INTO logged_one SELECT generate_series(1001, 2000);
DELETE FROM logged_one WHERE a BETWEEN 501 AND 1500;
VACUUM logged_one;
CREATE TABLE empty_one (a int);
CREATE INDEX empty_one_a ON empty_one USING smart (a);
\connect :original
CREATE DATABASE smart_copy TEMPLATE smart_template;
\connect smart_copy
SET enable_seqscan = off;
-- Its pages answer until it is loaded.
INSERT INTO logged_one VALUES (2000);
INSERT INTO logged_one VALUES (700);
SELECT count(*), sum(a) FROM logged_one WHERE a BETWEEN 400 AND 1600;
-- Waits until it is loaded.
SET smart.answer_from_pages = off;
INSERT INTO logged_one VALUES (2000);
RESET smart.answer_from_pages;
SELECT smart_index_check('logged_one_a', true);
SELECT index, state, reason FROM smart_index_state ORDER BY index::text;
-- Queries do without it, inserts leave it out, and nothing is asked of it.
CREATE FUNCTION pg_temp.uses_index(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN ' || query LOOP
		IF line ~ 'Index' THEN
			RETURN true;
		END IF;
	END LOOP;
	RETURN false;
END
$$;
SELECT pg_temp.uses_index('SELECT count(*) FROM full_one WHERE a < 100');
SELECT count(*) FROM full_one WHERE a < 100;
INSERT INTO full_one VALUES (1001);
VACUUM full_one;
SELECT smart_index_check('full_one_a', true);
CLUSTER full_one USING full_one_a;
SELECT index, state, reason FROM smart_index_state WHERE state = 'lost' ORDER BY index::text;

-- A unique one must be asked before it takes anything.
INSERT INTO unique_one VALUES (101, 1);
INSERT INTO unique_one VALUES (1, 1) ON CONFLICT DO NOTHING;
UPDATE unique_one SET a = 200 WHERE a = 1;
UPDATE unique_one SET b = 200 WHERE a = 1;
DELETE FROM unique_one WHERE a = 2;
SELECT a, b FROM unique_one WHERE a < 4 ORDER BY a;
REINDEX INDEX unique_one_a;
INSERT INTO unique_one VALUES (1, 1);
INSERT INTO unique_one VALUES (2, 2);
SELECT smart_index_check('unique_one_a', true);


-- One without a tree has nothing that it could share.
INSERT INTO empty_one VALUES (1), (2);
SELECT count(*) FROM empty_one WHERE a > 0;
REINDEX INDEX full_one_a;
DELETE FROM full_one WHERE a > 500;
VACUUM full_one;
SELECT count(*) FROM full_one WHERE a > 0;

-- The original knows nothing of all that.
\connect smart_template
SET enable_seqscan = off;
SELECT count(*) FROM logged_one WHERE a > 0;
INSERT INTO empty_one VALUES (3);
SELECT a FROM empty_one WHERE a > 0;
SELECT count(*) FROM full_one WHERE a > 0;
SELECT smart_index_check('full_one_a', true), smart_index_check('empty_one_a', true);
\connect :original
DROP DATABASE smart_copy;
DROP DATABASE smart_template;
