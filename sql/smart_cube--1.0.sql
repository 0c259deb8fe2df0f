/* smart_cube--1.0.sql */

-- Run by CREATE EXTENSION only
\echo Use "CREATE EXTENSION smart_cube" to load this file. \quit

CREATE FUNCTION smart_normalize_cube(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

-- Of this order the index knows nothing: it is none (src/am/types/cube.c)
CREATE OPERATOR CLASS cube_ops DEFAULT FOR TYPE cube USING smart AS
	OPERATOR 1 < (cube, cube),
	OPERATOR 2 <= (cube, cube),
	OPERATOR 3 = (cube, cube),
	OPERATOR 4 >= (cube, cube),
	OPERATOR 5 > (cube, cube),
	FUNCTION 1 cube_cmp(cube, cube),
	FUNCTION 11 smart_normalize_cube(internal);
