# A memory node goes and comes back while smart_index_check() compares an index's tree there with its journal: who inserts meanwhile
# leaves the tree behind, and the journal has more than the tree for a moment, which is no damage.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SmartMemnode;
use SmartTest;
use Test::More;

my $memory = SmartMemnode->new('one', '--size=256M');
my $node = smart_node('main', 'autovacuum = off', 'smart.fabric_timeout = 300s', 'smart.node_down_after = 300s', 'smart.memory_nodes = ' . addresses($memory));
my $checker = $node->background_psql('postgres', on_error_stop => 0);
my $watcher = $node->background_psql('postgres');
my $pid = $checker->query_safe('SELECT pg_backend_pid()');

$node->safe_psql('postgres', 'CREATE TABLE numbers (id int); INSERT INTO numbers SELECT generate_series(1, 1000000); CREATE UNIQUE INDEX numbers_id ON numbers USING smart (id);
	INSERT INTO numbers VALUES (-1)'); # there is a chain
becomes($node, 'numbers_id', 'ready');

# It is stopped when it has the lock of removers, before it reads the chain: first it reads the run.
$watcher->query_until(qr/watches/, "SET statement_timeout = '180s';\n\\echo watches\n" .
	"DO 'BEGIN WHILE NOT EXISTS (SELECT FROM pg_locks WHERE pid = $pid AND locktype = ''userlock'' AND granted) LOOP END LOOP; END';\n" .
	"COPY (SELECT) TO PROGRAM 'kill -STOP $pid; cat >/dev/null';\n\\echo stopped\n");
$checker->query_until(qr/begins/, "\\echo begins\nSELECT smart_index_check('numbers_id', false);\n\\echo ends\n");
$watcher->query_until(qr/stopped/, '');
$memory->kill9;
is($node->safe_psql('postgres', 'INSERT INTO numbers VALUES (0) RETURNING id'), '0', 'a row is inserted without the node');
$memory->start;
ok(node_becomes($node, $memory, 'up'), 'the node is back');
is($node->safe_psql('postgres', "SELECT state FROM pg_stat_activity WHERE pid = $pid"), 'active', 'the check has not ended');
kill 'CONT', $pid;
$checker->query_until(qr/ends/, '');
is($checker->{stderr}, '', 'it finds nothing');
becomes($node, 'numbers_id', 'ready');
index_is_sound($node, 'postgres', 'numbers_id', 'brought up to date');
$checker->quit;
$watcher->quit;
$node->stop;
log_is_quiet($node);
done_testing();
