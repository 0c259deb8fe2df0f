# Indexes on memory nodes: across restarts of the server and of the nodes, and what is left when a node goes.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartMemnode;
use SmartTest;

my $QUERY = 'SELECT id FROM numbers WHERE id BETWEEN 100 AND 200 ORDER BY id';
my @VERBOSE = (extra_params => [ '-v', 'VERBOSITY=verbose' ]);

# The SQLSTATE of a statement's error is this one, and the rest of the message is like that.
sub fails
{
	my ($node, $statement, $sqlstate, $pattern, $name) = @_;
	my ($status, undef, $err) = $node->psql('postgres', "SET enable_seqscan = off; $statement", @VERBOSE);

	isnt($status, 0, "$name: fails");
	like($err, qr/ERROR:  $sqlstate:.*$pattern/s, "$name: SQLSTATE $sqlstate and what it says");
	return;
}

# Statements do without an index that is lost.
sub is_lost
{
	my ($node, $index, $reason, $name) = @_;

	like($node->safe_psql('postgres', "SELECT state, reason FROM smart_index_state WHERE index = '$index'::regclass"), qr/^lost\|.*$reason/,
		"$name: $index is lost");
	is($node->safe_psql('postgres', "SET enable_seqscan = off; $QUERY"), join("\n", 100 .. 200), "$name: the result comes from the table");
	return;
}

sub nodes_of
{
	my ($node, $index) = @_;

	return $node->safe_psql('postgres', "SELECT string_agg(node::text, ',' ORDER BY node) FROM smart_index_nodes('$index')");
}

my @memory = map { SmartMemnode->new($_, '--size=64M') } ('one', 'two');
# Without collections of orphans, so that a new index needs new memory.
my $node = smart_node('main', 'autovacuum = off', 'smart.debug_collect_orphans = off', 'smart.auto_rebuild = off',
	'smart.node_down_after = 0', 'smart.spread_above = 0', 'smart.memory_nodes = ' . addresses(@memory));

# Built, asked, counted.
$node->safe_psql('postgres', 'CREATE TABLE numbers (id int, word text);
	INSERT INTO numbers SELECT g, md5(g::text) FROM generate_series(1, 60000) g;
	CREATE INDEX numbers_id ON numbers USING smart (id) WITH (logged = off); CREATE INDEX numbers_word ON numbers USING smart (word) WITH (logged = off)');
same_answers($node, 'postgres', $QUERY, 'two memory nodes');
index_is_sound($node, 'postgres', $_, 'two memory nodes') for ('numbers_id', 'numbers_word');
is(nodes_of($node, 'numbers_word'), '0,1', 'a large index lies on both');
is($node->safe_psql('postgres', "SELECT string_agg(state || ' ' || transport, ',') FROM smart_memory_nodes"), 'up tcp,up tcp',
	'both are up');
is($node->safe_psql('postgres', "SET enable_seqscan = off; SELECT session_round_trips AS before FROM smart_stat_fabric \\gset
	SELECT id FROM numbers WHERE id = 7; SELECT session_round_trips - :before BETWEEN 1 AND 20 FROM smart_stat_fabric"), "7\nt", 'a lookup takes some round trips');

# A check compares the tree with its journal: many leaves take one round trip, and no entry takes one of its own.
$node->safe_psql('postgres', 'CREATE INDEX numbers_checked ON numbers USING smart (id);
	INSERT INTO numbers SELECT g, md5(g::text) FROM generate_series(60001, 64000) g; DELETE FROM numbers WHERE id > 60000; VACUUM numbers');
is($node->safe_psql('postgres', "SELECT session_round_trips AS before FROM smart_stat_fabric \\gset
	SELECT smart_index_check('numbers_checked', true); SELECT session_round_trips - :before < 60000 / 20 FROM smart_stat_fabric"), "\nt", 'a check takes few round trips');
$node->safe_psql('postgres', 'DROP INDEX numbers_checked');
is($node->safe_psql('postgres', 'SELECT reads > 0 AND writes > 0 AND compare_and_swaps > 0 AND connections > 0 AND timeouts = 0
	FROM smart_stat_fabric'), 't', 'the fabric is counted');
is($node->safe_psql('postgres', "CREATE ROLE stranger; SET ROLE stranger;
	SELECT count(*), count(address), count(problem) FROM smart_memory_nodes; SELECT count(address) FROM smart_index_nodes('numbers_id');
	RESET ROLE; GRANT pg_monitor TO stranger; SET ROLE stranger; SELECT count(address) FROM smart_memory_nodes"), "2|0|0\n0\n2",
	'addresses are for pg_monitor');

# Small ones have their blocks where their roots are.
$node->safe_psql('postgres', "CREATE TABLE small_$_ (id int); INSERT INTO small_$_ SELECT generate_series(1, 100);
	CREATE INDEX small_${_}_id ON small_$_ USING smart (id) WITH (logged = off)") for (1 .. 4);
my ($spared) = grep { nodes_of($node, "small_${_}_id") =~ /^[01]$/ } (1 .. 4);
ok(defined $spared, 'a small index is on one node');
my $gone = 1 - nodes_of($node, "small_${spared}_id");
my $address = $memory[$gone]->address;

# The server is restarted: everything is there, and stays where it is.
$node->restart;
looks_for_nodes($node);
same_answers($node, 'postgres', $QUERY, 'the server was restarted');
index_is_sound($node, 'postgres', $_, 'the server was restarted') for ('numbers_id', 'numbers_word');
$node->safe_psql('postgres', 'INSERT INTO numbers SELECT g, md5(g::text) FROM generate_series(60001, 61000) g');

# A memory node is gone: an error for statements that need it.
$memory[$gone]->kill9;
node_becomes($node, $memory[$gone], 'down');
fails($node, 'SELECT count(id) FROM numbers WHERE id > 0', '08006', "DETAIL:.*\Q$address\E.*HINT:.*smart_memory_nodes", 'a query');
fails($node, 'INSERT INTO numbers SELECT g, md5(g::text) FROM generate_series(1, 3000) g', '08006', "DETAIL:.*\Q$address\E", 'an insert');
$node->safe_psql('postgres', 'SET enable_indexscan = off; SET enable_bitmapscan = off; DELETE FROM numbers WHERE id = 61000');
like($node->safe_psql('postgres', "SET enable_seqscan = off; SELECT id FROM small_$spared WHERE id = 50"), qr/^50$/,
	'an index on the other node is used');
is($node->safe_psql('postgres', 'CREATE TABLE plain (id int); INSERT INTO plain VALUES (1); SELECT count(*) FROM numbers WHERE word IS NOT NULL'),
	'60999', 'tables are read without the index');

# The server starts without it, and says what it misses.
$node->restart;
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM smart_memory_nodes WHERE node = $gone AND state = 'down'");
fails($node, 'SELECT count(word) FROM numbers WHERE word > \'\'', '08006', "[Mm]emory node $gone", 'a query after a restart without the node');

# It comes back as it was.
$memory[$gone]->start;
node_becomes($node, $memory[$gone], 'up');
same_answers($node, 'postgres', $QUERY, 'the memory node is back');
index_is_sound($node, 'postgres', $_, 'the memory node is back') for ('numbers_id', 'numbers_word', "small_${spared}_id");

# It comes back with nothing.
my $lost = nodes_of($node, 'numbers_word');
is($lost, '0,1', 'an index lies on the node that will be lost');
$memory[$gone]->kill9;
$memory[$gone]->forget;
my $offset = -s $node->logfile;
$memory[$gone]->start;
ok($node->wait_for_log(qr/memory node $gone at \Q$address\E has lost its memory/, $offset), 'the log says that a node was lost');
node_becomes($node, $memory[$gone], 'up');
is($node->safe_psql('postgres', "SELECT state FROM smart_memory_nodes WHERE node = $gone"), 'lost', 'so does the view');
is_lost($node, 'numbers_word', 'lost its memory', 'the node came back empty');
fails($node, "SELECT smart_index_check('numbers_word')", '55000', 'DETAIL:.*lost its memory.*HINT:.*REINDEX', 'an index of the lost node');
is($node->safe_psql('postgres', "SELECT index FROM smart_index_state WHERE state = 'lost' AND index = 'numbers_word'::regclass"),
	'numbers_word', 'smart_index_state says "lost"');
index_is_sound($node, 'postgres', "small_${spared}_id", 'the other node was not touched');
$node->safe_psql('postgres', 'REINDEX DATABASE postgres');
same_answers($node, 'postgres', $QUERY, 'rebuilt');
index_is_sound($node, 'postgres', $_, 'rebuilt') for ('numbers_id', 'numbers_word', map { "small_${_}_id" } (1 .. 4));

# One more while the server runs.
push @memory, SmartMemnode->new('three', '--size=64M');
$node->safe_psql('postgres', 'ALTER SYSTEM SET smart.memory_nodes = ' . join(', ', map { "'" . $_->address . "'" } @memory));
$node->reload;
node_becomes($node, $memory[2], 'up');
$node->safe_psql('postgres', 'REINDEX INDEX numbers_word');
my $number = $node->safe_psql('postgres', "SELECT node FROM smart_memory_nodes WHERE address = '" . $memory[2]->address . "'");
like(nodes_of($node, 'numbers_word'), qr/\b$number\b/, 'a new memory node is used');

# An unclean stop, and nothing shows whose the extent map is: the indexes begin anew, and the memory nodes free what they had
# of the older ones.
$node->stop('immediate');
unlink $node->data_dir . '/smart/pgsql_tmp_run' or die $!;
$node->start;
is_lost($node, 'numbers_id', 'made anew', 'after an unclean stop');
$node->poll_query_until('postgres', 'SELECT sum(allocated_bytes) = 0 FROM smart_memory_nodes WHERE state = \'up\'');
is($node->safe_psql('postgres', 'SELECT sum(trees) FROM smart_memory_nodes'), '0', 'nothing is left of the older ones');
$node->safe_psql('postgres', 'REINDEX TABLE numbers');
same_answers($node, 'postgres', $QUERY, 'rebuilt after an unclean stop');

# Indexes are elsewhere: not lost in silence, in either direction.
my $smart = $node->data_dir . '/smart';
ok(-e "$smart/pgsql_tmp_book" && !-e "$smart/pgsql_tmp_region", 'the extent map is there, no region');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET smart.memory_nodes');
$node->adjust_conf('postgresql.conf', 'smart.memory_nodes', "''");
$node->restart;
ok(!-e "$smart/pgsql_tmp_book", 'the extent map is gone when there are no memory nodes');
is_lost($node, 'numbers_id', 'made anew', 'from memory nodes to a region');
$node->safe_psql('postgres', 'REINDEX TABLE numbers');
same_answers($node, 'postgres', $QUERY, 'in a region');
$node->adjust_conf('postgresql.conf', 'smart.memory_nodes', addresses(@memory));
$node->restart;
looks_for_nodes($node);
is_lost($node, 'numbers_id', 'made anew', 'from a region to memory nodes');
$node->safe_psql('postgres', 'REINDEX TABLE numbers');
same_answers($node, 'postgres', $QUERY, 'on memory nodes again');

# A server that is to use RDMA refuses nodes that offer TCP only; one that is not to use it has them.
my $STATES = q{SELECT string_agg(concat_ws(' ', state, transport, problem), ', ') FROM smart_memory_nodes};
$node->append_conf('postgresql.conf', "smart.rdma_device = '::'");
$node->restart;
ok($node->poll_query_until('postgres', "SELECT count(*) = 3 FROM smart_memory_nodes WHERE state <> 'up' AND problem ~ 'does not offer RDMA'"),
	'no RDMA, no memory nodes') or diag($node->safe_psql('postgres', $STATES));
$node->append_conf('postgresql.conf', "smart.rdma_device = 'none'");
$node->restart;
looks_for_nodes($node);
ok($node->poll_query_until('postgres', $STATES, 'up tcp, up tcp, up tcp'), 'without RDMA: memory nodes over TCP');
same_answers($node, 'postgres', $QUERY, 'without RDMA');

$node->stop;
is($_->stop, 0, 'a memory node stops cleanly') for @memory;
log_is_quiet($node);
done_testing();
