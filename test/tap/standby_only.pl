# Index-only scans on a standby. They believe the visibility map as long as nothing has been replayed of the index's journal since they
# read it; else they look at the rows. So what VACUUM has freed in between is not returned, whatever the map says of its page.
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
CREATE TABLE rows (id int, name text, filler text);
INSERT INTO rows SELECT i, 'name ' || i % 100, repeat('x', 200) FROM generate_series(1, 20000) i;
CREATE INDEX rows_id ON rows USING smart (id);
CREATE INDEX rows_name ON rows USING smart (name, id);
CREATE TABLE same (a int);
INSERT INTO same SELECT i % 3 FROM generate_series(1, 3000) i;
CREATE INDEX same_a ON same USING smart (a);
VACUUM ANALYZE;
SQL
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;

# change(SQL): on the primary, and replayed on the standby.
sub change
{
	my ($sql) = @_;

	$primary->safe_psql('postgres', $sql);
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	return;
}

sub ask
{
	my ($sql) = @_;

	return $standby->safe_psql('postgres', "SET enable_seqscan = off; SET enable_bitmapscan = off; $sql");
}

change('SELECT 1');
becomes($standby, $_, 'ready') for ('rows_id', 'rows_name', 'same_a');

# What the map tells is believed: the heap's pages are not read.
my $COUNT = 'SELECT count(*), sum(id) FROM rows WHERE id BETWEEN 1001 AND 9000';
my $plan = ask("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $COUNT");
like($plan, qr/Index Only Scan using rows_id.*Heap Fetches: 0/s, 'an index-only scan on a standby') or diag($plan);
my $READ = q{SELECT pg_stat_get_xact_blocks_fetched('rows'::regclass)};
my ($before, $count, $after) = split "\n", ask("SET track_counts = on; BEGIN; $READ; $COUNT; $READ");
is($count, '8000|40004000', 'its rows');
cmp_ok($after - $before, '<', 40, 'it reads the visibility map, and not the rows');
is(ask('SELECT count(*) FROM same WHERE a = 1'), '1000', 'entries that have one tuple together');

# cursor(SQL): a scan whose plan needs the index.
sub cursor
{
	my ($sql) = @_;
	my $session = $standby->background_psql('postgres', on_error_stop => 0);

	$session->query_safe("SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; BEGIN; DECLARE c SCROLL CURSOR FOR $sql");
	return $session;
}

sub fetched
{
	my ($session, $fetch) = @_;
	my $out = $session->query($fetch);

	is($session->{stderr}, '', "$fetch: no error");
	return join ' ', split /\n/, $out;
}

# freed(WHAT, FROM, STEP): rows of a dozen pages are deleted before the snapshots of scans, and freed when these have read of the index.
# Their first row is on another page: replay would wait for its pin.
sub freed
{
	my ($what, $low, $step) = @_;
	my ($from, $to) = ($low - 50, $low + 450);

	change("DELETE FROM rows WHERE id BETWEEN $low AND $low + 400 AND id % $step <> 0");
	my $left = join ' ', grep { $_ < $low || $_ > $low + 400 || $_ % $step == 0 } ($from .. $to);
	my $forward = cursor("SELECT id FROM rows WHERE id BETWEEN $from AND $to ORDER BY id");
	my $backward = cursor("SELECT id FROM rows WHERE id BETWEEN $from AND $to ORDER BY id DESC");
	my $other = cursor("SELECT id FROM rows WHERE name = 'name 40' AND id BETWEEN $from AND $to");
	like($forward->query_safe('EXPLAIN (COSTS OFF) SELECT id FROM rows WHERE id > 5 ORDER BY id'), qr/Index Only Scan/, "$what: the plan");
	my @first = map { fetched($_, 'FETCH 1 FROM c') } ($forward, $backward);

	change('VACUUM (INDEX_CLEANUP on) rows');
	is(join(' ', $first[0], fetched($forward, 'FETCH ALL FROM c')), $left, "$what: what has been freed is not returned");
	is(join(' ', reverse split / /, join(' ', $first[1], fetched($backward, 'FETCH ALL FROM c'))), $left, "$what: backward");
	is(join(' ', reverse split / /, fetched($forward, 'FETCH BACKWARD ALL FROM c')), $left, "$what: turning round");
	is(fetched($other, 'FETCH ALL FROM c'), join(' ', grep { $_ % 100 == 40 } split / /, $left), "$what: a scan that had not read");
	is($standby->safe_psql('postgres', "SELECT count(*) FROM rows WHERE id BETWEEN $from AND $to"), scalar(split / /, $left), "$what: a later query");
	like(ask("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT id FROM rows WHERE id BETWEEN $from AND $to"),
		qr/Index Only Scan.*Heap Fetches: 0/s, "$what: whose pages are all visible");
	$_->query('COMMIT') for ($forward, $backward, $other);
	$_->quit for ($forward, $backward, $other);
	return;
}

freed('rows of whole pages', 1000, 401);
freed('every other row', 3000, 2);
freed('most rows', 5000, 10);

# Rows that come while it reads are not its snapshot's; what it reads later is believed again.
my $long = cursor('SELECT id FROM rows WHERE id > 10000 ORDER BY id');
my @rows = split / /, fetched($long, 'FETCH 10 FROM c');
change(q{INSERT INTO rows SELECT i, 'new', 'new' FROM generate_series(10000, 20000, 3) i});
push @rows, split / /, fetched($long, 'FETCH ALL FROM c');
is("@rows", join(' ', 10001 .. 20000), 'rows that come meanwhile are not seen');
$long->quit;

# A scan goes on behind a promotion, and one that is begun then in its transaction.
change('VACUUM rows; DELETE FROM rows WHERE id BETWEEN 12000 AND 12400 AND id % 7 > 0');
my $kept = join ' ', split /\n/, ask('SET enable_indexonlyscan = off; SELECT id FROM rows WHERE id BETWEEN 11990 AND 12400 ORDER BY id');
my $session = cursor('SELECT id FROM rows WHERE id BETWEEN 11990 AND 12400 ORDER BY id');
@rows = (fetched($session, 'FETCH 5 FROM c'));
$standby->promote;
$standby->safe_psql('postgres', q{VACUUM (INDEX_CLEANUP on) rows; INSERT INTO rows SELECT i, 'newer', repeat('y', 200) FROM generate_series(30000, 31000) i; VACUUM rows});
is(join(' ', @rows, fetched($session, 'FETCH ALL FROM c')), $kept, 'a scan goes on behind a promotion');
is($session->query('SELECT count(*) FROM rows WHERE id >= 30000'), '1001', 'its transaction has other scans');
$session->quit;
is(ask('SELECT count(*) FROM rows WHERE id BETWEEN 30000 AND 31000'), '1001', 'later transactions, too');
index_is_sound($standby, 'postgres', $_, 'after the promotion') for ('rows_id', 'rows_name');
log_is_quiet($_) for ($primary, $standby);
done_testing();
