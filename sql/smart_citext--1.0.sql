/* smart_citext--1.0.sql */

-- Run by CREATE EXTENSION only
\echo Use "CREATE EXTENSION smart_citext" to load this file. \quit

CREATE FUNCTION smart_normalize_citext(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION smart_normalize_citext_pattern(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OPERATOR CLASS citext_ops DEFAULT FOR TYPE citext USING smart AS
	OPERATOR 1 < (citext, citext),
	OPERATOR 2 <= (citext, citext),
	OPERATOR 3 = (citext, citext),
	OPERATOR 4 >= (citext, citext),
	OPERATOR 5 > (citext, citext),
	FUNCTION 1 citext_cmp(citext, citext),
	FUNCTION 11 smart_normalize_citext(internal);
ALTER OPERATOR FAMILY citext_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);

-- In the order of the bytes in lower case, whatever the collation is
CREATE OPERATOR CLASS citext_pattern_ops FOR TYPE citext USING smart AS
	OPERATOR 1 ~<~ (citext, citext),
	OPERATOR 2 ~<=~ (citext, citext),
	OPERATOR 3 = (citext, citext),
	OPERATOR 4 ~>=~ (citext, citext),
	OPERATOR 5 ~>~ (citext, citext),
	FUNCTION 1 citext_pattern_cmp(citext, citext),
	FUNCTION 11 smart_normalize_citext_pattern(internal);
ALTER OPERATOR FAMILY citext_pattern_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);
