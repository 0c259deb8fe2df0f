/* smart_seg--1.0.sql */

-- Run by CREATE EXTENSION only
\echo Use "CREATE EXTENSION smart_seg" to load this file. \quit

CREATE FUNCTION smart_normalize_seg(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OPERATOR CLASS seg_ops DEFAULT FOR TYPE seg USING smart AS
	OPERATOR 1 < (seg, seg),
	OPERATOR 2 <= (seg, seg),
	OPERATOR 3 = (seg, seg),
	OPERATOR 4 >= (seg, seg),
	OPERATOR 5 > (seg, seg),
	FUNCTION 1 seg_cmp(seg, seg),
	FUNCTION 11 smart_normalize_seg(internal);
ALTER OPERATOR FAMILY seg_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);
