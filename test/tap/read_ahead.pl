# Scans whose next leaves are under way from a memory node while their session does something else: another scan, lookups, an
# insert; or when a statement fails, or is cancelled, or the memory node ends.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SmartMemnode;
use SmartTest;
use Test::More;

my $ROWS = 100000;
my $ORDERED = 'SET enable_seqscan = off; SET enable_sort = off; SET enable_bitmapscan = off; SET max_parallel_workers_per_gather = 0;';

my $memory = SmartMemnode->new('only', '--size=256M');
my $node = smart_node('main', 'autovacuum = off', 'smart.write_back = on', 'smart.carry_above = 0', 'smart.node_lost_after = 0', 'smart.memory_nodes = ' . addresses($memory));

sub sql
{
	return $node->safe_psql('postgres', $ORDERED . $_[0]);
}

# How many of the session's round trips were ahead while it ran the statement; and what that returned.
sub ahead
{
	my ($statement) = @_;
	my @lines = split /\n/, sql("SELECT round_trips_ahead AS before FROM smart_stat_fabric \\gset
		$statement; SELECT round_trips_ahead - :before FROM smart_stat_fabric");

	return (pop @lines, join("\n", @lines));
}

# All rows of a cursor come in order, $step at a time, whatever the session does after each fetch.
sub cursor_is_right
{
	my ($name, $step, $meanwhile) = @_;
	my $last = $node->safe_psql('postgres', 'SELECT count(*) FROM numbers');
	my $fetches = join("\n", map { "FETCH $step FROM c; $meanwhile;" } 0 .. $last / $step);
	my @found = grep { /^\d+$/ } split /\n/, sql("BEGIN ISOLATION LEVEL REPEATABLE READ; DECLARE c CURSOR FOR SELECT id FROM numbers ORDER BY id; $fetches COMMIT");

	is(scalar @found, $last, "$name: all rows");
	is(join(',', @found), join(',', sort { $a <=> $b } @found), "$name: in order");
	return;
}

$node->safe_psql('postgres', "CREATE TABLE numbers (id int, word text);
	INSERT INTO numbers SELECT g, md5(g::text) FROM generate_series(1, $ROWS) g;
	CREATE UNIQUE INDEX numbers_id ON numbers USING smart (id); CREATE INDEX numbers_word ON numbers USING smart (word); VACUUM ANALYZE numbers");
becomes($node, $_, 'carried') foreach ('numbers_id', 'numbers_word');

# A long scan goes ahead, forward and backward; one that ends soon does not. The first one may be the one that learns of the nodes.
sql('SELECT count(*) FROM (SELECT id FROM numbers ORDER BY id) x; SELECT count(*) FROM (SELECT word FROM numbers ORDER BY word) x');
for my $scan ('id FROM numbers ORDER BY id', 'id FROM numbers ORDER BY id DESC', 'word FROM numbers ORDER BY word')
{
	my ($trips, $rows) = ahead("SELECT count(*) FROM (SELECT $scan) x");

	is($rows, $ROWS, "$scan: all rows");
	cmp_ok($trips, '>=', 3, "$scan: leaves come while it is busy");
}
my ($trips, $first) = ahead('SELECT id FROM numbers ORDER BY id LIMIT 1');
is("$trips $first", '0 1', 'the first row alone: nothing is read ahead');
same_answers($node, 'postgres', 'SELECT id, word FROM numbers ORDER BY word DESC', 'all rows by another index');

# The session does other things while leaves are under way.
cursor_is_right('nothing else', 3000, '');
cursor_is_right('lookups', 3000, 'SELECT count(*) FROM numbers WHERE word = md5(\'77\') HAVING count(*) <> 1');
cursor_is_right('another scan', 7000, 'SELECT count(*) FROM (SELECT word FROM numbers ORDER BY word OFFSET 0) x HAVING count(*) < 100000');
cursor_is_right('inserts', 10000, "INSERT INTO numbers SELECT max(id) + 1, 'new' FROM numbers");

# Two cursors take turns, one of them backward.
my $turns = join('', map { 'FETCH 5000 FROM up; FETCH 5000 FROM down;' } 1 .. 22);
my @both = grep { /^\d+$/ } split /\n/, sql("BEGIN; DECLARE up CURSOR FOR SELECT id FROM numbers ORDER BY id;
	DECLARE down CURSOR FOR SELECT -id + 1000000000 FROM numbers ORDER BY id DESC; $turns COMMIT");
my $rows = sql('SELECT count(*) FROM numbers');
is(join(',', grep { $_ < 500000000 } @both), join(',', 1 .. $rows), 'two cursors: the one that goes up');
is(join(',', map { 1000000000 - $_ } grep { $_ > 500000000 } @both), join(',', reverse 1 .. $rows), 'two cursors: the one that goes down');

# A statement that fails, one that is cancelled, and a cursor that is left: the next ones find nothing of theirs.
my $failing = 'SELECT 1 / (id - 20000) FROM (SELECT id FROM numbers ORDER BY id) x';
my $cancelled = 'SET statement_timeout = 200; SELECT count(id + CASE id WHEN 20000 THEN length(pg_sleep(5)::text) ELSE 0 END) FROM (SELECT id FROM numbers ORDER BY id) x; RESET statement_timeout';
my $left = 'BEGIN; DECLARE c CURSOR FOR SELECT id FROM numbers ORDER BY id; MOVE 20000 FROM c; COMMIT';
my (undef, $out) = $node->psql('postgres', "$ORDERED $failing; $cancelled; $left; INSERT INTO numbers SELECT max(id) + 1, 'late' FROM numbers;
	SELECT count(*) FROM (SELECT id FROM numbers ORDER BY id) x; SELECT count(*) FROM (SELECT word FROM numbers ORDER BY word) x;
	SELECT id FROM numbers WHERE id = 20000", on_error_stop => 0);
$rows++;
like($out, qr/(^|\n)$rows\n$rows\n20000$/, 'after an error, a cancellation and a cursor that was left');

# The memory node stands still for a moment, and ends, while leaves are under way. The scan goes on, in the journal's pages in the end.
my $session = $node->background_psql('postgres', on_error_stop => 0);
$session->query_safe($ORDERED . 'BEGIN; DECLARE c CURSOR FOR SELECT id FROM numbers ORDER BY id; DECLARE d CURSOR FOR SELECT word FROM numbers ORDER BY word');
is($session->query('MOVE 20000 FROM c; MOVE 20000 FROM d; FETCH c'), 20001, 'two cursors before the memory node stands still');
$memory->signal('STOP');
my $while = $session->query('FETCH c');
$memory->signal('CONT');
is($while, 20002, 'a row that was read before');
is($session->query('MOVE 20000 FROM c; FETCH c'), 40003, 'after the memory node stood still');
$memory->kill9;
is($session->query('FETCH c'), 40004, 'the memory node has ended');
my @rest = split /\n/, $session->query('FETCH ALL FROM c');
is(join(',', @rest), join(',', 40005 .. $rows), 'the rest of the rows');
@rest = split /\n/, $session->query('FETCH ALL FROM d');
is(scalar @rest, $rows - 20000, 'and those of the other cursor');
$session->quit;
$memory->start;
becomes($node, $_, 'carried') foreach ('numbers_id', 'numbers_word');
same_answers($node, 'postgres', 'SELECT id FROM numbers ORDER BY id', 'the memory node is back');
index_is_sound($node, 'postgres', $_, 'in the end') foreach ('numbers_id', 'numbers_word');
log_is_quiet($node);
done_testing();
