-- For test/core: twins of the schedule's indexes, and what is looked at afterwards.
CREATE SCHEMA smart_twins;
CREATE EXTENSION smart;

-- The statement that makes an index's twin.
CREATE FUNCTION smart_twins.twin_of(btree oid) RETURNS text LANGUAGE sql STABLE SET search_path = pg_catalog AS $$
	SELECT replace(replace(pg_get_indexdef(c.oid), format(' INDEX %I ON ', c.relname), format(' INDEX smart_twin_%s ON ', c.oid)), ' USING btree (', ' USING smart (')
	FROM pg_class c WHERE c.oid = btree
$$;

-- After each command that makes an index: a twin beside it. What smart refuses, it refuses.
CREATE FUNCTION smart_twins.make_twins() RETURNS event_trigger LANGUAGE plpgsql AS $$
DECLARE
	btree oid;
BEGIN
	FOR btree IN
		SELECT i.indexrelid FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid JOIN pg_catalog.pg_am a ON a.oid = c.relam
		WHERE a.amname = 'btree' AND c.relkind = 'i' AND c.relpersistence <> 't' AND i.indisvalid AND i.indrelid >= 16384
			AND c.relnamespace <> 'pg_toast'::regnamespace
			AND i.indrelid IN (SELECT objid FROM pg_event_trigger_ddl_commands() WHERE classid = 'pg_class'::regclass
				UNION SELECT x.indrelid FROM pg_event_trigger_ddl_commands() d JOIN pg_catalog.pg_index x ON x.indexrelid = d.objid WHERE d.classid = 'pg_class'::regclass)
			AND NOT EXISTS (SELECT FROM pg_catalog.pg_class t WHERE t.relname = 'smart_twin_' || i.indexrelid)
	LOOP
		BEGIN
			EXECUTE smart_twins.twin_of(btree);
		EXCEPTION WHEN OTHERS THEN
			NULL;
		END;
	END LOOP;
EXCEPTION WHEN OTHERS THEN
	NULL;
END $$;
CREATE EVENT TRIGGER make_twins ON ddl_command_end WHEN TAG IN ('CREATE INDEX', 'CREATE TABLE', 'ALTER TABLE', 'CREATE TABLE AS')
	EXECUTE FUNCTION smart_twins.make_twins();
GRANT USAGE ON SCHEMA smart_twins TO PUBLIC;

-- Those that are left when the schedule has ended.
CREATE VIEW public.twins AS
	SELECT c.oid::regclass AS index, i.indrelid::regclass AS heap FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid JOIN pg_am a ON a.oid = c.relam
	WHERE a.amname = 'smart' AND c.relkind = 'i' AND c.relpersistence = 'p' AND i.indisvalid;

-- Sound, and with the rows that its table has, in the order of its first column; null: all is well.
CREATE FUNCTION public.twin_is_right(index regclass) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE
	heap regclass := (SELECT indrelid FROM pg_index WHERE indexrelid = index);
	condition text := coalesce((SELECT pg_get_expr(indpred, indrelid) FROM pg_index WHERE indexrelid = index), 'true');
	ordering text := pg_get_indexdef(index, 1, true);
	rows text;
	counted text;
BEGIN
	PERFORM smart_index_check(index, true);
	rows := format('SELECT count(*) || '' '' || coalesce(sum(hashtextextended(tableoid::text || ctid::text, 0)), 0) FROM ONLY %s WHERE %s', heap, condition);
	PERFORM set_config('enable_indexscan', 'off', true), set_config('enable_indexonlyscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
		set_config('enable_seqscan', 'on', true);
	EXECUTE rows INTO counted;
	PERFORM set_config('enable_indexscan', 'on', true), set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'off', true);
	EXECUTE format('SELECT count(*) || '' '' || coalesce(sum(hashtextextended(tableoid::text || ctid::text, 0)), 0) FROM (SELECT tableoid, ctid FROM ONLY %s WHERE %s ORDER BY %s) r',
		heap, condition, ordering) INTO rows;
	RETURN CASE WHEN rows IS DISTINCT FROM counted THEN format('%s instead of %s', rows, counted) END;
EXCEPTION WHEN OTHERS THEN
	RETURN sqlstate || ' ' || sqlerrm;
END $$;
