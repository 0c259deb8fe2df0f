# Rows that come in bulk: their entries go to memory nodes together, later than by themselves. Whatever looks for them before
# that finds them all the same; rows that are withdrawn leave nothing that could lead to others; and a memory node may die.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartBatches;
use SmartMemnode;
use SmartTest;

my @memory = map { SmartMemnode->new($_, '--size=256M') } ('one', 'two');
my $node = smart_node('main', 'autovacuum = off', 'smart.memory_nodes = ' . addresses(@memory),
	'max_prepared_transactions = 10', 'smart.node_down_after = 1');

# ---- what it is for ----

make_table($node, 'bulk');
my $insert = 'INSERT INTO bulk SELECT abs(hashint4(g)) % 1000000000, g FROM generate_series(%d, %d) g';

sub trips
{
	my ($settings, $from, $to) = @_;
	my $out = $node->safe_psql('postgres', "$settings SELECT session_round_trips AS before FROM smart_stat_fabric \\gset\n" . sprintf($insert, $from, $to)
		. ";\nSELECT session_round_trips - :before FROM smart_stat_fabric;");

	return $out / ($to - $from + 1);
}

my $first = trips('', 1, 20000);
my $together = trips('', 20001, 40000);
my $single = trips('SET smart.batching = off;', 40001, 60000);
cmp_ok($first, '<', 0.1, 'entries that go together take few round trips, also those that make an index grow');
cmp_ok($together, '<', 0.1, 'and those that come later');
cmp_ok($together, '<', $single / 10, 'by themselves they take many');
note("round trips for a row: $first, later $together, by itself $single");
holds($node, 'bulk', 60000, 'inserted in bulk');

# Ascending keys fill one leaf after the other at the tree's end.
make_table($node, 'rising', 'k bigint, v int');
$insert = 'INSERT INTO rising SELECT g, g FROM generate_series(%d, %d) g';
$first = trips('', 1, 20000);
$together = trips('', 20001, 40000);
cmp_ok($first, '<', 0.02, 'entries in ascending order take fewer round trips still');
cmp_ok($together, '<', 0.02, 'and so do those behind them');
note("round trips for a row in ascending order: $first, later $together");
holds($node, 'rising', 40000, 'inserted in ascending order');

my %rows = batches_are_sound($node);

# ---- errors under way ----

# A memory node is stopped under a statement: that fails or goes on without the tree, and nothing is wrong afterwards.
my $session = $node->background_psql('postgres', on_error_stop => 0);
$session->query_until(qr/begun/, "\\echo begun\nINSERT INTO broken SELECT abs(hashint4(g)), g FROM generate_series(1, 200000) g; INSERT INTO broken VALUES (-7, -7);\n");
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'INSERT INTO broken%' AND state = 'active'"), 'rows come in');
$memory[1]->kill9;
$node->poll_query_until('postgres', 'SELECT count(*) IN (1, 200001) FROM broken');
$memory[1]->start;
$session->quit;
node_becomes($node, $memory[1], 'up');
becomes($node, 'broken_k', 'ready');
index_is_sound($node, 'postgres', 'broken_k', 'after a memory node was away');
holds($node, 'bulk', 60000, 'and another one');

# The journals have all of it, too: the memory nodes lose what they have, and the indexes are loaded again.
for my $memory (@memory)
{
	$memory->kill9;
	$memory->forget;
	$memory->start;
}
node_becomes($node, $_, 'up') for @memory;
@rows{'bulk', 'rising'} = (60000, 40000);
for my $name (sort keys %rows)
{
	becomes($node, "${name}_k", 'ready');
	holds($node, $name, $rows{$name}, "$name from its journal");
}

log_is_quiet($node);
done_testing();
