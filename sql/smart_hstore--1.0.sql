/* smart_hstore--1.0.sql */

-- Run by CREATE EXTENSION only
\echo Use "CREATE EXTENSION smart_hstore" to load this file. \quit

CREATE FUNCTION smart_normalize_hstore(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OPERATOR CLASS btree_hstore_ops DEFAULT FOR TYPE hstore USING smart AS
	OPERATOR 1 #<# (hstore, hstore),
	OPERATOR 2 #<=# (hstore, hstore),
	OPERATOR 3 = (hstore, hstore),
	OPERATOR 4 #>=# (hstore, hstore),
	OPERATOR 5 #># (hstore, hstore),
	FUNCTION 1 hstore_cmp(hstore, hstore),
	FUNCTION 11 smart_normalize_hstore(internal);
ALTER OPERATOR FAMILY btree_hstore_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);
