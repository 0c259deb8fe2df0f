# A memory node that is full, and is started again with more memory: what it holds stays, and there is room.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartMemnode;
use SmartTest;

my $memory = SmartMemnode->new('one', '--size=16M');
my $node = smart_node('main', 'autovacuum = off', 'smart.auto_rebuild = off', 'smart.memory_nodes = ' . addresses($memory));

$node->safe_psql('postgres', 'CREATE TABLE numbers (n bigint); CREATE INDEX numbers_n ON numbers USING smart (n) WITH (logged = off)');
my ($status, $out, $error);
my $rows = 0;
for (1 .. 100)
{
	($status, $out, $error) = $node->psql('postgres',
		"INSERT INTO numbers SELECT hashint8extended(g, 0) FROM generate_series($rows + 1, $rows + 50000) g", on_error_stop => 1);
	last if $status != 0;
	$rows += 50000;
}
isnt($status, 0, 'the node becomes full');
like($error, qr/ERROR: .*(full|memory|room)/, 'the error tells');
my $capacity = $node->safe_psql('postgres', 'SELECT capacity_bytes FROM smart_memory_nodes');

is($memory->stop, 0, 'the memory node stops cleanly');
node_becomes($node, $memory, 'down');
$memory->{options} = ['--size=64M'];
$memory->start;
node_becomes($node, $memory, 'up');
like($memory->log_text, qr/the region grows from 16M to 64M/, 'it has grown');
cmp_ok($node->safe_psql('postgres', 'SELECT capacity_bytes FROM smart_memory_nodes'), '>', 3 * $capacity, 'the server knows');
is($node->safe_psql('postgres', "SELECT state FROM smart_index_state WHERE index = 'numbers_n'::regclass"), 'ready', 'the index is what it was');
$node->safe_psql('postgres', "INSERT INTO numbers SELECT hashint8extended(g, 0) FROM generate_series($rows + 1, $rows + 50000) g");
index_is_sound($node, 'postgres', 'numbers_n', 'with more memory');
is($node->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM numbers WHERE n = hashint8extended(7, 0)'), 1, 'found');
$node->stop;
is($memory->stop, 0, 'the memory node stops cleanly');
done_testing();
