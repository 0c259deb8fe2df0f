-- Patterns: LIKE and ^@ by prefix, under C and under other collations.
\getenv abs_srcdir PG_ABS_SRCDIR
\set compare :abs_srcdir /test/regress/compare.sql
\set ECHO none
\i :compare
\set ECHO all

CREATE COLLATION scan_pattern_libc (provider = libc, locale = 'C.utf8@other');
CREATE TABLE scan_pattern (t text, c text COLLATE "C", i text COLLATE "en-x-icu", l text COLLATE scan_pattern_libc, n name) WITH (autovacuum_enabled = off);
INSERT INTO scan_pattern SELECT w, w, w, w, w::name
FROM (SELECT (ARRAY['ab', 'abc', 'Ab', 'a%', 'a_', 'a\b', 'ä', 'zz', ''])[1 + i % 9] || (ARRAY['', 'x', 'xy', '%', ' '])[1 + i % 5] AS w
	FROM generate_series(1, 2000) i) w;
CREATE INDEX scan_pattern_t ON scan_pattern USING smart (t);
CREATE INDEX scan_pattern_c ON scan_pattern USING smart (c);
CREATE INDEX scan_pattern_i ON scan_pattern USING smart (i);
CREATE INDEX scan_pattern_l ON scan_pattern USING smart (l);
CREATE INDEX scan_pattern_n ON scan_pattern USING smart (n);
ANALYZE scan_pattern;

SELECT pg_temp.compare_all(array_agg(format('SELECT %1$I FROM scan_pattern WHERE %1$I %2$s', col, cond)), ARRAY['index', 'bitmap', 'only'])
FROM unnest(ARRAY['t', 'c', 'i', 'l', 'n']) col,
	unnest(ARRAY['LIKE ''ab%''', 'LIKE ''ab''', 'LIKE ''a\%%''', 'LIKE ''a\\%''', 'LIKE ''a_x%''', 'LIKE ''ä%''', 'LIKE ''''', '= ''abcx''',
		'IN (''ab'', ''zzx'', ''ä'')', 'LIKE ''ab'' || ''%xy''', '> ''ab''', '<= ''abc''']) cond;
SELECT pg_temp.compare_all(array_agg(format('SELECT %1$I FROM scan_pattern WHERE %1$I %2$s', col, cond)), ARRAY['index', 'only'])
FROM unnest(ARRAY['t', 'c', 'i', 'l']) col, unnest(ARRAY['^@ ''ab''', '^@ ''a%''', '^@ ''''', '^@ ''ä''']) cond;

-- A pattern that is known at run time only
PREPARE pattern(text) AS SELECT count(*) FROM scan_pattern WHERE c LIKE $1;
SET plan_cache_mode = force_generic_plan;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) EXECUTE pattern('ab%');
EXECUTE pattern('ab%');
EXECUTE pattern('%b%');
EXECUTE pattern(NULL);

-- Bytes do not sort as the C library does: such an index answers conditions, but does not claim to be in order.
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT l FROM scan_pattern WHERE l > 'ab' ORDER BY l;
EXPLAIN (COSTS OFF) SELECT c FROM scan_pattern WHERE c > 'ab' ORDER BY c;
EXPLAIN (COSTS OFF) SELECT i FROM scan_pattern WHERE i > 'ab' ORDER BY i;
EXPLAIN (COSTS OFF) SELECT min(l) FROM scan_pattern;
SELECT p, pg_index_column_has_property('scan_pattern_l', 1, p) AS libc, pg_index_column_has_property('scan_pattern_c', 1, p) AS c
FROM unnest(ARRAY['orderable', 'asc', 'nulls_last', 'distance_orderable', 'returnable', 'search_array', 'search_nulls']) p;
RESET ALL;
SELECT (SELECT min(l) FROM scan_pattern) = (SELECT l FROM scan_pattern ORDER BY l || '' LIMIT 1) AS right_minimum;
DROP TABLE scan_pattern;
