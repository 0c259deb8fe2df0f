-- Operator classes and families: valid, and with the members of btree's of the same name. (Those for sort keys of the C library
-- have none there.)
SELECT opcname, opcintype::regtype, opcdefault, amvalidate(c.oid)
FROM pg_opclass c JOIN pg_am a ON a.oid = opcmethod WHERE amname = 'smart' ORDER BY 2, 1;

-- Members of one access method only, in the families that smart has; the strategies above 5 are its own
WITH family AS
	(SELECT f.oid, amname, opfname FROM pg_opfamily f JOIN pg_am a ON a.oid = opfmethod
	WHERE opfname IN (SELECT opfname FROM pg_opfamily f JOIN pg_am a ON a.oid = opfmethod WHERE amname = 'smart' AND opfname NOT LIKE '%_libc_ops')),
member AS
	(SELECT amname, opfname, amopstrategy, amoppurpose, amopopr::regoperator::text AS operator
	FROM pg_amop JOIN family f ON f.oid = amopfamily WHERE amname IN ('btree', 'smart') AND amopstrategy <= 5),
support AS
	(SELECT amname, opfname, amprocnum, amproclefttype, amprocrighttype, amproc
	FROM pg_amproc JOIN family f ON f.oid = amprocfamily WHERE amname IN ('btree', 'smart') AND amprocnum = 1)
SELECT (SELECT count(*) > 150 FROM member) AS many,
	(SELECT count(*) FROM (SELECT opfname, amopstrategy, amoppurpose, operator FROM member
		GROUP BY 1, 2, 3, 4 HAVING count(*) <> 2) m) AS operators_of_one,
	(SELECT count(*) FROM (SELECT opfname, amprocnum, amproclefttype, amprocrighttype, amproc FROM support
		GROUP BY 1, 2, 3, 4, 5 HAVING count(*) <> 2) s) AS functions_of_one;

SELECT opfname, amopstrategy, amopopr::regoperator
FROM pg_amop JOIN pg_opfamily f ON f.oid = amopfamily JOIN pg_am a ON a.oid = opfmethod
WHERE amname = 'smart' AND amopstrategy BETWEEN 6 AND 10 ORDER BY 1, 2, amopopr::regoperator::text COLLATE "C";

-- A class that is right except for one thing, each time another one
CREATE FUNCTION fault_normalizer(int4) RETURNS int4 LANGUAGE sql AS 'SELECT $1';
CREATE FUNCTION fault_bytes(money) RETURNS bytea LANGUAGE sql STABLE STRICT AS 'SELECT textsend($1::text)';
CREATE OPERATOR CLASS fault_few FOR TYPE money USING smart AS OPERATOR 1 <, OPERATOR 3 =,
	FUNCTION 1 cash_cmp(money, money), FUNCTION 11 smart_normalize_int8(internal);
CREATE OPERATOR CLASS fault_no_normalizer FOR TYPE money USING smart AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =,
	OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 cash_cmp(money, money);
CREATE OPERATOR CLASS fault_signatures FOR TYPE money USING smart AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =,
	OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 cash_cmp(money, money), FUNCTION 11 (money, money) fault_normalizer(int4);
CREATE OPERATOR CLASS fault_numbers FOR TYPE money USING smart AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =,
	OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 cash_cmp(money, money), FUNCTION 4 btequalimage(oid),
	FUNCTION 11 smart_normalize_int8(internal);
CREATE OPERATOR CLASS fault_stable FOR TYPE money USING smart AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =,
	OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 cash_cmp(money, money), FUNCTION 12 fault_bytes(money);
CREATE OPERATOR CLASS fault_nothing FOR TYPE money USING smart AS FUNCTION 11 smart_normalize_int8(internal);
CREATE OPERATOR CLASS fault_cross FOR TYPE money USING smart FAMILY integer_ops AS OPERATOR 1 <, OPERATOR 2 <=,
	OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 cash_cmp(money, money),
	FUNCTION 11 smart_normalize_int8(internal);
CREATE OPERATOR CLASS good FOR TYPE money USING smart AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =,
	OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 cash_cmp(money, money), FUNCTION 11 smart_normalize_int8(internal);
SELECT opcname, amvalidate(c.oid) FROM pg_opclass c JOIN pg_am a ON a.oid = opcmethod
WHERE amname = 'smart' AND (opcname LIKE 'fault%' OR opcname = 'good') ORDER BY 1;

-- A class of one's own works with a normalizer that fits its type
CREATE TABLE prices (p money);
INSERT INTO prices SELECT NULL UNION ALL SELECT (i * 7 % 11 - 5)::numeric::money FROM generate_series(1, 20) i;
CREATE INDEX prices_smart ON prices USING smart (p good);
SELECT count(*) AS wrong FROM prices a, prices b
WHERE sign(byteacmp(smart_normalized_key('prices_smart', a.p), smart_normalized_key('prices_smart', b.p)))
	<> sign(cash_cmp(a.p, b.p));
DROP TABLE prices;

-- Without a default class there is no index
CREATE TABLE prices (p point, j json, ja json[]);
CREATE INDEX ON prices USING smart (p);
CREATE INDEX ON prices USING smart (j);
CREATE INDEX ON prices USING smart (ja);
DROP TABLE prices;

DROP OPERATOR CLASS fault_cross USING smart;
DROP OPERATOR FAMILY good USING smart;
DROP OPERATOR FAMILY fault_few USING smart;
DROP OPERATOR FAMILY fault_no_normalizer USING smart;
DROP OPERATOR FAMILY fault_signatures USING smart;
DROP OPERATOR FAMILY fault_numbers USING smart;
DROP OPERATOR FAMILY fault_stable USING smart;
DROP OPERATOR FAMILY fault_nothing USING smart;
DROP FUNCTION fault_normalizer, fault_bytes;
SELECT bool_and(amvalidate(c.oid)) FROM pg_opclass c JOIN pg_am a ON a.oid = opcmethod WHERE amname = 'smart';
