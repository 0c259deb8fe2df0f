-- What the server is told about access method, index and column, for nbtree and for smart. The table in README.md says the
-- same; statements are in statements_*.sql.
CREATE COLLATION properties_libc (provider = libc, locale = 'C.utf8@other');
CREATE TABLE properties (a int, b text COLLATE "C", c text COLLATE properties_libc, d timestamptz, e int);
CREATE INDEX properties_nbtree ON properties (a, b DESC, c, d NULLS FIRST) INCLUDE (e);
CREATE INDEX properties_smart ON properties USING smart (a, b DESC, c, d NULLS FIRST) INCLUDE (e);

SELECT property, pg_indexam_has_property(n.oid, property) AS nbtree, pg_indexam_has_property(s.oid, property) AS smart
FROM pg_am n, pg_am s, unnest(ARRAY['can_order', 'can_unique', 'can_multi_col', 'can_exclude', 'can_include']) WITH ORDINALITY p (property, i)
WHERE n.amname = 'btree' AND s.amname = 'smart' ORDER BY i;

SELECT property, pg_index_has_property('properties_nbtree', property) AS nbtree, pg_index_has_property('properties_smart', property) AS smart
FROM unnest(ARRAY['clusterable', 'index_scan', 'bitmap_scan', 'backward_scan']) WITH ORDINALITY p (property, i) ORDER BY i;

-- "c" has an order that the C library alone knows.
CREATE VIEW properties_columns AS
	SELECT attname AS column, attnum, property, pg_index_column_has_property('properties_nbtree', attnum, property) AS nbtree,
		pg_index_column_has_property('properties_smart', attnum, property) AS smart
	FROM unnest(ARRAY['asc', 'desc', 'nulls_first', 'nulls_last', 'orderable', 'distance_orderable', 'returnable', 'search_array', 'search_nulls']) property,
		pg_attribute WHERE attrelid = 'properties_smart'::regclass;
SELECT property, string_agg(coalesce(left(nbtree::text, 1), '-'), '' ORDER BY attnum) AS nbtree,
	string_agg(coalesce(left(smart::text, 1), '-'), '' ORDER BY attnum) AS smart
FROM properties_columns GROUP BY property ORDER BY property;
SELECT "column", property, nbtree, smart FROM properties_columns WHERE nbtree IS DISTINCT FROM smart ORDER BY attnum, property;

-- An index of a partitioned table has the properties that do not need its rows.
CREATE TABLE properties_parts (a int) PARTITION BY RANGE (a);
CREATE INDEX properties_parts_a ON properties_parts USING smart (a);
SELECT p, pg_index_has_property('properties_parts_a', p) FROM unnest(ARRAY['clusterable', 'index_scan', 'bitmap_scan', 'backward_scan']) p;

-- Nothing that is not asked of all access methods
SELECT pg_indexam_has_property(oid, 'no_such_property'), pg_index_has_property('properties_smart', 'no_such_property'),
	pg_index_column_has_property('properties_smart', 1, 'no_such_property'), pg_index_column_has_property('properties_smart', 6, 'asc')
FROM pg_am WHERE amname = 'smart';
DROP TABLE properties_parts;
DROP VIEW properties_columns;
DROP TABLE properties;

-- Not for system catalogs, not even with permission to change them
SET allow_system_table_mods = on;
CREATE INDEX properties_catalog ON pg_class USING smart (relname);
