# The moment in which the tree of an index is replaced by one on other memory nodes, step by step; moves that are taken back,
# are interrupted, or go on after the server; nodes that are not named any more; evening out.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

use SmartMemnode;
use SmartTest;

my @indexes = qw(t_n t_word loose_n);
my @memory = map { SmartMemnode->new($_, '--size=64M') } ('one', 'two');
my $node = smart_node('main', 'autovacuum = off', 'smart.memory_nodes = ' . addresses(@memory), 'smart.fabric_timeout = 20s');

sub sql
{
	my ($text) = @_;

	return $node->safe_psql('postgres', $text);
}

# The addresses of memory nodes on which an index lies.
sub lies_on
{
	my ($index, $memory) = @_;

	return sql("SELECT count(*) FROM smart_index_nodes('$index') WHERE address = '" . $memory->address . "'");
}

# Retires a node, and waits until these indexes have left it.
sub move_away
{
	my ($memory, @indexes) = @_;
	my $address = $memory->address;

	sql("SELECT smart_retire_node('$address')");
	ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM smart_index_nodes('$_') WHERE address = '$address'"), "$_ moves") for @indexes;
	return;
}

# All indexes lie on one node, and both are used.
sub gather
{
	my ($memory, $other) = @_;

	sql("SELECT smart_retire_node('" . $memory->address . "', cancel => true)");
	ok(node_becomes($node, $memory, 'up'), 'the node is in use');
	move_away($other, @indexes);
	ok(node_becomes($node, $other, 'retired'), 'they are on this one alone');
	sql("SELECT smart_retire_node('" . $other->address . "', cancel => true)");
	return;
}

sql('CREATE TABLE t (n int, word text); INSERT INTO t SELECT g, md5(g::text) FROM generate_series(1, 30000) g;
	CREATE UNIQUE INDEX t_n ON t USING smart (n); CREATE INDEX t_word ON t USING smart (word);
	CREATE TABLE loose AS SELECT n FROM t; CREATE INDEX loose_n ON loose USING smart (n) WITH (logged = off);
	VACUUM t');
my $error;
gather(@memory);

# ---- what cannot be ----

(undef, undef, $error) = $node->psql('postgres', "SELECT smart_retire_node('nowhere:1')");
like($error, qr/there is no memory node in use at "nowhere:1".*HINT:  .*smart_memory_nodes/s, 'no such node');
is(sql('SELECT count(*) FROM smart_moves'), '0', 'nothing moves');
sql('CREATE ROLE nobody');
(undef, undef, $error) = $node->psql('postgres', "SET ROLE nobody; SELECT smart_retire_node('nowhere:1')");
like($error, qr/permission denied for function smart_retire_node/, 'not for everybody');

# ---- cursors, and VACUUM, over the switch ----

# Rows that are dead when the cursor's snapshot is taken: their entries are there, and the heap tells that nobody sees them.
sql('DELETE FROM t WHERE n BETWEEN 20001 AND 25000');
my $reader = $node->background_psql('postgres');
$reader->query_safe('SET enable_seqscan = off; SET enable_bitmapscan = off; BEGIN;
	DECLARE by_index CURSOR FOR SELECT n FROM t WHERE n > 0 ORDER BY n;
	DECLARE by_rows SCROLL CURSOR FOR SELECT n, word FROM t WHERE n > 0 ORDER BY n');
is($reader->query_safe('FETCH 3 FROM by_index'), "1\n2\n3", 'a cursor that reads the index alone');
is($reader->query_safe('MOVE 3 FROM by_rows; FETCH 1 FROM by_rows') =~ s/\|.*//r, '4', 'and one that reads rows');
my $writer = $node->background_psql('postgres');
$writer->query_safe("BEGIN; INSERT INTO t VALUES (40000, 'uncommitted'); SAVEPOINT s; INSERT INTO t VALUES (40001, 'taken back'); ROLLBACK TO s; INSERT INTO loose VALUES (40000)");
move_away($memory[0], 't_n', 't_word');
is(lies_on('loose_n', $memory[0]), '1', 'without a journal a move waits for writers');
like(sql('SELECT reason, trees > 2, bytes > 0 FROM smart_moves'), qr/^retired\|t\|t$/, 'older trees are there as long as cursors may read them');
my $offset = -s $node->logfile;
my $vacuum = $node->background_psql('postgres');
$vacuum->query_until(qr/begins/, "\\echo begins\nVACUUM (INDEX_CLEANUP on) t;\n\\echo vacuumed\n");
ok($node->wait_for_log(qr/bulk deletion in index "t_n" waits for scans/, $offset), 'VACUUM waits for a scan of the older tree');
sql("INSERT INTO t SELECT g, 'new' FROM generate_series(50001, 52000) g");
# Its next leaf is read under a new pin, so that VACUUM goes on, and marks pages all-visible that have lost their dead rows.
is($reader->query_safe('SELECT 1; FETCH 5000 FROM by_index') =~ tr/\n//, 5000, 'the scan goes on');
$vacuum->query_until(qr/vacuumed/, '');
is($reader->query_safe('SELECT 1; FETCH ALL FROM by_index') =~ tr/\n//, 25000 - 5003, 'with the new tree, and sees what its snapshot sees');
is($reader->query_safe('SELECT 1; FETCH ALL FROM by_rows') =~ tr/\n//, 25000 - 4, 'so does the other one');
is($reader->query_safe('FETCH PRIOR FROM by_rows') =~ s/\|.*//r, '30000', 'backward, too');
is($reader->query_safe('SELECT count(n) FROM t WHERE n > 0'), '27000', 'the next statement sees what is new');
$reader->query_safe('COMMIT');

# ---- a unique check, and a transaction that was open ----

my $waiter = $node->background_psql('postgres', on_error_stop => 0);
$waiter->query_until(qr/begins/, "\\echo begins\nINSERT INTO t VALUES (40000, 'again');\n\\echo ends\n");
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'INSERT INTO t VALUES (40000%' AND wait_event_type = 'Lock'"), 'an insert waits for one from before the move');
$writer->query_safe('COMMIT');
$waiter->query_until(qr/ends/, '');
$waiter->quit;
like($waiter->{stderr}, qr/duplicate key value violates unique constraint "t_n"/, 'it has found that');
is(sql('SET enable_seqscan = off; SELECT count(*), min(word) FROM t WHERE n IN (40000, 40001)'), '1|uncommitted', 'what was staged is in the new tree');
ok(node_becomes($node, $memory[0], 'retired'), 'when the transactions have ended, all has moved');
is(sql('SET enable_seqscan = off; SELECT count(*) FROM loose WHERE n = 40000'), '1', 'without a journal, too');
index_is_sound($node, 'postgres', $_, 'moved') for @indexes;
is(sql('SELECT trees, bytes, moving, last_error FROM smart_moves'), '0|0|0|', 'smart_moves tells so');
(undef, undef, $error) = $node->psql('postgres', "SELECT smart_retire_node('" . $memory[1]->address . "')");
like($error, qr/no memory node is left.*HINT:  Add one/s, 'the last one stays');

# ---- taken back, ended and begun again, over a restart ----

gather(@memory);
is(sql('SELECT count(*) FROM smart_moves'), '0', 'nothing moves');
$writer->query_safe('BEGIN; INSERT INTO loose VALUES (40001)');
move_away($memory[0], 't_n', 't_word');
for (1 .. 3)
{
	ok($node->poll_query_until('postgres', "SELECT count(pg_terminate_backend(pid)) > 0 FROM pg_stat_activity WHERE backend_type = 'smart rebuild'"), 'a worker is ended');
}
sql("SELECT smart_retire_node('" . $memory[0]->address . "', cancel => true)");
ok(node_becomes($node, $memory[0], 'up'), 'the node is in use again');
$writer->query_safe('COMMIT');
index_is_sound($node, 'postgres', $_, 'taken back') for @indexes;
is(lies_on('loose_n', $memory[0]), '1', 'what had not moved stays');

$writer->query_safe('BEGIN; INSERT INTO loose VALUES (40002)');
sql("SELECT smart_retire_node('" . $memory[0]->address . "')");
ok($node->poll_query_until('postgres', 'SELECT moving > 0 FROM smart_moves'), 'indexes are being moved');
$writer->quit;
$reader->quit;
$waiter->quit;
$vacuum->quit;
$node->stop('immediate');
$node->start;
ok(node_becomes($node, $memory[0], 'retired'), 'it goes on after a crash');
index_is_sound($node, 'postgres', $_, 'after a crash') for @indexes;

# ---- not named any more ----

my $address = $memory[0]->address;
gather(@memory);
$writer = $node->background_psql('postgres');
$writer->query_safe('BEGIN; INSERT INTO loose VALUES (40003)');
$node->append_conf('postgresql.conf', 'smart.memory_nodes = ' . addresses($memory[1]));
$node->reload;
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM smart_moves WHERE reason = 'not named' AND address = '$address'"), 'a node that is not named is emptied');
ok(node_becomes($node, $memory[0], 'retiring'), 'smart_memory_nodes tells, too');
$node->append_conf('postgresql.conf', 'smart.memory_nodes = ' . addresses(@memory));
$node->reload;
ok(node_becomes($node, $memory[0], 'up'), 'named again, it stays');
is(sql('SELECT count(*) FROM smart_moves'), '0', 'nothing moves');
$node->append_conf('postgresql.conf', 'smart.memory_nodes = ' . addresses($memory[1]));
$node->reload;
ok(node_becomes($node, $memory[0], 'retiring'), 'not named any more');
$writer->query_safe('COMMIT');
$writer->quit;
ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM smart_memory_nodes WHERE address = '$address'"), 'when nothing is left it is forgotten');
$offset = -s $node->logfile;
is($memory[0]->stop, 0, 'its daemon stops cleanly');
index_is_sound($node, 'postgres', $_, 'without the node') for @indexes;
unlike(PostgreSQL::Test::Utils::slurp_file($node->logfile, $offset), qr/memory node/, 'and nobody notices');

# ---- evening out ----

$memory[0]->start;
$node->append_conf('postgresql.conf', 'smart.memory_nodes = ' . addresses(@memory));
$node->reload;
node_becomes($node, $memory[0], 'up');
sql('CREATE TABLE more AS SELECT n, md5(n::text) AS word FROM generate_series(1, 100000) n');
is(sql("SELECT sum(used_bytes) FROM smart_memory_nodes WHERE address = '$address'"), '0', 'a node that was added is empty');
sql("SELECT smart_retire_node('$address')");
sql("CREATE INDEX more_$_ ON more USING smart (word, n)") for (1 .. 6);
sql("SELECT smart_retire_node('$address', cancel => true)");
$writer = $node->background_psql('postgres');
$writer->query_safe('BEGIN; LOCK more IN SHARE MODE');
cmp_ok(sql('SELECT smart_rebalance()'), '>', 1, 'trees have to move');
cmp_ok(sql("SELECT trees FROM smart_moves WHERE node IS NULL AND reason = 'rebalance'"), '>', 1, 'as smart_moves tells');
sql('SELECT smart_rebalance(cancel => true)');
is(sql('SELECT count(*) FROM smart_moves'), '0', 'no more');
$writer->query_safe('COMMIT');
$writer->quit;
is(sql("SELECT sum(used_bytes) FROM smart_memory_nodes WHERE address = '$address'"), '0', 'none has moved');
cmp_ok(sql('SELECT smart_rebalance()'), '>', 1, 'trees have to move');
ok($node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM smart_moves'), 'they move');
ok($node->poll_query_until('postgres', 'SELECT 5 * min(used_bytes) > sum(used_bytes) FROM smart_memory_nodes'), 'the node that was empty has its share')
  or diag(sql('SELECT address, used_bytes FROM smart_memory_nodes'));
index_is_sound($node, 'postgres', $_, 'evened out') for (@indexes, map { "more_$_" } (1 .. 6));

log_is_quiet($node);
$node->stop;
done_testing();
