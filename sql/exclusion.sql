-- Exclusion constraints, also as deferrable uniqueness.
SET client_min_messages = warning;

CREATE TABLE exclusion_rows (id int, word text, EXCLUDE USING smart (id WITH =));
INSERT INTO exclusion_rows SELECT i, 'w' || i FROM generate_series(1, 100) i;
INSERT INTO exclusion_rows VALUES (50, 'again');
INSERT INTO exclusion_rows VALUES (NULL, 'null'), (NULL, 'null');
UPDATE exclusion_rows SET id = 51 WHERE id = 50;
DELETE FROM exclusion_rows WHERE id = 50;
INSERT INTO exclusion_rows VALUES (50, 'after a delete');
SELECT smart_index_check('exclusion_rows_id_excl', true);
ALTER TABLE exclusion_rows ADD CONSTRAINT exclusion_word EXCLUDE USING smart (word WITH =, id WITH =);
INSERT INTO exclusion_rows VALUES (101, 'w1');

-- An exclusion constraint is built although rows break it only if there is none.
ALTER TABLE exclusion_rows ADD CONSTRAINT exclusion_null EXCLUDE USING smart ((word = 'null') WITH =);

-- Deferred to the end of the transaction.
CREATE TABLE exclusion_deferred (
	id int,
	CONSTRAINT exclusion_deferred_id EXCLUDE USING smart (id WITH =) DEFERRABLE INITIALLY DEFERRED
);
INSERT INTO exclusion_deferred SELECT generate_series(1, 10);
BEGIN;
UPDATE exclusion_deferred SET id = id + 1;
COMMIT;
BEGIN;
INSERT INTO exclusion_deferred VALUES (5);
SELECT count(*) FROM exclusion_deferred WHERE id = 5;
COMMIT;
BEGIN;
INSERT INTO exclusion_deferred VALUES (5);
SET CONSTRAINTS exclusion_deferred_id IMMEDIATE;
ROLLBACK;
BEGIN;
INSERT INTO exclusion_deferred VALUES (5);
DELETE FROM exclusion_deferred WHERE ctid = (SELECT min(ctid) FROM exclusion_deferred WHERE id = 5);
COMMIT;
SELECT count(*), count(DISTINCT id) FROM exclusion_deferred;

-- ON CONFLICT takes any constraint of the kind, named or not.
INSERT INTO exclusion_rows VALUES (50, 'again') ON CONFLICT DO NOTHING;
INSERT INTO exclusion_rows VALUES (50, 'again') ON CONFLICT ON CONSTRAINT exclusion_rows_id_excl DO NOTHING;
SELECT word FROM exclusion_rows WHERE id = 50;

DROP TABLE exclusion_rows, exclusion_deferred;
