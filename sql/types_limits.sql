-- What an index refuses, and that it goes on afterwards.

-- Keys that are longer than 4095 bytes when they have been squeezed; of an array, which is not squeezed, as they are
CREATE FUNCTION pg_temp.noise(bytes int) RETURNS bytea LANGUAGE sql AS $$
	SELECT substr(string_agg(sha256(i::text::bytea), ''::bytea ORDER BY i), 1, bytes) FROM generate_series(0, bytes / 32) i
$$;
CREATE TABLE long (id int, x text COLLATE "C", b bytea, a text[] COLLATE "C");
INSERT INTO long VALUES (1, encode(pg_temp.noise(2500), 'hex')), (2, encode(pg_temp.noise(4500), 'hex'));
CREATE INDEX long_x ON long USING smart (x);
DELETE FROM long WHERE id = 2;
CREATE INDEX long_x ON long USING smart (x);
INSERT INTO long VALUES (3, repeat('z', 4087));
\set VERBOSITY sqlstate
INSERT INTO long VALUES (4, encode(pg_temp.noise(4500), 'hex'));
INSERT INTO long VALUES (4, repeat('z', 262144));
INSERT INTO long VALUES (4, repeat('z', 1000000));
\set VERBOSITY default
SELECT id, length(x) FROM long ORDER BY id;
SELECT smart_normalized_key('long_x', encode(pg_temp.noise(4500), 'hex'));
SELECT length(smart_normalized_key('long_x', repeat('z', 1999))), length(smart_normalized_key('long_x', repeat('z', 2000)));
CREATE INDEX long_b ON long USING smart (b);
CREATE INDEX long_a ON long USING smart (a);
INSERT INTO long VALUES (5, NULL, pg_temp.noise(4000), NULL);
INSERT INTO long VALUES (6, NULL, decode(repeat('00', 100000), 'hex'), NULL);
INSERT INTO long VALUES (7, NULL, NULL, ARRAY[repeat('a', 4000)]);
\set VERBOSITY sqlstate
INSERT INTO long VALUES (8, NULL, pg_temp.noise(4200), NULL);
INSERT INTO long VALUES (8, NULL, decode(repeat('00', 131072), 'hex'), NULL);
INSERT INTO long VALUES (8, NULL, NULL, ARRAY[repeat('a', 4090)]);
\set VERBOSITY default
DROP TABLE long;

-- Included columns: 8000 bytes with the key; long values are compressed first
CREATE TABLE long (id int, x text);
CREATE INDEX long_id ON long USING smart (id) INCLUDE (x);
INSERT INTO long SELECT 1, string_agg(md5(i::text), '') FROM generate_series(1, 240) i;
INSERT INTO long VALUES (2, repeat('compressible', 10000));
\set VERBOSITY sqlstate
INSERT INTO long SELECT 3, string_agg(md5(i::text), '') FROM generate_series(1, 1000) i;
\set VERBOSITY default
SELECT id, length(x) FROM long ORDER BY id;
DROP TABLE long;

-- Collations under which different strings are equal: not with operators that compare bytes
CREATE COLLATION types_limits_ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE words (x text COLLATE types_limits_ci, y char(5) COLLATE types_limits_ci);
CREATE INDEX ON words USING smart (x);
CREATE INDEX ON words USING smart (y);
CREATE INDEX ON words USING smart (x text_pattern_ops);
CREATE INDEX ON words USING smart (lower(x) COLLATE "C");
DROP TABLE words;
DROP COLLATION types_limits_ci;
