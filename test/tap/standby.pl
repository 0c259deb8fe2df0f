# A standby has the heap but not the trees: its smart indexes are not used there. After a promotion they are rebuilt, and
# used in sessions that were there before, too.
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
CREATE TABLE copied (id int);
CREATE INDEX copied_id ON copied USING smart (id);
INSERT INTO copied SELECT generate_series(1, 1000);
CREATE TABLE late (id int);
CREATE INDEX late_id ON late USING smart (id);
CREATE UNLOGGED TABLE forgetful (id int);
CREATE INDEX forgetful_id ON forgetful USING smart (id);
SQL
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;

my $by_index = 'SET enable_seqscan = off; ';
my $QUERY = 'SELECT id FROM copied WHERE id > 990 ORDER BY id';
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
is($standby->safe_psql('postgres', $by_index . 'SELECT count(*) FROM late WHERE id > 0'), '0', 'an empty index is empty');
$primary->safe_psql('postgres', 'INSERT INTO late SELECT generate_series(1, 10)');
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
for my $table ('copied', 'late')
{
	unlike($standby->safe_psql('postgres', $by_index . "EXPLAIN (COSTS OFF) SELECT count(*) FROM $table WHERE id > 5"), qr/Index/,
		"$table: its index is not used");
	is($standby->safe_psql('postgres', $by_index . "SELECT count(*) > 4 FROM $table WHERE id > 5"), 't', "$table: the result comes from the heap");
}
my (undef, undef, $err) = $standby->psql('postgres', "SELECT smart_index_check('copied_id')");
like($err, qr/ERROR:.*DETAIL:  Smart indexes are not replicated.*HINT:.*promotion/s, 'a query that insists is told why');
is($standby->safe_psql('postgres', q{SELECT string_agg(indexname || ' ' || state, ', ' ORDER BY indexname) FROM smart_indexes}),
	'copied_id lost, forgetful_id unavailable, late_id lost', 'the states of the indexes');
is($standby->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'smart%'}), '0', 'no worker rebuilds anything');
my $session = $standby->background_psql('postgres');
$session->query_safe("SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan; PREPARE q AS $QUERY");
is($session->query_safe('EXECUTE q'), join("\n", 991 .. 1000), 'a prepared statement on the standby');

$standby->promote;
ok($standby->poll_query_until('postgres', q{SELECT bool_and(state IN ('ready', 'empty')) FROM smart_index_state}), 'rebuilt after the promotion');
$standby->safe_psql('postgres', 'INSERT INTO forgetful VALUES (1), (2); INSERT INTO copied VALUES (1001)');
is($session->query_safe('EXECUTE q'), join("\n", 991 .. 1001), 'the prepared statement after it');
like($session->query_safe('EXPLAIN (COSTS OFF) EXECUTE q'), qr/Index/, 'which uses the index now');
$session->quit;
index_is_sound($standby, 'postgres', $_, 'after the promotion') for ('copied_id', 'late_id', 'forgetful_id');
same_answers($standby, 'postgres', 'SELECT id FROM copied WHERE id > 990 ORDER BY id', 'after the promotion');
index_is_sound($primary, 'postgres', $_, 'on the primary') for ('copied_id', 'late_id');
log_is_quiet($_) for ($primary, $standby);
done_testing();
