-- Keys longer than 2000 bytes, which are squeezed: against a sequential scan and a sort.
CREATE TABLE long_keys (id int, t text COLLATE "C", b bytea, filler text);
-- Many share their first 2000 bytes, or 4000, or all but the last; they are words, digits, or one letter.
INSERT INTO long_keys SELECT i, CASE i % 5
	WHEN 0 THEN repeat('x', 1990 + i) || chr(97 + i % 7)
	WHEN 1 THEN repeat('the same ', 230) || (SELECT string_agg(substr('ineedtherightwordsinorder', 1 + (i * j * j) % 20, 4), ' ') FROM generate_series(1, i * 3) j)
	WHEN 2 THEN (SELECT string_agg((j * j % 97)::text, '') FROM generate_series(1, 1200 + i) j)
	WHEN 3 THEN repeat('x', 4000) || repeat(chr(97 + i % 3), i) || i
	ELSE repeat('x', 1995 + i % 9) END
FROM generate_series(1, 120) i;
INSERT INTO long_keys SELECT 1000 + i, repeat('abc', 1000) || repeat(chr(100 + i % 4), i * 100), NULL FROM generate_series(1, 40) i;
INSERT INTO long_keys SELECT 2000 + i, chr(97 + i % 26), NULL FROM generate_series(1, 50) i;
UPDATE long_keys SET b = convert_to(t, 'UTF8') || '\x00'::bytea || decode(lpad(to_hex(id), 8, '0'), 'hex');
UPDATE long_keys SET b = decode(repeat('0001', 1000), 'hex') || b WHERE id % 7 = 0;
SELECT count(*), max(length(t)), count(*) FILTER (WHERE length(t) > 2000) AS long FROM long_keys;

CREATE INDEX long_keys_t ON long_keys USING smart (t);
CREATE INDEX long_keys_down ON long_keys USING smart (t DESC, id) INCLUDE (filler);
CREATE INDEX long_keys_b ON long_keys USING smart (b);
CREATE INDEX long_keys_row ON long_keys USING smart (id, t);
CREATE INDEX long_keys_icu ON long_keys USING smart (t COLLATE "und-x-icu");
SELECT relname, smart_index_check(oid, true) FROM pg_class WHERE relname LIKE 'long_keys\__%' ORDER BY 1;
CREATE TABLE long_results (what text, by_index boolean, result text);
CREATE FUNCTION long_query(what text, query text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	line text;
	used text := '';
BEGIN
	FOR by_index IN 0..1 LOOP
		PERFORM set_config(setting, CASE WHEN by_index = 1 THEN 'off' ELSE 'on' END, true) FROM unnest('{enable_seqscan,enable_sort}'::text[]) setting;
		PERFORM set_config(setting, CASE WHEN by_index = 1 THEN 'on' ELSE 'off' END, true)
			FROM unnest('{enable_indexscan,enable_indexonlyscan,enable_bitmapscan}'::text[]) setting;
		FOR line IN EXECUTE 'EXPLAIN ' || query LOOP
			used := used || line;
		END LOOP;
		EXECUTE 'INSERT INTO long_results SELECT $1, $2, string_agg(md5(q::text), '' '') FROM (' || query || ') q' USING what, by_index = 1;
	END LOOP;
	IF used !~ 'Seq Scan.*Index' THEN
		RAISE WARNING '%: %', what, used;
	END IF;
END
$$;
VACUUM ANALYZE long_keys;
SELECT long_query('order', 'SELECT t FROM long_keys ORDER BY t');
SELECT long_query('order down', 'SELECT t, id FROM long_keys ORDER BY t DESC, id');
SELECT long_query('bytea', 'SELECT b FROM long_keys ORDER BY b');
SELECT long_query('both', 'SELECT b, t FROM long_keys WHERE t LIKE ''x%'' ORDER BY b');
SELECT long_query('icu', 'SELECT t COLLATE "und-x-icu" FROM long_keys ORDER BY t COLLATE "und-x-icu"');
SELECT long_query(format('%s %s %s', op, v.id, more), format('SELECT id, t FROM long_keys WHERE t %s (SELECT t || %L FROM long_keys WHERE id = %s) ORDER BY t, id', op, more, v.id))
FROM unnest('{<,<=,=,>=,>}'::text[]) op, unnest('{1,50,53,100,103,118,1010,2001}'::int[]) v (id), unnest('{"",y}'::text[]) more;
SELECT long_query('like ' || n, format('SELECT id FROM long_keys WHERE t LIKE %L || ''%%'' ORDER BY id', repeat('x', n)))
FROM unnest('{1990,1999,2000,2001,2002,3000,4000,4040}'::int[]) n;
SELECT long_query('starts ' || n, format('SELECT id FROM long_keys WHERE t ^@ %L ORDER BY id', repeat('x', n))) FROM unnest('{1999,2000,2001,4040}'::int[]) n;
SELECT long_query('like all', format('SELECT id FROM long_keys WHERE t LIKE %L ORDER BY id', repeat('x', 1999)));
SELECT long_query('in', 'SELECT id, t FROM long_keys WHERE t IN (SELECT t FROM long_keys WHERE id % 10 = 3) ORDER BY id');
SELECT long_query('any', format('SELECT id FROM long_keys WHERE t = ANY (%L) ORDER BY id', (SELECT array_agg(t ORDER BY id) FROM long_keys WHERE id % 20 = 3)));
SELECT long_query('row ' || id, format('SELECT id FROM long_keys WHERE (t, id) < (%L, %s) AND t > ''x'' ORDER BY t DESC, id', t, id)) FROM long_keys WHERE id IN (7, 103, 1030);
SELECT long_query(format('longer %s %s %s', op, letter, n), format('SELECT id FROM long_keys WHERE t %s repeat(%L, %s) ORDER BY id', op, letter, n))
FROM unnest('{<,<=,=,>=,>}'::text[]) op, unnest('{x}'::text[]) letter, unnest('{262144,1000000}'::int[]) n;
SELECT count(*), count(DISTINCT a.result), count(*) FILTER (WHERE a.result IS DISTINCT FROM b.result) AS differ
FROM long_results a JOIN long_results b USING (what) WHERE NOT a.by_index AND b.by_index;
SELECT what FROM long_results GROUP BY what HAVING count(*) <> 2;

-- What nbtree takes, an index takes, too.
CREATE TABLE long_tried (what text, n int, t text COLLATE "C");
INSERT INTO long_tried SELECT 'letter', n, repeat('x', n) FROM generate_series(2000, 230000, 50000) n;
INSERT INTO long_tried SELECT 'words', n, (SELECT string_agg(substr('ineedtherightwordsinorder', 1 + (j * j) % 21, 4) || j % 13, ' ') FROM generate_series(1, n) j) FROM generate_series(300, 2700, 400) n;
INSERT INTO long_tried SELECT 'json', n, (SELECT jsonb_agg(jsonb_build_object('id', j, 'name', md5(j::text), 'on', j % 3 = 0))::text FROM generate_series(1, n) j) FROM generate_series(20, 100, 10) n;
INSERT INTO long_tried SELECT 'digits', n, (SELECT string_agg(md5(j::text), '') FROM generate_series(1, n) j) FROM generate_series(50, 140, 10) n;
INSERT INTO long_tried SELECT 'rest', n, repeat('x', n) || (SELECT string_agg(chr(33 + ascii(decode(md5(j::text), 'hex')::text) + j * j % 91), '') FROM generate_series(1, 2000) j) FROM generate_series(1000, 9000, 2000) n;
CREATE TABLE long_btree (t text COLLATE "C");
CREATE INDEX ON long_btree (t);
CREATE TABLE long_smart (t text COLLATE "C" UNIQUE WITH (smart = on));
CREATE FUNCTION long_takes(tab text, value text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('INSERT INTO %I VALUES ($1)', tab) USING value;
	RETURN true;
EXCEPTION WHEN program_limit_exceeded THEN
	RETURN false;
END
$$;
SELECT what, count(*), count(*) FILTER (WHERE btree) AS btree, count(*) FILTER (WHERE btree AND smart) AS smart_too, count(*) FILTER (WHERE smart) AS smart
FROM (SELECT what, n, long_takes('long_btree', t) AS btree, long_takes('long_smart', t) AS smart FROM long_tried) t GROUP BY what ORDER BY what;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
VACUUM ANALYZE long_smart;
EXPLAIN (COSTS OFF) SELECT t FROM long_smart ORDER BY t;
SELECT count(*), count(*) FILTER (WHERE t COLLATE "C" >= before) AS ascend FROM (SELECT t, lag(t) OVER (ORDER BY t) AS before FROM long_smart) s;
SELECT count(*) FROM (SELECT t FROM long_smart ORDER BY t) s JOIN (SELECT DISTINCT t FROM long_tried) l USING (t);
SELECT smart_index_check('long_smart_t_key', true);

-- Unique keys, ON CONFLICT, VACUUM, a build
\set VERBOSITY sqlstate
INSERT INTO long_smart SELECT t FROM long_smart WHERE length(t) > 3000 LIMIT 1;
\set VERBOSITY default
INSERT INTO long_smart SELECT t FROM long_tried WHERE what = 'letter' ON CONFLICT (t) DO NOTHING;
INSERT INTO long_smart SELECT t || 'y' FROM long_tried WHERE what = 'letter' AND n < 200000 ON CONFLICT (t) DO UPDATE SET t = 'never';
SELECT count(*) FROM long_smart WHERE t LIKE repeat('x', 2100) || '%y';
DELETE FROM long_smart WHERE t LIKE '%y';
VACUUM long_smart;
REINDEX TABLE long_smart;
SELECT smart_index_check('long_smart_t_key', true);
RESET enable_seqscan;
RESET enable_bitmapscan;

-- Storage without compression, and with an INCLUDE column that leaves no room
CREATE TABLE long_stored (id int, t text COLLATE "C", filler text);
ALTER TABLE long_stored ALTER t SET STORAGE EXTERNAL, ALTER filler SET STORAGE EXTERNAL;
CREATE INDEX long_stored_t ON long_stored USING smart (t) INCLUDE (filler);
INSERT INTO long_stored VALUES (1, repeat('e', 7000), 'f');
\set VERBOSITY sqlstate
INSERT INTO long_stored VALUES (2, repeat('e', 9000), 'f');
INSERT INTO long_stored VALUES (3, repeat('e', 5000), repeat('f', 4000));
\set VERBOSITY default
VACUUM long_stored;
SET enable_seqscan = off;
SELECT length(t), filler FROM long_stored WHERE t > 'e';
RESET enable_seqscan;

-- What is stored has to be the same on all machines, and for good.
CREATE TABLE long_same (t text COLLATE "C", b bytea);
CREATE INDEX long_same_t ON long_same USING smart (t);
CREATE INDEX long_same_b ON long_same USING smart (b DESC);
SELECT length(key), md5(key) FROM (VALUES (smart_normalized_key('long_same_t', repeat('abc', 1000))),
	(smart_normalized_key('long_same_t', (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 100) i))),
	(smart_normalized_key('long_same_b', decode(repeat('00ff7f', 3000), 'hex')))) keys (key);
DROP TABLE long_keys, long_results, long_tried, long_btree, long_smart, long_stored, long_same;
DROP FUNCTION long_query, long_takes;
