-- Many rows of one value: their entries differ in their TIDs only, whose bytes lie partly in what a leaf's entries share.
\getenv abs_srcdir PG_ABS_SRCDIR
\set compare :abs_srcdir /test/regress/compare.sql
\set ECHO none
\i :compare
\set ECHO all

-- A fillfactor spreads the rows over many blocks.
CREATE TABLE scan_duplicates (n int, flag bool, small int2, number int8, word text COLLATE "C", missing int, fixed int,
	varying int, pair_word text COLLATE "C") WITH (fillfactor = 10);
INSERT INTO scan_duplicates
SELECT i, i % 2 = 0, i % 5, i % 40, 'word ' || i % 20, nullif(i % 6, 0), i % 30, i % 30, 'pair ' || i % 10
FROM generate_series(1, 12000) i;
-- Dense blocks, so that a leaf's entries share most of their TIDs
ALTER TABLE scan_duplicates SET (fillfactor = 100);
INSERT INTO scan_duplicates
SELECT 20000 + i, false, 50, 50, 'word 50', 50, 50, 50, 'pair 5' FROM generate_series(1, 6000) i;
-- A few rows each, too
INSERT INTO scan_duplicates
SELECT 12000 + i, NULL, 1000 + i / 3, 1000 + i / 3, 'rare ' || i / 2, 1000 + i / 6, 1000 + i / 3, 1000 + i / 3, 'rare ' || i / 5
FROM generate_series(1, 300) i;
CREATE INDEX scan_duplicates_flag ON scan_duplicates USING smart (flag);
CREATE INDEX scan_duplicates_small ON scan_duplicates USING smart (small);
CREATE INDEX scan_duplicates_number ON scan_duplicates USING smart (number);
CREATE INDEX scan_duplicates_word ON scan_duplicates USING smart (word);
CREATE INDEX scan_duplicates_missing ON scan_duplicates USING smart (missing);
CREATE INDEX scan_duplicates_fixed ON scan_duplicates USING smart (fixed) INCLUDE (small, flag);
CREATE INDEX scan_duplicates_varying ON scan_duplicates USING smart (varying) INCLUDE (word);
CREATE INDEX scan_duplicates_pair ON scan_duplicates USING smart (pair_word, small);
VACUUM ANALYZE scan_duplicates;

-- compare_columns(ways, what): by every index; what the rows must show, besides the column.
CREATE FUNCTION pg_temp.compare_columns(ways text[], what text) RETURNS TABLE (index_column text, result text) LANGUAGE sql AS $$
	SELECT key, pg_temp.compare_all(ARRAY(
		SELECT format(query, concat_ws(', ', key, what), key) FROM unnest(ARRAY[
			'SELECT %1$s FROM scan_duplicates WHERE %2$s ' || condition,
			'SELECT * FROM (SELECT %1$s FROM scan_duplicates WHERE %2$s ' || condition || ' ORDER BY %2$s DESC) backward']) query), ways)
	FROM (VALUES ('flag', '> false'), ('flag', '< true'), ('small', 'BETWEEN 1 AND 2'), ('small', '> 900'), ('number', 'BETWEEN 3 AND 6'),
		('number', '> 38'), ('word', 'BETWEEN ''word 5'' AND ''word 8'''), ('word', '< ''word'''), ('missing', 'IS NULL'),
		('missing', '>= 5'), ('fixed', '<= 4'), ('fixed', '> 28'), ('varying', '<= 4'), ('varying', '> 28'),
		('pair_word', '< ''pair 6''')) columns(key, condition)
$$;
SELECT * FROM pg_temp.compare_columns(ARRAY['index'], 'ctid, n');
SELECT * FROM pg_temp.compare_columns(ARRAY['only'], NULL);
SELECT pg_temp.compare_all(ARRAY[
	'SELECT ctid, n FROM scan_duplicates WHERE number IN (3, 17, 39, 1050)',
	'SELECT ctid, n FROM scan_duplicates WHERE word = ''word 7''',
	'SELECT ctid, n FROM scan_duplicates WHERE pair_word > ''pair 2'' AND small = 3'], ARRAY['index', 'bitmap']);

-- Rows that went away since are looked for where the TIDs say.
DELETE FROM scan_duplicates WHERE n % 7 = 0;
SELECT * FROM pg_temp.compare_columns(ARRAY['only'], NULL);
SELECT pg_temp.compare_all(ARRAY[
	'SELECT fixed, small, flag FROM scan_duplicates WHERE fixed BETWEEN 7 AND 9',
	'SELECT varying, word FROM scan_duplicates WHERE varying BETWEEN 7 AND 9',
	'SELECT pair_word, small FROM scan_duplicates WHERE pair_word > ''pair 2'' AND small = 3'], ARRAY['index', 'only']);
DROP TABLE scan_duplicates;
