-- aminsert: into empty and grown indexes, in several orders, by several kinds of statement.
SET client_min_messages = warning;
SET enable_seqscan = off;
SET enable_bitmapscan = off;

CREATE TABLE insert_rows (id int, word text);
CREATE INDEX insert_id ON insert_rows USING smart (id);
CREATE INDEX insert_word ON insert_rows USING smart (word COLLATE "C");
CREATE INDEX insert_both ON insert_rows USING smart (word COLLATE "C", id DESC);

-- The first insert makes the tree; a rollback keeps it, without rows.
BEGIN;
INSERT INTO insert_rows VALUES (1, 'first');
ROLLBACK;
SELECT count(*) FROM insert_rows WHERE id = 1;
INSERT INTO insert_rows VALUES (1, 'first');
SELECT * FROM insert_rows WHERE id = 1;

-- Random, ascending and descending; few distinct values; long and empty strings, NULLs.
INSERT INTO insert_rows SELECT (i * 7919) % 10007, 'r' || md5(i::text) FROM generate_series(1, 5000) i;
INSERT INTO insert_rows SELECT 20000 + i, lpad(i::text, 8, '0') FROM generate_series(1, 5000) i;
INSERT INTO insert_rows SELECT -i, 'd' || lpad((10000 - i)::text, 8, '0') FROM generate_series(1, 5000) i;
INSERT INTO insert_rows SELECT 7, 'the same' FROM generate_series(1, 3000);
INSERT INTO insert_rows SELECT i, repeat('long', i % 500) || i FROM generate_series(1, 1000) i;
INSERT INTO insert_rows VALUES (NULL, NULL), (NULL, ''), (0, NULL), (2147483647, ''), (-2147483648, 'x');
SELECT smart_index_check('insert_id', true), smart_index_check('insert_word', true), smart_index_check('insert_both', true);
-- The entry of the row that was rolled back is there until a scan or an insert meets it.
SELECT (SELECT count(*) FROM insert_rows) AS rows,
	(smart_index_stats(indexrelid)).entries - (SELECT count(*) FROM insert_rows) BETWEEN 0 AND 1 AS entries
	FROM pg_index WHERE indrelid = 'insert_rows'::regclass;
SELECT count(*) FROM insert_rows WHERE id = 7;
SELECT count(*) FROM insert_rows WHERE word COLLATE "C" = 'the same';
SELECT count(*) FROM insert_rows WHERE id BETWEEN -10 AND 10;
SELECT id FROM insert_rows ORDER BY id LIMIT 3;
SELECT id FROM insert_rows WHERE id IS NOT NULL ORDER BY id DESC LIMIT 3;
SELECT count(*) FROM insert_rows WHERE word COLLATE "C" >= 'longlong' AND word COLLATE "C" < 'longloni';

-- Updates: in place of the key (a new entry), of another column (a HOT update may need none).
UPDATE insert_rows SET id = id + 100000 WHERE id BETWEEN 1 AND 100;
UPDATE insert_rows SET word = upper(word) WHERE id BETWEEN 200 AND 300;
DELETE FROM insert_rows WHERE id < -4000;
SELECT count(*) FROM insert_rows WHERE id BETWEEN 1 AND 100;
SELECT count(*) FROM insert_rows WHERE id BETWEEN 100001 AND 100100;
SELECT count(*) FROM insert_rows WHERE id < -4000;
SELECT smart_index_check('insert_id', true), smart_index_check('insert_word', true), smart_index_check('insert_both', true);

-- COPY, a function, a cursor that is open meanwhile, subtransactions that fail.
COPY insert_rows FROM stdin;
300001	copied
300002	\N
\.
SELECT * FROM insert_rows WHERE id > 300000 ORDER BY id;
BEGIN;
DECLARE insert_cursor CURSOR FOR SELECT id FROM insert_rows WHERE id BETWEEN 300000 AND 400000 ORDER BY id;
FETCH 1 FROM insert_cursor;
INSERT INTO insert_rows SELECT 300000 + i, 'while open' FROM generate_series(3, 2000) i;
FETCH ALL FROM insert_cursor;
COMMIT;
SELECT count(*) FROM insert_rows WHERE id BETWEEN 300000 AND 400000;
DO $$
BEGIN
	FOR i IN 1..20 LOOP
		BEGIN
			INSERT INTO insert_rows SELECT 500000 + i, 'sub' FROM generate_series(1, 10);
			IF i % 2 = 0 THEN
				RAISE EXCEPTION 'undo';
			END IF;
		EXCEPTION WHEN raise_exception THEN
			NULL;
		END;
	END LOOP;
END
$$;
SELECT count(*) FROM insert_rows WHERE id BETWEEN 500000 AND 600000;

-- All of it again after VACUUM has taken the dead entries away.
VACUUM insert_rows;
SELECT smart_index_check('insert_id', true), smart_index_check('insert_word', true), smart_index_check('insert_both', true);
DROP TABLE insert_rows;
