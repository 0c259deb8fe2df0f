# Entries of dead rows are removed by the scans that meet them, or by the worker that they tell of them where there is a
# journal; but not before the WAL of the rows' death is durable: after a crash the rows could be alive again, and their
# entries missed.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use SmartTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $node = smart_node('main', 'autovacuum = off', 'wal_writer_delay = 10s', 'checkpoint_timeout = 1h', 'bgwriter_lru_maxpages = 0');
my $writer = stop_walwriter($node);

my $crashed = 0;
my $FEW = 3; # dead entries one behind the other that stay

sub entries
{
	return $node->safe_psql('postgres', "SELECT (smart_index_stats('killed_id')).entries");
}

# What a scan by the index finds, without the visibility map.
sub found
{
	return $node->safe_psql('postgres',
		'SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(filler) FROM killed WHERE id BETWEEN 1 AND 60');
}

# Rows that an index-only scan of the same range looks up in the table.
sub heap_fetches
{
	my $plan = $node->safe_psql('postgres',
		'SET enable_seqscan = off; SET enable_bitmapscan = off; EXPLAIN (ANALYZE, TIMING OFF) SELECT count(id) FROM killed WHERE id BETWEEN 1 AND 60');

	return $plan =~ /Heap Fetches: (\d+)/ ? $1 : 'none';
}

# Is WAL flushed up to its end?
sub flushed
{
	return $node->safe_psql('postgres', 'SELECT pg_current_wal_flush_lsn() = pg_current_wal_insert_lsn()');
}

$node->safe_psql('postgres', <<'SQL');
CREATE TABLE killed (id int, filler text);
CREATE INDEX killed_id ON killed USING smart (id) WITH (logged = off);
INSERT INTO killed SELECT i, 'x' FROM generate_series(1, 100) i;
SQL
is(entries(), 100, 'one entry for each row');

# A row that comes and goes in the same page: then the page's WAL reaches behind the commit, so that the rows that were
# deleted are known to be dead.
$node->safe_psql('postgres', <<'SQL');
SET synchronous_commit = off;
DELETE FROM killed WHERE id <= 50;
BEGIN;
INSERT INTO killed VALUES (101, 'y');
ROLLBACK;
SQL
is(flushed(), 'f', 'the deletion is not durable');
is(found(), 10, 'what is left is found');
is(found(), 10, 'and again');
is(flushed(), 'f', 'still not durable');
is(entries(), 101, 'entries of rows whose death is not durable stay');
# Another process may have an older snapshot.
foreach my $attempt (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
{
	last if heap_fetches() == 10;
	sleep(0.1);
}
is(heap_fetches(), 10, 'but their rows are not looked up again');
is(found(), 10, 'and what is left is found');
is(flushed(), 'f', 'nor is their death made durable');
is(entries(), 101, 'which would be needed before they go');

# The crash undoes the deletion.
$node->kill9;
kill 'KILL', $writer;
$crashed = 1;
start_again($node);
is(found(), 60, 'after a crash all rows are found by the index');
is($node->safe_psql('postgres', 'SET enable_indexscan = off; SET enable_bitmapscan = off; SELECT count(*) FROM killed WHERE id <= 60'),
	60, 'as by the table');

$node->safe_psql('postgres', 'DELETE FROM killed WHERE id <= 50');
$node->safe_psql('postgres', 'CHECKPOINT');
is(found(), 10, 'when the deletion is durable, the other rows are found');
# They stay while another process has an older snapshot.
foreach my $attempt (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
{
	last if entries() == 50;
	sleep(0.1);
	found();
}
is(entries(), 50, 'and the entries of those that were deleted are gone');
is($node->safe_psql('postgres', "SELECT smart_index_check('killed_id', true)"), '', 'index and table agree');

$node->stop;

# ---- a hot key ----

my $hot = smart_node('hot', 'autovacuum = off', 'checkpoint_timeout = 1h');

sub entries_of
{
	my ($index) = @_;

	return $hot->safe_psql('postgres', "SELECT (smart_index_stats('$index')).entries");
}

# What a lookup by the index finds, in a session of its own.
sub lookup
{
	my ($table) = @_;

	return $hot->safe_psql('postgres', "SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(filler) FROM $table WHERE id = 1");
}

# Without VACUUM; lookups meet the dead entries until they are gone, but for a few.
sub falls
{
	my ($table, $entries, $name) = @_;

	foreach my $attempt (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		lookup($table);
		last if entries_of("${table}_id") <= $entries + $FEW;
		sleep(0.1);
	}
	return cmp_ok(entries_of("${table}_id"), '<=', $entries + $FEW, $name);
}

# A queue: the same key comes and goes.
sub key_is_hot
{
	my ($logged, $unique) = @_;
	my $name = "logged = $logged" . ($unique ? ', unique' : '');
	my $table = "hot_$logged" . ($unique ? '_unique' : '');
	my ($from, $to, $old);

	$hot->safe_psql('postgres', "CREATE TABLE $table (id int, filler text); INSERT INTO $table VALUES (0, 'x');
		CREATE $unique INDEX ${table}_id ON $table USING smart (id) WITH (logged = $logged)");
	# Not by the index, which would have them removed already; and no more than fit on a page of the table with a tenth to
	# spare, which heap would prune by itself.
	$hot->safe_psql('postgres', "SET enable_indexscan = off; SET enable_bitmapscan = off;
		DO \$\$ BEGIN FOR i IN 1 .. 150 LOOP INSERT INTO $table VALUES (1, 'x'); COMMIT; DELETE FROM $table WHERE id = 1; COMMIT; END LOOP; END \$\$;");
	# The check of a unique index meets them, too.
	cmp_ok(entries_of("${table}_id"), '>', 100, "$name: entries of dead rows gather") if !$unique;
	$from = $hot->safe_psql('postgres', 'SELECT pg_current_wal_insert_lsn()');
	falls($table, 1, "$name: and are gone when lookups have met them");
	$to = $hot->safe_psql('postgres', 'SELECT pg_switch_wal()');
	prunes_first($table, $from, $to) if $logged eq 'on' && !$unique;
	is($hot->safe_psql('postgres', "SELECT smart_index_check('${table}_id', true)"), '', "$name: index and table agree");

	# Rows whose insertion was rolled back.
	$hot->safe_psql('postgres', "BEGIN; INSERT INTO $table VALUES (1, 'x'); ROLLBACK") for (1 .. 3 * $FEW);
	falls($table, 1, "$name: so are those of rows that were rolled back");

	# A snapshot that sees the rows.
	$hot->safe_psql('postgres', "INSERT INTO $table VALUES (1, 'x')");
	$old = $hot->background_psql('postgres', on_error_stop => 0);
	$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT 1');
	$hot->safe_psql('postgres', "DELETE FROM $table WHERE id = 1");
	$hot->safe_psql('postgres', "INSERT INTO $table VALUES (1, 'y'); DELETE FROM $table WHERE id = 1") for (1 .. 20);
	lookup($table) for (1 .. 20);
	is($old->query_safe("SELECT count(filler) FROM $table WHERE id = 1"), '1', "$name: an older snapshot finds its row");
	$old->query_safe('COMMIT');
	$old->quit;
	falls($table, 1, "$name: but not for ever");
	return;
}

# On a standby it is heap's record of the pruning that conflicts with older snapshots; so it comes before the removal.
sub prunes_first
{
	my ($table, $from, $to) = @_;
	my %file = map { $_ => $hot->safe_psql('postgres', "SELECT pg_relation_filenode('$_')") } ($table, "${table}_id");
	my @wal = split /\n/, (run_command([ 'pg_waldump', '-p', $hot->data_dir . '/pg_wal', '-s', $from, '-e', $to ]))[0];
	my @removals = grep { $wal[$_] =~ m{rmgr: Generic .*/$file{"${table}_id"} } } (0 .. $#wal);
	my @prunings = grep { $wal[$_] =~ m{rmgr: Heap2 .*PRUNE.*/$file{$table} } } (0 .. $#wal);

	ok(@removals > 0, "$table: removals are journaled");
	ok(@prunings > 0 && $prunings[0] < $removals[0], "$table: the heap is pruned first");
	return;
}

key_is_hot(@$_) for ([ 'on', '' ], [ 'off', '' ], [ 'on', 'UNIQUE' ]);

# A few are passed by, and the table is not asked for them again.
$hot->safe_psql('postgres', q{CREATE TABLE few (id int, filler text); CREATE INDEX few_id ON few USING smart (id)});
$hot->safe_psql('postgres', "BEGIN; INSERT INTO few SELECT $_->[0], 'x' FROM generate_series(1, $_->[1]); ROLLBACK") for ([ 1, $FEW ], [ 2, $FEW + 1 ]);
foreach my $attempt (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
{
	$hot->safe_psql('postgres', "SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(filler) FROM few WHERE id = $_") for (1, 2);
	last if entries_of('few_id') <= $FEW;
	sleep(0.1);
}
is(entries_of('few_id'), $FEW, 'lookups have four dead entries removed, and not three');
like(
	$hot->safe_psql('postgres',
		q{SET enable_seqscan = off; SET enable_bitmapscan = off; EXPLAIN (ANALYZE, TIMING OFF) SELECT count(id) FROM few WHERE id = 1}),
	qr/Heap Fetches: 0/, 'whose rows are not looked up again');

# More than are remembered at a time.
$hot->safe_psql('postgres', q{CREATE TABLE many (id int, filler text); CREATE INDEX many_id ON many USING smart (id);
	INSERT INTO many SELECT g, 'x' FROM generate_series(1, 30000) g; DELETE FROM many WHERE id > 100});
foreach my $attempt (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
{
	is($hot->safe_psql('postgres', 'SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(filler) FROM many WHERE id > 0'), 100, 'what is alive is found')
	  if $attempt % 10 == 1;
	$hot->safe_psql('postgres', 'SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(filler) FROM many WHERE id > 0');
	last if entries_of('many_id') <= 100 + $FEW;
	sleep(0.1);
}
cmp_ok(entries_of('many_id'), '<=', 100 + $FEW, 'scans that meet many dead entries have them removed');
is($hot->safe_psql('postgres', q{SELECT smart_index_check('many_id', true)}), '', 'and no other');

# What was removed does not come back with the journal, when its place is another row's.
$hot->safe_psql('postgres', q{VACUUM (TRUNCATE off) hot_on; INSERT INTO hot_on SELECT g, 'new' FROM generate_series(2, 300) g});
$hot->stop('immediate');
lose_region($hot);
$hot->start;
ok($hot->poll_query_until('postgres', q{SELECT state = 'ready' FROM smart_index_state WHERE index = 'hot_on_id'::regclass}), 'the index is loaded');
is($hot->safe_psql('postgres', q{SELECT smart_index_check('hot_on_id', true)}), '', 'and agrees with the table');
is(entries_of('hot_on_id'), 300, 'it has one entry for each row');

# Where pages answer, too.
$hot->safe_psql('postgres', <<'SQL');
CREATE TABLE queue (id int, filler text);
INSERT INTO queue SELECT i, 'x' FROM generate_series(1, 1000) i;
CREATE INDEX queue_id ON queue USING smart (id) WITH (resident = never);
DELETE FROM queue WHERE id <= 200;
SQL
# A worker removes what scans have met, from the journal: without VACUUM.
my $left;
for (1 .. 600)
{
	$left = $hot->safe_psql('postgres',
		q{SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT min(id), (SELECT run_entries - removals FROM smart_index_pages('queue_id')) FROM queue});
	last if $left eq '201|800';
	sleep(0.1);
}
is($left, '201|800', 'entries of dead rows leave the journal');
is( $hot->safe_psql('postgres',
		q{SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(filler), min(id) FROM queue WHERE id < 300}),
	'99|201', 'the others stay');
like(
	$hot->safe_psql('postgres',
		q{SET enable_seqscan = off; SET enable_bitmapscan = off; EXPLAIN (ANALYZE, TIMING OFF) SELECT count(id) FROM queue WHERE id <= 200}),
	qr/Heap Fetches: 0/, 'and the table is not asked for them again');
$hot->safe_psql('postgres', q{INSERT INTO queue SELECT i, 'y' FROM generate_series(1, 100) i; VACUUM queue});
index_is_sound($hot, 'postgres', 'queue_id', 'rows in the places of others');

# The worker does not keep a database from being dropped.
$hot->safe_psql('postgres', 'CREATE DATABASE other');
$hot->safe_psql('other', q{CREATE EXTENSION smart; CREATE TABLE hot (id int, filler text); CREATE INDEX ON hot USING smart (id);
	INSERT INTO hot SELECT 1, 'x' FROM generate_series(1, 100); DELETE FROM hot});
# The first lookup remembers them, the second one tells the worker.
$hot->safe_psql('other', 'SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(filler) FROM hot WHERE id = 1') for (1 .. 2);
$hot->poll_query_until('postgres', q{SELECT count(*) > 0 FROM pg_stat_activity WHERE backend_type = 'smart dead entry remover' AND datname = 'other'});
is($hot->safe_psql('postgres', 'DROP DATABASE other; SELECT 1'), '1', 'a database is dropped although entries of it were about to be removed');
$hot->stop;
log_is_quiet($hot);
done_testing();

END
{
	kill 'CONT', $writer if $writer && !$crashed;
}
