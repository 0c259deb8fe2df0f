# A standby has the heap but not the trees: its smart indexes give errors and not answers, and work again after a
# promotion and a REINDEX.
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
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
is($standby->safe_psql('postgres', $by_index . 'SELECT count(*) FROM late WHERE id > 0'), '0', 'an empty index is empty');
$primary->safe_psql('postgres', 'INSERT INTO late SELECT generate_series(1, 10)');
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
for my $table ('copied', 'late')
{
	my ($status, $out, $err) = $standby->psql('postgres', $by_index . "SELECT count(*) FROM $table WHERE id > 5");

	is($out, '', "$table: no answer from an index whose tree is elsewhere");
	like($err, qr/ERROR:.*DETAIL:  Smart indexes are not replicated.*HINT:/s, "$table: but an error that says why");
	$out = $standby->safe_psql('postgres',
		"SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off; SELECT count(*) > 4 FROM $table WHERE id > 5");
	is($out, 't', "$table: the heap answers");
}
is($standby->safe_psql('postgres', q{SELECT string_agg(indexname || ' ' || state, ', ' ORDER BY indexname) FROM smart_indexes}),
	'copied_id lost, forgetful_id unavailable, late_id lost', 'the states of the indexes');

$standby->promote;
$standby->safe_psql('postgres', 'INSERT INTO forgetful VALUES (1), (2); REINDEX TABLE copied; REINDEX TABLE late; INSERT INTO copied VALUES (1001)');
index_is_sound($standby, 'postgres', $_, 'after the promotion') for ('copied_id', 'late_id', 'forgetful_id');
same_answers($standby, 'postgres', 'SELECT id FROM copied WHERE id > 990 ORDER BY id', 'after the promotion');
index_is_sound($primary, 'postgres', $_, 'on the primary') for ('copied_id', 'late_id');
log_is_quiet($_) for ($primary, $standby);
done_testing();
