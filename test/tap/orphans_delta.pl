# The delta of an index that its transaction has not committed yet is no orphan: a collection of orphans, which any session may ask for,
# and which comes by itself after an index was dropped, leaves it to the transaction that reads it.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SmartTest;
use Test::More;

my $TREES = 'SELECT sum(trees) FROM smart_stat_space';
my $node = smart_node('main', 'autovacuum = off', "statement_timeout = '60s'");

# A cursor on an index that is new in its transaction, of which the chain has most, with this many rows fetched; rows 1 to 20,000.
sub reader
{
	my ($first) = @_;
	my $session = $node->background_psql('postgres', on_error_stop => 0);

	$session->query_safe(<<"SQL");
SET enable_seqscan = off; SET enable_bitmapscan = off;
BEGIN; CREATE TABLE fresh (k int); INSERT INTO fresh SELECT generate_series(1, 1000);
CREATE INDEX fresh_k ON fresh USING smart (k) WITH (resident = never);
INSERT INTO fresh SELECT generate_series(1001, 20000);
DECLARE rows CURSOR FOR SELECT k FROM fresh WHERE k > 0 ORDER BY k
SQL
	is(scalar(split /\n/, $session->query_safe("FETCH $first FROM rows")), $first, "the first $first rows");
	return $session;
}

# What is collected has its memory used by another index; the reader finds all of its rows nevertheless.
sub goes_on
{
	my ($name, $first, $collect) = @_;
	$node->safe_psql('postgres', 'SELECT smart_collect_orphans()');
	my $session = reader($first);
	my $before = $node->safe_psql('postgres', $TREES);

	$collect->();
	is($node->safe_psql('postgres', $TREES), $before, "$name: no tree was freed");
	$node->safe_psql('postgres', 'CREATE TABLE other (k int); CREATE INDEX other_k ON other USING smart (k); INSERT INTO other SELECT -g FROM generate_series(1, 50000) g');
	my $rows = $session->query('FETCH ALL FROM rows');
	is(scalar(split /\n/, $rows), 20000 - $first, "$name: the rest of the rows");
	is($session->query('SELECT count(*) FROM fresh WHERE k > 0'), '20000', "$name: all of them");
	is($session->{stderr}, '', "$name: no error");
	$session->query('ROLLBACK');
	$session->quit;
	$node->safe_psql('postgres', 'DROP TABLE other');
	return;
}

goes_on('asked for', 10, sub { $node->safe_psql('postgres', 'SELECT smart_collect_orphans()') });
goes_on('asked for, later', 1500, sub { $node->safe_psql('postgres', 'SELECT smart_collect_orphans()') });
goes_on('after an index was dropped', 10, sub {
	my $trees = $node->safe_psql('postgres', $TREES);

	$node->safe_psql('postgres', 'CREATE TABLE dropped (k int); CREATE INDEX dropped_k ON dropped USING smart (k); INSERT INTO dropped VALUES (1)');
	$node->safe_psql('postgres', 'DROP TABLE dropped');
	$node->poll_query_until('postgres', "SELECT sum(trees) <= $trees FROM smart_stat_space");
});
$node->stop;
done_testing();
