# Rows that come in bulk, without memory nodes: what looks for them in between, what withdraws some of them, and crashes.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartBatches;
use SmartTest;

my $node = smart_node('main', 'autovacuum = off', 'max_prepared_transactions = 10');
my %rows = batches_are_sound($node);

# Those of the journals have what the trees have.
$node->stop('immediate');
$node->start;
for my $name (sort keys %rows)
{
	becomes($node, "${name}_k", 'ready');
	holds($node, $name, $rows{$name}, "$name after a crash");
}

log_is_quiet($node);
done_testing();
