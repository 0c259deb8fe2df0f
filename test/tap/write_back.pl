# Indexes on memory nodes that write back: who writes makes no round trip, whatever he does; a worker carries it to the nodes; scans
# read what the nodes have together with what they have not yet, forward and backward, and go on without the nodes when these go.
# After a crash of the server the trees on the nodes are used as they are. Small indexes are read from their pages alone.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SmartMemnode;
use SmartTest;
use Test::More;
use Time::HiRes qw(sleep);

my @memory = map { SmartMemnode->new($_, '--size=128M') } ('one', 'two');
my $node = smart_node('main', 'wal_level = replica', 'max_wal_senders = 4', 'wal_keep_size = 1GB', 'autovacuum = off', 'smart.node_lost_after = 0', 'smart.node_down_after = 300s', 'smart.fabric_timeout = 300s',
	'smart.write_back = on', 'smart.carry_above = 0', 'smart.spread_above = 0', 'smart.embedded_max_size = 64MB', 'smart.memory_nodes = ' . addresses(@memory));
my @indexes = ('numbers_id', 'numbers_word', 'numbers_both');

sub sql
{
	return $node->safe_psql('postgres', $_[0]);
}

sub log_since
{
	return PostgreSQL::Test::Utils::slurp_file($node->logfile, $_[0]);
}

my @queries = (
	'SELECT id FROM numbers WHERE id BETWEEN 100 AND 5000 ORDER BY id',
	'SELECT id FROM numbers WHERE id > 19000 ORDER BY id DESC',
	'SELECT id FROM numbers WHERE id IN (1, 77, 100, 13000, 19999, 70003, -1) ORDER BY id',
	q{SELECT word, id FROM numbers WHERE word BETWEEN 'a' AND 'b' ORDER BY word, id},
	q{SELECT count(*), min(id), max(id) FROM numbers WHERE word >= 'f'},
	q{SELECT id, id % 10 FROM numbers WHERE id % 10 = 3 AND word > 'ff' ORDER BY word, id},
	'SELECT a.id, b.id FROM numbers a JOIN numbers b ON b.id = a.id + 7 WHERE a.id BETWEEN 40 AND 400 ORDER BY 1');

sub answers_are_right
{
	my ($name) = @_;

	same_answers($node, 'postgres', $_, "$name: $_") foreach (@queries);
	$node->append_conf('postgresql.conf', 'smart.answer_from_pages = off');
	$node->reload;
	same_answers($node, 'postgres', $_, "$name, by the nodes: $_") foreach (@queries);
	$node->append_conf('postgresql.conf', 'smart.answer_from_pages = on');
	$node->reload;
	return;
}

sub all_are
{
	my ($state, $name) = @_;

	note($name);
	becomes($node, $_, $state) foreach (@indexes);
	return;
}

sub all_are_sound
{
	my ($name) = @_;

	index_is_sound($node, 'postgres', $_, $name) foreach (@indexes);
	return;
}

# Everything is carried, so that scans need the nodes alone.
sub carry
{
	my ($name) = @_;

	ok($node->poll_query_until('postgres', "SELECT bool_and(smart_carry(i)) FROM unnest('{" . join(',', @indexes) . "}'::regclass[]) i"), "$name: all is carried");
	return;
}

# The round trips of some statements: the last line of the output is their number.
sub round_trips
{
	my ($statements) = @_;
	my $out = sql("SELECT session_round_trips AS before FROM smart_stat_fabric \\gset\n$statements;\nSELECT session_round_trips - :before FROM smart_stat_fabric");

	return (split(/\n/, $out))[-1];
}

# What the planner thinks of a scan if a round trip has this price.
sub cost_at
{
	my ($price) = @_;

	return sql("SET smart.round_trip_cost = $price; SET enable_seqscan = off; SET enable_bitmapscan = off; EXPLAIN SELECT word FROM numbers WHERE id = 500");
}

# Writes of all kinds, which make no round trip.
sub writes_cost_nothing
{
	my ($name, $from) = @_;

	is(round_trips("INSERT INTO numbers SELECT g, md5(g::text) FROM generate_series($from, $from + 999) g"), 0, "$name: INSERT");
	is(round_trips("INSERT INTO numbers VALUES ($from - 1, 'one')"), 0, "$name: INSERT of a row");
	is(round_trips("INSERT INTO numbers SELECT g, 'new' FROM generate_series($from - 10, $from + 9) g ON CONFLICT (id) DO UPDATE SET word = 'conflict'"), 0, "$name: ON CONFLICT");
	is(round_trips("COPY numbers FROM PROGRAM 'seq -f \"%g\tcopied\" " . ($from + 2000) . ' ' . ($from + 2100) . "'"), 0, "$name: COPY");
	is(round_trips("SET enable_indexscan = off; SET enable_bitmapscan = off; UPDATE numbers SET word = 'updated ' || id WHERE id BETWEEN $from + 100 AND $from + 199"), 0, "$name: UPDATE");
	is(round_trips("SET enable_indexscan = off; SET enable_bitmapscan = off; DELETE FROM numbers WHERE id BETWEEN 2000 AND 2999 OR id BETWEEN $from + 500 AND $from + 699"), 0, "$name: DELETE");
	is(round_trips('VACUUM numbers'), 0, "$name: VACUUM");
	sql("INSERT INTO numbers SELECT g, 'reused ' || g FROM generate_series(2000, 2999) g");
	my (undef, undef, $complaint) = $node->psql('postgres', "INSERT INTO numbers VALUES ($from, 'again')");
	like($complaint, qr/duplicate key value violates unique constraint "numbers_id"/, "$name: a duplicate of what is new");
	(undef, undef, $complaint) = $node->psql('postgres', "INSERT INTO numbers VALUES (17, 'again')");
	like($complaint, qr/duplicate key value violates unique constraint "numbers_id"/, "$name: and of what is old");
	return;
}

# ---- writing and reading ----

sql(q{CREATE TABLE numbers (id int, word text);
	CREATE UNIQUE INDEX numbers_id ON numbers USING smart (id);
	CREATE INDEX numbers_word ON numbers USING smart (word);
	CREATE INDEX numbers_both ON numbers USING smart ((id % 10), word) INCLUDE (id);
	INSERT INTO numbers SELECT g, md5(g::text) FROM generate_series(1, 20000) g;
	ANALYZE numbers});
all_are('carried', 'made empty, and filled');
answers_are_right('filled');
writes_cost_nothing('all at once', 30000);
answers_are_right('some of it may be carried');
carry('written');
answers_are_right('all of it is carried');
all_are_sound('all of it is carried');
cmp_ok(round_trips('SET smart.answer_from_pages = off; SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(word) FROM numbers WHERE id BETWEEN 1 AND 15000'), '>', 0, 'scans read the nodes');

# A build writes the pages of its run past shared buffers; who updates a row has read the one that has its key.
sql('CREATE TABLE built AS SELECT g AS id, 0 AS n FROM generate_series(1, 20000) g; CREATE UNIQUE INDEX built_id ON built USING smart (id); ANALYZE built');
becomes($node, 'built_id', 'carried');
my $by_index = 'SET enable_seqscan = off; SET enable_bitmapscan = off';
my $lookup = "$by_index; SELECT n FROM built WHERE id = 123";
my $update = "$by_index; UPDATE built SET n = n + 1 WHERE id = 123";

cmp_ok(sql(q{SELECT run_pages FROM smart_index_pages('built_id')}), '>', 1, 'a run of several pages');
cmp_ok(round_trips($lookup), '>', 0, 'a key whose page is not in shared buffers is looked up on the nodes');
sql($update);
is(round_trips("$update; $update; $lookup"), 0, 'one whose page is there is not');
ok($node->poll_query_until('postgres', q{SELECT smart_carry('built_id')}), 'all of it is carried, too');
is(round_trips($lookup), 0, 'nor where the nodes have everything');
cmp_ok(round_trips("SET smart.answer_from_pages = off; $lookup"), '>', 0, 'unless pages are not to answer');
same_answers($node, 'postgres', 'SELECT id, n FROM built WHERE id BETWEEN 120 AND 125 ORDER BY id', 'the rows around it');
index_is_sound($node, 'postgres', 'built_id', 'updated');
sql('DROP TABLE built');
is(sql(q{SELECT state, reason FROM smart_index_state WHERE index = 'numbers_id'::regclass}), 'carried|It writes back, and has a tree on memory nodes that follows', 'the view tells');
cmp_ok(sql(q{SELECT sum(bytes) FROM smart_index_state}), '>', 1000000, 'and what it takes');
sql(q{INSERT INTO numbers VALUES (-7, 'counted'); DELETE FROM numbers WHERE id = -7});
# A background worker's snapshot may hold VACUUM back for a moment.
for (1 .. $PostgreSQL::Test::Utils::timeout_default)
{
	sql('VACUUM numbers');
	last if sql(q{SELECT entries FROM smart_index_stats('numbers_id')}) eq sql('SELECT count(*) FROM numbers');
	sleep 1;
}
is(sql(q{SELECT entries FROM smart_index_stats('numbers_id')}), sql('SELECT count(*) FROM numbers'), 'smart_index_stats shows the tree on the nodes, up to date');
isnt(cost_at(1), cost_at(1000), 'a scan costs round trips');
cmp_ok(sql(q{SELECT sum(bytes) FROM smart_index_nodes('numbers_word')}), '>', 100000, 'and where');

# What lies behind the key is that of the row that is there now: the place of a row is used again in one piece of the chain.
sql(q{CREATE TABLE places (a int, b int) WITH (autovacuum_enabled = off); CREATE INDEX places_a ON places USING smart (a) INCLUDE (b);
	INSERT INTO places VALUES (1, 10)});
becomes($node, 'places_a', 'carried');
is(sql(q{SELECT smart_carry('places_a')}), 't', 'carried');
$node->safe_psql('postgres', "DELETE FROM places;\nVACUUM places;\nINSERT INTO places VALUES (1, 20);\nVACUUM places;\nSELECT smart_carry('places_a')");
is(sql('SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT b FROM places WHERE a = 1'), '20', 'the column is that of the new row');

# ---- nodes go, while scans are under way ----

my %cursor = (
	forward => 'SELECT id FROM numbers WHERE id > 0 ORDER BY id',
	backward => 'SELECT id FROM numbers WHERE id > 0 ORDER BY id DESC',
	covering => q{SELECT word, id % 10 FROM numbers WHERE id % 10 = 7 ORDER BY word});
my %session;
my $offset = -s $node->logfile;

carry('before the nodes go');
foreach my $name (sort keys %cursor)
{
	$session{$name} = $node->background_psql('postgres', on_error_stop => 0);
	$session{$name}->query_safe('SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; BEGIN ISOLATION LEVEL REPEATABLE READ');
	$session{$name}->query_safe("DECLARE c CURSOR FOR $cursor{$name}");
	$session{$name}->query_safe('FETCH 100 FROM c');
}
my %whole = map { $_ => sql("SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off; $cursor{$_}") } keys %cursor;
sql(q{INSERT INTO numbers SELECT g, 'later ' || g FROM generate_series(50000, 50999) g; DELETE FROM numbers WHERE id BETWEEN 50500 AND 50599});
$_->kill9 foreach (@memory);
foreach my $name (sort keys %cursor)
{
	my @rest = split(/\n/, $whole{$name});

	splice(@rest, 0, 100);
	is(join(' ', split(/\n/, $session{$name}->query('FETCH ALL FROM c'))), join(' ', @rest), "a scan that is under way, $name");
	is($session{$name}->{stderr}, '', "$name: no error");
	$session{$name}->query_safe('COMMIT');
	$session{$name}->quit;
}
answers_are_right('the nodes have gone');
writes_cost_nothing('the nodes have gone', 60000);
answers_are_right('the nodes have gone, written');
unlike(log_since($offset), qr/write_back\.pl ERROR:  (?!duplicate)/, 'no statement has failed');
$_->start foreach (@memory);
node_becomes($node, $_, 'up') foreach (@memory);
carry('the nodes are back');
answers_are_right('the nodes are back');
unlike(log_since($offset), qr/has been loaded/, 'nothing was loaded anew');

# They hang: that is no fault of the trees there.
sql(q{ALTER SYSTEM SET smart.fabric_timeout = '2s'});
$node->reload;
$_->signal('STOP') foreach (@memory);
my (undef, undef, $hangs) = $node->psql('postgres', "INSERT INTO numbers VALUES (-100, 'hangs');\nSELECT smart_carry('numbers_id')",
	extra_params => [ '-v', 'VERBOSITY=verbose' ]);
$_->signal('CONT') foreach (@memory);
like($hangs, qr/ERROR:  08006:/, 'the nodes hang: nothing can be carried');
node_becomes($node, $_, 'up') foreach (@memory);
carry('the nodes go on');
answers_are_right('the nodes go on');
unlike(log_since($offset), qr/has been loaded/, 'the nodes go on: nothing was loaded anew');
sql('ALTER SYSTEM RESET smart.fabric_timeout');
$node->reload;

# They have lost their memory.
$offset = -s $node->logfile;
$_->kill9 foreach (@memory);
$_->forget foreach (@memory);
$_->start foreach (@memory);
all_are('carried', 'the nodes have lost their memory');
ok($node->wait_for_log(qr/smart index "numbers_both" has been loaded/, $offset), 'and are given everything again');
carry('loaded anew');
answers_are_right('loaded anew');
all_are_sound('loaded anew');

# ---- what the nodes have is damaged ----

# Changes what the nodes have of words, where it lies.
sub damage
{
	foreach my $memory (@memory)
	{
		my $content = PostgreSQL::Test::Utils::slurp_file("/dev/shm/smart-memnode.$memory->{name}");

		open(my $file, '+<:raw', "/dev/shm/smart-memnode.$memory->{name}") or die $!;
		while ($content =~ /[0-9a-f]{24}/g)
		{
			seek($file, $-[0], 0);
			print $file 'damage';
		}
		close($file);
	}
	return;
}

$offset = -s $node->logfile;
damage();
foreach my $index ('numbers_word', 'numbers_both')
{
	my (undef, undef, $finding) = $node->psql('postgres', "SELECT smart_index_check('$index')", extra_params => [ '-v', 'VERBOSITY=verbose' ]);

	like($finding, qr/ERROR:  XX002: the tree on memory nodes of index "$index" is corrupt.*HINT:  .*loaded anew/s, "smart_index_check finds damage on the nodes: $index");
	ok($node->wait_for_log(qr/smart index "$index" has been loaded/, $offset), "the tree is loaded anew: $index");
}
all_are('carried', 'damaged');
carry('loaded anew after damage');
answers_are_right('loaded anew after damage');
all_are_sound('loaded anew after damage');

# ---- the server ends ----

$offset = -s $node->logfile;
sql(q{INSERT INTO numbers SELECT g, 'crash ' || g FROM generate_series(80000, 80999) g});
$node->stop('immediate');
$node->start;
all_are('carried', 'after a crash');
answers_are_right('after a crash');
writes_cost_nothing('after a crash', 90000);
carry('after a crash');
answers_are_right('after a crash, carried');
all_are_sound('after a crash');
$node->restart;
all_are('carried', 'after a restart');
answers_are_right('after a restart');
unlike(log_since($offset), qr/has been loaded/, 'the trees were used as they are');

# What is not durable is not carried: where the end of WAL is lost, nothing of it is left on the nodes.
stop_walwriter($node);
sql(q{SET synchronous_commit = off; INSERT INTO numbers SELECT g, 'lost ' || g FROM generate_series(100000, 100999) g});
my @children = split ' ', `ps -o pid= --ppid $node->{_pid}`;
$node->kill9;
kill 'KILL', @children;
start_again($node);
all_are('carried', 'the end of WAL may be lost');
answers_are_right('the end of WAL may be lost');
writes_cost_nothing('the end of WAL may be lost', 120000);
carry('the end of WAL may be lost');
answers_are_right('the end of WAL may be lost, carried');
all_are_sound('the end of WAL may be lost');

# ---- other ways ----

# Compaction, and a tree that is not carried meanwhile.
sql(q{UPDATE numbers SET word = md5(word) WHERE id < 15000}) foreach (1 .. 3);
sql('VACUUM numbers');
compaction_ends($node);
answers_are_right('compacted');
carry('compacted');
answers_are_right('compacted, carried');

# TRUNCATE, another tablespace, REINDEX.
my $place = PostgreSQL::Test::Utils::tempdir();

sql("CREATE TABLESPACE elsewhere LOCATION '$place'");
sql('BEGIN; ALTER INDEX numbers_id SET TABLESPACE elsewhere; ' . q{INSERT INTO numbers VALUES (-5, 'copy'); ROLLBACK});
answers_are_right('a move to another tablespace that is rolled back');
sql('ALTER INDEX numbers_id SET TABLESPACE elsewhere');
all_are('carried', 'in another tablespace');
answers_are_right('in another tablespace');
sql('REINDEX TABLE CONCURRENTLY numbers');
all_are('carried', 'built anew');
answers_are_right('built anew');
writes_cost_nothing('built anew', 110000);
all_are_sound('built anew');

# Small indexes have no tree on memory nodes.
sql(q{ALTER SYSTEM SET smart.carry_above = '1GB'});
$node->reload;
sql('SELECT state FROM smart_index_state WHERE index IN (' . join(', ', map { "'$_'::regclass" } @indexes) . ')');
all_are('paged', 'small ones');
is(round_trips('SET enable_seqscan = off; SELECT count(word) FROM numbers WHERE id BETWEEN 1 AND 15000'), 0, 'they are read from their pages');
is(cost_at(1), cost_at(1000), 'which costs none, says the planner');
my (undef, undef, $lacks) = $node->psql('postgres', q{SELECT smart_index_stats('numbers_id')}, extra_params => [ '-v', 'VERBOSITY=verbose' ]);
like($lacks, qr/ERROR:  55000: index "numbers_id" has no tree.*HINT:  .*smart_index_pages/s, 'smart_index_stats says so');
answers_are_right('small ones');
sql('ALTER SYSTEM RESET smart.carry_above');
sql('ALTER SYSTEM SET smart.write_back = off');
$node->reload;
foreach my $index (@indexes)
{
	ok($node->poll_query_until('postgres', "SELECT count(*) >= 0 AND (SELECT state FROM smart_index_state WHERE index = '$index'::regclass) = 'ready' FROM numbers WHERE id = 1 AND word = '' AND id % 10 = 1"), "$index is loaded where writers are to wait");
}
answers_are_right('write-back is off');
all_are_sound('write-back is off');
sql('ALTER SYSTEM RESET smart.write_back');
$node->reload;
all_are('carried', 'write-back is on again');
writes_cost_nothing('write-back is on again', 130000);
carry('write-back is on again');
answers_are_right('write-back is on again');

# A node is taken away.
my $address = $memory[0]->address;

sql("SELECT smart_retire_node('$address')");
ok($node->poll_query_until('postgres', "SELECT state = 'retired' FROM smart_memory_nodes WHERE address = '$address'"), 'nothing is left on a node that is taken away');
carry('a node was taken away');
answers_are_right('a node was taken away');
all_are_sound('a node was taken away');

# ---- a standby is promoted ----

sql('ALTER INDEX numbers_id SET TABLESPACE pg_default');
sql('DROP TABLESPACE elsewhere');
becomes($node, $_, 'carried') foreach (@indexes);
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');

$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
node_becomes($standby, $memory[1], 'up');
becomes($standby, $_, 'ready') foreach (@indexes);
sql(q{INSERT INTO numbers SELECT g, 'replayed ' || g FROM generate_series(140000, 140999) g});
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
$node->stop;
$standby->promote;
$offset = -s $standby->logfile;
$node = $standby;
all_are('carried', 'a promoted standby');
answers_are_right('a promoted standby');
writes_cost_nothing('a promoted standby', 150000);
carry('a promoted standby');
answers_are_right('a promoted standby, carried');
all_are_sound('a promoted standby');
unlike(log_since($offset), qr/has been loaded/, 'a promoted standby: the trees are used as they are');

log_is_quiet($node);
done_testing();
