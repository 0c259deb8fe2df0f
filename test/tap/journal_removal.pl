# Removals in the journal: an entry that VACUUM has removed must not come back from the journal when its TID serves another
# row, whatever dies, and when. After each end trees are kept, or loaded from their journals, and hold exactly the rows of
# their tables.
#
#   CYCLES=3    VACUUMs that are killed where it matters
#   SEED=n      decides when; printed, so that a failure can be tried again
use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

use SmartTest;

my $CYCLES = $ENV{CYCLES} || 3;
my $SEED = $ENV{SEED} || time() % 1_000_000;
my $ATTEMPTS = 60; # to kill a VACUUM within a removal
my $ROWS = 100_000;
my @INDEXES = ('items_id', 'items_word', 'items_key');

# Nothing but the test makes WAL durable, or removes an entry.
my $node = smart_node('main', 'autovacuum = off', 'restart_after_crash = on', 'checkpoint_timeout = 1h', 'max_wal_size = 4GB',
	'bgwriter_lru_maxpages = 0', 'wal_buffers = 16MB', 'shared_buffers = 256MB', 'wal_writer_delay = 10s');

# All processes end at once; lose: the region goes with them, as if the machine had lost its power.
sub all_die
{
	my ($lose) = @_;
	my @children = split ' ', `ps -o pid= --ppid $node->{_pid}`;

	$node->kill9;
	kill 'KILL', @children;
	lose_region($node) if $lose;
	start_again($node);
	return;
}

sub all_are_ready
{
	my ($name) = @_;

	ok(indexes_become($node, q{'ready'}), "$name: the indexes are ready");
	return;
}

sub all_is_right
{
	my ($name) = @_;

	all_are_ready($name);
	index_is_sound($node, 'postgres', $_, $name) for @INDEXES;
	same_answers($node, 'postgres', 'SELECT id, word FROM items WHERE id BETWEEN 0 AND 10000000 ORDER BY id, word', $name);
	same_answers($node, 'postgres', 'SELECT key FROM items WHERE key BETWEEN 0 AND 10000000 ORDER BY key', "$name, unique");
	return;
}

# How often the indexes were loaded, and rebuilt, since then.
sub were_loaded
{
	my ($offset) = @_;

	return scalar(() = slurp_file($node->logfile, $offset) =~ /smart index "items_\w+" has been loaded/g);
}

sub none_is_rebuilt
{
	my ($offset, $name) = @_;

	unlike(slurp_file($node->logfile, $offset), qr/smart index "\w+" (has been|is going to be) rebuilt/, "$name: nothing is rebuilt from the table");
	return;
}

# New rows in the places of those that VACUUM has freed; returns how many there were.
sub places_are_used_again
{
	my ($from, $rows) = @_;
	my $pages = $node->safe_psql('postgres', q{SELECT pg_relation_size('items')});

	$node->safe_psql('postgres', "INSERT INTO items SELECT g, 'new ' || g, g FROM generate_series($from, $from + $rows - 1) g");
	return is($node->safe_psql('postgres', q{SELECT pg_relation_size('items')}), $pages, 'new rows take the places of removed ones');
}

# ---- what is withdrawn, and comes to the journal all the same ----

# Rows of a savepoint, and of speculative insertions, have been journaled; so their removal must stand behind.
sub withdrawn
{
	my ($lose) = @_;
	my $name = $lose ? 'rolled back, power loss' : 'rolled back, crash';
	my $offset = -s $node->logfile;

	$node->safe_psql('postgres', <<'SQL');
TRUNCATE items;
INSERT INTO items SELECT g, 'first ' || g, g FROM generate_series(1, 1000) g;
BEGIN;
SAVEPOINT a;
INSERT INTO items SELECT g, 'withdrawn ' || g, g FROM generate_series(5001, 8000) g;
ROLLBACK TO a;
INSERT INTO items SELECT g, 'kept ' || g, g FROM generate_series(8001, 8100) g;
COMMIT;
SQL
	# Two sessions meet at the same keys, so that some insertions are withdrawn as others commit first.
	$node->pgbench('-n -c 4 -t 200', 0, [qr/processed: 800/], [qr/^$/], 'insertions meet',
		{ "speculative_$lose" => "\\set k random(20001, 20200)\nINSERT INTO items VALUES (:k, 'speculative', :k) ON CONFLICT (key) DO NOTHING;\nDELETE FROM items WHERE key = :k + 1;" });
	$node->safe_psql('postgres', 'VACUUM (TRUNCATE off) items');
	places_are_used_again(30001, 2500);
	all_is_right("$name, before");
	all_die($lose);
	all_is_right($name);
	is(were_loaded($offset), $lose ? 3 : 0, "$name: " . ($lose ? 'the indexes are loaded' : 'the trees are kept'));
	none_is_rebuilt($offset, $name);
	return;
}

# ---- WAL that is lost ----

# The tree is kept over the crash. What is gone from it must be gone from the journal, since no later VACUUM finds it.
sub removal_is_durable
{
	my $name = 'WAL is lost behind a removal';
	my $offset;
	my $walwriter;
	my $lost;

	# Another process may flush WAL by chance.
	for my $attempt (1 .. 10)
	{
		$node->safe_psql('postgres', q{TRUNCATE items; INSERT INTO items SELECT g, 'first ' || g, g FROM generate_series(1, 5000) g;
			DELETE FROM items WHERE id <= 3000; CHECKPOINT});
		$offset = -s $node->logfile;
		$walwriter = stop_walwriter($node);
		$node->safe_psql('postgres', 'VACUUM (TRUNCATE off) items');
		$lost = $node->safe_psql('postgres', 'SELECT pg_current_wal_flush_lsn() < pg_current_wal_insert_lsn()');
		last if $lost eq 't';
		kill 'CONT', $walwriter;
	}
	is($lost, 't', 'not all of VACUUM is durable');
	all_die(0);
	kill 'KILL', $walwriter;
	all_is_right($name);
	is(were_loaded($offset), 0, "$name: the trees are kept");
	$node->safe_psql('postgres', 'VACUUM (TRUNCATE off) items');
	places_are_used_again(30001, 3000);
	all_is_right("$name, and places are used again");
	all_die(1);
	all_is_right("$name, and the machine loses its power");
	is(were_loaded($offset), 3, "$name: the indexes are loaded");
	none_is_rebuilt($offset, $name);
	return;
}

# ---- a VACUUM that is killed ----

# killer(SECONDS): kills a VACUUM within so many after it has begun with the indexes.
sub killer
{
	my ($within) = @_;

	return <<"SQL";
DO \$\$
DECLARE
	victim int;
BEGIN
	FOR i IN 1 .. 2000 LOOP
		PERFORM pg_stat_clear_snapshot();
		SELECT pid INTO victim FROM pg_stat_progress_vacuum WHERE phase = 'vacuuming indexes';
		EXIT WHEN FOUND;
		PERFORM pg_sleep(0.0001);
	END LOOP;
	PERFORM pg_sleep(random() * $within);
	EXECUTE format('COPY (SELECT 1) TO PROGRAM %L', 'kill -9 ' || victim);
END
\$\$;
SQL
}

sub was_killed
{
	my ($at) = @_;

	foreach my $attempt (1 .. 20)
	{
		return 1 if $node->log_contains(qr/was terminated by signal 9/, $at);
		sleep(0.1);
	}
	return 0;
}

# If it died within a removal, the tree is loaded anew.
sub vacuum_dies
{
	my ($cycle) = @_;
	# Without a cost delay VACUUM removes from the tree first, with one from the journal.
	my ($delay, $takes) = $cycle % 2 == 0 ? ('1ms', 0.12) : ('0', 0.02);
	my $name = "cycle $cycle: a VACUUM with a cost delay of $delay is killed";
	my $offset = -s $node->logfile;
	my $loaded = 0;
	my $attempts = 0;

	$node->safe_psql('postgres', "TRUNCATE items; INSERT INTO items SELECT g, md5(g::text), g FROM generate_series(1, $ROWS) g");
	while (!$loaded && $attempts++ < $ATTEMPTS)
	{
		my $at = -s $node->logfile;
		my $errors = '';
		my $killed = '';
		my ($vacuum, $killer);

		$node->safe_psql('postgres', "DELETE FROM items WHERE id % $ATTEMPTS = $attempts - 1 OR id > $ROWS;
			INSERT INTO items SELECT g, md5(g::text), g FROM generate_series($ROWS + 1, $ROWS + 10000) g; DELETE FROM items WHERE id > $ROWS");
		# A session kills it: a process that asks the server first often comes too late.
		$killer = IPC::Run::start([ 'psql', '-qXd', $node->connstr('postgres') . ' application_name=killer', '-c', killer($takes) ], '<', \undef, '>', \$killed, '2>', \$killed);
		$node->poll_query_until('postgres', q{SELECT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'killer' AND state = 'active')});
		$vacuum = IPC::Run::start([ 'psql', '-qXd', $node->connstr('postgres'), '-c', "SET vacuum_cost_delay = '$delay'", '-c', 'VACUUM (TRUNCATE off, PARALLEL 0) items' ],
			'<', \undef, '>', \$errors, '2>', \$errors);
		$vacuum->finish;
		$killer->finish;
		# It may have ended before the signal came.
		next if $errors eq '' && !was_killed($at);
		$node->wait_for_log(qr/all server processes terminated; reinitializing.*ready to accept connections/s, $at);
		$node->poll_query_until('postgres', 'SELECT true') or die 'the server did not come back';
		all_are_ready("$name, attempt $attempts");
		$loaded = were_loaded($at);
	}
	ok($loaded, "$name within a removal, and the tree is loaded anew");
	note("$attempts attempts");
	all_is_right($name);
	$node->safe_psql('postgres', 'VACUUM (TRUNCATE off) items');
	all_is_right("$name, and the next one is not");
	places_are_used_again($ROWS + 100001, 5000);
	all_die(1);
	all_is_right("$name, and the machine loses its power");
	none_is_rebuilt($offset, $name);
	return;
}

# ---- no room for the journal ----

# The file of the index cannot grow: no removal is journaled that is not carried out, and the tree is kept.
sub disk_is_full
{
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	my ($pid, $size, $offset);

	$node->safe_psql('postgres', q{CREATE TABLE large (id int, word text COLLATE "C");
		INSERT INTO large SELECT g, md5(g::text) || md5((-g)::text) FROM generate_series(1, 300000) g;
		CREATE INDEX large_word ON large USING smart (word);
		INSERT INTO large VALUES (0, 'a page of the chain'); DELETE FROM large WHERE id % 2 = 0});
	$size = $node->safe_psql('postgres', q{SELECT pg_relation_size('large_word')});
	# WAL is to be written all the same.
	cmp_ok($size, '>', 16 * 1024 * 1024, 'the index is larger than a segment of WAL');
	$pid = $session->query_safe('SELECT pg_backend_pid()');
	$offset = -s $node->logfile;
	system_or_bail('prlimit', '--pid', $pid, "--fsize=$size:");
	$session->query('VACUUM (TRUNCATE off) large');
	system_or_bail('prlimit', '--pid', $pid, '--fsize=unlimited:');
	ok($node->log_contains(qr/could not extend file/, $offset), 'VACUUM fails when the journal cannot grow');
	# The session can be interrupted as before.
	$session->query(q{SET statement_timeout = '100ms'; SELECT pg_sleep(3)});
	ok($node->log_contains(qr/canceling statement due to statement timeout/, $offset), 'and the session serves interrupts');
	$session->quit;
	is(state_of($node, 'large_word'), 'ready', 'the index can be used');
	ok(!$node->log_contains(qr/smart index "large_word" has been loaded/, $offset), 'it has kept its tree');
	index_is_sound($node, 'postgres', 'large_word', 'after a VACUUM that failed');
	$node->safe_psql('postgres', 'VACUUM (TRUNCATE off) large');
	$node->safe_psql('postgres', q{INSERT INTO large SELECT g, md5(g::text) FROM generate_series(300001, 400000) g});
	index_is_sound($node, 'postgres', 'large_word', 'after one that did not');
	$node->safe_psql('postgres', 'DROP TABLE large');
	return;
}

note("seed $SEED");
srand($SEED);
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE items (id int, word text COLLATE "C", key int);
CREATE INDEX items_id ON items USING smart (id);
CREATE INDEX items_word ON items USING smart (word) INCLUDE (id);
CREATE UNIQUE INDEX items_key ON items USING smart (key);
SQL
withdrawn($_) for (0, 1);
removal_is_durable();
disk_is_full();
vacuum_dies($_) for (1 .. $CYCLES);
$node->stop;
done_testing();
