# Memory nodes go, come back with nothing, or are away while VACUUM runs: the indexes that had a part there are rebuilt,
# the others notice nothing, and no statement gets a wrong result.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartMemnode;
use SmartTest;

my $QUERY = 'SELECT id FROM numbers WHERE id BETWEEN 100 AND 200 ORDER BY id';

my @memory = map { SmartMemnode->new($_, '--size=64M') } ('one', 'two');
my $node = smart_node('main', 'autovacuum = off', 'smart.spread_above = 0', 'smart.memory_nodes = ' . addresses(@memory), 'smart.fabric_timeout = 1s', 'smart.node_down_after = 0');

sub nodes_of
{
	my ($index) = @_;

	return $node->safe_psql('postgres', "SELECT string_agg(node::text, ',' ORDER BY node) FROM smart_index_nodes('$index')");
}

$node->safe_psql('postgres', 'CREATE TABLE numbers (id int, word text);
	INSERT INTO numbers SELECT g, md5(g::text) FROM generate_series(1, 60000) g;
	CREATE INDEX numbers_id ON numbers USING smart (id) WITH (logged = off); CREATE UNIQUE INDEX numbers_word ON numbers USING smart (word, id) WITH (logged = off)');
$node->safe_psql('postgres', "CREATE TABLE small_$_ (id int); INSERT INTO small_$_ SELECT generate_series(1, 100);
	CREATE INDEX small_${_}_id ON small_$_ USING smart (id) WITH (logged = off)") for (1 .. 4);
is(nodes_of('numbers_word'), '0,1', 'a large index lies on both');
my ($spared) = grep { nodes_of("small_${_}_id") =~ /^[01]$/ } (1 .. 4);
my $gone = 1 - nodes_of("small_${spared}_id");

# ---- VACUUM while a node is away ----

my $session = $node->background_psql('postgres', on_error_stop => 0);
$session->query_safe("SET enable_seqscan = off; SET enable_bitmapscan = off; SET plan_cache_mode = force_generic_plan;
	PREPARE q AS $QUERY; PREPARE s AS SELECT id FROM small_$spared WHERE id = 7");
like($session->query_safe('EXPLAIN (COSTS OFF) EXECUTE q'), qr/Index/, 'a prepared statement uses the index');
is($session->query_safe('EXECUTE q'), join("\n", 100 .. 200), 'and is right');
$memory[$gone]->kill9;
node_becomes($node, $memory[$gone], 'down');
is(state_of($node, 'numbers_id'), 'ready', 'a node that is away says nothing about its memory');
# Counted before VACUUM counts.
$node->safe_psql('postgres', 'SET enable_indexscan = off; SET enable_bitmapscan = off; DELETE FROM numbers WHERE id > 59900; SELECT pg_stat_force_next_flush()');
my $offset = -s $node->logfile;
my ($status, undef, $err) = $node->psql('postgres', 'VACUUM (INDEX_CLEANUP on) numbers');
is($status, 0, 'VACUUM does not fail');
like($err, qr/WARNING:  skipping index "numbers_id".*HINT:  .*REINDEX.*WARNING:  skipping index "numbers_word"/s, 'it leaves the indexes out');
is($node->safe_psql('postgres', 'SELECT n_dead_tup FROM pg_stat_all_tables WHERE relname = \'numbers\''), '0', 'and cleans the table');
is($session->query_safe('EXECUTE q'), join("\n", 100 .. 200), 'the prepared statement is right');
is($session->query_safe('EXECUTE s'), '7', 'and so is one on the other node');
becomes($node, $_, 'ready') for ('numbers_id', 'numbers_word');
is(nodes_of('numbers_word'), 1 - $gone, 'they have been rebuilt on the node that is there');
$node->safe_psql('postgres', 'INSERT INTO numbers SELECT g, md5(g::text) FROM generate_series(59901, 60100) g');
index_is_sound($node, 'postgres', $_, 'rebuilt while a node is away') for ('numbers_id', 'numbers_word', "small_${spared}_id");
like($session->query_safe('EXPLAIN (COSTS OFF) EXECUTE q'), qr/Index/, 'the prepared statement uses the index again');
is($session->query_safe('EXECUTE q'), join("\n", 100 .. 200), 'and is right');
unlike(PostgreSQL::Test::Utils::slurp_file($node->logfile, $offset), qr/rebuilding smart index "small_${spared}_id"/, 'the other index was left alone');

$memory[$gone]->start;
node_becomes($node, $memory[$gone], 'up');
ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'smart rebuild'"), 'the worker ends');
$node->safe_psql('postgres', 'REINDEX TABLE numbers');
is(nodes_of('numbers_word'), '0,1', 'back on both');

# VACUUM waits for a node that comes back in time.
$memory[$gone]->kill9;
node_becomes($node, $memory[$gone], 'down');
$node->safe_psql('postgres', 'SET enable_indexscan = off; SET enable_bitmapscan = off; DELETE FROM numbers WHERE id > 60000');
my $vacuum = $node->background_psql('postgres');
$vacuum->query_until(qr/waiting/, "SET smart.fabric_timeout = '120s';\n\\echo waiting\nVACUUM (INDEX_CLEANUP on) numbers;\n");
$node->poll_query_until('postgres', 'SELECT count(*) = 1 FROM pg_stat_progress_vacuum WHERE phase = \'vacuuming indexes\'');
$memory[$gone]->start;
ok($node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM pg_stat_progress_vacuum'), 'VACUUM goes on');
$vacuum->quit;
is(state_of($node, $_), 'ready', "$_ is used as before") for ('numbers_id', 'numbers_word');
index_is_sound($node, 'postgres', $_, 'VACUUM has waited') for ('numbers_id', 'numbers_word');

# ---- a node comes back with nothing ----

is($session->query_safe('EXECUTE q'), join("\n", 100 .. 200), 'before the loss');
$node->safe_psql('postgres', 'ALTER SYSTEM SET smart.auto_rebuild = off');
$node->reload;
$memory[$gone]->kill9;
$memory[$gone]->forget;
$offset = -s $node->logfile;
$memory[$gone]->start;
ok($node->wait_for_log(qr/has lost its memory/, $offset), 'a node is lost');
is(state_of($node, 'numbers_id'), 'lost', 'so are the indexes that had a part there');
is(state_of($node, "small_${spared}_id"), 'ready', 'but no others');
is($session->query_safe('EXECUTE q'), join("\n", 100 .. 200), 'a prepared statement goes on without it');
is($session->query_safe('EXECUTE s'), '7', 'and one of the others with its own');
like($session->query_safe('EXPLAIN (COSTS OFF) EXECUTE s'), qr/Index/, 'as before');
(undef, undef, $err) = $node->psql('postgres', "INSERT INTO numbers VALUES (-1, 'x')", extra_params => [ '-v', 'VERBOSITY=verbose' ]);
like($err, qr/ERROR:  55000:.*lost its memory/s, 'a unique index takes no inserts');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET smart.auto_rebuild');
$node->reload;
becomes($node, $_, 'ready') for ('numbers_id', 'numbers_word', map { "small_${_}_id" } (1 .. 4));
$node->safe_psql('postgres', "INSERT INTO numbers VALUES (-1, 'x')");
index_is_sound($node, 'postgres', $_, 'rebuilt') for ('numbers_id', 'numbers_word', map { "small_${_}_id" } (1 .. 4));
is($session->query_safe('EXECUTE q'), join("\n", 100 .. 200), 'the prepared statement is right');
unlike(PostgreSQL::Test::Utils::slurp_file($node->logfile, $offset), qr/rebuilding smart index "small_${spared}_id"/, 'an index of the other node was left alone');
like($session->query_safe('EXPLAIN (COSTS OFF) EXECUTE q'), qr/Index/, 'and uses the index');
is($node->safe_psql('postgres', "SELECT count(*) FROM smart_memory_nodes WHERE state = 'lost'"), '0', 'nothing refers to the lost node any more')
  if $node->poll_query_until('postgres', "SELECT count(*) = 0 FROM smart_memory_nodes WHERE state = 'lost'");

# ---- it happens again while they are rebuilt ----

my $writer = $node->background_psql('postgres');
$writer->query_safe("BEGIN; INSERT INTO small_1 VALUES (0); INSERT INTO small_2 VALUES (0); INSERT INTO small_3 VALUES (0); INSERT INTO small_4 VALUES (0)");
# Both, and the server has noticed it.
sub lose
{
	my ($name) = @_;

	$memory[$_]->kill9 for (0, 1);
	$memory[$_]->forget for (0, 1);
	$offset = -s $node->logfile;
	$memory[$_]->start for (0, 1);
	ok($node->wait_for_log(qr/memory node \d+ at \S+ has lost its memory.*memory node \d+ at \S+ has lost its memory/s, $offset), $name);
	node_becomes($node, $_, 'up') for @memory;
	return;
}
lose('both nodes are lost');
becomes($node, 'small_1_id', 'rebuilding');
lose('what is being rebuilt is lost, too');
$node->safe_psql('postgres', "INSERT INTO small_$_ VALUES (101)") for (1 .. 4);
$writer->query_safe('COMMIT');
$writer->quit;
becomes($node, $_, 'ready') for ('numbers_id', 'numbers_word', map { "small_${_}_id" } (1 .. 4));
index_is_sound($node, 'postgres', $_, 'lost twice') for ('numbers_id', 'numbers_word', map { "small_${_}_id" } (1 .. 4));
is($node->safe_psql('postgres', "SET enable_seqscan = off; SELECT count(*) FROM small_1 WHERE id IN (0, 100, 101)"), '3', 'with all rows');

# ---- the server itself ----

$session->quit;
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', "SET enable_seqscan = off; $QUERY"), join("\n", 100 .. 200), 'an unclean stop: the right result');
becomes($node, $_, 'ready') for ('numbers_id', 'numbers_word', map { "small_${_}_id" } (1 .. 4));
same_answers($node, 'postgres', $QUERY, 'rebuilt after it');
index_is_sound($node, 'postgres', $_, 'rebuilt after it') for ('numbers_id', 'numbers_word', map { "small_${_}_id" } (1 .. 4));
$node->stop;
is($_->stop, 0, 'a memory node stops cleanly') for @memory;
log_is_quiet($node);
done_testing();
