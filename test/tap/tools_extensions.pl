# Extensions about indexes: hypopg, pg_qualstats, pg_stat_kcache, pgTAP and pg_cron.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartTest;
use SmartTools;

needs(map { extension($_) } ('hypopg', 'pg_qualstats', 'pg_stat_kcache', 'pgtap', 'pg_cron'));

my $node = PostgreSQL::Test::Cluster->new('main');

$node->init;
$node->append_conf('postgresql.conf', join("\n", "shared_preload_libraries = 'smart, pg_stat_statements, pg_stat_kcache, pg_qualstats, pg_cron'", @ITEM_SETTINGS,
	"cron.database_name = 'postgres'", 'cron.use_background_workers = on', 'max_worker_processes = 20', 'pg_qualstats.sample_rate = 1', ''));
$node->start;
$node->safe_psql('postgres', "CREATE EXTENSION $_") for ('smart', 'hypopg', 'pg_qualstats', 'pg_stat_statements', 'pg_stat_kcache', 'pgtap', 'pg_cron');

# Two jobs as early as pg_cron allows, at the next full minute: the rest of this test goes on meanwhile.
$node->safe_psql('postgres', $ITEM_SCHEMA);
$node->safe_psql('postgres', 'ANALYZE items; DELETE FROM items WHERE id % 5 = 0');
my $file = $node->safe_psql('postgres', q{SELECT pg_relation_filenode('items_note')});
$node->safe_psql('postgres', q{SELECT cron.schedule('vacuum', '* * * * *', 'VACUUM items'), cron.schedule('reindex', '* * * * *', 'REINDEX INDEX CONCURRENTLY items_note')});

# hypopg says that it cannot; a btree tells whether the planner would use an index on these columns.
my ($status, $out, $err) = $node->psql('postgres', q{SELECT hypopg_create_index('CREATE INDEX ON items USING smart (note)')});
like($err, qr/hypopg: access method "smart" is not supported/, 'hypopg has no hypothetical smart index');
like($node->safe_psql('postgres', q{SET client_min_messages = warning; SET smart.constraints = on; SELECT hypopg_create_index('CREATE INDEX ON items (note)');
	EXPLAIN (COSTS OFF) SELECT * FROM items WHERE note = 'note 7'; EXPLAIN (COSTS OFF) SELECT * FROM items WHERE id = 7; SELECT hypopg_reset()}),
	qr/<\d+>btree_items_note.*Index Scan using items_pkey/s, 'a hypothetical btree beside smart indexes');

# pg_qualstats sees conditions of smart indexes, and does not ask for an index where a smart one is.
$node->safe_psql('postgres', q{SELECT pg_qualstats_reset(); CREATE TABLE plain AS SELECT g AS x, g AS y FROM generate_series(1, 2000) g;
	CREATE INDEX plain_x ON plain USING smart (x); ANALYZE plain});
$node->safe_psql('postgres', 'SET enable_seqscan = off; SELECT * FROM plain WHERE x = 7') for (1 .. 3);
is($node->safe_psql('postgres', q{SELECT DISTINCT eval_type FROM pg_qualstats WHERE lrelid = 'plain'::regclass}), 'i', 'pg_qualstats: conditions of the index');
is($node->safe_psql('postgres', q{SELECT pg_qualstats_index_advisor(min_filter => 0, min_selectivity => 0)->>'indexes'}), '[]', 'the advisor wants no other');
$node->safe_psql('postgres', 'SELECT * FROM plain WHERE y = 7') for (1 .. 3);
is($node->safe_psql('postgres', q{SELECT pg_qualstats_index_advisor(min_filter => 0, min_selectivity => 0)->>'indexes'}), '["CREATE INDEX ON public.plain USING btree (y)"]',
	'where there is none, it proposes a btree');

is($node->safe_psql('postgres', q{SELECT sum(calls) FROM pg_stat_statements s JOIN pg_stat_kcache() k USING (queryid, userid, dbid)
	WHERE query LIKE 'SELECT * FROM plain WHERE x = %' AND k.top AND exec_user_time >= 0}), '3', 'pg_stat_kcache');

# pgTAP
my @checks = ("has_pk('items')", "col_is_pk('items', 'id')", "col_is_unique('items', 'code')", "index_is_primary('items', 'items_pkey')", "index_is_unique('items', 'items_code_key')",
	"has_index('items', 'items_paged', ARRAY['a', 'id'])", "index_is_type('items', 'items_pkey', 'smart')", "index_is_type('items', 'items_note', 'smart')",
	"indexes_are('items', ARRAY['items_pkey', 'items_code_key', 'items_note', 'items_some', 'items_paged'])", "is_indexed('items', ARRAY['a', 'id'])",
	"hasnt_index('items', 'items_other')");
my $lines = $node->safe_psql('postgres', join(' UNION ALL ', 'SELECT plan(' . @checks . ')', map { "SELECT $_" } @checks));
is(scalar(() = $lines =~ /^ok /mg), scalar(@checks), 'pgTAP knows smart indexes') or diag($lines);
like($node->safe_psql('postgres', q{SELECT plan(1) UNION ALL SELECT index_is_type('items', 'items_note', 'btree')}), qr/^not ok 1.*have: smart/ms, 'and tells their access method');

# pg_cron
ok($node->poll_query_until('postgres', q{SELECT count(DISTINCT jobid) = 2 FROM cron.job_run_details WHERE status = 'succeeded'}), 'pg_cron has run both jobs')
  or diag($node->safe_psql('postgres', 'SELECT command, status, return_message FROM cron.job_run_details'));
$node->safe_psql('postgres', q{SELECT cron.unschedule('vacuum'), cron.unschedule('reindex')});
$node->poll_query_until('postgres', q{SELECT NOT EXISTS (SELECT FROM cron.job_run_details WHERE status IN ('starting', 'running', 'sending', 'connecting'))}) or die 'a job does not end';
isnt($node->safe_psql('postgres', q{SELECT pg_relation_filenode('items_note')}), $file, 'REINDEX CONCURRENTLY has made the index anew');
ok($node->poll_query_until('postgres', q{SELECT n_dead_tup = 0 AND vacuum_count > 0 FROM pg_stat_user_tables WHERE relname = 'items'}), 'VACUUM has removed dead rows');
items_are_right($node, 'in the end');
$node->stop;
log_is_quiet($node);
done_testing();
