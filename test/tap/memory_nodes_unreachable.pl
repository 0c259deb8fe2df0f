# A memory node goes while rows are inserted and read: after smart.node_down_after statements do without its indexes. No insert fails
# into an index with a journal, and no read does. Such indexes come back on other nodes, or when the node does.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use POSIX ();
use Time::HiRes qw(time);

use SmartMemnode;
use SmartTest;

my @memory = map { SmartMemnode->new($_, '--size=32M') } ('one', 'two');
my $node = smart_node('main', 'autovacuum = off', 'smart.node_lost_after = 0', 'smart.fabric_timeout = 2s', 'smart.spread_above = 0', 'smart.memory_nodes = ' . addresses(@memory));

sub make_tables
{
	$node->safe_psql('postgres', q{
		CREATE TABLE numbers (id int, word text);
		CREATE INDEX numbers_id ON numbers USING smart (id);
		CREATE INDEX numbers_word ON numbers USING smart (word);
		INSERT INTO numbers SELECT g, md5(g::text) FROM generate_series(1, 60000) g;
		CREATE TABLE keys (id int);
		CREATE UNIQUE INDEX keys_id ON keys USING smart (id);
		INSERT INTO keys SELECT generate_series(1, 60000);
		CREATE TABLE plain (id int, word text DEFAULT repeat('x', 60));
		INSERT INTO plain SELECT generate_series(1, 60000);
		CREATE INDEX plain_id ON plain USING smart (id) INCLUDE (word) WITH (logged = off);
		ANALYZE numbers, keys, plain});
	return;
}

my $READ = 'SELECT count(*) FROM numbers WHERE id BETWEEN 100 AND 1099';

# Which way a read goes.
sub uses_index
{
	my ($query) = @_;

	return $node->safe_psql('postgres', "SET enable_seqscan = off; EXPLAIN (COSTS OFF) $query") =~ /Index/;
}

sub is_unreachable
{
	my (@indexes) = @_;

	becomes($node, $_, 'unreachable') for @indexes;
	return;
}

# The command inserts rows one by one and tells how each ended; what goes on meanwhile ends with a file.
sub insert_during
{
	my ($name, $action) = @_;
	my $stop = PostgreSQL::Test::Utils::tempdir() . '/stop';
	my $pid = fork() // die "fork: $!";

	if ($pid == 0)
	{
		my $session = $node->background_psql('postgres', on_error_stop => 0);
		my ($failed, $longest) = (0, 0);

		while (!-e $stop)
		{
			my $begun = time;

			$session->query("INSERT INTO numbers VALUES (-1, 'new')");
			$longest = time - $begun if time - $begun > $longest;
			$failed++ if $session->{stderr} =~ /ERROR/;
			$session->{stderr} = '';
		}
		$session->quit;
		diag(sprintf('%s: the longest insert took %.1f s', $name, $longest));
		POSIX::_exit($failed > 0);
	}
	$action->();
	PostgreSQL::Test::Utils::append_to_file($stop, '');
	waitpid($pid, 0);
	return is($?, 0, "$name: no insert has failed");
}

# ---- another node is there ----

make_tables();

my $offset = -s $node->logfile;
insert_during('a node of two goes', sub {
	$memory[1]->kill9;
	ok($node->wait_for_log(qr/memory node \d+ is away/, $offset), 'statements do without it');
	is($node->safe_psql('postgres', "SET enable_seqscan = off; $READ"), '1000', 'a read does not fail') for (1 .. 5);
	becomes($node, $_, 'ready') for ('numbers_id', 'numbers_word', 'keys_id');
});
is($node->safe_psql('postgres', 'INSERT INTO keys VALUES (0) RETURNING id'), '0', 'a unique index takes inserts again');
index_is_sound($node, 'postgres', $_, 'on the other node') for ('numbers_id', 'numbers_word', 'keys_id');
same_answers($node, 'postgres', $READ, 'on the other node');

# One without a journal waits for its node.
is_unreachable('plain_id');
is($node->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM plain WHERE id < 11'), '10', 'without a journal: it is read without the index');
my (undef, undef, $err) = $node->psql('postgres', 'INSERT INTO plain SELECT generate_series(1, 60000, 60)', extra_params => [ '-v', 'VERBOSITY=verbose' ]);
like($err, qr/ERROR:  08006:/, 'without a journal: it takes no inserts');
$memory[1]->start;
node_becomes($node, $memory[1], 'up');
becomes($node, 'plain_id', 'ready');
index_is_sound($node, 'postgres', 'plain_id', 'without a journal');

# A node that hangs keeps its connections. It is missed as soon, though statements would wait for it much longer.
$node->adjust_conf('postgresql.conf', 'smart.fabric_timeout', "'300s'");
$node->reload;
ok($node->poll_query_until('postgres', q{SELECT setting = '300000' FROM pg_settings WHERE name = 'smart.fabric_timeout'}), 'statements are patient');
$node->safe_psql('postgres', 'REINDEX TABLE numbers; REINDEX TABLE keys');
is($node->safe_psql('postgres', q{SELECT count(*) FROM smart_index_nodes('numbers_word')}), '2', 'a large index lies on both');
$offset = -s $node->logfile;
$memory[1]->signal('STOP');
ok($node->wait_for_log(qr/memory node \d+ is away/, $offset), 'a node hangs: statements do without it');
is($node->safe_psql('postgres', "SET enable_seqscan = off; $READ"), '1000', 'a node hangs: a read does not fail') for (1 .. 5);
becomes($node, $_, 'ready') for ('numbers_id', 'numbers_word', 'keys_id');
is($node->safe_psql('postgres', 'INSERT INTO keys VALUES (-2) RETURNING id'), '-2', 'a node hangs: a unique index takes inserts');
$memory[1]->signal('CONT');
node_becomes($node, $memory[1], 'up');
becomes($node, 'plain_id', 'ready');
index_is_sound($node, 'postgres', $_, 'the node goes on') for ('numbers_id', 'numbers_word', 'keys_id', 'plain_id');
same_answers($node, 'postgres', $READ, 'the node goes on');
$node->stop;
log_is_quiet($node);

# ---- no other one is there ----

my $only = SmartMemnode->new('only', '--size=32M');

$node = smart_node('single', 'autovacuum = off', 'smart.node_lost_after = 0', 'smart.fabric_timeout = 2s', 'smart.memory_nodes = ' . addresses($only));
make_tables();
my $session = $node->background_psql('postgres', on_error_stop => 0);
$session->query_safe("SET enable_seqscan = off; SET enable_bitmapscan = off; SET plan_cache_mode = force_generic_plan; PREPARE q AS $READ");
is($session->query_safe('EXECUTE q'), '1000', 'a prepared statement');
$offset = -s $node->logfile;
$only->kill9;
is_unreachable('numbers_id', 'numbers_word', 'keys_id', 'plain_id');
ok(uses_index($READ), 'queries are planned with the index: the pages of its journal answer');
is($node->safe_psql('postgres', "SET enable_seqscan = off; $READ"), '1000', 'and do not fail');
ok(!uses_index('SELECT count(*) FROM plain WHERE id < 11'), 'without a journal: without the index');
is($session->query_safe('EXECUTE q'), '1000', 'nor does the prepared one');
like($node->safe_psql('postgres', "SELECT reason FROM smart_index_state WHERE index = 'keys_id'::regclass"), qr/memory node.*away/, 'the view tells why');
$only->start;
becomes($node, $_, 'ready') for ('numbers_id', 'numbers_word', 'keys_id', 'plain_id');
unlike(PostgreSQL::Test::Utils::slurp_file($node->logfile, $offset), qr/has been (?:loaded|rebuilt)/, 'nothing was written meanwhile: they are what they were');
ok(uses_index('SELECT count(*) FROM plain WHERE id < 11'), 'without a journal: with the index again');
is($session->query_safe('EXECUTE q'), '1000', 'the prepared statement goes on');

# What was written meanwhile is in the journal alone.
$offset = -s $node->logfile;
insert_during('the only node goes', sub {
	$only->kill9;
	is_unreachable('keys_id');
	$node->safe_psql('postgres', "INSERT INTO numbers SELECT g, 'meanwhile' FROM generate_series(70001, 70100) g");
	is($node->safe_psql('postgres', "SELECT count(*) FROM numbers WHERE id > 70000"), '100', 'rows are there');
	is(state_of($node, 'numbers_id'), 'lost', 'the index has less');
	is($node->safe_psql('postgres', 'SET smart.wait_timeout = 0; INSERT INTO keys VALUES (-1) RETURNING id'), '-1', 'a unique index is asked by its pages');
	isnt($node->psql('postgres', 'INSERT INTO keys VALUES (-1)'), 0, 'which know of duplicates');
	isnt($node->psql('postgres', 'SET smart.wait_timeout = 0; SET smart.answer_from_pages = off; INSERT INTO keys VALUES (-3)'), 0, 'but where they are not to answer');
	$only->start;
	becomes($node, $_, 'ready') for ('numbers_id', 'numbers_word', 'keys_id');
});
like(PostgreSQL::Test::Utils::slurp_file($node->logfile, $offset), qr/"$_" has its tree again/, "$_ has caught up") for ('numbers_id', 'keys_id');
unlike(PostgreSQL::Test::Utils::slurp_file($node->logfile, $offset), qr/"numbers_id" has been loaded/, 'and was not loaded');
is($node->safe_psql('postgres', 'SELECT count(*) FROM keys WHERE id = -1'), '1', 'a unique index has what was written');
same_answers($node, 'postgres', 'SELECT id FROM numbers WHERE id > 70000 ORDER BY id', 'with what was written meanwhile');
index_is_sound($node, 'postgres', $_, 'back') for ('numbers_id', 'numbers_word', 'keys_id', 'plain_id');
$session->quit;
$node->stop;
is($_->stop, 0, 'a memory node stops cleanly') for (@memory, $only);
log_is_quiet($node);
done_testing();
