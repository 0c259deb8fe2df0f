-- Index-only scans return what the table has, to the bit.
SET client_min_messages = warning;
SET jit = off;
CREATE SCHEMA types_return;
SET search_path = types_return, public;

CREATE TYPE colour AS ENUM ('red', 'green', 'blue');
CREATE TABLE everything (id int, b bool, o oid, i2 int2, i4 int4, i8 int8, f4 float4, f8 float8, d date, t time,
	ts timestamp, tz timestamptz, x text COLLATE "C", v varchar(200) COLLATE "en-x-icu", n name, c char(10) COLLATE "C",
	cl char(900) COLLATE "C", by bytea, u uuid, j jsonb, k numeric, iv interval, ov oidvector,
	ic text COLLATE "en-x-icu", ci char(7) COLLATE "en-x-icu", ch "char", mo money, ls pg_lsn, x8 xid8, ti tid, tt timetz,
	ip inet, ma macaddr, m8 macaddr8, vb varbit, b9 bit(9), en colour, ia int[], ua uuid[], ir int4range, tr tsrange,
	nr numeric(20, 3));
INSERT INTO everything
	SELECT i, i % 2 = 0, i * 3, i - 50, -i, i::bigint << 33,
		CASE i % 4 WHEN 0 THEN '-0'::float4 WHEN 1 THEN 0 WHEN 2 THEN 'NaN' ELSE i / 3.0 END,
		CASE i % 4 WHEN 0 THEN '-0'::float8 WHEN 1 THEN 0 WHEN 2 THEN -('NaN'::float8) ELSE -i / 3.0 END,
		date '2000-01-01' + i, time '00:00' + i * interval '1 second', timestamp '1999-12-31' + i * interval '1 min',
		timestamptz '1999-12-31' + i * interval '1 min', repeat('ab', i * i % 1000), repeat('é', i % 100),
		'name' || repeat('x', i % 60), repeat('é', i % 11), repeat('y ', i % 100), decode(repeat('00ff0001', i % 70), 'hex'),
		md5(i::text)::uuid, jsonb_build_object('a', repeat('q', i * 10)), (i - 99) * 10.5 ^ (i % 99 - 50), i * interval '1 day 1 month' - (i % 7) * interval '25:00:00.1',
		repeat(i || ' ', i)::oidvector, repeat('é', i % 50), repeat('Y', i % 7), chr(i % 127 + 1)::"char", i::money, (i || '/0')::pg_lsn,
		i::text::xid8, format('(%s,%s)', i, i % 9)::tid, timetz '00:00+02' + i * interval '1 second',
		set_masklen(inet '10.11.12.13' + i, i % 33), substr(md5(i::text), 1, 12)::macaddr, substr(md5(i::text), 1, 16)::macaddr8,
		substring(i::bit(32), 1, i % 33), i::bit(9), (enum_range(NULL::colour))[1 + i % 3],
		CASE i % 4 WHEN 0 THEN '{}' WHEN 1 THEN '[-1:0]={1,NULL}' WHEN 2 THEN '{{1,2},{3,4}}' ELSE ARRAY[i, -i] END,
		CASE WHEN i % 3 = 0 THEN '{}' ELSE ARRAY[md5(i::text), NULL, md5('x')]::uuid[] END,
		CASE i % 4 WHEN 0 THEN 'empty' WHEN 1 THEN int4range(NULL, i) ELSE int4range(-i, NULL, '()') END,
		CASE i % 4 WHEN 0 THEN 'empty' WHEN 1 THEN tsrange(NULL, '2000-01-01', '(]')
			ELSE tsrange('2000-01-01', timestamp '2000-01-01' + i * interval '1 min', '[]') END,
		i / 7.0
	FROM generate_series(1, 300) i;
INSERT INTO everything DEFAULT VALUES;
INSERT INTO everything (id, x, v, n, c, by, k, ov, ic, ci, vb) VALUES (0, '', '', '', '', '', 'NaN', '', '', '', '');
INSERT INTO everything (k, iv) VALUES (0, '0'), ('0.00000', '1 month -30 days'), (-0.0, '-24 hours 1 day'), ('Infinity', '1 day'),
	('-Infinity', '24 hours'), ('1e1000', '178000000 years'), (('1.' || repeat('0', 70))::numeric, '-178000000 years'),
	(('0.' || repeat('0', 70))::numeric, '2147483647 days -2562047788:00:54.775807'), ('1e-300', NULL), ('-1e300', NULL),
	(('0.' || repeat('12345678', 100))::numeric, NULL);
VACUUM ANALYZE everything;

-- Compares the binary form of the columns of an index by index-only scan with that by sequential scan
CREATE FUNCTION check_return(columns text, included text DEFAULT NULL)
	RETURNS TABLE (rows bigint, wrong bigint, index_only bool) LANGUAGE plpgsql AS
$$
DECLARE
	list text := concat_ws(', ', regexp_replace(columns, ' (DESC|NULLS FIRST)', '', 'g'), included);
	query text;
	line text;
BEGIN
	EXECUTE format('CREATE INDEX everything_smart ON everything USING smart (%s)%s', columns, ' INCLUDE (' || included || ')');
	SET LOCAL enable_bitmapscan = off;
	SET LOCAL enable_sort = off;
	-- The binary form tells -0 from 0
	query := format('SELECT %s FROM everything', list);
	SET LOCAL enable_seqscan = on;
	SET LOCAL enable_indexonlyscan = off;
	SET LOCAL enable_indexscan = off;
	EXECUTE 'CREATE TEMP TABLE by_table AS ' || query;
	SET LOCAL enable_indexonlyscan = on;
	SET LOCAL enable_indexscan = on;
	SET LOCAL enable_seqscan = off;
	index_only := false;
	FOR line IN EXECUTE 'EXPLAIN (COSTS off) ' || query
	LOOP
		index_only := index_only OR line LIKE '%Index Only Scan using everything_smart%';
	END LOOP;
	EXECUTE 'CREATE TEMP TABLE by_index AS ' || query;
	RESET enable_seqscan;
	EXECUTE 'SELECT count(*) FROM by_index' INTO rows;
	EXECUTE
		$compare$
		WITH a AS (SELECT record_send(r) AS bytes, count(*) AS n FROM by_table r GROUP BY 1),
			b AS (SELECT record_send(r) AS bytes, count(*) AS n FROM by_index r GROUP BY 1)
		SELECT count(*) FROM a FULL JOIN b USING (bytes) WHERE a.n IS DISTINCT FROM b.n
		$compare$
		INTO wrong;
	DROP TABLE by_table, by_index;
	DROP INDEX everything_smart;
	RETURN NEXT;
END
$$;

SELECT attname, r.* FROM pg_attribute, check_return(attname) r
WHERE attrelid = 'everything'::regclass AND attnum > 0 AND attname <> 'j' ORDER BY attnum;
SELECT attname, r.* FROM pg_attribute, check_return(attname || ' DESC', 'id, j') r
WHERE attrelid = 'everything'::regclass AND attnum > 1 AND attname <> 'j' ORDER BY attnum;
SELECT attname, r.* FROM pg_attribute, check_return('id', attname) r
WHERE attrelid = 'everything'::regclass AND attnum > 1 ORDER BY attnum;
SELECT * FROM check_return('b, o DESC, i2, i4 NULLS FIRST, i8, f4, f8 DESC, d, t, ts, tz DESC, u');
SELECT * FROM check_return('x DESC, f4, v, f8 DESC, n, by DESC NULLS FIRST, c DESC, i2, cl', 'j, i4, k, ov, iv, b');
SELECT * FROM check_return('k DESC, iv, ia, ov DESC, ir, vb DESC, ip, en DESC, ic DESC, tt', 'j, i4, tr, u');

-- A character type without a length keeps its blanks in the table only
CREATE TABLE blanks (x bpchar COLLATE "C", y char(3000) COLLATE "C", z int);
INSERT INTO blanks VALUES ('a  ', 'a', 1), ('a', 'b', 2);
CREATE INDEX blanks_x ON blanks USING smart (x, z);
CREATE INDEX blanks_y ON blanks USING smart (y, z);
VACUUM ANALYZE blanks;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS off) SELECT x FROM blanks WHERE x >= 'a';
SELECT octet_length(x) FROM blanks WHERE x = 'a' ORDER BY 1;
EXPLAIN (COSTS off) SELECT y FROM blanks WHERE y >= 'a';
SELECT octet_length(y), rtrim(y) FROM blanks WHERE y >= 'a' ORDER BY 2;

DROP SCHEMA types_return CASCADE;
