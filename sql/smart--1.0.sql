/* smart--1.0.sql */

-- Run by CREATE EXTENSION only
\echo Use "CREATE EXTENSION smart" to load this file. \quit

CREATE FUNCTION smart_handler(internal) RETURNS index_am_handler
AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

CREATE ACCESS METHOD smart TYPE INDEX HANDLER smart_handler;
COMMENT ON ACCESS METHOD smart IS 'ordered index in a SMART adaptive radix tree';

-- What one can ask about an index

CREATE FUNCTION smart_index_check(index regclass, heapallindexed boolean DEFAULT false) RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION smart_index_check(regclass, boolean) IS
'verifies the tree of a smart index and, if asked, that it has an entry for every row';

CREATE FUNCTION smart_index_stats(index regclass,
	OUT entries bigint, OUT leaves bigint, OUT nodes bigint, OUT bytes_used bigint, OUT bytes_allocated bigint,
	OUT fill double precision, OUT height integer,
	OUT node6 bigint, OUT node14 bigint, OUT node30 bigint, OUT node62 bigint, OUT node126 bigint, OUT node256 bigint)
AS 'MODULE_PATHNAME' LANGUAGE C STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION smart_index_stats(regclass) IS 'walks the tree of a smart index and counts';

CREATE FUNCTION smart_index_pages(index regclass,
	OUT journal text, OUT run bigint, OUT run_pages bigint, OUT run_kept bigint, OUT run_entries bigint, OUT run_fences bigint,
	OUT run_fill double precision, OUT compacted timestamptz, OUT chain_pages bigint, OUT adds bigint, OUT removals bigint,
	OUT previous_pages bigint, OUT unfinished_pages bigint, OUT free_pages bigint, OUT filter_bytes bigint)
AS 'MODULE_PATHNAME' LANGUAGE C STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION smart_index_pages(regclass) IS 'reads the pages of a smart index''s journal and counts';

CREATE FUNCTION smart_index_condition(index regclass, OUT state text, OUT bytes bigint, OUT reason text,
	OUT since timestamptz, OUT failures integer, OUT last_error text, OUT next_attempt timestamptz)
AS 'MODULE_PATHNAME' LANGUAGE C STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION smart_index_condition(regclass) IS 'what the view smart_index_state shows of an index';

CREATE VIEW smart_index_state AS
	SELECT c.oid::regclass AS index, s.*
	FROM pg_class c JOIN pg_am a ON a.oid = c.relam, LATERAL smart_index_condition(c.oid) s
	WHERE a.amname = 'smart' AND c.relkind = 'i'
		AND (c.relpersistence <> 't' OR c.relnamespace = pg_my_temp_schema());
COMMENT ON VIEW smart_index_state IS
'the states and sizes of all smart indexes of the database, and how those that were lost are loaded or rebuilt';
COMMENT ON COLUMN smart_index_state.state IS
'ready, empty, paged (it has no tree: the pages of its journal answer), carried (nor has this, but a tree on memory nodes follows), invalid (a concurrent build runs or has failed), lost (it has to be loaded or rebuilt), unreachable (a memory node is away), loading (from its journal), rebuilding (from its table), unavailable (smart is not preloaded, or the server''s log says why it has no memory for trees) or locked (another session keeps all others out)';
COMMENT ON COLUMN smart_index_state.bytes IS
'of memory that the index takes (pg_relation_size returns those of its pages on disk); null unless it is ready, empty, paged or carried';
COMMENT ON COLUMN smart_index_state.reason IS 'why the index is lost, or unreachable';
COMMENT ON COLUMN smart_index_state.since IS
'when it was found to be lost, its loading or rebuild began, or it was there again; null: not since the server started';
COMMENT ON COLUMN smart_index_state.failures IS 'attempts to rebuild it that failed, since it was lost';
COMMENT ON COLUMN smart_index_state.last_error IS
'of the last of them; shown to the index''s owner and to members of pg_read_all_stats (pg_monitor)';
COMMENT ON COLUMN smart_index_state.next_attempt IS
'when it is loaded or rebuilt next, at the latest: earlier when a memory node comes back; null: it is not waiting for that';
GRANT SELECT ON smart_index_state TO PUBLIC;

-- Memory of indexes that are gone

CREATE FUNCTION smart_stat_space(OUT database text, OUT trees bigint, OUT bytes bigint, OUT temporary_trees bigint,
	OUT unfinished_trees bigint, OUT leaked_trees bigint, OUT leaked_bytes bigint) RETURNS SETOF record
AS 'MODULE_PATHNAME' LANGUAGE C STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION smart_stat_space() IS 'what the view smart_stat_space shows';

CREATE VIEW smart_stat_space AS SELECT * FROM smart_stat_space();
COMMENT ON VIEW smart_stat_space IS
'trees of smart indexes by database, and what dropped or rebuilt indexes have left: it is freed by itself, or by smart_collect_orphans()';
COMMENT ON COLUMN smart_stat_space.database IS 'null: databases that were dropped';
COMMENT ON COLUMN smart_stat_space.temporary_trees IS 'of temporary tables of sessions that run';
COMMENT ON COLUMN smart_stat_space.unfinished_trees IS 'made by transactions that have not ended, prepared ones included';
COMMENT ON COLUMN smart_stat_space.leaked_trees IS 'that no index names; null: of another database, or the metapage of an index cannot be read';
COMMENT ON COLUMN smart_stat_space.leaked_bytes IS 'of those';
GRANT SELECT ON smart_stat_space TO PUBLIC;

CREATE FUNCTION smart_collect_orphans(OUT trees bigint, OUT bytes bigint)
AS 'MODULE_PATHNAME' LANGUAGE C STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION smart_collect_orphans() IS
'frees what indexes of this database, of dropped databases and of temporary tables of this session have left, and tells how much that was';
REVOKE ALL ON FUNCTION smart_collect_orphans() FROM PUBLIC;

-- Memory nodes and the fabric

CREATE FUNCTION smart_memory_nodes(OUT node integer, OUT address text, OUT transport text, OUT state text,
	OUT capacity_bytes bigint, OUT allocated_bytes bigint, OUT used_bytes bigint, OUT trees bigint,
	OUT round_trip_ms double precision, OUT since timestamptz, OUT problem text) RETURNS SETOF record
AS 'MODULE_PATHNAME' LANGUAGE C STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION smart_memory_nodes() IS 'what the view smart_memory_nodes shows';

CREATE VIEW smart_memory_nodes AS
	SELECT node, address, transport, state, rpad(repeat('#', mine) || repeat('+', handed_out - mine), 20, '-') AS fill,
		capacity_bytes, allocated_bytes, used_bytes, trees, round_trip_ms, since, problem
	FROM smart_memory_nodes(),
		-- An amount above zero has a mark, as long as there is room.
		LATERAL (SELECT ceil(20.0 * used_bytes / nullif(capacity_bytes, 0))::integer AS mine,
			ceil(20.0 * allocated_bytes / nullif(capacity_bytes, 0))::integer AS handed_out) twentieths;
COMMENT ON VIEW smart_memory_nodes IS
'memory nodes of this server; address and problem are shown to members of pg_read_all_stats (pg_monitor)';
COMMENT ON COLUMN smart_memory_nodes.node IS 'its number; null: no memory node was found at this address yet';
COMMENT ON COLUMN smart_memory_nodes.state IS
'connecting (since the server started), up, down (it does not answer), refused (it answers, but not this server, or not its new sessions), lost (its memory is gone, or it was given up: indexes on it are loaded or rebuilt), retiring (what is on it moves to others, see smart_moves) or retired (nothing is left on it: its daemon can be stopped)';
COMMENT ON COLUMN smart_memory_nodes.fill IS
'a twentieth of the capacity each: # used by this server''s indexes, + handed out besides, to this or another server, - free; null: not known';
COMMENT ON COLUMN smart_memory_nodes.capacity_bytes IS 'of the memory node; embedded: that the region may grow to';
COMMENT ON COLUMN smart_memory_nodes.allocated_bytes IS 'handed out to this or another server; embedded: of the region now';
COMMENT ON COLUMN smart_memory_nodes.used_bytes IS 'that this server''s indexes use';
COMMENT ON COLUMN smart_memory_nodes.trees IS 'of this server whose roots are there: one for each index that is not empty';
COMMENT ON COLUMN smart_memory_nodes.round_trip_ms IS 'of the last request';
COMMENT ON COLUMN smart_memory_nodes.since IS 'when it came into this state';
COMMENT ON COLUMN smart_memory_nodes.problem IS 'the last one, also if it is over';
GRANT SELECT ON smart_memory_nodes TO PUBLIC;

CREATE FUNCTION smart_index_nodes(index regclass, OUT node integer, OUT address text, OUT bytes bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME' LANGUAGE C STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION smart_index_nodes(regclass) IS
'on which memory nodes a smart index lies, with how many bytes; addresses are shown to members of pg_read_all_stats';

-- Taking memory nodes away, and evening them out

CREATE FUNCTION smart_retire_node(address text, cancel boolean DEFAULT false) RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION smart_retire_node(text, boolean) IS
'moves what is on a memory node to the others, in the background, or keeps it in use with what has not moved yet; the view smart_moves shows how far that is';

CREATE FUNCTION smart_rebalance(cancel boolean DEFAULT false) RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION smart_rebalance(boolean) IS
'moves trees from full memory nodes to emptier ones, in the background, and returns how many, or leaves those that have not moved yet where they are; the view smart_moves shows how far that is';
REVOKE ALL ON FUNCTION smart_retire_node(text, boolean), smart_rebalance(boolean) FROM PUBLIC;

CREATE FUNCTION smart_moves(OUT node integer, OUT address text, OUT reason text, OUT trees bigint, OUT bytes bigint,
	OUT moving bigint, OUT last_error text) RETURNS SETOF record
AS 'MODULE_PATHNAME' LANGUAGE C STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION smart_moves() IS 'what the view smart_moves shows';

CREATE VIEW smart_moves AS SELECT * FROM smart_moves();
COMMENT ON VIEW smart_moves IS
'what moves to other memory nodes: a row for each node that is taken away, and one for smart_rebalance(); address and last_error are shown to members of pg_read_all_stats (pg_monitor)';
COMMENT ON COLUMN smart_moves.node IS 'that is taken away; null: trees move to even out the nodes';
COMMENT ON COLUMN smart_moves.reason IS
'retired (smart_retire_node), not named (in smart.memory_nodes, nor by memcached) or rebalance';
COMMENT ON COLUMN smart_moves.trees IS 'that have a part there, or have to move; 0: the node''s daemon can be stopped';
COMMENT ON COLUMN smart_moves.bytes IS 'that are left there, or have to move';
COMMENT ON COLUMN smart_moves.moving IS
'indexes that are being moved now, for any of these reasons; pg_stat_progress_create_index shows how far each is';
COMMENT ON COLUMN smart_moves.last_error IS 'of a move that failed, and is tried again';
GRANT SELECT ON smart_moves TO PUBLIC;

CREATE FUNCTION smart_stat_fabric(OUT reads bigint, OUT read_bytes bigint, OUT writes bigint, OUT write_bytes bigint,
	OUT compare_and_swaps bigint, OUT fetch_and_adds bigint, OUT doorbells bigint, OUT round_trips bigint,
	OUT round_trips_ahead bigint, OUT session_round_trips bigint, OUT connections bigint, OUT timeouts bigint,
	OUT failures bigint,
	OUT offloaded bigint, OUT offloaded_busy bigint, OUT offloaded_stopped bigint, OUT delegated_reads bigint,
	OUT read_batches bigint, OUT combined_entries bigint, OUT combined_batches bigint, OUT leaf_waits bigint,
	OUT leaf_withdrawals bigint, OUT leaf_refusals bigint, OUT leaf_failures bigint, OUT stats_reset timestamptz)
AS 'MODULE_PATHNAME' LANGUAGE C STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION smart_stat_fabric() IS 'what the view smart_stat_fabric shows';

CREATE VIEW smart_stat_fabric AS SELECT * FROM smart_stat_fabric();
COMMENT ON VIEW smart_stat_fabric IS
'what all sessions asked of memory nodes since stats_reset; a session adds its part at the end of each transaction';
COMMENT ON COLUMN smart_stat_fabric.doorbells IS 'batches of requests, counted for each memory node they went to';
COMMENT ON COLUMN smart_stat_fabric.round_trips IS 'batches of requests';
COMMENT ON COLUMN smart_stat_fabric.round_trips_ahead IS
'of these, reads that a scan began for its next entries while it returned those before them';
COMMENT ON COLUMN smart_stat_fabric.session_round_trips IS 'all round trips of this session since it began, whatever was reset';
COMMENT ON COLUMN smart_stat_fabric.connections IS 'made to memory nodes, those of sessions that began included';
COMMENT ON COLUMN smart_stat_fabric.timeouts IS 'batches given up at smart.fabric_timeout';
COMMENT ON COLUMN smart_stat_fabric.failures IS 'batches given up for another reason: a lost connection, a cancelled statement';
COMMENT ON COLUMN smart_stat_fabric.offloaded IS
'searches that were left to a memory node because smart.cache_size did not know their way; a doorbell and a round trip each';
COMMENT ON COLUMN smart_stat_fabric.offloaded_busy IS 'of these, refused because the memory node had too much to do';
COMMENT ON COLUMN smart_stat_fabric.offloaded_stopped IS
'of these, that came to another memory node, or to what changed at that moment, and were gone on with from here';
COMMENT ON COLUMN smart_stat_fabric.delegated_reads IS 'leaves that another session read for this one';
COMMENT ON COLUMN smart_stat_fabric.read_batches IS 'reads of a leaf for several sessions';
COMMENT ON COLUMN smart_stat_fabric.combined_entries IS 'entries that another session added, or found to be there';
COMMENT ON COLUMN smart_stat_fabric.combined_batches IS 'writes of entries of several sessions';
COMMENT ON COLUMN smart_stat_fabric.leaf_waits IS 'for another session that was reading or writing a leaf';
COMMENT ON COLUMN smart_stat_fabric.leaf_withdrawals IS 'entries that no other session had taken when their own session''s turn came';
COMMENT ON COLUMN smart_stat_fabric.leaf_refusals IS
'waits for nothing: there was no room for a copy of the leaf, or for the entry, or the leaf had changed';
COMMENT ON COLUMN smart_stat_fabric.leaf_failures IS 'reads and writes of another session that failed while this one waited';
GRANT SELECT ON smart_stat_fabric TO PUBLIC;

CREATE FUNCTION smart_stat_cache(OUT size_bytes bigint, OUT used_bytes bigint, OUT hits bigint, OUT misses bigint,
	OUT stores bigint, OUT updates bigint, OUT drops bigint, OUT evictions bigint, OUT moves bigint, OUT skips bigint,
	OUT node6_bytes bigint, OUT node14_bytes bigint, OUT node30_bytes bigint, OUT node62_bytes bigint,
	OUT node126_bytes bigint, OUT node256_bytes bigint, OUT result_hits bigint, OUT result_misses bigint,
	OUT result_stores bigint, OUT result_drops bigint, OUT result_bytes bigint, OUT hint_hits bigint,
	OUT hint_misses bigint, OUT hint_stores bigint, OUT hint_drops bigint, OUT hint_bytes bigint,
	OUT stats_reset timestamptz)
AS 'MODULE_PATHNAME' LANGUAGE C STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION smart_stat_cache() IS 'what the view smart_stat_cache shows';

CREATE VIEW smart_stat_cache AS SELECT * FROM smart_stat_cache();
COMMENT ON VIEW smart_stat_cache IS
'copies of inner nodes of trees on memory nodes, cached results (entries of keys that are asked for often) and leaf hints, in the shared memory of smart.cache_size, and what all sessions did with them since stats_reset; zeros where indexes are not on memory nodes';
COMMENT ON COLUMN smart_stat_cache.size_bytes IS 'that there are for copies';
COMMENT ON COLUMN smart_stat_cache.used_bytes IS 'that hold copies now';
COMMENT ON COLUMN smart_stat_cache.hits IS 'nodes, and roots, that were looked for and found';
COMMENT ON COLUMN smart_stat_cache.misses IS 'nodes, and roots, that were not there and cost a round trip';
COMMENT ON COLUMN smart_stat_cache.updates IS 'copies that followed a change of their node';
COMMENT ON COLUMN smart_stat_cache.drops IS 'copies that had turned out to be out of date';
COMMENT ON COLUMN smart_stat_cache.evictions IS 'copies that had to make room: many of them mean that smart.cache_size is too small';
COMMENT ON COLUMN smart_stat_cache.moves IS 'pieces of the cache that went over to nodes of another kind';
COMMENT ON COLUMN smart_stat_cache.skips IS 'stores, updates and drops that were left undone, because others were at work there';
COMMENT ON COLUMN smart_stat_cache.node6_bytes IS 'of used_bytes: by nodes with up to 6 children, and by roots';
COMMENT ON COLUMN smart_stat_cache.node256_bytes IS 'of used_bytes: by nodes with up to 256 children';
COMMENT ON COLUMN smart_stat_cache.result_hits IS 'lookups of a key that cost no round trip, since its entries were known';
COMMENT ON COLUMN smart_stat_cache.result_misses IS 'lookups of a key whose entries were not known';
COMMENT ON COLUMN smart_stat_cache.result_stores IS 'keys whose entries were kept';
COMMENT ON COLUMN smart_stat_cache.result_drops IS 'keys whose entries were kept, and forgotten when one came or went';
COMMENT ON COLUMN smart_stat_cache.result_bytes IS 'that hold cached results now, besides used_bytes';
COMMENT ON COLUMN smart_stat_cache.hint_hits IS 'leaf hints that were looked for and found; each saves an insert the round trip that reads its leaf, and counts twice then';
COMMENT ON COLUMN smart_stat_cache.hint_misses IS 'leaf hints that were not there: the insert read its leaf';
COMMENT ON COLUMN smart_stat_cache.hint_drops IS 'leaf hints that a change of their leaf took away';
COMMENT ON COLUMN smart_stat_cache.hint_bytes IS 'that hold leaf hints now, besides used_bytes';
GRANT SELECT ON smart_stat_cache TO PUBLIC;

CREATE FUNCTION smart_stat_reset(what text DEFAULT 'all') RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION smart_stat_reset(text) IS 'sets the counters of smart_stat_fabric (fabric), smart_stat_cache (cache) or both (all) to zero';
REVOKE ALL ON FUNCTION smart_stat_reset(text) FROM PUBLIC;

-- These read a whole index.
REVOKE ALL ON FUNCTION smart_index_check(regclass, boolean), smart_index_stats(regclass), smart_index_pages(regclass)
	FROM PUBLIC;
GRANT EXECUTE ON FUNCTION smart_index_check(regclass, boolean), smart_index_stats(regclass), smart_index_pages(regclass)
	TO pg_stat_scan_tables;

CREATE FUNCTION smart_carry(index regclass) RETURNS boolean
AS 'MODULE_PATHNAME', 'smart_carry_index' LANGUAGE C STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION smart_carry(regclass) IS
'brings the tree on memory nodes of an index that writes back up to date at once; false: it has none, or not yet, or a memory node is away';
REVOKE ALL ON FUNCTION smart_carry(regclass) FROM PUBLIC;

CREATE FUNCTION smart_normalized_key(index regclass, VARIADIC columns "any") RETURNS bytea
AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION smart_normalized_key(regclass, "any") IS
'the bytes under which a smart index orders the given values of its first columns';

-- Normalized keys: support function 11 of the operator classes

CREATE FUNCTION smart_normalize_bool(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION smart_normalize_oid(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION smart_normalize_int2(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION smart_normalize_int4(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION smart_normalize_int8(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION smart_normalize_float4(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION smart_normalize_float8(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION smart_normalize_date(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION smart_normalize_time(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION smart_normalize_timestamp(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION smart_normalize_timestamptz(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION smart_normalize_text(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION smart_normalize_text_pattern(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION smart_normalize_name(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION smart_normalize_bpchar(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION smart_normalize_bpchar_pattern(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION smart_normalize_text_libc(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION smart_normalize_bpchar_libc(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION smart_normalize_bytea(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION smart_normalize_uuid(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION smart_normalize_char(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION smart_normalize_money(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION smart_normalize_word(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION smart_normalize_tid(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION smart_normalize_numeric(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION smart_normalize_interval(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION smart_normalize_timetz(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION smart_normalize_inet(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION smart_normalize_macaddr(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION smart_normalize_macaddr8(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION smart_normalize_bits(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION smart_normalize_enum(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION smart_normalize_array(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION smart_normalize_range(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION smart_normalize_multirange(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION smart_normalize_oidvector(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION smart_normalize_record(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION smart_normalize_jsonb(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION smart_normalize_tsvector(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION smart_normalize_tsquery(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

-- Operator classes. Each family has the members of btree's family of the same name, under the same numbers, and beyond
-- them 6 LIKE (~~), 7 starts-with (^@) and 10 regular expressions (~) for strings, 8 (<<) and 9 (<<=) for networks, and
-- 11 to 15, at the end, for rows.

CREATE OPERATOR FAMILY bool_ops USING smart;
CREATE OPERATOR CLASS bool_ops DEFAULT FOR TYPE boolean USING smart FAMILY bool_ops AS
	OPERATOR 1 < (boolean, boolean),
	OPERATOR 2 <= (boolean, boolean),
	OPERATOR 3 = (boolean, boolean),
	OPERATOR 4 >= (boolean, boolean),
	OPERATOR 5 > (boolean, boolean),
	FUNCTION 1 btboolcmp(boolean, boolean),
	FUNCTION 11 smart_normalize_bool(internal);

CREATE OPERATOR FAMILY oid_ops USING smart;
CREATE OPERATOR CLASS oid_ops DEFAULT FOR TYPE oid USING smart FAMILY oid_ops AS
	OPERATOR 1 < (oid, oid),
	OPERATOR 2 <= (oid, oid),
	OPERATOR 3 = (oid, oid),
	OPERATOR 4 >= (oid, oid),
	OPERATOR 5 > (oid, oid),
	FUNCTION 1 btoidcmp(oid, oid),
	FUNCTION 2 btoidsortsupport(internal),
	FUNCTION 11 smart_normalize_oid(internal);

CREATE OPERATOR FAMILY integer_ops USING smart;
CREATE OPERATOR CLASS int2_ops DEFAULT FOR TYPE int2 USING smart FAMILY integer_ops AS
	OPERATOR 1 < (int2, int2),
	OPERATOR 2 <= (int2, int2),
	OPERATOR 3 = (int2, int2),
	OPERATOR 4 >= (int2, int2),
	OPERATOR 5 > (int2, int2),
	FUNCTION 1 btint2cmp(int2, int2),
	FUNCTION 2 btint2sortsupport(internal),
	FUNCTION 3 (int2, int8) in_range(int2, int2, int8, boolean, boolean),
	FUNCTION 3 (int2, int4) in_range(int2, int2, int4, boolean, boolean),
	FUNCTION 3 (int2, int2) in_range(int2, int2, int2, boolean, boolean),
	FUNCTION 11 smart_normalize_int2(internal);

CREATE OPERATOR CLASS int4_ops DEFAULT FOR TYPE int4 USING smart FAMILY integer_ops AS
	OPERATOR 1 < (int4, int4),
	OPERATOR 2 <= (int4, int4),
	OPERATOR 3 = (int4, int4),
	OPERATOR 4 >= (int4, int4),
	OPERATOR 5 > (int4, int4),
	FUNCTION 1 btint4cmp(int4, int4),
	FUNCTION 2 btint4sortsupport(internal),
	FUNCTION 3 (int4, int8) in_range(int4, int4, int8, boolean, boolean),
	FUNCTION 3 (int4, int4) in_range(int4, int4, int4, boolean, boolean),
	FUNCTION 3 (int4, int2) in_range(int4, int4, int2, boolean, boolean),
	FUNCTION 11 smart_normalize_int4(internal);

CREATE OPERATOR CLASS int8_ops DEFAULT FOR TYPE int8 USING smart FAMILY integer_ops AS
	OPERATOR 1 < (int8, int8),
	OPERATOR 2 <= (int8, int8),
	OPERATOR 3 = (int8, int8),
	OPERATOR 4 >= (int8, int8),
	OPERATOR 5 > (int8, int8),
	FUNCTION 1 btint8cmp(int8, int8),
	FUNCTION 2 btint8sortsupport(internal),
	FUNCTION 3 (int8, int8) in_range(int8, int8, int8, boolean, boolean),
	FUNCTION 11 smart_normalize_int8(internal);

ALTER OPERATOR FAMILY integer_ops USING smart ADD
	OPERATOR 1 < (int2, int4),
	OPERATOR 2 <= (int2, int4),
	OPERATOR 3 = (int2, int4),
	OPERATOR 4 >= (int2, int4),
	OPERATOR 5 > (int2, int4),
	FUNCTION 1 (int2, int4) btint24cmp(int2, int4),
	OPERATOR 1 < (int2, int8),
	OPERATOR 2 <= (int2, int8),
	OPERATOR 3 = (int2, int8),
	OPERATOR 4 >= (int2, int8),
	OPERATOR 5 > (int2, int8),
	FUNCTION 1 (int2, int8) btint28cmp(int2, int8),
	OPERATOR 1 < (int4, int2),
	OPERATOR 2 <= (int4, int2),
	OPERATOR 3 = (int4, int2),
	OPERATOR 4 >= (int4, int2),
	OPERATOR 5 > (int4, int2),
	FUNCTION 1 (int4, int2) btint42cmp(int4, int2),
	OPERATOR 1 < (int4, int8),
	OPERATOR 2 <= (int4, int8),
	OPERATOR 3 = (int4, int8),
	OPERATOR 4 >= (int4, int8),
	OPERATOR 5 > (int4, int8),
	FUNCTION 1 (int4, int8) btint48cmp(int4, int8),
	OPERATOR 1 < (int8, int2),
	OPERATOR 2 <= (int8, int2),
	OPERATOR 3 = (int8, int2),
	OPERATOR 4 >= (int8, int2),
	OPERATOR 5 > (int8, int2),
	FUNCTION 1 (int8, int2) btint82cmp(int8, int2),
	OPERATOR 1 < (int8, int4),
	OPERATOR 2 <= (int8, int4),
	OPERATOR 3 = (int8, int4),
	OPERATOR 4 >= (int8, int4),
	OPERATOR 5 > (int8, int4),
	FUNCTION 1 (int8, int4) btint84cmp(int8, int4);

CREATE OPERATOR FAMILY float_ops USING smart;
CREATE OPERATOR CLASS float4_ops DEFAULT FOR TYPE float4 USING smart FAMILY float_ops AS
	OPERATOR 1 < (float4, float4),
	OPERATOR 2 <= (float4, float4),
	OPERATOR 3 = (float4, float4),
	OPERATOR 4 >= (float4, float4),
	OPERATOR 5 > (float4, float4),
	FUNCTION 1 btfloat4cmp(float4, float4),
	FUNCTION 2 btfloat4sortsupport(internal),
	FUNCTION 3 (float4, float8) in_range(float4, float4, float8, boolean, boolean),
	FUNCTION 11 smart_normalize_float4(internal);

CREATE OPERATOR CLASS float8_ops DEFAULT FOR TYPE float8 USING smart FAMILY float_ops AS
	OPERATOR 1 < (float8, float8),
	OPERATOR 2 <= (float8, float8),
	OPERATOR 3 = (float8, float8),
	OPERATOR 4 >= (float8, float8),
	OPERATOR 5 > (float8, float8),
	FUNCTION 1 btfloat8cmp(float8, float8),
	FUNCTION 2 btfloat8sortsupport(internal),
	FUNCTION 3 (float8, float8) in_range(float8, float8, float8, boolean, boolean),
	FUNCTION 11 smart_normalize_float8(internal);

ALTER OPERATOR FAMILY float_ops USING smart ADD
	OPERATOR 1 < (float4, float8),
	OPERATOR 2 <= (float4, float8),
	OPERATOR 3 = (float4, float8),
	OPERATOR 4 >= (float4, float8),
	OPERATOR 5 > (float4, float8),
	FUNCTION 1 (float4, float8) btfloat48cmp(float4, float8),
	OPERATOR 1 < (float8, float4),
	OPERATOR 2 <= (float8, float4),
	OPERATOR 3 = (float8, float4),
	OPERATOR 4 >= (float8, float4),
	OPERATOR 5 > (float8, float4),
	FUNCTION 1 (float8, float4) btfloat84cmp(float8, float4);

CREATE OPERATOR FAMILY datetime_ops USING smart;
CREATE OPERATOR CLASS date_ops DEFAULT FOR TYPE date USING smart FAMILY datetime_ops AS
	OPERATOR 1 < (date, date),
	OPERATOR 2 <= (date, date),
	OPERATOR 3 = (date, date),
	OPERATOR 4 >= (date, date),
	OPERATOR 5 > (date, date),
	FUNCTION 1 date_cmp(date, date),
	FUNCTION 2 date_sortsupport(internal),
	FUNCTION 3 (date, interval) in_range(date, date, interval, boolean, boolean),
	FUNCTION 11 smart_normalize_date(internal);

CREATE OPERATOR CLASS timestamp_ops DEFAULT FOR TYPE timestamp USING smart FAMILY datetime_ops AS
	OPERATOR 1 < (timestamp, timestamp),
	OPERATOR 2 <= (timestamp, timestamp),
	OPERATOR 3 = (timestamp, timestamp),
	OPERATOR 4 >= (timestamp, timestamp),
	OPERATOR 5 > (timestamp, timestamp),
	FUNCTION 1 timestamp_cmp(timestamp, timestamp),
	FUNCTION 2 timestamp_sortsupport(internal),
	FUNCTION 3 (timestamp, interval) in_range(timestamp, timestamp, interval, boolean, boolean),
	FUNCTION 11 smart_normalize_timestamp(internal);

CREATE OPERATOR CLASS timestamptz_ops DEFAULT FOR TYPE timestamptz USING smart FAMILY datetime_ops AS
	OPERATOR 1 < (timestamptz, timestamptz),
	OPERATOR 2 <= (timestamptz, timestamptz),
	OPERATOR 3 = (timestamptz, timestamptz),
	OPERATOR 4 >= (timestamptz, timestamptz),
	OPERATOR 5 > (timestamptz, timestamptz),
	FUNCTION 1 timestamptz_cmp(timestamptz, timestamptz),
	FUNCTION 2 timestamp_sortsupport(internal),
	FUNCTION 3 (timestamptz, interval) in_range(timestamptz, timestamptz, interval, boolean, boolean),
	FUNCTION 11 smart_normalize_timestamptz(internal);

ALTER OPERATOR FAMILY datetime_ops USING smart ADD
	OPERATOR 1 < (date, timestamp),
	OPERATOR 2 <= (date, timestamp),
	OPERATOR 3 = (date, timestamp),
	OPERATOR 4 >= (date, timestamp),
	OPERATOR 5 > (date, timestamp),
	FUNCTION 1 (date, timestamp) date_cmp_timestamp(date, timestamp),
	OPERATOR 1 < (date, timestamptz),
	OPERATOR 2 <= (date, timestamptz),
	OPERATOR 3 = (date, timestamptz),
	OPERATOR 4 >= (date, timestamptz),
	OPERATOR 5 > (date, timestamptz),
	FUNCTION 1 (date, timestamptz) date_cmp_timestamptz(date, timestamptz),
	OPERATOR 1 < (timestamp, date),
	OPERATOR 2 <= (timestamp, date),
	OPERATOR 3 = (timestamp, date),
	OPERATOR 4 >= (timestamp, date),
	OPERATOR 5 > (timestamp, date),
	FUNCTION 1 (timestamp, date) timestamp_cmp_date(timestamp, date),
	OPERATOR 1 < (timestamp, timestamptz),
	OPERATOR 2 <= (timestamp, timestamptz),
	OPERATOR 3 = (timestamp, timestamptz),
	OPERATOR 4 >= (timestamp, timestamptz),
	OPERATOR 5 > (timestamp, timestamptz),
	FUNCTION 1 (timestamp, timestamptz) timestamp_cmp_timestamptz(timestamp, timestamptz),
	OPERATOR 1 < (timestamptz, date),
	OPERATOR 2 <= (timestamptz, date),
	OPERATOR 3 = (timestamptz, date),
	OPERATOR 4 >= (timestamptz, date),
	OPERATOR 5 > (timestamptz, date),
	FUNCTION 1 (timestamptz, date) timestamptz_cmp_date(timestamptz, date),
	OPERATOR 1 < (timestamptz, timestamp),
	OPERATOR 2 <= (timestamptz, timestamp),
	OPERATOR 3 = (timestamptz, timestamp),
	OPERATOR 4 >= (timestamptz, timestamp),
	OPERATOR 5 > (timestamptz, timestamp),
	FUNCTION 1 (timestamptz, timestamp) timestamptz_cmp_timestamp(timestamptz, timestamp);

CREATE OPERATOR FAMILY time_ops USING smart;
CREATE OPERATOR CLASS time_ops DEFAULT FOR TYPE time USING smart FAMILY time_ops AS
	OPERATOR 1 < (time, time),
	OPERATOR 2 <= (time, time),
	OPERATOR 3 = (time, time),
	OPERATOR 4 >= (time, time),
	OPERATOR 5 > (time, time),
	FUNCTION 1 time_cmp(time, time),
	FUNCTION 3 (time, interval) in_range(time, time, interval, boolean, boolean),
	FUNCTION 11 smart_normalize_time(internal);

CREATE OPERATOR FAMILY text_ops USING smart;
CREATE OPERATOR CLASS text_ops DEFAULT FOR TYPE text USING smart FAMILY text_ops AS
	OPERATOR 1 < (text, text),
	OPERATOR 2 <= (text, text),
	OPERATOR 3 = (text, text),
	OPERATOR 4 >= (text, text),
	OPERATOR 5 > (text, text),
	OPERATOR 6 ~~ (text, text),
	OPERATOR 7 ^@ (text, text),
	OPERATOR 10 ~ (text, text),
	FUNCTION 1 bttextcmp(text, text),
	FUNCTION 2 bttextsortsupport(internal),
	FUNCTION 11 smart_normalize_text(internal);

CREATE OPERATOR CLASS name_ops DEFAULT FOR TYPE name USING smart FAMILY text_ops AS
	OPERATOR 1 < (name, name),
	OPERATOR 2 <= (name, name),
	OPERATOR 3 = (name, name),
	OPERATOR 4 >= (name, name),
	OPERATOR 5 > (name, name),
	OPERATOR 6 ~~ (name, text),
	OPERATOR 10 ~ (name, text),
	FUNCTION 1 btnamecmp(name, name),
	FUNCTION 2 btnamesortsupport(internal),
	FUNCTION 11 smart_normalize_name(internal);

ALTER OPERATOR FAMILY text_ops USING smart ADD
	OPERATOR 1 < (name, text),
	OPERATOR 2 <= (name, text),
	OPERATOR 3 = (name, text),
	OPERATOR 4 >= (name, text),
	OPERATOR 5 > (name, text),
	FUNCTION 1 (name, text) btnametextcmp(name, text),
	OPERATOR 1 < (text, name),
	OPERATOR 2 <= (text, name),
	OPERATOR 3 = (text, name),
	OPERATOR 4 >= (text, name),
	OPERATOR 5 > (text, name),
	FUNCTION 1 (text, name) bttextnamecmp(text, name);

-- The same class under the name that varchar columns know
CREATE OPERATOR CLASS varchar_ops FOR TYPE text USING smart FAMILY text_ops AS STORAGE text;

CREATE OPERATOR FAMILY bpchar_ops USING smart;
CREATE OPERATOR CLASS bpchar_ops DEFAULT FOR TYPE bpchar USING smart FAMILY bpchar_ops AS
	OPERATOR 1 < (bpchar, bpchar),
	OPERATOR 2 <= (bpchar, bpchar),
	OPERATOR 3 = (bpchar, bpchar),
	OPERATOR 4 >= (bpchar, bpchar),
	OPERATOR 5 > (bpchar, bpchar),
	OPERATOR 6 ~~ (bpchar, text),
	OPERATOR 10 ~ (bpchar, text),
	FUNCTION 1 bpcharcmp(bpchar, bpchar),
	FUNCTION 2 bpchar_sortsupport(internal),
	FUNCTION 11 smart_normalize_bpchar(internal);

CREATE OPERATOR FAMILY bytea_ops USING smart;
CREATE OPERATOR CLASS bytea_ops DEFAULT FOR TYPE bytea USING smart FAMILY bytea_ops AS
	OPERATOR 1 < (bytea, bytea),
	OPERATOR 2 <= (bytea, bytea),
	OPERATOR 3 = (bytea, bytea),
	OPERATOR 4 >= (bytea, bytea),
	OPERATOR 5 > (bytea, bytea),
	OPERATOR 6 ~~ (bytea, bytea),
	FUNCTION 1 byteacmp(bytea, bytea),
	FUNCTION 2 bytea_sortsupport(internal),
	FUNCTION 11 smart_normalize_bytea(internal);

CREATE OPERATOR FAMILY uuid_ops USING smart;
CREATE OPERATOR CLASS uuid_ops DEFAULT FOR TYPE uuid USING smart FAMILY uuid_ops AS
	OPERATOR 1 < (uuid, uuid),
	OPERATOR 2 <= (uuid, uuid),
	OPERATOR 3 = (uuid, uuid),
	OPERATOR 4 >= (uuid, uuid),
	OPERATOR 5 > (uuid, uuid),
	FUNCTION 1 uuid_cmp(uuid, uuid),
	FUNCTION 2 uuid_sortsupport(internal),
	FUNCTION 11 smart_normalize_uuid(internal);

CREATE OPERATOR FAMILY char_ops USING smart;
CREATE OPERATOR CLASS char_ops DEFAULT FOR TYPE "char" USING smart FAMILY char_ops AS
	OPERATOR 1 < ("char", "char"),
	OPERATOR 2 <= ("char", "char"),
	OPERATOR 3 = ("char", "char"),
	OPERATOR 4 >= ("char", "char"),
	OPERATOR 5 > ("char", "char"),
	FUNCTION 1 btcharcmp("char", "char"),
	FUNCTION 11 smart_normalize_char(internal);

CREATE OPERATOR FAMILY money_ops USING smart;
CREATE OPERATOR CLASS money_ops DEFAULT FOR TYPE money USING smart FAMILY money_ops AS
	OPERATOR 1 < (money, money),
	OPERATOR 2 <= (money, money),
	OPERATOR 3 = (money, money),
	OPERATOR 4 >= (money, money),
	OPERATOR 5 > (money, money),
	FUNCTION 1 cash_cmp(money, money),
	FUNCTION 11 smart_normalize_money(internal);

CREATE OPERATOR FAMILY pg_lsn_ops USING smart;
CREATE OPERATOR CLASS pg_lsn_ops DEFAULT FOR TYPE pg_lsn USING smart FAMILY pg_lsn_ops AS
	OPERATOR 1 < (pg_lsn, pg_lsn),
	OPERATOR 2 <= (pg_lsn, pg_lsn),
	OPERATOR 3 = (pg_lsn, pg_lsn),
	OPERATOR 4 >= (pg_lsn, pg_lsn),
	OPERATOR 5 > (pg_lsn, pg_lsn),
	FUNCTION 1 pg_lsn_cmp(pg_lsn, pg_lsn),
	FUNCTION 11 smart_normalize_word(internal);

CREATE OPERATOR FAMILY xid8_ops USING smart;
CREATE OPERATOR CLASS xid8_ops DEFAULT FOR TYPE xid8 USING smart FAMILY xid8_ops AS
	OPERATOR 1 < (xid8, xid8),
	OPERATOR 2 <= (xid8, xid8),
	OPERATOR 3 = (xid8, xid8),
	OPERATOR 4 >= (xid8, xid8),
	OPERATOR 5 > (xid8, xid8),
	FUNCTION 1 xid8cmp(xid8, xid8),
	FUNCTION 11 smart_normalize_word(internal);

CREATE OPERATOR FAMILY tid_ops USING smart;
CREATE OPERATOR CLASS tid_ops DEFAULT FOR TYPE tid USING smart FAMILY tid_ops AS
	OPERATOR 1 < (tid, tid),
	OPERATOR 2 <= (tid, tid),
	OPERATOR 3 = (tid, tid),
	OPERATOR 4 >= (tid, tid),
	OPERATOR 5 > (tid, tid),
	FUNCTION 1 bttidcmp(tid, tid),
	FUNCTION 11 smart_normalize_tid(internal);

CREATE OPERATOR FAMILY oidvector_ops USING smart;
CREATE OPERATOR CLASS oidvector_ops DEFAULT FOR TYPE oidvector USING smart FAMILY oidvector_ops AS
	OPERATOR 1 < (oidvector, oidvector),
	OPERATOR 2 <= (oidvector, oidvector),
	OPERATOR 3 = (oidvector, oidvector),
	OPERATOR 4 >= (oidvector, oidvector),
	OPERATOR 5 > (oidvector, oidvector),
	FUNCTION 1 btoidvectorcmp(oidvector, oidvector),
	FUNCTION 11 smart_normalize_oidvector(internal);

CREATE OPERATOR FAMILY numeric_ops USING smart;
CREATE OPERATOR CLASS numeric_ops DEFAULT FOR TYPE numeric USING smart FAMILY numeric_ops AS
	OPERATOR 1 < (numeric, numeric),
	OPERATOR 2 <= (numeric, numeric),
	OPERATOR 3 = (numeric, numeric),
	OPERATOR 4 >= (numeric, numeric),
	OPERATOR 5 > (numeric, numeric),
	FUNCTION 1 numeric_cmp(numeric, numeric),
	FUNCTION 2 numeric_sortsupport(internal),
	FUNCTION 3 (numeric, numeric) in_range(numeric, numeric, numeric, boolean, boolean),
	FUNCTION 11 smart_normalize_numeric(internal);

CREATE OPERATOR FAMILY interval_ops USING smart;
CREATE OPERATOR CLASS interval_ops DEFAULT FOR TYPE interval USING smart FAMILY interval_ops AS
	OPERATOR 1 < (interval, interval),
	OPERATOR 2 <= (interval, interval),
	OPERATOR 3 = (interval, interval),
	OPERATOR 4 >= (interval, interval),
	OPERATOR 5 > (interval, interval),
	FUNCTION 1 interval_cmp(interval, interval),
	FUNCTION 3 (interval, interval) in_range(interval, interval, interval, boolean, boolean),
	FUNCTION 11 smart_normalize_interval(internal);

CREATE OPERATOR FAMILY timetz_ops USING smart;
CREATE OPERATOR CLASS timetz_ops DEFAULT FOR TYPE timetz USING smart FAMILY timetz_ops AS
	OPERATOR 1 < (timetz, timetz),
	OPERATOR 2 <= (timetz, timetz),
	OPERATOR 3 = (timetz, timetz),
	OPERATOR 4 >= (timetz, timetz),
	OPERATOR 5 > (timetz, timetz),
	FUNCTION 1 timetz_cmp(timetz, timetz),
	FUNCTION 3 (timetz, interval) in_range(timetz, timetz, interval, boolean, boolean),
	FUNCTION 11 smart_normalize_timetz(internal);

CREATE OPERATOR FAMILY network_ops USING smart;
CREATE OPERATOR CLASS inet_ops DEFAULT FOR TYPE inet USING smart FAMILY network_ops AS
	OPERATOR 1 < (inet, inet),
	OPERATOR 2 <= (inet, inet),
	OPERATOR 3 = (inet, inet),
	OPERATOR 4 >= (inet, inet),
	OPERATOR 5 > (inet, inet),
	OPERATOR 8 << (inet, inet),
	OPERATOR 9 <<= (inet, inet),
	FUNCTION 1 network_cmp(inet, inet),
	FUNCTION 2 network_sortsupport(internal),
	FUNCTION 11 smart_normalize_inet(internal);

-- The same class under the name that btree has for cidr columns
CREATE OPERATOR CLASS cidr_ops FOR TYPE inet USING smart FAMILY network_ops AS STORAGE inet;

CREATE OPERATOR FAMILY macaddr_ops USING smart;
CREATE OPERATOR CLASS macaddr_ops DEFAULT FOR TYPE macaddr USING smart FAMILY macaddr_ops AS
	OPERATOR 1 < (macaddr, macaddr),
	OPERATOR 2 <= (macaddr, macaddr),
	OPERATOR 3 = (macaddr, macaddr),
	OPERATOR 4 >= (macaddr, macaddr),
	OPERATOR 5 > (macaddr, macaddr),
	FUNCTION 1 macaddr_cmp(macaddr, macaddr),
	FUNCTION 2 macaddr_sortsupport(internal),
	FUNCTION 11 smart_normalize_macaddr(internal);

CREATE OPERATOR FAMILY macaddr8_ops USING smart;
CREATE OPERATOR CLASS macaddr8_ops DEFAULT FOR TYPE macaddr8 USING smart FAMILY macaddr8_ops AS
	OPERATOR 1 < (macaddr8, macaddr8),
	OPERATOR 2 <= (macaddr8, macaddr8),
	OPERATOR 3 = (macaddr8, macaddr8),
	OPERATOR 4 >= (macaddr8, macaddr8),
	OPERATOR 5 > (macaddr8, macaddr8),
	FUNCTION 1 macaddr8_cmp(macaddr8, macaddr8),
	FUNCTION 11 smart_normalize_macaddr8(internal);

CREATE OPERATOR FAMILY bit_ops USING smart;
CREATE OPERATOR CLASS bit_ops DEFAULT FOR TYPE bit USING smart FAMILY bit_ops AS
	OPERATOR 1 < (bit, bit),
	OPERATOR 2 <= (bit, bit),
	OPERATOR 3 = (bit, bit),
	OPERATOR 4 >= (bit, bit),
	OPERATOR 5 > (bit, bit),
	FUNCTION 1 bitcmp(bit, bit),
	FUNCTION 11 smart_normalize_bits(internal);

CREATE OPERATOR FAMILY varbit_ops USING smart;
CREATE OPERATOR CLASS varbit_ops DEFAULT FOR TYPE varbit USING smart FAMILY varbit_ops AS
	OPERATOR 1 < (varbit, varbit),
	OPERATOR 2 <= (varbit, varbit),
	OPERATOR 3 = (varbit, varbit),
	OPERATOR 4 >= (varbit, varbit),
	OPERATOR 5 > (varbit, varbit),
	FUNCTION 1 varbitcmp(varbit, varbit),
	FUNCTION 11 smart_normalize_bits(internal);

CREATE OPERATOR FAMILY enum_ops USING smart;
CREATE OPERATOR CLASS enum_ops DEFAULT FOR TYPE anyenum USING smart FAMILY enum_ops AS
	OPERATOR 1 < (anyenum, anyenum),
	OPERATOR 2 <= (anyenum, anyenum),
	OPERATOR 3 = (anyenum, anyenum),
	OPERATOR 4 >= (anyenum, anyenum),
	OPERATOR 5 > (anyenum, anyenum),
	FUNCTION 1 enum_cmp(anyenum, anyenum),
	FUNCTION 11 smart_normalize_enum(internal);

CREATE OPERATOR FAMILY array_ops USING smart;
CREATE OPERATOR CLASS array_ops DEFAULT FOR TYPE anyarray USING smart FAMILY array_ops AS
	OPERATOR 1 < (anyarray, anyarray),
	OPERATOR 2 <= (anyarray, anyarray),
	OPERATOR 3 = (anyarray, anyarray),
	OPERATOR 4 >= (anyarray, anyarray),
	OPERATOR 5 > (anyarray, anyarray),
	FUNCTION 1 btarraycmp(anyarray, anyarray),
	FUNCTION 11 smart_normalize_array(internal);

CREATE OPERATOR FAMILY range_ops USING smart;
CREATE OPERATOR CLASS range_ops DEFAULT FOR TYPE anyrange USING smart FAMILY range_ops AS
	OPERATOR 1 < (anyrange, anyrange),
	OPERATOR 2 <= (anyrange, anyrange),
	OPERATOR 3 = (anyrange, anyrange),
	OPERATOR 4 >= (anyrange, anyrange),
	OPERATOR 5 > (anyrange, anyrange),
	FUNCTION 1 range_cmp(anyrange, anyrange),
	FUNCTION 11 smart_normalize_range(internal);

CREATE OPERATOR FAMILY multirange_ops USING smart;
CREATE OPERATOR CLASS multirange_ops DEFAULT FOR TYPE anymultirange USING smart FAMILY multirange_ops AS
	OPERATOR 1 < (anymultirange, anymultirange),
	OPERATOR 2 <= (anymultirange, anymultirange),
	OPERATOR 3 = (anymultirange, anymultirange),
	OPERATOR 4 >= (anymultirange, anymultirange),
	OPERATOR 5 > (anymultirange, anymultirange),
	FUNCTION 1 multirange_cmp(anymultirange, anymultirange),
	FUNCTION 11 smart_normalize_multirange(internal);

CREATE OPERATOR FAMILY record_ops USING smart;
CREATE OPERATOR CLASS record_ops DEFAULT FOR TYPE record USING smart FAMILY record_ops AS
	OPERATOR 1 < (record, record),
	OPERATOR 2 <= (record, record),
	OPERATOR 3 = (record, record),
	OPERATOR 4 >= (record, record),
	OPERATOR 5 > (record, record),
	FUNCTION 1 btrecordcmp(record, record),
	FUNCTION 11 smart_normalize_record(internal);

CREATE OPERATOR FAMILY jsonb_ops USING smart;
CREATE OPERATOR CLASS jsonb_ops DEFAULT FOR TYPE jsonb USING smart FAMILY jsonb_ops AS
	OPERATOR 1 < (jsonb, jsonb),
	OPERATOR 2 <= (jsonb, jsonb),
	OPERATOR 3 = (jsonb, jsonb),
	OPERATOR 4 >= (jsonb, jsonb),
	OPERATOR 5 > (jsonb, jsonb),
	FUNCTION 1 jsonb_cmp(jsonb, jsonb),
	FUNCTION 11 smart_normalize_jsonb(internal);

CREATE OPERATOR FAMILY tsvector_ops USING smart;
CREATE OPERATOR CLASS tsvector_ops DEFAULT FOR TYPE tsvector USING smart FAMILY tsvector_ops AS
	OPERATOR 1 < (tsvector, tsvector),
	OPERATOR 2 <= (tsvector, tsvector),
	OPERATOR 3 = (tsvector, tsvector),
	OPERATOR 4 >= (tsvector, tsvector),
	OPERATOR 5 > (tsvector, tsvector),
	FUNCTION 1 tsvector_cmp(tsvector, tsvector),
	FUNCTION 11 smart_normalize_tsvector(internal);

CREATE OPERATOR FAMILY tsquery_ops USING smart;
CREATE OPERATOR CLASS tsquery_ops DEFAULT FOR TYPE tsquery USING smart FAMILY tsquery_ops AS
	OPERATOR 1 < (tsquery, tsquery),
	OPERATOR 2 <= (tsquery, tsquery),
	OPERATOR 3 = (tsquery, tsquery),
	OPERATOR 4 >= (tsquery, tsquery),
	OPERATOR 5 > (tsquery, tsquery),
	FUNCTION 1 tsquery_cmp(tsquery, tsquery),
	FUNCTION 11 smart_normalize_tsquery(internal);

-- Strings in the order of their bytes, whatever the collation is
CREATE OPERATOR FAMILY text_pattern_ops USING smart;
CREATE OPERATOR CLASS text_pattern_ops FOR TYPE text USING smart FAMILY text_pattern_ops AS
	OPERATOR 1 ~<~ (text, text),
	OPERATOR 2 ~<=~ (text, text),
	OPERATOR 3 = (text, text),
	OPERATOR 4 ~>=~ (text, text),
	OPERATOR 5 ~>~ (text, text),
	OPERATOR 6 ~~ (text, text),
	OPERATOR 7 ^@ (text, text),
	OPERATOR 10 ~ (text, text),
	FUNCTION 1 bttext_pattern_cmp(text, text),
	FUNCTION 2 bttext_pattern_sortsupport(internal),
	FUNCTION 11 smart_normalize_text_pattern(internal);

-- The same class under the name that varchar columns know
CREATE OPERATOR CLASS varchar_pattern_ops FOR TYPE text USING smart FAMILY text_pattern_ops AS STORAGE text;

CREATE OPERATOR FAMILY bpchar_pattern_ops USING smart;
CREATE OPERATOR CLASS bpchar_pattern_ops FOR TYPE bpchar USING smart FAMILY bpchar_pattern_ops AS
	OPERATOR 1 ~<~ (bpchar, bpchar),
	OPERATOR 2 ~<=~ (bpchar, bpchar),
	OPERATOR 3 = (bpchar, bpchar),
	OPERATOR 4 ~>=~ (bpchar, bpchar),
	OPERATOR 5 ~>~ (bpchar, bpchar),
	OPERATOR 6 ~~ (bpchar, text),
	OPERATOR 10 ~ (bpchar, text),
	FUNCTION 1 btbpchar_pattern_cmp(bpchar, bpchar),
	FUNCTION 2 btbpchar_pattern_sortsupport(internal),
	FUNCTION 11 smart_normalize_bpchar_pattern(internal);

-- Strings under a collation of the C library in the order of its sort keys, which have been wrong: not by default
CREATE OPERATOR FAMILY text_libc_ops USING smart;
CREATE OPERATOR CLASS text_libc_ops FOR TYPE text USING smart FAMILY text_libc_ops AS
	OPERATOR 1 < (text, text),
	OPERATOR 2 <= (text, text),
	OPERATOR 3 = (text, text),
	OPERATOR 4 >= (text, text),
	OPERATOR 5 > (text, text),
	OPERATOR 6 ~~ (text, text),
	OPERATOR 7 ^@ (text, text),
	OPERATOR 10 ~ (text, text),
	FUNCTION 1 bttextcmp(text, text),
	FUNCTION 2 bttextsortsupport(internal),
	FUNCTION 11 smart_normalize_text_libc(internal);

-- The same class under the name that varchar columns know
CREATE OPERATOR CLASS varchar_libc_ops FOR TYPE text USING smart FAMILY text_libc_ops AS STORAGE text;

CREATE OPERATOR FAMILY bpchar_libc_ops USING smart;
CREATE OPERATOR CLASS bpchar_libc_ops FOR TYPE bpchar USING smart FAMILY bpchar_libc_ops AS
	OPERATOR 1 < (bpchar, bpchar),
	OPERATOR 2 <= (bpchar, bpchar),
	OPERATOR 3 = (bpchar, bpchar),
	OPERATOR 4 >= (bpchar, bpchar),
	OPERATOR 5 > (bpchar, bpchar),
	OPERATOR 6 ~~ (bpchar, text),
	OPERATOR 10 ~ (bpchar, text),
	FUNCTION 1 bpcharcmp(bpchar, bpchar),
	FUNCTION 2 bpchar_sortsupport(internal),
	FUNCTION 11 smart_normalize_bpchar_libc(internal);

-- Row comparisons. For (a, b) > (1, 2) the planner gives a scan a >* ROW(1, 2), with an operator of the family of a;
-- written in a query, these operators are an error.

CREATE FUNCTION smart_row_bound_support(internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION smart_row_bound("any", record) RETURNS boolean
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT smart_row_bound_support;
COMMENT ON FUNCTION smart_row_bound("any", record) IS 'implementation of the operators <* <=* >=* >*';
CREATE OPERATOR <* (LEFTARG = "any", RIGHTARG = record, FUNCTION = smart_row_bound);
CREATE OPERATOR <=* (LEFTARG = "any", RIGHTARG = record, FUNCTION = smart_row_bound);
CREATE OPERATOR >=* (LEFTARG = "any", RIGHTARG = record, FUNCTION = smart_row_bound);
CREATE OPERATOR >* (LEFTARG = "any", RIGHTARG = record, FUNCTION = smart_row_bound);
COMMENT ON OPERATOR <* ("any", record) IS 'index condition: this column and those behind it are less than a row';
COMMENT ON OPERATOR <=* ("any", record) IS 'index condition: they are less than or equal to a row';
COMMENT ON OPERATOR >=* ("any", record) IS 'index condition: they are greater than or equal to a row';
COMMENT ON OPERATOR >* ("any", record) IS 'index condition: they are greater than a row';

ALTER OPERATOR FAMILY bool_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);
ALTER OPERATOR FAMILY oid_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);
ALTER OPERATOR FAMILY integer_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);
ALTER OPERATOR FAMILY float_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);
ALTER OPERATOR FAMILY datetime_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);
ALTER OPERATOR FAMILY time_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);
ALTER OPERATOR FAMILY text_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);
ALTER OPERATOR FAMILY bpchar_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);
ALTER OPERATOR FAMILY bytea_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);
ALTER OPERATOR FAMILY uuid_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);
ALTER OPERATOR FAMILY char_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);
ALTER OPERATOR FAMILY money_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);
ALTER OPERATOR FAMILY pg_lsn_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);
ALTER OPERATOR FAMILY xid8_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);
ALTER OPERATOR FAMILY tid_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);
ALTER OPERATOR FAMILY oidvector_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);
ALTER OPERATOR FAMILY numeric_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);
ALTER OPERATOR FAMILY interval_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);
ALTER OPERATOR FAMILY timetz_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);
ALTER OPERATOR FAMILY network_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);
ALTER OPERATOR FAMILY macaddr_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);
ALTER OPERATOR FAMILY macaddr8_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);
ALTER OPERATOR FAMILY bit_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);
ALTER OPERATOR FAMILY varbit_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);
ALTER OPERATOR FAMILY enum_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);
ALTER OPERATOR FAMILY array_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);
ALTER OPERATOR FAMILY range_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);
ALTER OPERATOR FAMILY multirange_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);
ALTER OPERATOR FAMILY record_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);
ALTER OPERATOR FAMILY jsonb_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);
ALTER OPERATOR FAMILY tsvector_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);
ALTER OPERATOR FAMILY tsquery_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);
ALTER OPERATOR FAMILY text_pattern_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);
ALTER OPERATOR FAMILY bpchar_pattern_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);
ALTER OPERATOR FAMILY text_libc_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);
ALTER OPERATOR FAMILY bpchar_libc_ops USING smart ADD
	OPERATOR 11 <* ("any", record), OPERATOR 12 <=* ("any", record),
	OPERATOR 14 >=* ("any", record), OPERATOR 15 >* ("any", record);
