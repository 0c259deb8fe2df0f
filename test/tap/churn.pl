# One row that gets a new version with each commit, and no VACUUM: what sessions and the worker remove keeps up with it, so
# that neither the entries of a constraint nor the pages of the table that an update reads grow with the number of updates.
# All of it is counted; how long anything takes says nothing here.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use SmartMemnode;
use SmartTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $BATCH = 1000;
my $PAGES_MAX = 40;           # read for an update; nbtree takes 5, as the control shows
my $ENTRIES_MAX = 2 * $BATCH; # of one row, at any time
my $FEW = 500;                # when nothing else happens
my @SETTINGS = ('autovacuum = off', 'fsync = off', 'enable_seqscan = off', 'enable_bitmapscan = off', 'checkpoint_timeout = 1h',
	'bgwriter_lru_maxpages = 0', 'wal_buffers = 64MB');

# What a table has that keeps one row from coming twice, and the name of its index.
my %TABLES = (
	'primary key' => [ 'PRIMARY KEY (id) WITH (smart = on)', 'pkey' ],
	'INCLUDE' => [ 'UNIQUE (id) INCLUDE (v) WITH (smart = on)', 'id_v_key' ],
	'deferred' => [ 'UNIQUE (id) WITH (smart = on) DEFERRABLE INITIALLY DEFERRED', 'id_key' ],
	'exclusion' => [ 'EXCLUDE USING smart (id WITH =)', 'id_excl' ],
	'nbtree' => [ 'PRIMARY KEY (id) WITH (smart = off)', 'pkey' ]);

# A table with one row; a new value of v is not a HOT update.
sub make
{
	my ($node, $table, $kind) = @_;
	my $method = $kind eq 'nbtree' ? 'btree' : 'smart';

	$node->safe_psql('postgres', "CREATE TABLE $table (id int, k int, v int, $TABLES{$kind}[0]);
		CREATE INDEX ${table}_v ON $table USING $method (v); CREATE INDEX ${table}_k ON $table USING $method (k);
		INSERT INTO $table VALUES (1, 7, 0);
		CREATE PROCEDURE update_$table(times int) LANGUAGE plpgsql AS 'BEGIN FOR i IN 1 .. times LOOP UPDATE $table SET v = v + 1 WHERE id = 1; COMMIT; END LOOP; END'");
	return "${table}_$TABLES{$kind}[1]";
}

# Updates the row so often; returns how many pages of the table were read for each, the worker's among them.
sub updates
{
	my ($node, $table, $times) = @_;
	my $pages = "SELECT pg_stat_force_next_flush(); SELECT heap_blks_read + heap_blks_hit FROM pg_statio_user_tables WHERE relname = '$table'";
	my ($before, $after) = grep { $_ ne '' } split /\n/, $node->safe_psql('postgres', "$pages; CALL update_$table($times); $pages");

	return ($after - $before) / $times;
}

sub entries
{
	my ($node, $index) = @_;

	return $node->safe_psql('postgres', "SELECT CASE WHEN (SELECT state FROM smart_index_state WHERE index = '$index'::regclass) IN ('paged', 'carried') THEN (SELECT run_entries + adds - removals FROM smart_index_pages('$index'))
		ELSE (SELECT entries FROM smart_index_stats('$index')) END");
}

# The entries of an index go while updates meet them, until there are no more than so many.
sub falls_to
{
	my ($node, $table, $index, $most, $name) = @_;

	foreach my $attempt (1 .. $PostgreSQL::Test::Utils::timeout_default)
	{
		updates($node, $table, 10);
		last if entries($node, $index) <= $most;
		sleep(0.5);
	}
	return cmp_ok(entries($node, $index), '<=', $most, $name);
}

sub falls
{
	my ($node, $table, $index, $name) = @_;

	return falls_to($node, $table, $index, $FEW, $name);
}

# The row is found by each index, at its last version.
sub row_is
{
	my ($node, $table, $updates, $name) = @_;

	same_answers($node, 'postgres', "SELECT id, v FROM $table WHERE id = 1 ORDER BY id, v", "$name: by its key");
	is($node->safe_psql('postgres', "SELECT count(*), max(v) FROM $table WHERE id = 1"), "1|$updates", "$name: one row, with all updates");
	return;
}

# Batches of updates of one row, without a snapshot that is older.
sub stays_flat
{
	my ($node, $kind, $batches, $name) = @_;
	my $table = 'flat_' . lc($kind =~ s/\W/_/r);
	my $index = make($node, $table, $kind);
	my ($pages, $most, $entries) = (0, 0, 0);

	foreach my $batch (1 .. $batches)
	{
		$pages = updates($node, $table, $BATCH);
		$most = $pages if $pages > $most;
		next if $kind eq 'nbtree';
		$entries = entries($node, $index) if entries($node, $index) > $entries;
	}
	note("$name: at most $most pages for an update, $pages in the end, $entries entries");
	cmp_ok($most, '<=', $PAGES_MAX, "$name: what an update reads of the table");
	row_is($node, $table, $batches * $BATCH, $name);
	return if $kind eq 'nbtree';
	cmp_ok($entries, '<=', $ENTRIES_MAX, "$name: entries after each batch");
	cmp_ok(entries($node, "${table}_k"), '<=', $ENTRIES_MAX, "$name: entries of a column that stays as it is");
	index_is_sound($node, 'postgres', $_, $name) for ($index, "${table}_k", "${table}_v");
	return;
}

# While a snapshot sees an old version, no entry may go that leads there; afterwards all that are dead do.
sub held_back
{
	my ($node, $name) = @_;
	my $index = make($node, 'held', 'primary key');
	my $old = $node->background_psql('postgres', on_error_stop => 0);

	$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
	updates($node, 'held', 3 * $BATCH);
	is($old->query_safe('SELECT id, v FROM held WHERE id = 1'), '1|0', "$name: an older snapshot finds its version");
	is($old->query_safe('SELECT v FROM held WHERE v <= 0'), '0', "$name: by another index, too");
	$old->query_safe('COMMIT');
	$old->quit;
	falls($node, 'held', $index, "$name: when the snapshot has gone, so do the entries");
	index_is_sound($node, 'postgres', $_, "$name, a snapshot") for ($index, 'held_v', 'held_k');
	return;
}

my $node = PostgreSQL::Test::Cluster->new('main');

$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', join("\n", "shared_preload_libraries = 'smart'", @SETTINGS, ''));
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION smart');
stays_flat($node, 'nbtree', 20, 'control: nbtree');
stays_flat($node, 'primary key', 20, 'primary key');
stays_flat($node, $_, 5, $_) for ('INCLUDE', 'deferred', 'exclusion');
held_back($node, 'primary');

# ---- sessions whose commits do not wait ----

# Calls of write(2) that the session's process has made so far.  Its connection has others.
sub writes
{
	my ($session) = @_;
	my $pid = $session->query_safe('SELECT pg_backend_pid()');

	return slurp_file("/proc/$pid/io") =~ /^syscw: (\d+)$/m ? $1 : die "no number of writes of process $pid";
}

# How often a session writes WAL itself while it updates a row; the WAL writer does so for it where its commits do not wait.
sub writes_for
{
	my ($table, $commit) = @_;
	my $session = $node->background_psql('postgres', on_error_stop => 0);

	$session->query_safe("SET synchronous_commit = $commit; CALL update_$table(100)");
	my $before = writes($session);
	$session->query_safe("CALL update_$table(2 * $BATCH)");
	my $writes = writes($session) - $before;
	$session->quit;
	return $writes;
}

my $unwaited = make($node, 'unwaited', 'primary key');

cmp_ok(writes_for('unwaited', 'on'), '>=', 2 * $BATCH, 'control: a session whose commits wait writes WAL for each');
# If it removed entries, it would write for each sixteen updates at the latest.
cmp_ok(writes_for('unwaited', 'off'), '<=', 2 * $BATCH / 16 / 2, 'a session whose commits do not wait removes no entries itself');
falls($node, 'unwaited', $unwaited, 'entries go all the same');
row_is($node, 'unwaited', $node->safe_psql('postgres', 'SELECT v FROM unwaited'), 'commits that do not wait');
index_is_sound($node, 'postgres', $_, 'commits that do not wait') for ($unwaited, 'unwaited_v', 'unwaited_k');

# ---- without the worker ----

# There is room for the launcher alone, so sessions remove themselves what nobody else does: later where their commits do not wait.
my $alone = smart_node('alone', @SETTINGS, 'max_worker_processes = 1', 'max_logical_replication_workers = 0');
my $unattended = make($alone, 'unattended', 'primary key');

updates($alone, 'unattended', 2 * $BATCH);
cmp_ok(entries($alone, $unattended), '<=', $FEW, 'without the worker a session removes entries itself');
$alone->safe_psql('postgres', "ALTER SYSTEM SET synchronous_commit = off; SELECT pg_reload_conf()");
updates($alone, 'unattended', 4 * $BATCH);
cmp_ok(entries($alone, $unattended), '<=', $ENTRIES_MAX, 'one whose commits do not wait, too, at last');
index_is_sound($alone, 'postgres', $_, 'without the worker') for ($unattended, 'unattended_v', 'unattended_k');
$alone->stop;

# ---- a standby ----

# A query there sees an old version, and has no feedback: what the primary removes waits for it.
my $index = make($node, 'replayed', 'primary key');

$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->append_conf('postgresql.conf', "max_standby_streaming_delay = -1\nhot_standby_feedback = off");
$standby->start;
becomes($standby, $index, 'ready');
my $query = $standby->background_psql('postgres', on_error_stop => 0);
$query->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
updates($node, 'replayed', 3 * $BATCH);
is($query->query_safe('SELECT id, v FROM replayed WHERE id = 1'), '1|0', 'standby: a query finds its version');
$query->query_safe('COMMIT');
$query->quit;
falls($node, 'replayed', $index, 'standby: entries go on the primary');
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
cmp_ok(entries($standby, $index), '<=', $FEW, 'standby: and there, when the query has ended');
index_is_sound($standby, 'postgres', $_, 'standby') for ($index, 'replayed_v', 'replayed_k');
$standby->stop;
$node->stop;

# ---- memory nodes ----

my $memory = SmartMemnode->new('one', '--size=64M');
my $remote = smart_node('remote', @SETTINGS, 'smart.memory_nodes = ' . addresses($memory));

stays_flat($remote, 'primary key', 5, 'memory node');
held_back($remote, 'memory node');

# Old versions of rows all over an index: the worker READs the leaves of many at a time. What it waits for is what the only
# session has not.
my $SPREAD = 500; # with all versions no more than wait for a worker that comes late
my $VERSIONS = 24;
my $only = $remote->background_psql('postgres', on_error_stop => 0);

$only->query_safe("CREATE TABLE spread (id int PRIMARY KEY WITH (smart = on), v int); CREATE INDEX spread_v ON spread (v);
	INSERT INTO spread SELECT n, 0 FROM generate_series(1, 50 * $SPREAD) n; SELECT smart_stat_reset('fabric')");
my $others = '(SELECT round_trips - session_round_trips FROM smart_stat_fabric)';
my $trips = $only->query_safe("SELECT $others");
foreach my $i (1 .. $VERSIONS)
{
	$only->query_safe('UPDATE spread SET v = v + 1 WHERE id % 50 = 0');
}
foreach my $attempt (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
{
	last if $only->query_safe("SELECT entries < (50 + $VERSIONS / 2) * $SPREAD FROM smart_index_stats('spread_pkey')") eq 't';
	sleep(0.1);
}
$trips = $only->query_safe("SELECT $others - ($trips)");
note("$trips round trips");
cmp_ok($trips, '<', $VERSIONS / 2 * $SPREAD / 4, 'memory node: old versions all over an index go, many in a round trip');
cmp_ok(entries($remote, 'spread_pkey'), '<', (50 + $VERSIONS / 2) * $SPREAD, 'memory node: they are gone');
index_is_sound($remote, 'postgres', 'spread_pkey', 'old versions all over an index');
$only->quit;

# Nobody waits for it, and pages answer.
$remote->append_conf('postgresql.conf', 'smart.write_back = on');
$remote->restart;
$remote->safe_psql('postgres', 'DROP TABLE flat_primary_key, held; DROP PROCEDURE update_flat_primary_key, update_held');
stays_flat($remote, $_, 5, "write-back, $_") for ('primary key', 'INCLUDE', 'exclusion');
held_back($remote, 'write-back');

# ---- one row of a large index, which a tree on memory nodes follows ----

$remote->append_conf('postgresql.conf', "smart.carry_above = 0\nlog_min_messages = debug1");
$remote->restart;
my $large = make($remote, 'large', 'primary key');

$remote->safe_psql('postgres', 'INSERT INTO large SELECT n, n, n FROM generate_series(2, 100000) n; VACUUM ANALYZE large');
becomes($remote, $_, 'carried') for ($large, 'large_v');
updates($remote, 'large', $BATCH) for (1 .. 13);
row_is($remote, 'large', 13 * $BATCH, 'a row of a large index');
cmp_ok(entries($remote, $large), '<=', 100000 + $ENTRIES_MAX, 'a row of a large index: entries');
my $batches = 13;
my $removed = qr/removed [1-9]\d* spent tombstones from the delta of index "$large"/;

# When a turn ends depends on the worker, which comes every few milliseconds as long as scans pass by many.
while ($batches < 200 && PostgreSQL::Test::Utils::slurp_file($remote->logfile) !~ $removed)
{
	updates($remote, 'large', $BATCH);
	$batches++;
}
like(PostgreSQL::Test::Utils::slurp_file($remote->logfile), $removed, 'a row of a large index: what came and went leaves its delta');
row_is($remote, 'large', $batches * $BATCH, 'a row of a large index, once more');
index_is_sound($remote, 'postgres', $_, 'a row of a large index') for ($large, 'large_v', 'large_k');

# A cursor that has read the follower holds the tombstones back; it goes on with what it sees.
my $cursor = $remote->background_psql('postgres', on_error_stop => 0);

$cursor->query_safe('BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT id FROM large WHERE id > 0 ORDER BY id; FETCH 5 FROM c');
updates($remote, 'large', 3 * $BATCH);
is($cursor->query_safe('SELECT 1; MOVE 49995 FROM c; FETCH 1 FROM c'), "1\n50001", 'an open cursor goes on');
is($cursor->query_safe('MOVE ALL FROM c; FETCH 1 FROM c; COMMIT'), '', 'to its end');
$cursor->quit;
falls_to($remote, 'large', $large, 100000 + $FEW, 'when it has ended, entries go');
same_answers($remote, 'postgres', 'SELECT id, v FROM large WHERE id < 50 ORDER BY id', 'and nothing else');
index_is_sound($remote, 'postgres', $_, 'after a cursor') for ($large, 'large_v', 'large_k');
$remote->stop;
log_is_quiet($_) for ($node, $standby, $remote);
done_testing();
