# An index whose pages answer, with a long chain, right after the server's start: its first readers do not wait for a delta, but read
# the chain themselves, each range once; a worker makes the delta meanwhile. Where no worker can come, the seventeenth does.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SmartTest;
use Test::More;

my $DELTAS = q{SELECT coalesce(sum(trees), 0) FROM smart_stat_space}; # no index has another tree
my $BY_INDEX = 'SET enable_seqscan = off; SET enable_bitmapscan = off; ';
my $READ = qr/chain of index "(\w+)": (\d+) operations(?:, on (\d+) entries)? of the range that is read/;
my $MADE = qr/chain of index "(\w+)": \d+ operations, \d+ lanes, \d+ sorted/;
my $node = smart_node('main', 'autovacuum = off', 'max_parallel_workers_per_gather = 0', 'max_worker_processes = 0');

sub sql
{
	return $node->safe_psql('postgres', $_[0]);
}

# start_with(WORKERS): after a power loss.
sub start_with
{
	my ($workers) = @_;

	lose_power($node);
	$node->append_conf('postgresql.conf', "max_worker_processes = $workers");
	start_again($node);
	is(sql($DELTAS), '0', "$workers workers: there is no delta");
	return;
}

# tells(STATEMENTS): what they return, how often a chain was read for a range, on how many entries of that the last time, and how often a
# delta was made.
sub tells
{
	my ($statements) = @_;
	my ($status, $out, $told) = $node->psql('postgres', 'SET client_min_messages = debug1; ' . $BY_INDEX . $statements);
	my @read = $told =~ /$READ/g;
	my @made = $told =~ /$MADE/g;

	return ($out, @read / 3, $read[-1] // '', scalar(@made), $told);
}

# reads(STATEMENT, RESULT, FOUND, NAME): by one look at the chain, with operations on so many entries of its range.
sub reads
{
	my ($statement, $result, $found, $name) = @_;
	my ($out, $reads, $in_range, $made) = tells($statement);

	is("$out, $reads, $in_range, $made", "$result, 1, $found, 0", "$name: right, by one look at the chain");
	return;
}

# In the run: 1 to 400,000. In the chain: 1 to 100 and 390,001 to 390,100 are removed; 400,001 to 500,000 are added, of which the
# first 100 are removed again; and 51 to 100 are added once more, some of them with the places that others had.
sql(<<'SQL');
CREATE TABLE rows (a bigint, b int, c text);
INSERT INTO rows SELECT hashint8extended(g, 0), g, 'w' || g % 7 FROM generate_series(1, 400000) g;
CREATE UNIQUE INDEX rows_b ON rows USING smart (b) WITH (resident = never);
CREATE INDEX rows_a ON rows USING smart (a) INCLUDE (b) WITH (resident = never);
CREATE INDEX rows_c ON rows USING smart (c, b) WITH (resident = never);
INSERT INTO rows SELECT hashint8extended(g, 0), g, 'w' || g % 7 FROM generate_series(400001, 500000) g ORDER BY hashint8extended(g, 1);
DELETE FROM rows WHERE b <= 100 OR b BETWEEN 390001 AND 390100 OR b BETWEEN 400001 AND 400100;
VACUUM (INDEX_CLEANUP ON) rows;
INSERT INTO rows SELECT hashint8extended(g, 0), g, 'w' || g % 7 FROM generate_series(51, 100) g;
SQL
is(sql(q{SELECT string_agg(i::text, ' ') FROM unnest('{rows_a,rows_b,rows_c}'::regclass[]) i, smart_index_pages(i)
	WHERE chain_pages > 64 AND chain_pages < run_pages AND adds = 100050 AND removals = 300}), 'rows_a rows_b rows_c', 'the chains are long');

start_with(0);
reads('SELECT b FROM rows WHERE a = hashint8extended(777, 0)', 777, 0, 'in the run alone');
reads('SELECT b FROM rows WHERE a = hashint8extended(450000, 0)', 450000, 1, 'in the chain alone');
reads('SELECT count(*) FROM rows WHERE a = hashint8extended(20, 0)', 0, 1, 'removed');
reads('SELECT count(*) FROM rows WHERE a = hashint8extended(400020, 0)', 0, 1, 'added and removed');
reads('SELECT count(*) FROM rows WHERE b = 390020', 0, 1, 'removed from the run');
reads('SELECT count(*) FROM rows WHERE b = 600000', 0, 0, 'never there');
# A row that was inserted again has the place of another one, which was removed, and perhaps its own.
like((tells('SELECT b, c FROM rows WHERE b = 60'))[0], qr/^60\|w4$/, 'removed, and added anew');
like((tells('SELECT b FROM rows WHERE b BETWEEN 40 AND 101 ORDER BY b'))[0], qr/^51\n(?:\d+\n){49}101$/, 'a range: in order');
like((tells('SELECT b FROM rows WHERE b BETWEEN 40 AND 101 ORDER BY b DESC'))[0], qr/^101\n(?:\d+\n){49}51$/, 'a range: backward');
is((tells('SELECT count(*), min(b), max(b) FROM rows WHERE b BETWEEN 389990 AND 400200'))[0], '10011|389990|400200', 'a range with groups of all kinds');
is(sql($DELTAS), '0', 'nobody has made a delta');

# Rows that are inserted now are found by who inserts the next one.
foreach my $b (60, 777, 450000)
{
	my ($status, $out, $error) = $node->psql('postgres', "INSERT INTO rows VALUES (1, $b, 'x')");

	like($error, qr/duplicate key value violates unique constraint "rows_b"/, "$b: is there");
}
start_with(0);
my $session = $node->background_psql('postgres', on_error_stop => 0);
$session->query_safe(q{BEGIN; INSERT INTO rows VALUES (1, 20, 'new'), (2, 400020, 'new')});
is((tells(q{SET lock_timeout = 100; INSERT INTO rows VALUES (1, 20, 'x')}))[4] =~ /lock timeout/ ? 1 : 0, 1, 'who inserts a key that another one inserts waits');
$session->query_safe('COMMIT');
my ($out, $reads, $in_range, $made, $told) = tells(q{INSERT INTO rows VALUES (1, 20, 'x')});
like($told, qr/duplicate key value/, 'a key that was added just now is found');
like("$reads, $in_range, $made", qr/^1, [12], 0$/, 'by one look: it was removed, and added anew');
is((tells(q{INSERT INTO rows VALUES (1, 400020, 'x') ON CONFLICT (b) DO NOTHING; SELECT c FROM rows WHERE b = 400020}))[0], 'new', 'ON CONFLICT finds it');
# The own transaction's rows, and what it takes back.
is((tells(<<'SQL'))[0], "mine\n2\n0", 'what a transaction has inserted');
BEGIN; INSERT INTO rows VALUES (3, 21, 'mine'); SELECT c FROM rows WHERE b = 21; SAVEPOINT s; INSERT INTO rows VALUES (4, 22, 'mine');
SELECT count(*) FROM rows WHERE b BETWEEN 21 AND 30; ROLLBACK; SELECT count(*) FROM rows WHERE b BETWEEN 21 AND 30;
SQL
$session->quit;
is(sql($DELTAS), '0', 'still nobody has made a delta');

# The beginning of a range of which the chain has much, in either direction.
start_with(0);
foreach my $query (
	q{SELECT b FROM rows WHERE c > 'w' ORDER BY c, b LIMIT 1},
	'SELECT max(b) FROM rows',
	'SELECT min(b) FROM rows WHERE b > 400000',
	'SELECT count(*), min(b), max(b), sum(b) FROM (SELECT b FROM rows WHERE b > 399000 ORDER BY b LIMIT 2500) x',
	'SELECT count(*), min(b), max(b), sum(b) FROM (SELECT b FROM rows WHERE b < 402000 ORDER BY b DESC LIMIT 1950) x',
	'SELECT count(*), min(b), sum(a::numeric) FROM (SELECT a, b FROM rows ORDER BY a LIMIT 5000) x',
	'SELECT count(*), min(b), sum(a::numeric) FROM (SELECT a, b FROM rows ORDER BY a DESC LIMIT 5000) x')
{
	my $expected = sql("SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off; $query");

	is(join(' ', (tells($query))[ 0, 1, 3 ]), "$expected 1 0", "by one look: $query");
}

# One after the other; who comes then makes the delta, and those behind him have it.
start_with(0);
my @looks = map { [ tells('SELECT b FROM rows WHERE a = hashint8extended(' . (300 + $_) . ', 0)') ] } 1 .. 20;
is(join(' ', map { $_->[0] } @looks), join(' ', 301 .. 320), 'each look is right');
is(join(' ', map { "$_->[1]$_->[3]" } @looks), join(' ', ('10') x 16, '01', ('00') x 3), 'sixteen looks, and then a delta');
is(sql($DELTAS), '1', 'it is there');
# In one statement, too.
($out, $reads, $in_range, $made) = tells('SELECT sum(b) FROM rows WHERE b IN (' . join(', ', map { 101 + 10 * $_ } 0 .. 49) . ')');
is("$out, $reads, $made", sql('SELECT sum(101 + 10 * g) FROM generate_series(0, 49) g') . ', 16, 1', 'a statement with many ranges');
# A range with much of the chain, and all: by one look, too, if the scan goes forward. What the chain says of it is put in order, in files
# if it is much, of which none is left.
start_with(0);
is(join(' ', (tells('SELECT count(*) FROM rows WHERE b BETWEEN 450000 AND 460000'))[ 0, 1, 3 ]), '10001 1 0', 'a large range');
my $both = 'SELECT count(*), min(b), max(b), sum(b) FROM rows WHERE b BETWEEN 90 AND 440000';
is(join(' ', (tells($both))[ 0, 1, 3 ]), sql("SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off; $both") . ' 1 0',
	'one with removals on both sides');
foreach my $limit ('ALL', 99000)
{
	my $query = "SELECT count(*), sum(b), sum(a::numeric) FROM (SELECT a, b FROM rows ORDER BY a LIMIT $limit) x";
	my $expected = sql("SET enable_indexscan = off; SET enable_indexonlyscan = off; $query");

	foreach my $memory ('1MB', '64MB')
	{
		my @told = tells("SET maintenance_work_mem = '$memory'; $query");

		is(join(' ', @told[ 0, 1, 3 ]), "$expected 1 0", "in order, of the index: $limit, with $memory");
		unlike($told[4], qr/leak|WARNING/, 'no file is left');
	}
}
is(sql($DELTAS), '0', 'nobody has made a delta of them');
# Who reads such ranges again and again makes it, and so do the processes of one scan together.
is(join(' ', (tells('SELECT count(*), min(n) FROM (VALUES (1), (2), (3)) v (i), LATERAL (SELECT count(*) AS n FROM rows WHERE b > 400000 + i OFFSET 0) x'))[ 0, 1, 3 ]),
	'3|99901 1 1', 'large ranges, one after the other');
start_with(0);
is(join(' ', (tells('SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_index_scan_size = 0;
	SET min_parallel_table_scan_size = 0; SELECT count(*) FROM rows WHERE b > 0'))[ 0, 1, 3 ]), sql('SELECT count(*) FROM rows') . ' 0 1', 'a parallel scan');
start_with(0);
is(sql("$BY_INDEX SELECT count(*), sum(b) FROM (SELECT b FROM rows ORDER BY b DESC OFFSET 0) x"), sql('SELECT count(*), sum(b) FROM rows'), 'backward, too');

# No worker sees what a transaction has not committed yet.
is(join(' ', (tells(<<'SQL'))[ 0, 1, 3 ]), '1 0 1', 'an index that is new in its transaction');
BEGIN; CREATE TABLE fresh (b bigint); INSERT INTO fresh VALUES (1); CREATE INDEX fresh_b ON fresh USING smart (b) WITH (resident = never);
INSERT INTO fresh SELECT hashint8extended(g, 0) FROM generate_series(1, 100000) g; SELECT count(*) FROM fresh WHERE b = hashint8extended(77, 0); ROLLBACK;
SQL

# A worker makes it while others go on; nobody has to ask for it again.
start_with(8);
reads('SELECT b FROM rows WHERE a = hashint8extended(778, 0)', 778, 0, 'with workers');
ok($node->poll_query_until('postgres', $DELTAS, '1'), 'a worker makes the delta');
# It is counted when its making begins.
ok($node->poll_query_until('postgres', q{SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'smart delta')}), 'the worker has ended');
is(join(' ', (tells('SELECT b FROM rows WHERE a = hashint8extended(450001, 0)'))[ 0, 1, 3 ]), '450001 0 0', 'who comes then has it');

# A scan that has read the chain goes on while the delta is made, and when runs have been switched so often that the pages of its
# own are used anew.
sql(<<'SQL');
CREATE TABLE few (b bigint);
INSERT INTO few SELECT hashint8extended(g, 0) FROM generate_series(1, 120000) g;
CREATE INDEX few_b ON few USING smart (b) WITH (resident = never);
INSERT INTO few SELECT hashint8extended(g, 0) FROM generate_series(120001, 180000) g;
SQL
start_with(8);
my $expected = sql('SELECT b FROM few WHERE b BETWEEN 0 AND 200000000000000000 ORDER BY b');
my $all = sql('SELECT b FROM few ORDER BY b');
$session = $node->background_psql('postgres');
$session->query_safe("$BY_INDEX BEGIN; DECLARE rows_all CURSOR FOR SELECT b FROM few ORDER BY b;
	DECLARE rows_forward CURSOR FOR SELECT b FROM few WHERE b BETWEEN 0 AND 200000000000000000 ORDER BY b;
	DECLARE rows_backward CURSOR FOR SELECT b FROM few WHERE b BETWEEN 0 AND 200000000000000000 ORDER BY b DESC");
my @begin = map { $session->query_safe("FETCH 1 FROM rows_$_") } ('all', 'forward', 'backward');
foreach my $count (100000, 350000)
{
	my $run = sql(q{SELECT run FROM smart_index_pages('few_b')});

	sql("INSERT INTO few SELECT hashint8extended(g, $count) FROM generate_series(1, $count) g");
	sql('VACUUM few');
	$node->poll_query_until('postgres', "SELECT run > $run FROM smart_index_pages('few_b')") or BAIL_OUT("no compaction");
	compaction_ends($node);
}
ok(join("\n", $begin[0], $session->query_safe('FETCH ALL FROM rows_all')) eq $all, 'the one that reads all goes on');
is(join("\n", $begin[1], $session->query_safe('FETCH ALL FROM rows_forward')), $expected, 'one goes on');
is(join("\n", reverse(split(/\n/, $session->query_safe('FETCH ALL FROM rows_backward'))), $begin[2]), $expected, 'and so does the other');
$session->quit;
index_is_sound($node, 'postgres', $_, 'at last') foreach ('rows_a', 'rows_b', 'rows_c', 'few_b');
log_is_quiet($node);
$node->stop;
done_testing();
