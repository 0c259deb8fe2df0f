-- INSERT ... ON CONFLICT on tables with unique smart indexes.
SET client_min_messages = warning;

CREATE TABLE conflict_rows (id int, word text, n int DEFAULT 0);
CREATE UNIQUE INDEX conflict_id ON conflict_rows USING smart (id);
INSERT INTO conflict_rows VALUES (1, 'one') ON CONFLICT (id) DO NOTHING;
INSERT INTO conflict_rows VALUES (1, 'uno') ON CONFLICT (id) DO NOTHING;
INSERT INTO conflict_rows VALUES (1, 'eins'), (2, 'zwei') ON CONFLICT (id) DO UPDATE SET n = conflict_rows.n + 1, word = excluded.word RETURNING *;
INSERT INTO conflict_rows VALUES (3, 'x'), (3, 'y') ON CONFLICT DO NOTHING RETURNING *;
INSERT INTO conflict_rows VALUES (4, 'x'), (4, 'y') ON CONFLICT (id) DO UPDATE SET n = 9;
INSERT INTO conflict_rows SELECT i, 'many' FROM generate_series(1, 1000) i ON CONFLICT (id) DO UPDATE SET n = conflict_rows.n + 100;
SELECT count(*), sum(n) FROM conflict_rows;
EXPLAIN (COSTS OFF) INSERT INTO conflict_rows VALUES (1, 'one') ON CONFLICT (id) DO NOTHING;
SELECT smart_index_check('conflict_id', true);

-- The arbiter is another index, of btree; the smart one still has its say.
CREATE UNIQUE INDEX conflict_word ON conflict_rows (word) WHERE word <> 'many';
INSERT INTO conflict_rows VALUES (2000, 'eins') ON CONFLICT (word) WHERE word <> 'many' DO UPDATE SET n = -1 RETURNING id, n;
INSERT INTO conflict_rows VALUES (1, 'neu') ON CONFLICT (word) WHERE word <> 'many' DO NOTHING;
INSERT INTO conflict_rows VALUES (1, 'neu') ON CONFLICT DO NOTHING;
DROP INDEX conflict_word;

-- Several columns, strings, expressions, partial indexes, prepared statements.
CREATE UNIQUE INDEX conflict_both ON conflict_rows USING smart (lower(word) COLLATE "C", n) WHERE n < 0;
INSERT INTO conflict_rows VALUES (3001, 'Case', -5);
INSERT INTO conflict_rows VALUES (3002, 'cASE', -5) ON CONFLICT (lower(word) COLLATE "C", n) WHERE n < 0 DO UPDATE SET word = 'merged' RETURNING id, word;
INSERT INTO conflict_rows VALUES (3003, 'merged', -5) ON CONFLICT DO NOTHING;
PREPARE conflict_insert (int, text) AS INSERT INTO conflict_rows VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET n = conflict_rows.n + 1 RETURNING n;
EXECUTE conflict_insert (4000, 'p');
EXECUTE conflict_insert (4000, 'p');
EXECUTE conflict_insert (4000, 'p');

-- Below WITH, in a function, by a rule.
WITH inserted AS (INSERT INTO conflict_rows VALUES (4000, 'with'), (4001, 'with') ON CONFLICT (id) DO UPDATE SET n = 50 RETURNING id, n)
	SELECT * FROM inserted ORDER BY id;
CREATE FUNCTION conflict_upsert(int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE result int;
BEGIN
	INSERT INTO conflict_rows VALUES ($1, 'f') ON CONFLICT (id) DO UPDATE SET n = conflict_rows.n + 1 RETURNING n INTO result;
	RETURN result;
END
$$;
SELECT conflict_upsert(5000), conflict_upsert(5000), conflict_upsert(5000);
CREATE VIEW conflict_view AS SELECT id, word FROM conflict_rows;
INSERT INTO conflict_view VALUES (5000, 'view') ON CONFLICT (id) DO UPDATE SET word = 'view' RETURNING *;

CREATE TABLE conflict_log (id int, n int);
CREATE UNIQUE INDEX conflict_log_id ON conflict_log USING smart (id);
CREATE RULE conflict_rule AS ON INSERT TO conflict_view DO ALSO
	INSERT INTO conflict_log VALUES (NEW.id, 1) ON CONFLICT (id) DO UPDATE SET n = conflict_log.n + 1;
INSERT INTO conflict_view VALUES (5000, 'rule'), (5002, 'rule') ON CONFLICT (id) DO NOTHING;
DROP RULE conflict_rule ON conflict_view;
CREATE RULE conflict_rule AS ON DELETE TO conflict_log DO INSTEAD
	INSERT INTO conflict_log VALUES (OLD.id, 0) ON CONFLICT (id) DO UPDATE SET n = conflict_log.n + 10;
DELETE FROM conflict_log;
WITH one AS (INSERT INTO conflict_log VALUES (5000, 1), (5003, 1) ON CONFLICT (id) DO UPDATE SET n = conflict_log.n + 1 RETURNING *),
	two AS (INSERT INTO conflict_log VALUES (5002, 1), (5004, 1) ON CONFLICT DO NOTHING RETURNING *)
	INSERT INTO conflict_log SELECT id + 10, n FROM (SELECT * FROM one UNION ALL SELECT * FROM two) u ON CONFLICT (id) DO NOTHING RETURNING *;
SELECT * FROM conflict_log ORDER BY id;
SELECT smart_index_check('conflict_log_id', true);
DROP TABLE conflict_log;

-- Triggers see what they should.
CREATE FUNCTION conflict_trigger() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	NEW.n := -1000;
	RETURN NEW;
END
$$;
CREATE TRIGGER conflict_before BEFORE INSERT OR UPDATE ON conflict_rows FOR EACH ROW EXECUTE FUNCTION conflict_trigger();
INSERT INTO conflict_rows VALUES (5000, 'trigger'), (5001, 'trigger') ON CONFLICT (id) DO UPDATE SET word = 'updated' RETURNING *;
SELECT smart_index_check('conflict_id', true), smart_index_check('conflict_both', true);

DROP VIEW conflict_view;
DROP TABLE conflict_rows;
DROP FUNCTION conflict_trigger, conflict_upsert(int);
