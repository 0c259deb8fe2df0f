# Memory nodes that announce themselves in memcached.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

use SmartMemnode;
use SmartTest;

my $port = PostgreSQL::Test::Cluster::get_free_port();
my $memcached;

sub start_memcached
{
	$memcached = fork() // die "fork: $!";
	if ($memcached == 0)
	{
		exec('memcached', '-l', '127.0.0.1', '-p', $port, '-U', '0', '-u', scalar getpwuid($<)) or POSIX::_exit(1);
	}
	return;
}

sub stop_memcached
{
	return if !defined $memcached;
	kill 'TERM', $memcached;
	waitpid($memcached, 0);
	$memcached = undef;
	return;
}

END
{
	my $status = $?;

	stop_memcached();
	$? = $status;
}

start_memcached();
my @announce = ('--size=16M', "--memcached=127.0.0.1:$port", '--cluster=tap', '--ttl=3');
my $memory = SmartMemnode->new('one', @announce);
my $other = SmartMemnode->new('other', @announce[0 .. 1], '--cluster=other', '--ttl=3');
my $node = smart_node('main', 'autovacuum = off', "smart.memory_nodes = 'tap\@127.0.0.1:$port'");

node_becomes($node, $memory, 'up');
is($node->safe_psql('postgres', 'SELECT count(*) FROM smart_memory_nodes'), '1', 'nodes of another cluster are not used');
$node->safe_psql('postgres', 'CREATE TABLE numbers (id int); INSERT INTO numbers SELECT generate_series(1, 2000);
	CREATE INDEX numbers_id ON numbers USING smart (id)');
index_is_sound($node, 'postgres', 'numbers_id', 'found in memcached');

# One more.
my $second = SmartMemnode->new('two', @announce);
node_becomes($node, $second, 'up');

# Without memcached those that are known stay.
my $offset = -s $node->logfile;
stop_memcached();
ok($node->wait_for_log(qr/could not ask memcached/, $offset), 'the log says that memcached does not answer');
index_is_sound($node, 'postgres', 'numbers_id', 'without memcached');
is($node->safe_psql('postgres', "SELECT string_agg(state, ',') FROM smart_memory_nodes"), 'up,up', 'both stay up');

# It comes back empty; the nodes announce themselves again.  One that moves is found where it is.
start_memcached();
ok($node->wait_for_log(qr/memcached answers again/, $offset), 'so it does when it answers again');
$memory->kill9;
$memory->{port} = PostgreSQL::Test::Cluster::get_free_port();
$memory->start;
node_becomes($node, $memory, 'up');
is($node->safe_psql('postgres', "SELECT count(*) FROM smart_memory_nodes WHERE node IS NOT NULL"), '2', 'it is the same memory node elsewhere');
index_is_sound($node, 'postgres', 'numbers_id', 'at another address');

# The same setting names one that does not announce itself.
my $named = SmartMemnode->new('named', '--size=16M');
$node->append_conf('postgresql.conf', "smart.memory_nodes = '" . $named->address . ", tap\@127.0.0.1:$port'");
$node->reload;
node_becomes($node, $named, 'up');
is($node->safe_psql('postgres', "SELECT string_agg(state, ',') FROM smart_memory_nodes"), 'up,up,up', 'beside those that do');
$node->stop;
log_is_quiet($node);
done_testing();
