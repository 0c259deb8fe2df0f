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

# ---- a key that is not the node's any more ----

my $theirs = secret_file('00112233445566778899aabbccddeeff');
my $ours = secret_file('00112233445566778899aabbccddeeff');
my $locked = SmartMemnode->new('locked', '--size=32M', "--secret-file=$theirs");
my $query = 'SET enable_seqscan = off; SELECT count(*) FROM numbers WHERE id BETWEEN 100 AND 1099'; # no cached result

$node = smart_node('keys', 'autovacuum = off', 'smart.fabric_timeout = 2s', "smart.secret_file = '$ours'", 'smart.memory_nodes = ' . addresses($locked));
$node->safe_psql('postgres', 'CREATE TABLE numbers (id int); INSERT INTO numbers SELECT generate_series(1, 2000);
	CREATE INDEX numbers_id ON numbers USING smart (id)');
my $session = $node->background_psql('postgres');
is($session->query_safe($query), '1000', 'a session that is connected');

# New sessions are shut out, for a reason that is told, until the right key is back.
sub is_shut_out
{
	my ($reason, $name) = @_;
	my (undef, undef, $err) = $node->psql('postgres', $query, extra_params => [ '-v', 'VERBOSITY=verbose' ]);

	like($err, qr/ERROR:  08006:.*DETAIL:.*$reason.*HINT:.*smart\.secret_file/s, "$name: an error that tells");
	unlike($err, qr/REINDEX/, "$name: no other advice");
	ok($node->poll_query_until('postgres', "SELECT state = 'refused' AND problem ~ '$reason' FROM smart_memory_nodes"), "$name: the view tells, too");
	is($session->query_safe($query), '1000', "$name: who is connected goes on");
	return;
}

sub write_key
{
	my ($digits) = @_;

	open(my $file, '>', $ours) or die "$ours: $!";
	print {$file} "$digits\n";
	close($file) or die "$ours: $!";
	chmod 0600, $ours;
	return;
}

write_key('ffeeddccbbaa99887766554433221100');
is_shut_out('the same secret key', 'another key');
write_key('00112233445566778899aabbccddeeff');
node_becomes($node, $locked, 'up');
is($node->safe_psql('postgres', $query), '1000', 'the right key is back');
unlink $ours;
is_shut_out('not open secret file', 'no key');
write_key('00112233445566778899aabbccddeeff');
node_becomes($node, $locked, 'up');
is($node->safe_psql('postgres', $query), '1000', 'the key is there again');
$session->quit;
$node->stop;
is($locked->stop, 0, 'the memory node stops cleanly');
log_is_quiet($node);
done_testing();
