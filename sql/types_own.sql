-- Types of the user's own: operator classes by functions in SQL, domains; expression, partial and unique indexes of all
-- kinds of types.
SET client_min_messages = warning;
CREATE SCHEMA types_own;
SET search_path = types_own, public;

-- A version such as 1.10.2: a composite type, its comparison, and its bytes in that order
CREATE TYPE version AS (major int, minor int, patch int);
CREATE FUNCTION version_bytes(version) RETURNS bytea LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN int4send($1.major) || int4send($1.minor) || int4send($1.patch);
CREATE FUNCTION version_cmp(version, version) RETURNS int LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN byteacmp(version_bytes($1), version_bytes($2));
-- Not in SQL: the planner would put what the function does in the operator's place, which no index knows
CREATE FUNCTION version_lt(version, version) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT AS
	'BEGIN RETURN version_cmp($1, $2) < 0; END';
CREATE FUNCTION version_le(version, version) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT AS
	'BEGIN RETURN version_cmp($1, $2) <= 0; END';
CREATE FUNCTION version_eq(version, version) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT AS
	'BEGIN RETURN version_cmp($1, $2) = 0; END';
CREATE FUNCTION version_ge(version, version) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT AS
	'BEGIN RETURN version_cmp($1, $2) >= 0; END';
CREATE FUNCTION version_gt(version, version) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT AS
	'BEGIN RETURN version_cmp($1, $2) > 0; END';
CREATE OPERATOR < (LEFTARG = version, RIGHTARG = version, FUNCTION = version_lt, COMMUTATOR = >, RESTRICT = scalarltsel);
CREATE OPERATOR <= (LEFTARG = version, RIGHTARG = version, FUNCTION = version_le, COMMUTATOR = >=, RESTRICT = scalarlesel);
CREATE OPERATOR = (LEFTARG = version, RIGHTARG = version, FUNCTION = version_eq, COMMUTATOR = =, RESTRICT = eqsel);
CREATE OPERATOR >= (LEFTARG = version, RIGHTARG = version, FUNCTION = version_ge, COMMUTATOR = <=, RESTRICT = scalargesel);
CREATE OPERATOR > (LEFTARG = version, RIGHTARG = version, FUNCTION = version_gt, COMMUTATOR = <, RESTRICT = scalargtsel);
CREATE OPERATOR CLASS version_btree DEFAULT FOR TYPE version USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =,
	OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 version_cmp(version, version);
CREATE OPERATOR CLASS version_ops DEFAULT FOR TYPE version USING smart AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =,
	OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 version_cmp(version, version), FUNCTION 12 version_bytes(version);
SELECT amvalidate(oid) FROM pg_opclass WHERE opcname = 'version_ops';

CREATE TABLE release (id int, v version, vs version[]);
INSERT INTO release SELECT i, ROW(i % 3, i * 7 % 11, i)::version, ARRAY[ROW(i % 5, 0, 0)::version, ROW(i, i, 0)::version]
FROM generate_series(1, 300) i;
INSERT INTO release VALUES (0, NULL, NULL);
CREATE UNIQUE INDEX release_v ON release USING smart (v);
CREATE INDEX release_vs ON release USING smart (vs DESC);
ANALYZE release;
SET enable_seqscan = off;
SET enable_sort = off;
EXPLAIN (COSTS off) SELECT id FROM release WHERE v >= ROW(2, 10, 0)::version ORDER BY v;
SELECT id, v FROM release WHERE v >= ROW(2, 10, 0)::version ORDER BY v LIMIT 3;
SELECT id, v FROM release WHERE v < ROW(0, 1, 0)::version ORDER BY v DESC LIMIT 3;
SELECT id FROM release WHERE v IN (ROW(1, 6, 4)::version, ROW(2, 10, 80)::version, ROW(9, 9, 9)::version) ORDER BY v;
SELECT count(*) FROM release WHERE v IS NULL;
INSERT INTO release VALUES (301, ROW(1, 7, 1)::version, NULL);
INSERT INTO release VALUES (301, ROW(2, 2, 167)::version, NULL);
SELECT id, vs FROM release ORDER BY vs DESC NULLS FIRST LIMIT 3;
SELECT count(*) FROM release WHERE vs < ARRAY[ROW(1, 0, 0)::version];
SELECT count(*) AS wrong FROM release a, release b
WHERE a.id < 40 AND b.id < 40 AND (sign(byteacmp(smart_normalized_key('release_v', a.v), smart_normalized_key('release_v', b.v))) <> sign(version_cmp(a.v, b.v))
	OR sign(byteacmp(smart_normalized_key('release_vs', b.vs), smart_normalized_key('release_vs', a.vs))) <> sign(btarraycmp(a.vs, b.vs)));
SELECT smart_index_check('release_v', true), smart_index_check('release_vs', true);
-- Only an included column can be returned
VACUUM ANALYZE release;
EXPLAIN (COSTS off) SELECT v FROM release WHERE v > ROW(1, 0, 0)::version;
DROP INDEX release_v;
CREATE INDEX release_included ON release USING smart (v) INCLUDE (v, id);
EXPLAIN (COSTS off) SELECT id FROM release WHERE id > 0 ORDER BY v;
\set VERBOSITY sqlstate
-- A function that gives nothing
CREATE FUNCTION nothing(version) RETURNS bytea LANGUAGE sql IMMUTABLE STRICT RETURN NULL::bytea;
CREATE OPERATOR CLASS nothing_ops FOR TYPE version USING smart AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =,
	OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 version_cmp(version, version), FUNCTION 12 nothing(version);
CREATE INDEX ON release USING smart (v nothing_ops);
\set VERBOSITY default
RESET ALL;
SET client_min_messages = warning;
SET search_path = types_own, public;

-- Domains, over all that a column can be
CREATE DOMAIN price AS numeric(12, 2) CHECK (VALUE >= 0);
CREATE DOMAIN address AS inet;
CREATE DOMAIN word AS varchar(20) COLLATE "en-x-icu";
CREATE DOMAIN counts AS int[];
CREATE TYPE size AS ENUM ('s', 'm', 'l');
CREATE DOMAIN fit AS size CHECK (VALUE <> 's');
CREATE DOMAIN period AS daterange;
CREATE TABLE domains (id int, p price, a address, w word, c counts, s fit, d period, pa price[]);
INSERT INTO domains SELECT i, i * 1.25, inet '10.0.0.0' + i, md5(i::text)::varchar(20), ARRAY[i % 7, -i], (ARRAY['m', 'l'])[1 + i % 2]::fit,
	daterange(date '2020-01-01' + i, NULL), ARRAY[i, 1]::price[] FROM generate_series(1, 200) i;
INSERT INTO domains SELECT 0;
CREATE FUNCTION check_domains() RETURNS TABLE (name name, in_order bool, all_found bool) LANGUAGE plpgsql AS
$$
DECLARE
	type text;
BEGIN
	FOR name, type IN
		SELECT attname, coalesce(nullif(typbasetype, 0), atttypid)::regtype FROM pg_attribute JOIN pg_type t ON t.oid = atttypid
		WHERE attrelid = 'domains'::regclass AND attnum > 1 ORDER BY attnum
	LOOP
		EXECUTE format('CREATE INDEX domains_smart ON domains USING smart (%I)', name);
		SET LOCAL enable_seqscan = off;
		SET LOCAL enable_sort = off;
		EXECUTE format(
			$query$
			SELECT bool_and(x::%2$s >= y) FROM
				(SELECT x, lag(x::%2$s) OVER () AS y FROM (SELECT %1$I AS x FROM domains ORDER BY 1) s) q
			$query$, name, type) INTO in_order;
		SET LOCAL enable_sort = on;
		EXECUTE format(
			$query$
			SELECT count(*) >= 200 FROM
				(SELECT a.id FROM domains a, LATERAL (SELECT id FROM domains WHERE %1$I::%2$s = a.%1$I::%2$s OFFSET 0) b) q
			$query$, name, type) INTO all_found;
		EXECUTE 'DROP INDEX domains_smart';
		RETURN NEXT;
	END LOOP;
END
$$;
SELECT * FROM check_domains();

-- Expressions, conditions and uniqueness
CREATE UNIQUE INDEX domains_expression ON domains USING smart ((p * 2), lower(w)) WHERE id % 2 = 0;
INSERT INTO domains (id, p, w) SELECT 7, p, w FROM domains WHERE id = 8;
INSERT INTO domains (id, p, w) SELECT 8, p, upper(w) FROM domains WHERE id = 8;
SET enable_seqscan = off;
EXPLAIN (COSTS off) SELECT id FROM domains WHERE p * 2 = 30.000 AND id % 2 = 0;
SELECT id FROM domains WHERE p * 2 = 30.000 AND id % 2 = 0;
RESET enable_seqscan;
-- What the function gives is an array in the making
CREATE INDEX domains_appended ON domains USING smart (array_append(c, id));
SET enable_seqscan = off;
SELECT id FROM domains WHERE array_append(c, id) < '{0,-13}' ORDER BY array_append(c, id) LIMIT 3;
RESET enable_seqscan;
SELECT smart_index_check('domains_appended', true);
CREATE TABLE once (n numeric, i interval, a inet, f text COLLATE "en-x-icu", r numrange, EXCLUDE USING smart (r WITH =));
CREATE UNIQUE INDEX ON once USING smart (n);
CREATE UNIQUE INDEX ON once USING smart (i);
CREATE UNIQUE INDEX ON once USING smart (a);
CREATE UNIQUE INDEX ON once USING smart (f);
\set VERBOSITY terse
INSERT INTO once VALUES (1.50, '1 day', '10.0.0.1/8', 'a', '[1,2]');
INSERT INTO once (n) VALUES (1.5);
INSERT INTO once (i) VALUES ('24:00');
INSERT INTO once (a) VALUES ('10.0.0.1/8');
INSERT INTO once (f) VALUES ('a');
INSERT INTO once (r) VALUES ('[1.0,2.00]');
INSERT INTO once VALUES (1.51, '24:00:00.000001', '10.0.0.1/9', 'A', '[1,2)');
INSERT INTO once (n) VALUES (1.500) ON CONFLICT (n) DO UPDATE SET n = once.n + 10;
SELECT * FROM once ORDER BY n;
\set VERBOSITY default
DROP SCHEMA types_own CASCADE;
