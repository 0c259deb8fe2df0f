# The only memory node goes, hangs, or is away for a moment: indexes with a journal answer from its pages meanwhile, and no statement
# fails. Scans that are under way go on, forward and backward; duplicates are found; VACUUM removes what is dead, and places of rows
# are used again. When the node is back, so are the trees, with all that was written. And indexes that have no tree (resident =
# never) do without memory nodes.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use POSIX ();
use SmartMemnode;
use SmartTest;
use Test::More;
use Time::HiRes qw(sleep);

my $memory = SmartMemnode->new('only', '--size=256M');
my $node = smart_node('main', 'autovacuum = off', 'smart.node_lost_after = 0', 'smart.fabric_timeout = 300s',
	'smart.embedded_max_size = 64MB', 'smart.memory_nodes = ' . addresses($memory));
my @indexes = ('numbers_id', 'numbers_word', 'numbers_both');

sub sql
{
	return $node->safe_psql('postgres', $_[0]);
}

sub fails
{
	my ($statement, $code, $name) = @_;
	my (undef, undef, $complaint) = $node->psql('postgres', $statement, extra_params => [ '-v', 'VERBOSITY=verbose' ]);

	like($complaint, qr/ERROR:  $code:/, $name);
	return;
}

my @queries = (
	'SELECT id FROM numbers WHERE id BETWEEN 100 AND 5000 ORDER BY id',
	'SELECT id FROM numbers WHERE id > 59000 ORDER BY id DESC',
	'SELECT id FROM numbers WHERE id IN (1, 77, 100, 30000, 59999, 70003, -1) ORDER BY id',
	q{SELECT word, id FROM numbers WHERE word BETWEEN 'a' AND 'b' ORDER BY word, id},
	q{SELECT count(*), min(id), max(id) FROM numbers WHERE word >= 'f'},
	q{SELECT id FROM numbers WHERE id % 10 = 3 AND word > 'ff' ORDER BY id});

sub answers_are_right
{
	my ($name) = @_;

	same_answers($node, 'postgres', $_, "$name: $_") foreach (@queries);
	return;
}

sub all_are
{
	my ($state, $name) = @_;

	becomes($node, $_, $state) foreach (@indexes);
	return;
}

sub all_are_sound
{
	my ($name) = @_;

	index_is_sound($node, 'postgres', $_, $name) foreach (@indexes);
	return;
}

sub log_since
{
	return PostgreSQL::Test::Utils::slurp_file($node->logfile, $_[0]);
}

# What sessions do with an index whose tree cannot be reached, and with one that has no tree.
sub goes_on
{
	my ($name, $from) = @_;

	answers_are_right($name);
	is(sql("INSERT INTO numbers SELECT g, md5(g::text) FROM generate_series($from, $from + 999) g RETURNING 1") =~ tr/1//, 1000, "$name: rows are inserted");
	fails("INSERT INTO numbers VALUES ($from, 'again')", 23505, "$name: a duplicate is found");
	fails("INSERT INTO numbers VALUES (17, 'again')", 23505, "$name: an older one, too");
	is(sql("INSERT INTO numbers SELECT g, 'new' FROM generate_series($from - 10, $from + 9) g ON CONFLICT (id) DO UPDATE SET word = 'conflict' RETURNING word") =~ s/\n/ /gr,
		join(' ', ('new') x 10, ('conflict') x 10), "$name: ON CONFLICT");
	sql("UPDATE numbers SET word = 'updated ' || id WHERE id BETWEEN $from + 100 AND $from + 199; DELETE FROM numbers WHERE id BETWEEN 2000 AND 2999 OR id BETWEEN $from + 500 AND $from + 699");
	answers_are_right("$name, changed");
	sql('VACUUM numbers');
	sql("INSERT INTO numbers SELECT g, 'reused ' || g FROM generate_series(2000, 2999) g");
	answers_are_right("$name, places of rows are used again");
	all_are_sound($name);
	return;
}

sql(q{CREATE TABLE numbers (id int, word text);
	CREATE UNIQUE INDEX numbers_id ON numbers USING smart (id);
	CREATE INDEX numbers_word ON numbers USING smart (word);
	CREATE INDEX numbers_both ON numbers USING smart ((id % 10), word) INCLUDE (id);
	INSERT INTO numbers SELECT g, md5(g::text) FROM generate_series(1, 60000) g;
	ANALYZE numbers});

# ---- it goes while scans are under way ----

my %cursor = (
	forward => 'SELECT id FROM numbers WHERE id > 0 ORDER BY id',
	backward => 'SELECT id FROM numbers WHERE id > 0 ORDER BY id DESC',
	covering => q{SELECT word, id % 10 FROM numbers WHERE id % 10 = 7 ORDER BY word});
my %session;

foreach my $name (sort keys %cursor)
{
	$session{$name} = $node->background_psql('postgres', on_error_stop => 0);
	$session{$name}->query_safe('SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; BEGIN ISOLATION LEVEL REPEATABLE READ');
	$session{$name}->query_safe("DECLARE c CURSOR FOR $cursor{$name}");
	$session{$name}->query_safe('FETCH 100 FROM c');
}
my %whole = map { $_ => sql("SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off; $cursor{$_}") } keys %cursor;
my $offset = -s $node->logfile;

$memory->kill9;
foreach my $name (sort keys %cursor)
{
	my @rest = split(/\n/, $whole{$name});

	splice(@rest, 0, 100);
	is(join(' ', split(/\n/, $session{$name}->query('FETCH ALL FROM c'))), join(' ', @rest), "a scan that is under way, $name");
	is($session{$name}->{stderr}, '', "$name: no error");
	$session{$name}->query_safe('COMMIT');
	$session{$name}->quit;
}
goes_on('the node has gone', 70000);
like(sql("SET enable_seqscan = off; EXPLAIN (COSTS OFF) $queries[0]"), qr/Index/, 'queries are planned with the index');
ok($node->wait_for_log(qr/memory node \d+ is away/, $offset), 'the log tells of the node');
unlike(log_since($offset), qr/memory_nodes_paged\.pl ERROR:  (?!duplicate)/, 'no statement has failed');
$memory->start;
all_are('ready', 'the node is back');
all_are_sound('the node is back');
answers_are_right('the node is back');

# ---- it is away for a moment ----

my $stop = PostgreSQL::Test::Utils::tempdir() . '/stop';
my $pid = fork() // die "fork: $!";

if ($pid == 0)
{
	my $patient = $node->background_psql('postgres', on_error_stop => 0);
	my ($failed, $next) = (0, 200000);

	$patient->query_safe('SET enable_seqscan = off');
	while (!-e $stop)
	{
		$next++;
		$patient->query("INSERT INTO numbers VALUES ($next, md5('$next')); SELECT count(*) FROM numbers WHERE id BETWEEN 1 AND 900; UPDATE numbers SET word = 'u' WHERE id = $next");
		$failed++ if $patient->{stderr} =~ /ERROR/;
		diag($patient->{stderr}) if $patient->{stderr} ne '';
		$patient->{stderr} = '';
	}
	$patient->quit;
	POSIX::_exit($failed > 0);
}
$node->adjust_conf('postgresql.conf', 'smart.node_down_after', "'300s'");
$node->reload;
$offset = -s $node->logfile;
foreach my $round (1 .. 3)
{
	sleep(0.5);
	$memory->kill9;
	sleep(0.2);
	$memory->start;
	node_becomes($node, $memory, 'up');
	all_are('ready', "a moment, $round");
}
PostgreSQL::Test::Utils::append_to_file($stop, '');
waitpid($pid, 0);
is($?, 0, 'a node that is away for a moment: no statement fails');
$node->adjust_conf('postgresql.conf', 'smart.node_down_after', "'2s'");
$node->reload;
unlike(log_since($offset), qr/has been loaded/, 'a moment: trees are what they were');
like(log_since($offset), qr/"numbers_id" has its tree again/, 'a moment: and have caught up');
all_are_sound('a moment');
answers_are_right('a moment');

# ---- it hangs while a statement waits for it ----

my $reader = $node->background_psql('postgres', on_error_stop => 0);

$reader->query_safe('SET enable_seqscan = off; SET enable_bitmapscan = off');
$memory->signal('STOP');
is($reader->query('SELECT count(*) FROM numbers WHERE id BETWEEN 3000 AND 40000'), '37001', 'a node hangs: a scan goes on');
is($reader->query('INSERT INTO numbers VALUES (-5, NULL) RETURNING id'), '-5', 'a node hangs: an insert goes on');
is($reader->{stderr}, '', 'a node hangs: no error');
$reader->quit;
goes_on('the node hangs', 80000);
$memory->signal('CONT');
all_are('ready', 'the node goes on');
all_are_sound('the node goes on');
answers_are_right('the node goes on');

# ---- indexes without a tree ----

sql("ALTER INDEX $_ SET (resident = never)") foreach (@indexes);
answers_are_right('no tree');
all_are('paged', 'no tree');
goes_on('no tree', 90000);
is(sql(q{SELECT bool_and(bytes < 4 * 1024 * 1024) FROM smart_index_state}), 't', 'no tree: there is a delta alone');
$memory->kill9;
goes_on('no tree and no node', 100000);
sql("ALTER INDEX $_ RESET (resident)") foreach (@indexes);
$memory->start;
answers_are_right('trees may be loaded');
all_are('ready', 'trees again');
all_are_sound('trees again');
answers_are_right('trees again');

# ---- deltas leave ----

sql('DROP TABLE numbers');
ok($node->poll_query_until('postgres', 'SELECT NOT EXISTS (SELECT FROM smart_stat_space() WHERE trees > 0)'), 'nothing is left of the indexes');
$node->stop;
log_is_quiet($node);

# ---- the server has little memory of its own ----

# The journal is compacted early enough for what is in its chain to find room when a node goes.
my $other = SmartMemnode->new('other', '--size=256M');

$node = smart_node('small', 'autovacuum = off', 'smart.node_lost_after = 0', 'smart.embedded_max_size = 16MB', 'smart.memory_nodes = ' . addresses($other));
sql('CREATE TABLE many (id bigint); CREATE UNIQUE INDEX many_id ON many USING smart (id)');
sql('INSERT INTO many SELECT hashint8extended(g, 0) FROM generate_series(1, 80000) g');
ok($node->poll_query_until('postgres', q{SELECT chain_pages <= 160 FROM smart_index_pages('many_id')}), 'little memory: the chain is kept short');
$other->kill9;
is(sql('SET enable_seqscan = off; SELECT count(*) FROM many WHERE id > 0 AND id < 1000000000000000'), sql('SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off; SELECT count(*) FROM many WHERE id > 0 AND id < 1000000000000000'),
	'little memory: pages answer');
is(sql('INSERT INTO many SELECT g FROM generate_series(1, 100000) g RETURNING 1') =~ tr/1//, 100000, 'little memory: and take inserts');
fails('INSERT INTO many VALUES (100000)', 23505, 'little memory: duplicates are found');
index_is_sound($node, 'postgres', 'many_id', 'little memory');
$other->start;
becomes($node, 'many_id', 'ready');
index_is_sound($node, 'postgres', 'many_id', 'little memory, the node is back');
$node->stop;
is($_->stop, 0, 'a memory node stops cleanly') foreach ($memory, $other);
log_is_quiet($node);
done_testing();
