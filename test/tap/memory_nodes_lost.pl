# A memory node that lost its memory while the server did not look: stopped, or started without it.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartMemnode;
use SmartTest;

my $QUERY = 'SELECT id FROM numbers WHERE id BETWEEN 100 AND 200 ORDER BY id';
my @memory = map { SmartMemnode->new($_, '--size=16M') } ('one', 'two');
my $node = smart_node('main', 'autovacuum = off', 'smart.auto_rebuild = off', 'smart.spread_above = 0', 'smart.memory_nodes = ' . addresses(@memory));

sub state_of
{
	my ($number) = @_;

	return $node->safe_psql('postgres', "SELECT state FROM smart_memory_nodes WHERE node = $number");
}

# The node of this number has lost its memory, which the log tells with its address, and with it an index that REINDEX brings back.
sub is_lost
{
	my ($number, $memory, $offset, $name) = @_;

	ok($node->poll_query_until('postgres', "SELECT state = 'lost' FROM smart_memory_nodes WHERE node = $number"), "lost: $name");
	ok($node->wait_for_log(qr/memory node $number at \Q${\($memory->address)}\E has lost its memory/, $offset), "the log says so: $name");
	is($node->safe_psql('postgres', "SELECT address FROM smart_memory_nodes WHERE node = $number"), $memory->address, "where: $name");
	is($node->safe_psql('postgres', "SELECT state FROM smart_index_state WHERE index = 'numbers_id'::regclass"), 'lost', "the index: $name");
	node_becomes($node, $memory, 'up');
	$node->safe_psql('postgres', 'REINDEX TABLE numbers');
	same_answers($node, 'postgres', $QUERY, $name);
	return;
}

sub number_of
{
	my ($memory) = @_;

	return $node->safe_psql('postgres',
		"SELECT node FROM smart_memory_nodes WHERE state = 'up' AND address = '" . $memory->address . "'");
}

sub nodes_of_index
{
	return $node->safe_psql('postgres', "SELECT string_agg(node::text, ',' ORDER BY node) FROM smart_index_nodes('numbers_id')");
}

$node->safe_psql('postgres', 'CREATE TABLE numbers (id int, word text);
	INSERT INTO numbers SELECT g, md5(g::text) FROM generate_series(1, 60000) g;
	CREATE INDEX numbers_id ON numbers USING smart (id, word) WITH (logged = off)');
is(nodes_of_index(), '0,1', 'the index lies on both');

# While the server is stopped
my $number = number_of($memory[1]);
$node->stop;
$memory[1]->kill9;
$memory[1]->forget;
$memory[1]->start;
my $offset = -s $node->logfile;
$node->start;
is_lost($number, $memory[1], $offset, 'while the server was stopped');

# After the server has started without it
$number = number_of($memory[0]);
like(nodes_of_index(), qr/\b$number\b/, 'the index has a part there');
$node->stop;
$memory[0]->kill9;
$memory[0]->forget;
$node->start;
$node->poll_query_until('postgres', "SELECT state = 'down' FROM smart_memory_nodes WHERE node = $number");
$offset = -s $node->logfile;
$memory[0]->start;
is_lost($number, $memory[0], $offset, 'after the server had started without it');

# An address where another node of this server is found now says nothing about the memory of the former one.
my @numbers = map { number_of($_) } @memory;
my $port = $memory[1]->{port};
$node->stop;
$_->stop for @memory;
($memory[0]->{port}, $memory[1]->{port}) = ($port, $memory[0]->{port});
$memory[0]->start;
$node->start;
node_becomes($node, $memory[0], 'up');
is(number_of($memory[0]), $numbers[0], 'a node has moved');
$node->poll_query_until('postgres', "SELECT state <> 'connecting' FROM smart_memory_nodes WHERE node = $numbers[1]");
is(state_of($numbers[1]), 'down', 'the one that was there is not lost');
$memory[1]->start;
node_becomes($node, $memory[1], 'up');
is(number_of($memory[1]), $numbers[1], 'the other one, too');
same_answers($node, 'postgres', $QUERY, 'addresses were exchanged');
index_is_sound($node, 'postgres', 'numbers_id', 'addresses were exchanged');

$node->stop;
is($_->stop, 0, 'a memory node stops cleanly') for @memory;
log_is_quiet($node);
done_testing();
