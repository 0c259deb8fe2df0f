/* smart_ltree--1.0.sql */

-- Run by CREATE EXTENSION only
\echo Use "CREATE EXTENSION smart_ltree" to load this file. \quit

CREATE FUNCTION smart_normalize_ltree(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OPERATOR CLASS ltree_ops DEFAULT FOR TYPE ltree USING smart AS
	OPERATOR 1 < (ltree, ltree),
	OPERATOR 2 <= (ltree, ltree),
	OPERATOR 3 = (ltree, ltree),
	OPERATOR 4 >= (ltree, ltree),
	OPERATOR 5 > (ltree, ltree),
	FUNCTION 1 ltree_cmp(ltree, ltree),
	FUNCTION 11 smart_normalize_ltree(internal);
ALTER OPERATOR FAMILY ltree_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);
