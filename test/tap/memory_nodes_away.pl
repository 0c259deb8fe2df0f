# A memory node that stays away: after smart.node_lost_after its indexes are loaded on the others, and nobody waits for it any
# more, startup recovery neither.  When it is back it begins anew.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartMemnode;
use SmartTest;

my @memory = map { SmartMemnode->new($_, '--size=32M') } ('one', 'two');
my $node = smart_node('main', 'autovacuum = off', "smart.node_lost_after = '2s'", 'smart.spread_above = 0', 'smart.memory_nodes = ' . addresses(@memory));

# The nodes on which the index has memory, as their numbers.
sub nodes_of
{
	my ($index) = @_;

	return $node->safe_psql('postgres', "SELECT string_agg(node::text, ',' ORDER BY node) FROM smart_index_nodes('$index')");
}

# The server gives up the node that is away, and has the indexes on the other one.
sub is_given_up
{
	my ($memory, $offset, $name) = @_;
	my $address = quotemeta $memory->address;

	ok($node->wait_for_log(qr/memory node \d+ at $address is given up: it was away for \d+ s/, $offset), "$name: the log tells");
	becomes($node, $_, 'ready') for ('numbers_id', 'numbers_word');
	unlike(nodes_of('numbers_id'), qr/,/, "$name: the index lies on one node");
	index_is_sound($node, 'postgres', $_, $name) for ('numbers_id', 'numbers_word');
	return;
}

$node->safe_psql('postgres', q{CREATE TABLE numbers (id int, word text);
	CREATE UNIQUE INDEX numbers_id ON numbers USING smart (id);
	CREATE INDEX numbers_word ON numbers USING smart (word) WITH (logged = off);
	INSERT INTO numbers SELECT g, md5(g::text) FROM generate_series(1, 60000) g});
is(nodes_of('numbers_id'), '0,1', 'the index lies on both');

# One goes while the server runs.
my $offset = -s $node->logfile;
$memory[1]->kill9;
is_given_up($memory[1], $offset, 'away');
$node->safe_psql('postgres', 'INSERT INTO numbers SELECT g, md5(g::text) FROM generate_series(60001, 61000) g');

# It comes back with what it had, which is of no use any more.
$memory[1]->start;
node_becomes($node, $memory[1], 'up');
$node->safe_psql('postgres', 'REINDEX TABLE numbers');
like(nodes_of('numbers_word'), qr{^\d+,\d+$}, 'back: it is used again');
index_is_sound($node, 'postgres', $_, 'back') for ('numbers_id', 'numbers_word');

# One is away when the server starts after a crash.
$node->safe_psql('postgres', 'INSERT INTO numbers SELECT g, md5(g::text) FROM generate_series(61001, 62000) g');
$node->stop('immediate');
$memory[1]->kill9;
$offset = -s $node->logfile;
start_again($node);
is_given_up($memory[1], $offset, 'away after a crash');
is($node->safe_psql('postgres', 'INSERT INTO numbers VALUES (0, NULL) RETURNING id'), '0', 'inserts go on');
is($node->psql('postgres', 'INSERT INTO numbers VALUES (0, NULL)'), 3, 'duplicates are found');

# It is not named any more, holds nothing, and the server crashes.
$memory[1]->start;
node_becomes($node, $memory[1], 'up');
$memory[1]->kill9;
$memory[1]->forget;
$node->append_conf('postgresql.conf', "smart.node_lost_after = 0\nsmart.memory_nodes = " . addresses($memory[0]));
$offset = -s $node->logfile;
$node->stop('immediate');
start_again($node);
ok($node->wait_for_log(qr/memory node \d+ .*is given up: it was away/, $offset), 'not named: the log tells');
is($node->safe_psql('postgres', 'INSERT INTO numbers VALUES (-1, NULL) RETURNING id'), '-1', 'not named: inserts go on');
index_is_sound($node, 'postgres', $_, 'not named') for ('numbers_id', 'numbers_word');
is($node->safe_psql('postgres', 'SELECT count(*) FROM smart_memory_nodes'), 1, 'not named: one node is left');
$node->stop;
is($memory[0]->stop, 0, 'the memory node stops cleanly');
done_testing();
