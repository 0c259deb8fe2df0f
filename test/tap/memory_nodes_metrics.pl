# What a memory node tells its operator while a server works with it, by --status and --metrics.
use strict;
use warnings;

use IO::Socket::INET;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartMemnode;
use SmartTest;

sub metrics
{
	my ($port) = @_;
	my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) or die "port $port: $!";
	my $text = '';

	print $socket "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
	1 while sysread($socket, $text, 65536, length $text);
	return $text;
}

# The value of a metric, with its label if it has one.
sub metric
{
	my ($port, $name) = @_;
	my $text = metrics($port);

	return $text =~ /^smart_memnode_\Q$name\E (\S+)$/m ? $1 : die "no $name in $text";
}

# The trees of the only server, by its cluster's system identifier.
sub trees_of
{
	my ($port, $cluster) = @_;
	my $text = metrics($port);

	return $text =~ /^smart_memnode_owner_trees\{owner="[0-9a-f]{16}",cluster="$cluster"\} (\S+)$/m ? $1 : die "no owner in $text";
}

my $port = PostgreSQL::Test::Cluster::get_free_port();
my $memory = SmartMemnode->new('one', '--size=64M', "--metrics=$port");
my $node = smart_node('main', 'autovacuum = off', 'smart.memory_nodes = ' . addresses($memory));
my $cluster = $node->safe_psql('postgres', 'SELECT system_identifier FROM pg_control_system()');

is(metric($port, 'trees'), 0, 'no tree yet');
$node->safe_psql('postgres', 'CREATE TABLE numbers (id int); INSERT INTO numbers SELECT generate_series(1, 20000);
	CREATE INDEX numbers_id ON numbers USING smart (id)');
is(metric($port, 'trees'), 1, 'a tree');
is(trees_of($port, $cluster), 1, 'it is the cluster\'s');
my $used = metric($port, 'used_bytes');
ok($node->poll_query_until('postgres', "SELECT allocated_bytes = $used FROM smart_memory_nodes"), 'used bytes, as the server sees them soon');
is(metric($port, 'size_bytes'), $node->safe_psql('postgres', 'SELECT capacity_bytes FROM smart_memory_nodes'), 'and all of them');

my $before = metric($port, 'verb_bytes_total{verb="write"}');
$node->safe_psql('postgres', 'INSERT INTO numbers SELECT generate_series(20001, 40000)');
cmp_ok(metric($port, 'verb_bytes_total{verb="write"}') - $before, '>=', 20000 * 6, 'inserts are counted');

my $session = $node->background_psql('postgres');
$session->query_safe('SET enable_seqscan = off; SELECT count(*) FROM numbers WHERE id < 100');
cmp_ok(metric($port, 'sessions{state="verbs"}'), '>=', 1, 'a session');
my ($said, $err) = run_command([ 'smart-memnode', '--status', "--name=$memory->{name}" ]);
like($said, qr/^owner +[0-9a-f]{16}: cluster $cluster, 1 trees, \d+ MB, [1-9]\d* sessions, over TCP, lease /m, '--status');
$session->quit;

# Counters begin anew with the daemon, what the memory holds does not.
$node->stop;
$memory->kill9;
$memory->start;
is(metric($port, 'trees'), 1, 'what a node that was killed has found');
is(trees_of($port, $cluster), 1, 'and whose it is');
$node->start;
looks_for_nodes($node);
same_answers($node, 'postgres', 'SELECT id FROM numbers WHERE id BETWEEN 100 AND 200 ORDER BY id', 'it goes on');
$node->safe_psql('postgres', 'DROP TABLE numbers');
$node->stop;
log_is_quiet($node);

done_testing();
