# What the server says of memory nodes that are not what they were, or do not let it in.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartMemnode;
use SmartTest;

# ---- memory that is not what it was ----

my $memory = SmartMemnode->new('one', '--size=32M');
my $node = smart_node('main', 'autovacuum = off', 'smart.memory_nodes = ' . addresses($memory));

$node->safe_psql('postgres', 'CREATE TABLE numbers (id int); INSERT INTO numbers SELECT generate_series(1, 2000);
	CREATE INDEX numbers_id ON numbers USING smart (id)');
$node->stop('immediate');
$memory->stop;
$memory->wipe;
$memory->start;
my $offset = -s $node->logfile;
start_again($node);
ok($node->wait_for_log(qr/starts with an empty region: the memory nodes do not hold what this server has left there\n.*DETAIL:.*\n.*HINT:/, $offset),
	'memory that was overwritten: the log says what is wrong');
becomes($node, 'numbers_id', 'ready');
index_is_sound($node, 'postgres', 'numbers_id', 'memory that was overwritten');
$node->stop;
$memory->stop;
done_testing();
