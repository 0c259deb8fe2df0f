# Memory nodes that do not answer, are full, or want another key: an error within the limit, and nothing else.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartMemnode;
use SmartTest;

my $QUERY = 'SELECT id FROM numbers WHERE id BETWEEN 100 AND 200 ORDER BY id';
my @VERBOSE = (extra_params => [ '-v', 'VERBOSITY=verbose' ]);

# The error of a statement that has to fail.
sub error_of
{
	my ($node, $statement) = @_;
	my ($status, undef, $err) = $node->psql('postgres', "SET enable_seqscan = off; $statement", @VERBOSE);

	isnt($status, 0, "fails: $statement");
	return $err;
}

# 96 bytes that nothing can shorten.
sub rows
{
	my ($from, $to) = @_;

	return "SELECT g AS a, md5(g::text) || md5((g + 1)::text) || md5((g + 2)::text) AS b FROM generate_series($from, $to) g";
}

# ---- a node that stands still ----

my $memory = SmartMemnode->new('one', '--size=16M');
my $node = smart_node('main', 'autovacuum = off', 'smart.node_down_after = 0', 'smart.memory_nodes = ' . addresses($memory), 'smart.fabric_timeout = 60s');

$node->safe_psql('postgres', 'CREATE TABLE numbers (id int); INSERT INTO numbers SELECT generate_series(1, 2000);
	CREATE INDEX numbers_id ON numbers USING smart (id)');
same_answers($node, 'postgres', $QUERY, 'before');
$memory->signal('STOP');
like(error_of($node, "SET statement_timeout = '500ms'; $QUERY"), qr/ERROR:  57014:.*statement timeout/s, 'statement_timeout ends the wait');
my $session = $node->background_psql('postgres', on_error_stop => 0);
my $pid = $session->query_safe('SELECT pg_backend_pid()');
$session->query_until(qr/waiting/, "SET enable_seqscan = off;\n\\echo waiting\n$QUERY;\n");
$node->poll_query_until('postgres', "SELECT wait_event_type = 'Extension' FROM pg_stat_activity WHERE pid = $pid");
is($node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)"), 't', 'a backend that waits is cancelled');
$node->poll_query_until('postgres', "SELECT state = 'idle' FROM pg_stat_activity WHERE pid = $pid");
$session->quit;
like(error_of($node, "SET smart.fabric_timeout = '500ms'; $QUERY"), qr/ERROR:  08006:.*(?:within 500 ms|is down).*HINT/s, 'smart.fabric_timeout ends it, too');
is($node->safe_psql('postgres', 'SELECT count(*) FROM numbers'), '2000', 'tables are read meanwhile');
is($node->safe_psql('postgres', 'SELECT timeouts + failures > 0 FROM smart_stat_fabric'), 't', 'it is counted');
$memory->signal('CONT');
node_becomes($node, $memory, 'up');
same_answers($node, 'postgres', $QUERY, 'it goes on');
index_is_sound($node, 'postgres', 'numbers_id', 'it goes on');
$node->safe_psql('postgres', 'INSERT INTO numbers SELECT generate_series(2001, 3000)');
index_is_sound($node, 'postgres', 'numbers_id', 'inserts go on');

# What ends while it stands still needs no reply: a transaction that has made a tree, a backend with temporary ones.
$session = $node->background_psql('postgres');
$session->query_safe('CREATE TEMPORARY TABLE gone (id int); INSERT INTO gone SELECT generate_series(1, 100);
	CREATE INDEX ON gone USING smart (id)');
$session->query_safe('BEGIN; CREATE INDEX ON numbers USING smart (id)');
my $trees = $node->safe_psql('postgres', 'SELECT trees FROM smart_memory_nodes');
$memory->signal('STOP');
$session->query_safe('ROLLBACK');
$session->quit;
ok($node->poll_query_until('postgres', "SELECT trees = $trees - 2 FROM smart_memory_nodes"), 'a rollback and an exit free their trees');
$memory->signal('CONT');

# The server stops and starts while it stands still.
$memory->signal('STOP');
$node->stop;
$node->append_conf('postgresql.conf', "smart.fabric_timeout = '1s'");
$node->start;
is($node->safe_psql('postgres', "SET enable_seqscan = off; $QUERY"), $node->safe_psql('postgres', "SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off; $QUERY"),
	'a server that starts meanwhile: pages answer');
$node->stop;
$memory->signal('CONT');
$node->adjust_conf('postgresql.conf', 'smart.fabric_timeout', '60s');
$node->start;
looks_for_nodes($node);
same_answers($node, 'postgres', $QUERY, 'after a start');
index_is_sound($node, 'postgres', 'numbers_id', 'after a start');

# ---- a node that is full ----

my $full = qr/ERROR:  53200:.*DETAIL:.*full.*HINT:.*smart\.memory_nodes/s;
$node->safe_psql('postgres', 'CREATE TABLE t (a int, b text COLLATE "C"); INSERT INTO t ' . rows(1, 300000));
like(error_of($node, 'CREATE INDEX ON t USING smart (b) WITH (resident = always)'), $full, 'an index that is too large for the memory node');
$node->poll_query_until('postgres', 'SELECT allocated_bytes < capacity_bytes FROM smart_memory_nodes');
$node->safe_psql('postgres', 'DELETE FROM t WHERE a > 90000; VACUUM t; CREATE INDEX t_b ON t USING smart (b) WITH (resident = always)');
like(error_of($node, 'INSERT INTO t ' . rows(300001, 600000)), $full, 'inserts into a full memory node');
same_answers($node, 'postgres', "SELECT a FROM t WHERE b > 'f' ORDER BY b LIMIT 10", 'it is still read');
index_is_sound($node, 'postgres', 't_b', 'full');
$node->safe_psql('postgres', 'DELETE FROM t WHERE b > \'8\'; VACUUM t; INSERT INTO t ' . rows(1, 100));
index_is_sound($node, 'postgres', 't_b', 'rows were deleted');
$node->safe_psql('postgres', 'DROP TABLE t');
$node->stop;
log_is_quiet($node);

# ---- a node that wants another key ----

my $good = secret_file('00112233445566778899aabbccddeeff');
my $bad = secret_file('ffeeddccbbaa99887766554433221100');
my $locked = SmartMemnode->new('locked', '--size=16M', "--secret-file=$good");
my $client = smart_node('keys', 'autovacuum = off', 'smart.memory_nodes = ' . addresses($locked), "smart.secret_file = '$bad'", 'smart.fabric_timeout = 2s');

$client->safe_psql('postgres', 'CREATE TABLE numbers (id int); INSERT INTO numbers SELECT generate_series(1, 1000)');
node_becomes($client, $locked, 'down');
like($client->safe_psql('postgres', 'SELECT problem FROM smart_memory_nodes'), qr/key/, 'the wrong key is named');
like(slurp_file($client->logfile), qr/LOG:.*memory node at \S+ is down: .*key/, 'in the log, too');
like(error_of($client, 'CREATE INDEX ON numbers USING smart (id)'), qr/ERROR:  08006:/, 'no index without the key');
$client->adjust_conf('postgresql.conf', 'smart.secret_file', "''");
$client->reload;
$client->poll_query_until('postgres', "SELECT problem ~ 'TLS|key' AND problem !~ 'same' FROM smart_memory_nodes") or diag($client->safe_psql('postgres', 'SELECT problem FROM smart_memory_nodes'));
chmod 0644, $good;
$client->adjust_conf('postgresql.conf', 'smart.secret_file', "'$good'");
$client->reload;
$client->poll_query_until('postgres', "SELECT problem ~ 'other' FROM smart_memory_nodes") or diag($client->safe_psql('postgres', 'SELECT problem FROM smart_memory_nodes'));
chmod 0600, $good;
node_becomes($client, $locked, 'up');
$client->safe_psql('postgres', 'CREATE INDEX numbers_id ON numbers USING smart (id)');
same_answers($client, 'postgres', $QUERY, 'with the right key');
like(slurp_file($client->logfile), qr/LOG:.*memory node 0 at \S+ is up\n/, 'the log has the number that it has now');

# Settings that cannot be.
for my $setting ("smart.memory_nodes = 'a:b'", "smart.memory_nodes = 'a:1', '[::1'", "smart.memory_nodes = 'a b\@c'", "smart.memory_nodes = 'a:1, a\@:x'", "smart.memory_nodes = 'a:b, c\@d'", "smart.memory_nodes = 'a\@'", "smart.memory_nodes = '\@a'",
	'smart.fabric_timeout = 1')
{
	my (undef, undef, $err) = $client->psql('postgres', "ALTER SYSTEM SET $setting", @VERBOSE);
	like($err, qr/ERROR:  22023:/, "refused: $setting");
}
$client->stop;
log_is_quiet($client);
done_testing();
