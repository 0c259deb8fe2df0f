# A server that starts after a crash while a memory node is away: what it left on memory nodes cannot be recovered before that is back.
# Indexes that write back do without it: their pages answer, for queries and for those who write.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SmartMemnode;
use SmartTest;
use Test::More;

my @memory = map { SmartMemnode->new($_, '--size=128M') } ('one', 'two');
my $node = smart_node('main', 'wal_level = replica', 'max_wal_senders = 4', 'wal_keep_size = 1GB', 'autovacuum = off', 'max_prepared_transactions = 4', 'smart.write_back = on', 'smart.carry_above = 0', 'smart.spread_above = 0',
	'smart.node_lost_after = 0', 'smart.fabric_timeout = 2s', 'smart.embedded_max_size = 16MB', 'smart.memory_nodes = ' . addresses(@memory));
my @indexes = ('numbers_id', 'numbers_word', 'numbers_both', 'small_a');

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
	q{SELECT count(*), min(id), max(id) FROM numbers WHERE word >= 'f'},
	q{SELECT id, id % 10 FROM numbers WHERE id % 10 = 3 AND word > 'ff' ORDER BY word, id},
	'SELECT a.id, b.id FROM numbers a JOIN numbers b ON b.id = a.id + 7 WHERE a.id BETWEEN 40 AND 400 ORDER BY 1',
	'SELECT a FROM small WHERE a < 50 ORDER BY a');

sub all_is_right
{
	my ($name) = @_;

	same_answers($node, 'postgres', $_, "$name: $_") foreach (@queries);
	index_is_sound($node, 'postgres', $_, $name) foreach (@indexes);
	return;
}

# Writes of all kinds, among them those that check for duplicates.
sub all_can_be_written
{
	my ($name, $from) = @_;

	sql("INSERT INTO numbers SELECT g, md5(g::text) FROM generate_series($from, $from + 999) g");
	sql("INSERT INTO numbers VALUES ($from - 1, 'one')");
	sql("INSERT INTO numbers SELECT g, 'new' FROM generate_series($from - 10, $from + 9) g ON CONFLICT (id) DO UPDATE SET word = 'conflict'");
	sql("UPDATE numbers SET word = 'updated ' || id WHERE id BETWEEN $from + 100 AND $from + 199");
	sql("DELETE FROM numbers WHERE id BETWEEN 2000 AND 2999 OR id BETWEEN $from + 500 AND $from + 699");
	sql('VACUUM numbers');
	sql("INSERT INTO numbers SELECT g, 'reused ' || g FROM generate_series(2000, 2999) g");
	sql("BEGIN; INSERT INTO numbers SELECT g, 'undone' FROM generate_series(-50, -1) g; ROLLBACK");
	sql("BEGIN; INSERT INTO small VALUES ($from); SAVEPOINT s; INSERT INTO small VALUES ($from + 1); ROLLBACK TO s; COMMIT");
	foreach my $id ($from, 17, 2000)
	{
		my (undef, undef, $complaint) = $node->psql('postgres', "INSERT INTO numbers VALUES ($id, 'again')");

		like($complaint, qr/duplicate key value violates unique constraint "numbers_id"/, "$name: a duplicate, $id");
	}
	return;
}

# crash(SUB): kills the server, and starts it again when that has been done to memory nodes.
sub crash
{
	my ($meanwhile) = @_;

	$node->stop('immediate');
	$meanwhile->();
	$node->start;
	return;
}

sql(q{CREATE TABLE numbers (id int, word text);
	CREATE UNIQUE INDEX numbers_id ON numbers USING smart (id);
	CREATE INDEX numbers_word ON numbers USING smart (word);
	CREATE INDEX numbers_both ON numbers USING smart ((id % 10), word) INCLUDE (id);
	INSERT INTO numbers SELECT g, md5(g::text) FROM generate_series(1, 20000) g;
	CREATE TABLE small (a int NOT NULL);
	CREATE UNIQUE INDEX small_a ON small USING smart (a);
	INSERT INTO small SELECT generate_series(1, 100);
	ANALYZE});
becomes($node, $_, 'carried') foreach (@indexes);
sql(q{SELECT smart_carry(i) FROM unnest(ARRAY['numbers_id', 'numbers_word']::regclass[]) i});
sql(q{INSERT INTO numbers SELECT g, md5(g::text) FROM generate_series(20001, 21000) g});
all_is_right('before');

my $from = 30000;
foreach my $case ([ 'one node is away', sub { $memory[0]->kill9 }, sub { $memory[0]->start } ],
	[ 'both nodes are away', sub { $_->kill9 foreach (@memory) }, sub { $_->start foreach (@memory) } ],
	[ 'one node hangs', sub { $memory[1]->signal('STOP') }, sub { $memory[1]->signal('CONT') } ],
	[ 'its memory is gone', sub { $memory[0]->kill9; $memory[0]->forget }, sub { $memory[0]->start } ])
{
	my ($name, $goes, $returns) = @$case;
	my $offset = -s $node->logfile;

	sql("BEGIN; INSERT INTO numbers SELECT g, 'prepared' FROM generate_series($from - 100, $from - 20) g; PREPARE TRANSACTION 'p'");
	crash($goes);
	# Once more, before anything was recovered.
	crash(sub { }) if $name eq 'one node is away';
	is(sql('SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT word FROM numbers WHERE id = 20500'), sql('SELECT md5(20500::text)'), "$name: a lookup");
	like(sql('SET enable_seqscan = off; EXPLAIN (COSTS OFF) SELECT word FROM numbers WHERE id = 20500'), qr/numbers_id/, "$name: the index is planned with");
	all_is_right($name);
	all_can_be_written($name, $from);
	sql("COMMIT PREPARED 'p'");
	all_is_right("$name, written");
	is(sql(q{SELECT string_agg(DISTINCT state, ',') FROM smart_index_state}), 'paged', "$name: the state");
	sql(q{CREATE TABLE made AS SELECT id AS a FROM numbers; CREATE INDEX made_a ON made USING smart (a)});
	sql('CREATE UNIQUE INDEX CONCURRENTLY made_unique ON made USING smart (a) INCLUDE (a)');
	is(sql('SET enable_seqscan = off; SELECT count(*) FROM made WHERE a BETWEEN 100 AND 200'), '101', "$name: an index that is made meanwhile");
	sql('REINDEX TABLE made; REINDEX INDEX numbers_both; ALTER TABLE made ALTER a TYPE bigint; TRUNCATE made; INSERT INTO made VALUES (1)');
	sql('BEGIN; TRUNCATE small; INSERT INTO small VALUES (7); ROLLBACK');
	is(sql('SET enable_seqscan = off; SELECT count(*) FROM made WHERE a = 1'), '1', "$name: built anew");
	sql('DROP TABLE made');
	# Deltas are freed meanwhile: all of them together are larger than their memory.
	foreach my $round (1 .. ($name eq 'one node is away' ? 16 : 3))
	{
		sql('UPDATE numbers SET word = md5(word) WHERE id < 15000');
		sql('VACUUM numbers');
		compaction_ends($node);
		sql('SET enable_seqscan = off; SELECT count(*) FROM numbers WHERE id > 0; SELECT count(*) FROM numbers WHERE word > \'\'');
	}
	is(sql(q{SELECT count(*) FILTER (WHERE state = 'up') < 2 FROM smart_memory_nodes}), 't', "$name: the view of memory nodes") if $name ne 'one node hangs';
	is(sql(q{SELECT count(*) FROM smart_index_nodes('numbers_id')}), '0', "$name: nobody knows where its tree is");
	# Where there is no tree because there was no room, or none is wanted, it is the same.
	sql('ALTER SYSTEM SET smart.write_back = off');
	$node->reload;
	sql('SELECT pg_sleep(0.5)');
	all_is_right("$name, without write-back");
	sql("INSERT INTO small VALUES ($from + 50)");
	sql('ALTER SYSTEM RESET smart.write_back');
	$node->reload;
	all_is_right("$name, with write-back again");
	unlike(log_since($offset), qr/smart has recovered its region/, "$name: recovery is pending");
	unlike(log_since($offset), qr/ERROR:  (?!duplicate)/, "$name: no statement has failed");
	$returns->();
	becomes($node, $_, 'carried') foreach (@indexes);
	like(log_since($offset), qr/smart has recovered its region/, "$name: recovered");
	unlike(log_since($offset), qr/empty region:/, "$name: nothing was given up");
	all_is_right("$name, back");
	all_can_be_written("$name, back", $from + 5000);
	all_is_right("$name, back and written");
	$from += 10000;
}

# ---- a standby, which has nothing to recover ----

$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
becomes($standby, $_, 'ready') foreach (@indexes);
sql(q{INSERT INTO numbers SELECT g, 'replayed ' || g FROM generate_series(140000, 140999) g});
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
$standby->stop('immediate');
$memory[0]->kill9;
sql(q{DELETE FROM numbers WHERE id % 10 = 6; VACUUM numbers; INSERT INTO numbers SELECT g, 'replayed later ' || g FROM generate_series(150000, 150999) g});
$standby->start;
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
same_answers($standby, 'postgres', $_, "a standby: $_") foreach (@queries);
like($standby->safe_psql('postgres', 'SET enable_seqscan = off; EXPLAIN (COSTS OFF) SELECT word FROM numbers WHERE id = 20500'), qr/numbers_id/, 'a standby plans with the index');

# It is promoted, and writes.
$node->stop;
$standby->promote;
$node = $standby;
all_is_right('a promoted standby');
all_can_be_written('a promoted standby', $from);
all_is_right('a promoted standby, written');
$memory[0]->start;
becomes($node, $_, 'carried') foreach (@indexes);
all_is_right('a promoted standby, back');
all_can_be_written('a promoted standby, back', $from + 5000);
all_is_right('a promoted standby, back and written');
log_is_quiet($_) foreach ($node, $standby);
done_testing();
