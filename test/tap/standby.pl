# A standby uses its smart indexes: they are loaded from their journals, and follow what is replayed. What is made, emptied,
# rebuilt or dropped on the primary is seen. After a promotion the indexes keep the trees that the standby has loaded.
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
$primary->append_conf('postgresql.conf', "shared_preload_libraries = 'smart'\nautovacuum = off\nwal_consistency_checking = 'generic'");
$primary->start;
$primary->safe_psql('postgres', <<'SQL');
CREATE EXTENSION smart;
CREATE TABLE copied (id int, name text);
INSERT INTO copied SELECT i, 'name ' || i % 100 FROM generate_series(1, 10000) i;
CREATE INDEX copied_id ON copied USING smart (id);
CREATE INDEX copied_name ON copied USING smart (name);
INSERT INTO copied SELECT i, 'name ' || i % 100 FROM generate_series(10001, 11000) i;
CREATE TABLE late (id int);
CREATE INDEX late_id ON late USING smart (id);
CREATE TABLE private (id int);
CREATE INDEX private_id ON private USING smart (id) WITH (logged = off);
INSERT INTO private SELECT generate_series(1, 1000);
CREATE UNLOGGED TABLE forgetful (id int);
CREATE INDEX forgetful_id ON forgetful USING smart (id);
SQL
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;

sub catch_up
{
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	return;
}

# change(SQL): on the primary, and replayed on the standby.
sub change
{
	my ($sql) = @_;

	$primary->safe_psql('postgres', $sql);
	catch_up();
	return;
}

my $by_index = 'SET enable_seqscan = off; ';
catch_up();

# What there was, and what comes.
ok(becomes($standby, $_, 'ready'), "$_ is loaded") for ('copied_id', 'copied_name');
is($standby->safe_psql('postgres', q{SELECT string_agg(index || ' ' || state, ', ' ORDER BY index::text) FROM smart_index_state}),
	'copied_id ready, copied_name ready, forgetful_id unavailable, late_id empty, private_id lost', 'the states of the indexes');
same_answers($standby, 'postgres', $_, $_) for (
	'SELECT * FROM copied WHERE id = 77', 'SELECT * FROM copied WHERE id BETWEEN 9990 AND 10010 ORDER BY id',
	'SELECT * FROM copied ORDER BY id DESC LIMIT 5', q{SELECT * FROM copied WHERE name = 'name 5' ORDER BY id},
	q{SELECT count(*) FROM copied WHERE name = 'name 5' AND id < 500});
change(q{INSERT INTO copied VALUES (12000, 'new'); DELETE FROM copied WHERE id = 77; UPDATE copied SET id = -5 WHERE id = 78; VACUUM copied; INSERT INTO copied VALUES (77, 'again')});
same_answers($standby, 'postgres', $_, "later: $_") for (
	'SELECT * FROM copied WHERE id = 12000', 'SELECT * FROM copied WHERE id < 100 ORDER BY id', q{SELECT * FROM copied WHERE name >= 'name 98' ORDER BY name, id});
index_is_sound($standby, 'postgres', $_, 'on the standby') for ('copied_id', 'copied_name');

# An index answers alone on either server.
like($standby->safe_psql('postgres', $by_index . 'EXPLAIN (COSTS OFF) SELECT id FROM copied WHERE id < 10'), qr/Index Only/, 'an index-only scan on the standby');
like($primary->safe_psql('postgres', $by_index . 'EXPLAIN (COSTS OFF) SELECT id FROM copied WHERE id < 10'), qr/Index Only/, 'on the primary there are');

# An index that is not logged is not there.
unlike($standby->safe_psql('postgres', $by_index . 'EXPLAIN (COSTS OFF) SELECT * FROM private WHERE id = 5'), qr/Index/, 'without a journal there is no index');
my (undef, undef, $err) = $standby->psql('postgres', "SELECT smart_index_check('private_id')");
like($err, qr/ERROR:.*DETAIL:  It is not logged/s, 'a query that insists is told why');

# An empty index.
same_answers($standby, 'postgres', 'SELECT * FROM late WHERE id > 0', 'an empty index is empty');
my $session = $standby->background_psql('postgres');
my $QUERY = 'SELECT id FROM late WHERE id > 5 ORDER BY id';
$session->query_safe("SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan; PREPARE q AS $QUERY");
is($session->query_safe('EXECUTE q'), '', 'a prepared statement on it');
change('INSERT INTO late SELECT generate_series(1, 10)');
is($session->query_safe('EXECUTE q'), join("\n", 6 .. 10), 'which waits for the first tree');
same_answers($standby, 'postgres', $QUERY, 'and so do others');
like($session->query_safe('EXPLAIN (COSTS OFF) EXECUTE q'), qr/Index/, 'it uses the index');

# Relations that come and go.
change('TRUNCATE late');
is($session->query_safe('EXECUTE q'), '', 'emptied');
change('INSERT INTO late SELECT generate_series(1, 8)');
is($session->query_safe('EXECUTE q'), join("\n", 6 .. 8), 'filled again');
change('REINDEX INDEX late_id');
is($session->query_safe('EXECUTE q'), join("\n", 6 .. 8), 'rebuilt');
becomes($standby, 'late_id', 'ready');
change('REINDEX INDEX CONCURRENTLY late_id; CREATE INDEX late_later ON late USING smart ((id + 1))');
becomes($standby, 'late_later', 'ready');
is($session->query_safe('EXECUTE q'), join("\n", 6 .. 8), 'rebuilt concurrently');
same_answers($standby, 'postgres', 'SELECT * FROM late WHERE id + 1 = 5', 'a new index');
change('BEGIN; DROP INDEX late_later; TRUNCATE late; INSERT INTO late VALUES (100); SAVEPOINT s; INSERT INTO late VALUES (101); ROLLBACK TO s; COMMIT');
is($session->query_safe('EXECUTE q'), '100', 'emptied and filled in one transaction');
change('VACUUM FULL copied; CREATE DATABASE other; DROP TABLE private');
becomes($standby, 'copied_id', 'ready');
same_answers($standby, 'postgres', 'SELECT * FROM copied WHERE id < 100 ORDER BY id', 'a table that was written anew');
ok($standby->poll_query_until('postgres', q{SELECT trees = 3 AND leaked_trees = 0 FROM smart_stat_space() WHERE database = 'postgres'}), 'the trees of what has gone are freed')
	or diag($standby->safe_psql('postgres', 'SELECT * FROM smart_stat_space()'));

# A restart loads anew.
$standby->restart;
becomes($standby, $_, 'ready') for ('copied_id', 'copied_name', 'late_id');
same_answers($standby, 'postgres', 'SELECT * FROM copied WHERE id < 100 ORDER BY id', 'after a restart');
$session->quit;

# A promotion takes the trees over.
$session = $standby->background_psql('postgres');
$session->query_safe("SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan; PREPARE q AS $QUERY");
is($session->query_safe('EXECUTE q'), '100', 'before the promotion');
$primary->safe_psql('postgres', 'INSERT INTO late VALUES (102)');
catch_up();
my $offset = -s $standby->logfile;
$standby->promote;
is($session->query_safe('EXECUTE q'), "100\n102", 'the prepared statement after it');
like($session->query_safe('EXPLAIN (COSTS OFF) EXECUTE q'), qr/Index/, 'which uses the index');
same_answers($standby, 'postgres', 'SELECT id FROM copied WHERE id < 100 ORDER BY id', 'at once');
becomes($standby, $_, 'ready') for ('copied_id', 'copied_name', 'late_id');
$standby->safe_psql('postgres', 'INSERT INTO forgetful VALUES (1), (2); INSERT INTO late VALUES (103); DELETE FROM late WHERE id = 100; VACUUM late');
is($session->query_safe('EXECUTE q'), "102\n103", 'written after it');
$session->quit;
index_is_sound($standby, 'postgres', $_, 'after the promotion') for ('copied_id', 'copied_name', 'late_id', 'forgetful_id');
unlike(PostgreSQL::Test::Utils::slurp_file($standby->logfile, $offset), qr/has been (loaded|rebuilt)/, 'nothing was loaded or rebuilt');

# A crash now is one of an ordinary server: the trees stay.
$standby->stop('immediate');
$offset = -s $standby->logfile;
start_again($standby);
same_answers($standby, 'postgres', $_, "after a crash: $_") for ('SELECT id FROM copied WHERE id < 100 ORDER BY id', 'SELECT id FROM late WHERE id > 5 ORDER BY id');
becomes($standby, $_, 'ready') for ('copied_id', 'copied_name', 'late_id');
index_is_sound($standby, 'postgres', $_, 'after a crash') for ('copied_id', 'copied_name', 'late_id');
unlike(PostgreSQL::Test::Utils::slurp_file($standby->logfile, $offset), qr/has been (loaded|rebuilt)|empty region/, 'nothing was loaded or rebuilt after it');
log_is_quiet($_) for ($primary, $standby);
done_testing();
