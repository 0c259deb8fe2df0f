# Queries that were begun on a standby, and go on when it is promoted: their scans are right to the end, and those that their
# workers begin later find the index.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use SmartTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', "shared_preload_libraries = 'smart'\nautovacuum = off");
$primary->start;
$primary->safe_psql('postgres', <<'SQL');
CREATE EXTENSION smart;
CREATE TABLE rows (id int, name text);
INSERT INTO rows SELECT i, 'name ' || i % 100 FROM generate_series(1, 20000) i;
CREATE INDEX rows_id ON rows USING smart (id);
CREATE INDEX rows_name ON rows USING smart (name, id);
CREATE TABLE keys WITH (parallel_workers = 2) AS SELECT generate_series(1, 100) AS id;
ANALYZE;
CREATE FUNCTION after_promotion(int) RETURNS bool PARALLEL SAFE LANGUAGE plpgsql COST 1000 AS $$
	BEGIN WHILE pg_is_in_recovery() LOOP PERFORM pg_sleep(0.05); END LOOP; RETURN true; END $$;
SQL
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
becomes($standby, $_, 'ready') for ('rows_id', 'rows_name');

# begun(SETTINGS, PLAN, QUERY): a session in which the query runs, or is about to; its plan looks like this.
sub begun
{
	my ($settings, $plan, $query) = @_;
	my $session = $standby->background_psql('postgres', on_error_stop => 0);

	$session->query_safe("$settings; SET smart.wait_timeout = '60s'");
	like($session->query_safe("EXPLAIN (COSTS OFF) $query"), $plan, 'the plan');
	$session->query_until(qr/begun/, "\\echo begun\n$query;\n\\echo ended\n");
	return $session;
}

my $NESTED = 'SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_bitmapscan = off; SET enable_material = off; SET enable_memoize = off';
my $QUERY = 'SELECT count(*), sum(r.id) FROM keys k JOIN rows r USING (id) WHERE k.id BETWEEN 5 AND 65 AND after_promotion(k.id)';
my $workers = begun("$NESTED; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET parallel_leader_participation = off",
	qr/Gather.*Nested Loop.*Index Only Scan using rows_id/s, $QUERY);
my $alone = begun("$NESTED; SET enable_indexonlyscan = off; SET max_parallel_workers_per_gather = 0", qr/Nested Loop.*Index Scan using rows_id/s, $QUERY);

# A cursor over one index, of which some was read; a snapshot that asks again.
my $cursor = $standby->background_psql('postgres', on_error_stop => 0);
$cursor->query_safe('SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; BEGIN ISOLATION LEVEL REPEATABLE READ;
	DECLARE c SCROLL CURSOR FOR SELECT id FROM rows WHERE name BETWEEN \'name 3\' AND \'name 5\' ORDER BY name, id');
my $head = $cursor->query_safe('FETCH 500 FROM c');
my $all = $standby->safe_psql('postgres', q{SET enable_indexscan = off; SET enable_bitmapscan = off; SELECT id FROM rows WHERE name BETWEEN 'name 3' AND 'name 5' ORDER BY name, id});

$standby->poll_query_until('postgres', q{SELECT count(*) > 0 FROM pg_stat_activity WHERE backend_type = 'parallel worker' AND wait_event = 'PgSleep'}) or die 'no worker waits';
$standby->promote;
# The other index is asked first: this is a change that the cursor hears of.
same_answers($standby, 'postgres', 'SELECT id FROM rows WHERE id < 20 ORDER BY id', 'another index');
$standby->safe_psql('postgres', q{DELETE FROM rows WHERE id % 3 = 0; VACUUM (INDEX_CLEANUP on) rows; INSERT INTO rows SELECT i, 'name 4' FROM generate_series(30000, 36000) i});
my $tail = $cursor->query('FETCH ALL FROM c');
is("$head\n$tail", $all, 'a cursor reads on') or diag($cursor->{stderr});
is($cursor->query(q{SELECT count(*) FROM rows WHERE name = 'name 4'}), '200', 'its snapshot is what it was') or diag($cursor->{stderr});
$cursor->query('COMMIT');
$cursor->quit;
for my $session ($workers, $alone)
{
	my $out = $session->query_until(qr/ended/, '');
	like($out, qr/^61\|2135$/m, 'scans that were begun after the promotion') or diag($session->{stderr});
	$session->quit;
}
index_is_sound($standby, 'postgres', $_, 'after the promotion') for ('rows_id', 'rows_name');
log_is_quiet($_) for ($primary, $standby);
done_testing();
