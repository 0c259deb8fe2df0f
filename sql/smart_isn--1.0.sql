/* smart_isn--1.0.sql */

-- Run by CREATE EXTENSION only
\echo Use "CREATE EXTENSION smart_isn" to load this file. \quit

-- Each type is alone in its family: not all of them can be compared with each other, as the types of a family of smart are.

CREATE OPERATOR CLASS ean13_ops DEFAULT FOR TYPE ean13 USING smart AS
	OPERATOR 1 < (ean13, ean13),
	OPERATOR 2 <= (ean13, ean13),
	OPERATOR 3 = (ean13, ean13),
	OPERATOR 4 >= (ean13, ean13),
	OPERATOR 5 > (ean13, ean13),
	FUNCTION 1 btean13cmp(ean13, ean13),
	FUNCTION 11 smart_normalize_int8(internal);
ALTER OPERATOR FAMILY ean13_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);

CREATE OPERATOR CLASS isbn_ops DEFAULT FOR TYPE isbn USING smart AS
	OPERATOR 1 < (isbn, isbn),
	OPERATOR 2 <= (isbn, isbn),
	OPERATOR 3 = (isbn, isbn),
	OPERATOR 4 >= (isbn, isbn),
	OPERATOR 5 > (isbn, isbn),
	FUNCTION 1 btisbncmp(isbn, isbn),
	FUNCTION 11 smart_normalize_int8(internal);
ALTER OPERATOR FAMILY isbn_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);

CREATE OPERATOR CLASS isbn13_ops DEFAULT FOR TYPE isbn13 USING smart AS
	OPERATOR 1 < (isbn13, isbn13),
	OPERATOR 2 <= (isbn13, isbn13),
	OPERATOR 3 = (isbn13, isbn13),
	OPERATOR 4 >= (isbn13, isbn13),
	OPERATOR 5 > (isbn13, isbn13),
	FUNCTION 1 btisbn13cmp(isbn13, isbn13),
	FUNCTION 11 smart_normalize_int8(internal);
ALTER OPERATOR FAMILY isbn13_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);

CREATE OPERATOR CLASS ismn_ops DEFAULT FOR TYPE ismn USING smart AS
	OPERATOR 1 < (ismn, ismn),
	OPERATOR 2 <= (ismn, ismn),
	OPERATOR 3 = (ismn, ismn),
	OPERATOR 4 >= (ismn, ismn),
	OPERATOR 5 > (ismn, ismn),
	FUNCTION 1 btismncmp(ismn, ismn),
	FUNCTION 11 smart_normalize_int8(internal);
ALTER OPERATOR FAMILY ismn_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);

CREATE OPERATOR CLASS ismn13_ops DEFAULT FOR TYPE ismn13 USING smart AS
	OPERATOR 1 < (ismn13, ismn13),
	OPERATOR 2 <= (ismn13, ismn13),
	OPERATOR 3 = (ismn13, ismn13),
	OPERATOR 4 >= (ismn13, ismn13),
	OPERATOR 5 > (ismn13, ismn13),
	FUNCTION 1 btismn13cmp(ismn13, ismn13),
	FUNCTION 11 smart_normalize_int8(internal);
ALTER OPERATOR FAMILY ismn13_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);

CREATE OPERATOR CLASS issn_ops DEFAULT FOR TYPE issn USING smart AS
	OPERATOR 1 < (issn, issn),
	OPERATOR 2 <= (issn, issn),
	OPERATOR 3 = (issn, issn),
	OPERATOR 4 >= (issn, issn),
	OPERATOR 5 > (issn, issn),
	FUNCTION 1 btissncmp(issn, issn),
	FUNCTION 11 smart_normalize_int8(internal);
ALTER OPERATOR FAMILY issn_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);

CREATE OPERATOR CLASS issn13_ops DEFAULT FOR TYPE issn13 USING smart AS
	OPERATOR 1 < (issn13, issn13),
	OPERATOR 2 <= (issn13, issn13),
	OPERATOR 3 = (issn13, issn13),
	OPERATOR 4 >= (issn13, issn13),
	OPERATOR 5 > (issn13, issn13),
	FUNCTION 1 btissn13cmp(issn13, issn13),
	FUNCTION 11 smart_normalize_int8(internal);
ALTER OPERATOR FAMILY issn13_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);

CREATE OPERATOR CLASS upc_ops DEFAULT FOR TYPE upc USING smart AS
	OPERATOR 1 < (upc, upc),
	OPERATOR 2 <= (upc, upc),
	OPERATOR 3 = (upc, upc),
	OPERATOR 4 >= (upc, upc),
	OPERATOR 5 > (upc, upc),
	FUNCTION 1 btupccmp(upc, upc),
	FUNCTION 11 smart_normalize_int8(internal);
ALTER OPERATOR FAMILY upc_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);
