-- What may be missed where "USING smart" takes the place of "USING btree": each question is put to both.
CREATE TABLE parity (id int, n int, flag boolean, word text COLLATE "C", at timestamptz) WITH (autovacuum_enabled = off);
INSERT INTO parity SELECT i, i % 1000, i % 100 = 0, 'word ' || i, '2026-01-01Z'::timestamptz + i * interval '1 min'
	FROM generate_series(1, 10000) i;
CREATE TABLE parity_b (LIKE parity) WITH (autovacuum_enabled = off);
INSERT INTO parity_b TABLE parity;

-- Boolean columns: "flag" is "flag = true", and leaves the order of the next column.
CREATE INDEX parity_flag ON parity USING smart (flag, n);
VACUUM ANALYZE parity;
SET enable_bitmapscan = off;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT n FROM parity WHERE flag ORDER BY n;
EXPLAIN (COSTS OFF) SELECT n FROM parity WHERE NOT flag AND n < 10 ORDER BY n;
EXPLAIN (COSTS OFF) SELECT n FROM parity WHERE flag IS TRUE AND n = 100;
SELECT count(*), min(n), max(n) FROM parity WHERE flag;
SELECT count(*), min(n), max(n) FROM parity WHERE NOT flag AND n < 10;
RESET enable_bitmapscan;
RESET enable_seqscan;

-- At most one match: joins that add nothing go, the others stop at the first.
CREATE UNIQUE INDEX parity_id ON parity USING smart (id);
CREATE UNIQUE INDEX parity_word ON parity USING smart (word, n);
CREATE UNIQUE INDEX parity_part ON parity USING smart (at) WHERE id < 20000;
CREATE FUNCTION parity_plan(query text, property text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
	RETURN plan->0->'Plan'->>property;
END $$;
CREATE FUNCTION parity_is_needed(inner_table text, condition text) RETURNS boolean LANGUAGE sql AS $$
	SELECT parity_plan(format('SELECT b.n FROM parity_b b LEFT JOIN %s p ON %s', inner_table, condition), 'Node Type') <> 'Seq Scan'
$$;
SELECT condition, parity_is_needed('parity', condition)
	FROM unnest(ARRAY['p.id = b.id', 'p.id = b.id::bigint', 'p.word = b.word AND p.n = 5']) condition;
SELECT parity_plan('SELECT 1 FROM parity_b b JOIN parity p USING (id)', 'Inner Unique');
-- Not these: half of the key, another equality, a partial index.
SELECT condition, parity_is_needed('parity', condition)
	FROM unnest(ARRAY['p.word = b.word', 'p.id::numeric = b.id', 'p.at = b.at AND p.id < 20000']) condition;
-- An index without an order proves the same.
CREATE COLLATION parity_libc (provider = libc, locale = 'C.utf8@other');
CREATE TABLE parity_plain (word text COLLATE parity_libc);
CREATE UNIQUE INDEX parity_plain_word ON parity_plain USING smart (word);
SELECT parity_is_needed('parity_plain', 'p.word = b.word COLLATE parity_libc');

-- Values beyond those that ANALYZE has seen: the planner looks for the greatest one in the index.
CREATE INDEX parity_at ON parity USING smart (at DESC);
CREATE INDEX parity_b_id ON parity_b (id);
CREATE INDEX parity_b_at ON parity_b (at DESC);
ANALYZE parity, parity_b;
INSERT INTO parity SELECT i, 1, false, 'later ' || i, '2026-01-01Z'::timestamptz + i * interval '1 min'
	FROM generate_series(10001, 15000) i;
INSERT INTO parity SELECT -i FROM generate_series(0, 5000) i;
INSERT INTO parity_b TABLE parity OFFSET 10000;
SELECT condition, smart = btree AS same, smart > 20 AS many
	FROM unnest(ARRAY['id > 12000', 'id < -1000', $$at > '2026-01-09Z'$$, 'id > 20000']) condition,
		CAST(parity_plan('SELECT 1 FROM parity WHERE ' || condition, 'Plan Rows') AS int) smart,
		CAST(parity_plan('SELECT 1 FROM parity_b WHERE ' || condition, 'Plan Rows') AS int) btree;

-- Definitions of btrees are taken as they are.
CREATE INDEX parity_options ON parity USING smart (n) WITH (fillfactor = 70, deduplicate_items = off);
ALTER INDEX parity_options SET (deduplicate_items = on);
SELECT reloptions FROM pg_class WHERE oid = 'parity_options'::regclass;
ALTER INDEX parity_options RESET (deduplicate_items);
CREATE INDEX parity_wrong ON parity USING smart (n) WITH (deduplicate_items = perhaps);

-- Duplicates are named, also those of types that entries do not give back.
CREATE TABLE parity_twice (a text[], m int4multirange, z text);
INSERT INTO parity_twice VALUES ('{one,two}', '{[1,5)}', 'x'), ('{one,three}', '{[2,5)}', 'y'), ('{one,two}', '{[1,5)}', 'z');
UPDATE parity_twice SET z = z || z;
CREATE UNIQUE INDEX parity_twice_a ON parity_twice USING smart (a);
CREATE UNIQUE INDEX CONCURRENTLY parity_twice_m ON parity_twice USING smart (m);
DROP INDEX parity_twice_m;
CREATE UNIQUE INDEX parity_twice_e ON parity_twice USING smart ((a || 'three'::text), m) INCLUDE (z);

-- A type that passes for text but compares otherwise (such as citext) does not get the class of text.
SET client_min_messages = warning;
CREATE SCHEMA parity_types;
CREATE TYPE parity_types.folded;
CREATE FUNCTION parity_folded_in(cstring) RETURNS parity_types.folded LANGUAGE internal IMMUTABLE STRICT AS 'textin';
CREATE FUNCTION parity_folded_out(parity_types.folded) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'textout';
CREATE TYPE parity_types.folded (INPUT = parity_folded_in, OUTPUT = parity_folded_out, LIKE = text, COLLATABLE = true);
RESET client_min_messages;
CREATE CAST (parity_types.folded AS text) WITHOUT FUNCTION AS IMPLICIT;
CREATE TABLE parity_words (w parity_types.folded);
INSERT INTO parity_words VALUES ('Ann'), ('ANN');
CREATE UNIQUE INDEX parity_words_w ON parity_words USING smart (w COLLATE "C");
DROP INDEX parity_words_w;
CREATE FUNCTION parity_folded_cmp(parity_types.folded, parity_types.folded) RETURNS int LANGUAGE sql IMMUTABLE AS
	'SELECT bttextcmp(lower($1::text COLLATE "C"), lower($2::text COLLATE "C"))';
CREATE OPERATOR CLASS parity_folded_ops DEFAULT FOR TYPE parity_types.folded USING btree AS
	FUNCTION 1 parity_folded_cmp(parity_types.folded, parity_types.folded);
CREATE UNIQUE INDEX parity_words_w ON parity_words USING smart (w COLLATE "C");
-- Where a type has a class, it can be given another one that takes it.
CREATE INDEX parity_words_c ON parity_words USING smart ((w::text) COLLATE "C" bpchar_ops) WHERE w IS NOT NULL;
CREATE UNIQUE INDEX parity_words_t ON parity_words USING smart ((w::text) COLLATE "C");
CREATE UNIQUE INDEX parity_words_l ON parity_words USING smart (lower(w::text) COLLATE "C");
SET client_min_messages = warning;
DROP SCHEMA parity_types CASCADE;
RESET client_min_messages;

DROP TABLE parity, parity_b, parity_plain, parity_twice, parity_words;
DROP FUNCTION parity_is_needed, parity_plan;
