# A standby whose indexes have no tree there, since they are to have none, or there is no room: it answers from the pages that it
# replays, while the primary inserts, deletes, runs VACUUM and compacts; after a crash, and after its promotion.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SmartTest;
use Test::More;

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', <<'CONF');
shared_preload_libraries = 'smart'
autovacuum = off
smart.wait_timeout = '60s'
smart.embedded_max_size = '16MB'
shared_buffers = 32MB
wal_keep_size = 1GB
max_parallel_workers_per_gather = 0
CONF
$primary->start;
$primary->safe_psql('postgres', <<'SQL');
CREATE EXTENSION smart;
CREATE TABLE rows (a bigint, b text COLLATE "C", c int);
INSERT INTO rows SELECT hashint8extended(g, 0), 'k' || g % 5000, g FROM generate_series(1, 1200000) g;
CREATE INDEX rows_a ON rows USING smart (a) WITH (resident = never);
CREATE INDEX rows_b ON rows USING smart (b, c);
ALTER TABLE rows ADD PRIMARY KEY (c) WITH (smart = on);
ALTER INDEX rows_pkey RENAME TO rows_c;
SQL
$primary->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$standby->append_conf('postgresql.conf', "hot_standby_feedback = on\nwal_receiver_status_interval = 1s");
$standby->start;

my @queries = (
	'SELECT a, c FROM rows WHERE a BETWEEN -100000000000000000 AND 100000000000000000 ORDER BY a',
	'SELECT a FROM rows WHERE a BETWEEN -100000000000000000 AND 100000000000000000 ORDER BY a DESC LIMIT 300',
	q{SELECT b, c FROM rows WHERE b = 'k77' ORDER BY c}, q{SELECT b, c FROM rows WHERE b >= 'new' ORDER BY b DESC, c DESC LIMIT 500},
	'SELECT b, c FROM rows WHERE c IN (1, 7, 500, 501, 9999, 19999, 1200005, 1210000) ORDER BY c',
	'SELECT c FROM rows WHERE c >= 1190000 ORDER BY c LIMIT 1000');

sub caught_up
{
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	return;
}

# The standby's answers by index are those of its table, which has what the primary's has.
sub answers_are_right
{
	my ($name, $node) = @_;
	my $count = 'SELECT count(*), sum(c), sum(a::numeric) FROM rows';

	same_answers($node // $standby, 'postgres', $_, "$name: $_") foreach (@queries);
	is($standby->safe_psql('postgres', $count), $primary->safe_psql('postgres', $count), "$name: all rows") unless defined $node;
	return;
}

sub are_paged
{
	my ($name) = @_;

	is($standby->safe_psql('postgres', q{SELECT string_agg(DISTINCT state, ' ') FROM smart_index_state WHERE index::text LIKE 'rows_%'}), 'paged', "$name: no tree");
	return;
}

is($primary->safe_psql('postgres', q{SELECT string_agg(DISTINCT state, ' ') FROM smart_index_state}), 'paged', 'the primary has no tree');
caught_up();
are_paged('begun');
answers_are_right('begun');

# A statement goes on while what it reads is replaced, and has what its snapshot sees.
my $cursor = $standby->background_psql('postgres');
foreach my $round (1 .. 3)
{
	my ($from, $to) = (1200000 + 120000 * ($round - 1) + 1, 1200000 + 120000 * $round);
	my $query = 'SELECT a FROM rows WHERE a > 6000000000000000000 ORDER BY a' . ($round % 2 ? ' DESC' : '');
	my @all = split "\n", $standby->safe_psql('postgres', "SET enable_indexscan = off; SET enable_indexonlyscan = off; $query");
	my $run = $primary->safe_psql('postgres', q{SELECT run FROM smart_index_pages('rows_a')});

	$cursor->query_safe("SET enable_seqscan = off; SET enable_sort = off; BEGIN; DECLARE c CURSOR FOR $query");
	is($cursor->query_safe('FETCH 10 FROM c'), join("\n", @all[0 .. 9]), "round $round: a scan begins");
	# VACUUM keeps what the scan sees; else replay would have to wait for the page of the table that it is on.
	my $xmin = $cursor->query_safe('SELECT pg_snapshot_xmin(pg_current_snapshot())');
	ok($primary->poll_query_until('postgres', "SELECT backend_xmin::text::bigint <= $xmin FROM pg_stat_replication"), "round $round: the primary knows of it");
	$primary->safe_psql('postgres', "INSERT INTO rows SELECT hashint8extended(g, 1), 'new' || g % 1000, g FROM generate_series($from, $to) g");
	$primary->safe_psql('postgres', "DELETE FROM rows WHERE c % 9 = $round");
	$primary->safe_psql('postgres', 'VACUUM rows');
	$primary->safe_psql('postgres', "UPDATE rows SET a = a + 1 WHERE c BETWEEN $from AND $from + 5000");
	caught_up();
	is($cursor->query_safe('FETCH 1000 FROM c'), join("\n", @all[10 .. 1009]), "round $round: it goes on");
	compaction_ends($primary);
	ok($primary->safe_psql('postgres', q{SELECT run FROM smart_index_pages('rows_a')}) > $run, "round $round: another run");
	caught_up();
	answers_are_right("round $round");
	is($cursor->query_safe('FETCH ALL FROM c'), join("\n", @all[1010 .. $#all]), "round $round: to its end");
	$cursor->query_safe('COMMIT');
	ok($primary->poll_query_until('postgres', "SELECT coalesce(backend_xmin::text::bigint > $xmin, true) FROM pg_stat_replication"), "round $round: it may remove them now");
	$primary->safe_psql('postgres', 'VACUUM rows');
	caught_up();
	answers_are_right("round $round, vacuumed");
}
$cursor->quit;
are_paged('rounds');
index_is_sound($standby, 'postgres', $_, 'rounds') foreach ('rows_a', 'rows_b', 'rows_c');
ok($standby->poll_query_until('postgres', q{SELECT trees <= 3 FROM smart_stat_space}), 'deltas of runs before have gone')
	or diag($standby->safe_psql('postgres', 'SELECT * FROM smart_stat_space'));

# Sessions read while the primary writes.
my $writer = $primary->background_psql('postgres');
$writer->query_until(qr/begun/, join("\n", '\echo begun',
	map { "INSERT INTO rows SELECT hashint8extended(g, 5), 'more', g FROM generate_series(${_}0000 + 2000000, ${_}4999 + 2000000) g; DELETE FROM rows WHERE c BETWEEN ${_}000 AND ${_}700; VACUUM rows;" } (10 .. 24)) . "\n\\echo ended\n");
$standby->pgbench('--client=4 --time=5 --no-vacuum', 0, [qr/processed/], [qr/^$/], 'sessions that read', {'standby_paged' => <<'SQL'});
\set c random(1, 1190000)
SET enable_seqscan = off;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) AS by_c FROM rows WHERE c BETWEEN :c AND :c + 20 \gset
SET LOCAL enable_seqscan = on;
SET LOCAL enable_indexscan = off;
SET LOCAL enable_bitmapscan = off;
SELECT count(*) AS by_table FROM rows WHERE c BETWEEN :c AND :c + 20 \gset
SELECT 1 / (:by_c = :by_table)::int;
COMMIT;
SQL
$writer->query_until(qr/ended/, '');
$writer->quit;
compaction_ends($primary);
caught_up();
answers_are_right('sessions have read');

# ---- a tree comes and goes ----

$primary->safe_psql('postgres', 'CREATE TABLE small (a int); INSERT INTO small SELECT generate_series(1, 5000); CREATE INDEX small_a ON small USING smart (a) WITH (resident = always)');
caught_up();
becomes($standby, 'small_a', 'ready');
$primary->safe_psql('postgres', 'ALTER INDEX small_a SET (resident = never); INSERT INTO small VALUES (5001)');
caught_up();
ok($standby->poll_query_until('postgres', q{SELECT state = 'paged' FROM smart_index_state WHERE index = 'small_a'::regclass}), 'it gives up its tree');
is($standby->safe_psql('postgres', 'SET enable_seqscan = off; SELECT max(a), count(*) FROM small WHERE a > 4990'), '5001|11', 'and answers');
$primary->safe_psql('postgres', 'ALTER INDEX small_a SET (resident = always); DELETE FROM small WHERE a = 5000');
caught_up();
becomes($standby, 'small_a', 'ready');
is($standby->safe_psql('postgres', 'SET enable_seqscan = off; SELECT max(a), count(*) FROM small WHERE a > 4990'), '5001|10', 'with a tree again');
$primary->safe_psql('postgres', 'CREATE INDEX small_b ON small USING smart (a) WITH (resident = never); DROP INDEX small_a; INSERT INTO small VALUES (-1)');
caught_up();
is($standby->safe_psql('postgres', 'SET enable_seqscan = off; SELECT min(a) FROM small WHERE a < 100'), '-1', 'an index without a tree is asked');
my $trees = $standby->safe_psql('postgres', 'SELECT trees FROM smart_stat_space');
$primary->safe_psql('postgres', 'DROP TABLE small');
caught_up();
ok($standby->poll_query_until('postgres', "SELECT trees < $trees FROM smart_stat_space"), 'its delta goes with it');
# There is no room for this one: it is not loaded, and its pages answer.
$primary->safe_psql('postgres', 'ALTER INDEX rows_a SET (resident = always)');
caught_up();
answers_are_right('there is no room for a tree');
$primary->safe_psql('postgres', 'ALTER INDEX rows_a SET (resident = never)');
caught_up();

# ---- the end ----

$standby->stop('immediate');
start_again($standby);
caught_up();
are_paged('after a crash');
answers_are_right('after a crash');
# A statement goes on while the server is promoted.
my @all = split "\n", $standby->safe_psql('postgres', 'SET enable_indexscan = off; SET enable_indexonlyscan = off; SELECT a FROM rows WHERE a > 0 ORDER BY a');
$cursor = $standby->background_psql('postgres');
$cursor->query_safe("SET enable_seqscan = off; SET enable_sort = off; BEGIN; DECLARE c CURSOR FOR SELECT a FROM rows WHERE a > 0 ORDER BY a");
is($cursor->query_safe('FETCH 10 FROM c'), join("\n", @all[0 .. 9]), 'a scan begins on the standby');
$primary->stop;
$standby->promote;
is($cursor->query_safe('FETCH 1000 FROM c'), join("\n", @all[10 .. 1009]), 'it goes on after the promotion');
$standby->safe_psql('postgres', q{INSERT INTO rows SELECT hashint8extended(g, 9), 'promoted', -g FROM generate_series(1, 200000) g; DELETE FROM rows WHERE c % 11 = 0});
is($cursor->query_safe('FETCH ALL FROM c'), join("\n", @all[1010 .. $#all]), 'and to its end');
$cursor->query_safe('COMMIT');
$cursor->quit;
$standby->safe_psql('postgres', 'VACUUM rows');
are_paged('promoted');
answers_are_right('promoted', $standby);
my (undef, undef, $complaint) = $standby->psql('postgres', q{INSERT INTO rows VALUES (1, 'twice', -5)});
like($complaint, qr/duplicate key/, 'a key is unique');
index_is_sound($standby, 'postgres', $_, 'promoted') foreach ('rows_a', 'rows_b', 'rows_c');
log_is_quiet($standby);
log_is_quiet($primary);
$standby->stop;
done_testing();
