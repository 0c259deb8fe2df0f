-- sound(table): its smart indexes, after each was checked against the table: state and definition.

CREATE FUNCTION pg_temp.sound(relation regclass) RETURNS TABLE (index name, state text, definition text) LANGUAGE plpgsql AS $$
DECLARE
	oid oid;
BEGIN
	FOR oid, index IN SELECT c.oid, c.relname FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid JOIN pg_am a ON a.oid = c.relam
			WHERE i.indrelid = relation AND a.amname = 'smart' ORDER BY c.relname LOOP
		PERFORM smart_index_check(oid, true);
		state := (SELECT s.state FROM smart_index_state s WHERE s.index = oid);
		definition := regexp_replace(pg_get_indexdef(oid), '^.* USING ', '');
		RETURN NEXT;
	END LOOP;
END
$$;

