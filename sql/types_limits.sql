-- What an index refuses, and that it goes on afterwards.

-- Keys of more than 4095 bytes with null bytes, ends and TID: here 4086 characters are the most
CREATE TABLE long (id int, x text COLLATE "C", b bytea);
INSERT INTO long VALUES (1, repeat('x', 4086), NULL), (2, repeat('y', 4087), NULL);
CREATE INDEX long_x ON long USING smart (x);
TRUNCATE long;
INSERT INTO long VALUES (1, repeat('x', 4086), NULL);
CREATE INDEX long_x ON long USING smart (x);
INSERT INTO long VALUES (3, repeat('z', 4086), NULL);
\set VERBOSITY sqlstate
INSERT INTO long VALUES (4, repeat('z', 4087), NULL);
INSERT INTO long VALUES (4, repeat('z', 1000000), NULL);
\set VERBOSITY default
SELECT id, length(x) FROM long ORDER BY id;
SELECT smart_normalized_key('long_x', repeat('z', 4087));
SELECT length(smart_normalized_key('long_x', repeat('z', 4086)));

-- A byte that is escaped counts twice
CREATE INDEX long_b ON long USING smart (b);
INSERT INTO long VALUES (5, NULL, decode(repeat('00', 2042), 'hex'));
\set VERBOSITY sqlstate
INSERT INTO long VALUES (6, NULL, decode(repeat('00', 2043), 'hex'));
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
