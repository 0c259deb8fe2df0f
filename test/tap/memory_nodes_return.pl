# The memory nodes are away for so long that the attempts to load an index have become rare: when they are back, it is loaded at once.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartMemnode;
use SmartTest;

my $memory = SmartMemnode->new('one', '--size=32M');
my $node = smart_node('main', 'autovacuum = off', 'smart.fabric_timeout = 1s', 'smart.memory_nodes = ' . addresses($memory));

$node->safe_psql('postgres', 'CREATE TABLE numbers (id int); INSERT INTO numbers SELECT generate_series(1, 2000);
	CREATE UNIQUE INDEX numbers_id ON numbers USING smart (id)');

# All hosts lose their power at once.
lose_power($node);
$memory->kill9;
$memory->forget;
start_again($node);
is($node->safe_psql('postgres', 'INSERT INTO numbers VALUES (0) RETURNING id'), '0', 'pages answer for a unique index, which takes inserts');
isnt($node->psql('postgres', 'INSERT INTO numbers VALUES (0)'), 0, 'and finds duplicates');
isnt($node->psql('postgres', 'SET smart.answer_from_pages = off; SET smart.wait_timeout = 0; INSERT INTO numbers VALUES (-1)'), 0, 'where they are not to answer, it takes none');

# What is due so late would not come about in time by itself: a load takes no second.
ok($node->poll_query_until('postgres', "SELECT state = 'lost' AND next_attempt > now() + interval '25 s' FROM smart_index_state"), 'the next attempt is far off');
like($node->safe_psql('postgres', 'SELECT last_error FROM smart_index_state'), qr/memory node/, 'the view tells what it waits for');
my $due = $node->safe_psql('postgres', 'SELECT next_attempt FROM smart_index_state');
$memory->start;
becomes($node, 'numbers_id', 'ready');
is($node->safe_psql('postgres', "SELECT since < '$due' AND next_attempt IS NULL FROM smart_index_state"), 't', 'the index was loaded before that');
is($node->safe_psql('postgres', 'INSERT INTO numbers VALUES (-2) RETURNING id'), '-2', 'it takes inserts');
index_is_sound($node, 'postgres', 'numbers_id', 'the node is back');
$node->stop;
log_is_quiet($node);
done_testing();
