# Promotions at bad moments: much is replayed that nobody has followed; an index is being loaded; the server dies right afterwards.
# The indexes are there, and sound, and no row is lost.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use SmartTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my @INDEXES = ('rows_id', 'rows_name', 'rows_key');
my $primary = PostgreSQL::Test::Cluster->new('primary');
my $standby;
my $count = 0;

$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', "shared_preload_libraries = 'smart'\nautovacuum = off\nmax_prepared_transactions = 4\nwal_keep_size = 1GB");
$primary->start;
$primary->safe_psql('postgres', <<'SQL');
CREATE EXTENSION smart;
CREATE TABLE rows (id int, name text, key int) WITH (fillfactor = 70);
INSERT INTO rows SELECT i, 'name ' || i % 100, i FROM generate_series(1, 20000) i;
CREATE INDEX rows_id ON rows USING smart (id);
CREATE INDEX rows_name ON rows USING smart (name) INCLUDE (id);
CREATE UNIQUE INDEX rows_key ON rows USING smart (key);
SQL

# A new standby, whose indexes are loaded, and have all that was replayed.
sub new_standby
{
	$standby = PostgreSQL::Test::Cluster->new('standby_' . ++$count);
	$primary->backup("base_$count");
	$standby->init_from_backup($primary, "base_$count", has_streaming => 1);
	$standby->start;
	caught_up();
	indexes_become($standby, q{'ready'}) or die 'the indexes are not loaded';
	$standby->safe_psql('postgres', 'SELECT smart_index_check(index) FROM smart_index_state');
	return;
}

sub caught_up
{
	my ($mode) = @_;

	$primary->wait_for_catchup($standby, $mode // 'replay', $primary->lsn('insert'));
	return;
}

sub log_since
{
	my ($offset) = @_;

	return PostgreSQL::Test::Utils::slurp_file($standby->logfile, $offset);
}

# The indexes have what their table has; and it has what it had on the primary.
sub all_is_right
{
	my ($name) = @_;

	ok(indexes_become($standby, q{'ready'}), "$name: all indexes are ready")
		or diag($standby->safe_psql('postgres', 'SELECT * FROM smart_index_state'));
	index_is_sound($standby, 'postgres', $_, $name) for @INDEXES;
	same_answers($standby, 'postgres', $_, "$name: $_")
		for ('SELECT * FROM rows WHERE id BETWEEN 100 AND 300 ORDER BY id, name, key', q{SELECT id FROM rows WHERE name = 'name 7' ORDER BY id}, 'SELECT key FROM rows WHERE key > 19000 ORDER BY key');
	return;
}

# What comes afterwards: rows are written, and TIDs are used again.
sub goes_on
{
	my ($name) = @_;

	$standby->safe_psql('postgres', q{DELETE FROM rows WHERE id % 7 = 0; VACUUM rows; INSERT INTO rows SELECT i, 'after', 1000000 + i FROM generate_series(1, 3000) i});
	my (undef, undef, $err) = $standby->psql('postgres', q{INSERT INTO rows VALUES (0, 'twice', 1000001)});
	like($err, qr/duplicate key/, "$name: a key is unique");
	all_is_right("$name, later");
	log_is_quiet($standby);
	$standby->stop;
	return;
}

# ---- what nobody has followed ----

sub backlog
{
	my ($name, $changes, $kept) = @_;

	new_standby();
	$standby->safe_psql('postgres', 'SELECT pg_wal_replay_pause()');
	$standby->poll_query_until('postgres', q{SELECT pg_get_wal_replay_pause_state() = 'paused'}) or die 'replay is not paused';
	my $worker = pid_of($standby, 'smart rebuild');
	# It has nothing in hand when it is stopped: nothing is replayed from now on.
	for my $look (1 .. 3)
	{
		$standby->poll_query_until('postgres', "SELECT xact_start IS NULL FROM pg_stat_activity WHERE pid = $worker") or die 'the worker has no end';
		sleep(0.3);
	}
	$primary->safe_psql('postgres', $_) for @$changes;
	my $right = $primary->safe_psql('postgres', 'SELECT count(*), sum(id), min(key), max(key) FROM rows');
	caught_up('flush');
	kill 'STOP', $worker;
	my $offset = -s $standby->logfile;
	$standby->safe_psql('postgres', 'SELECT pg_wal_replay_resume()');
	$standby->promote;
	is($standby->safe_psql('postgres', 'SELECT count(*), sum(id), min(key), max(key) FROM rows'), $right, "$name: the rows are there");
	if ($kept)
	{
		is($standby->safe_psql('postgres', q{SELECT string_agg(state, ' ') FROM smart_index_state}), 'ready ready ready', "$name: the indexes are ready at once");
		unlike(log_since($offset), qr/has been (loaded|rebuilt)/, "$name: nothing was loaded or rebuilt");
	}
	kill 'CONT', $worker;
	all_is_right($name);
	unlike(log_since($offset), qr/has been rebuilt/, "$name: nothing was rebuilt");
	return;
}
backlog('a short backlog', [ q{UPDATE rows SET name = 'moved' WHERE id < 300; DELETE FROM rows WHERE id BETWEEN 500 AND 900; VACUUM rows;
	INSERT INTO rows SELECT 500 + i, 'again', 2000000 + i FROM generate_series(1, 300) i} ], 1);
is($standby->safe_psql('postgres', q{SELECT count(*) FROM rows WHERE name = 'again'}), '300', 'a short backlog: the last rows');
goes_on('a short backlog');
backlog('a backlog with compactions', [ map { "INSERT INTO rows SELECT i, 'batch $_', $_ * 100000 + i FROM generate_series(30000, 70000) i; DELETE FROM rows WHERE name = 'batch " . ($_ - 1) . "'; VACUUM rows" } (30 .. 35) ], 0);
goes_on('a backlog with compactions');
$primary->safe_psql('postgres', "DELETE FROM rows WHERE name LIKE 'batch%' OR name IN ('moved', 'again')");
backlog('a prepared transaction', [ q{BEGIN; INSERT INTO rows SELECT i, 'prepared', 3000000 + i FROM generate_series(1, 500) i; PREPARE TRANSACTION 'open'} ], 1);
$standby->safe_psql('postgres', q{COMMIT PREPARED 'open'});
$primary->safe_psql('postgres', q{ROLLBACK PREPARED 'open'});
is($standby->safe_psql('postgres', q{SET enable_seqscan = off; SELECT count(*) FROM rows WHERE name = 'prepared'}), '500', 'a prepared transaction: its rows');
goes_on('a prepared transaction');

# ---- an index that is being loaded ----

# The worker that loads it is stopped until the server has been promoted; false: it was too fast, or has a lock. Who watches for
# it keeps no snapshot, for which replay would wait.
sub promoted_while_loading
{
	my $PROGRESS = q{SELECT max(pid) FROM pg_stat_progress_create_index};

	new_standby();
	my $watcher = $standby->background_psql('postgres');
	$watcher->query_until(qr/watching/, "\\echo watching\nDO \$\$ BEGIN WHILE ($PROGRESS) IS NULL LOOP COMMIT; END LOOP; END \$\$;\n\\echo seen\n");
	$primary->safe_psql('postgres', 'BEGIN; DROP INDEX large_id; CREATE INDEX large_id ON large USING smart (id); COMMIT');
	my $worker = pid_of($standby, 'smart rebuild');
	$watcher->query_until(qr/seen/, '');
	kill 'STOP', $worker;
	$watcher->quit;
	return ($worker, -s $standby->logfile) if answers($standby) && $standby->safe_psql('postgres', $PROGRESS) eq $worker;
	kill 'CONT', $worker;
	$standby->stop;
	return;
}
# The index is dropped while the worker loads another one: its tree is collected after the promotion.
$primary->safe_psql('postgres', 'CREATE TABLE large AS SELECT i AS id FROM generate_series(1, 400000) i; CREATE INDEX large_id ON large USING smart (id)');
my ($worker, $offset);
for my $attempt (1 .. 10)
{
	($worker, $offset) = promoted_while_loading();
	last if $worker;
}
ok($worker, 'an index is being loaded') or BAIL_OUT('no loading was seen');
$standby->promote;
$standby->safe_psql('postgres', 'INSERT INTO large SELECT -i FROM generate_series(1, 100) i; DELETE FROM large WHERE id = 5');
is($standby->safe_psql('postgres', 'SELECT count(*) FROM large WHERE id < 10'), '108', 'promoted while an index is loaded: queries do without it');
isnt(state_of($standby, 'large_id'), 'ready', 'it is not there yet');
# A session has the index open. What it finds when the loading ends has to stay: it was let go when there was nothing to find.
my $session = $standby->background_psql('postgres', on_error_stop => 0);
$session->query_safe('BEGIN; SELECT count(*) FROM large WHERE id < 10');
kill 'CONT', $worker;
$standby->wait_for_log(qr/smart index "large_id" has been loaded/, $offset);
$session->query_safe('SELECT count(*) FROM large WHERE id < 10');
becomes($standby, 'large_id', 'ready');
$offset = -s $standby->logfile;
$session->query_safe('COMMIT');
$session->quit;
sleep(1);
for my $look (1 .. 20)
{
	is($standby->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM large WHERE id < 10'), '108', "promoted while an index is loaded: the rows, $look");
	is(state_of($standby, 'large_id'), 'ready', "the index has stayed, $look");
}
unlike(log_since($offset), qr/has been (loaded|rebuilt)/, 'it was not loaded again');
index_is_sound($standby, 'postgres', 'large_id', 'promoted while an index is loaded');
ok($standby->poll_query_until('postgres', q{SELECT trees = 4 AND leaked_trees = 0 FROM smart_stat_space() WHERE database = 'postgres'}), 'no tree is left over')
	or diag($standby->safe_psql('postgres', 'SELECT * FROM smart_stat_space()'));
goes_on('promoted while an index is loaded');
$primary->safe_psql('postgres', 'DROP TABLE large');

# ---- the end comes right afterwards ----

for my $used (0, 1)
{
	my $name = $used ? 'dies after the first rows' : 'dies at once';

	new_standby();
	$primary->safe_psql('postgres', "INSERT INTO rows VALUES (-1, '$name', -10 - $used)");
	caught_up();
	$standby->promote;
	$standby->safe_psql('postgres', q{INSERT INTO rows VALUES (-2, 'kept', -100); DELETE FROM rows WHERE id BETWEEN 1000 AND 1100; VACUUM rows;
		INSERT INTO rows SELECT 1000 + i, 'kept', 4000000 + i FROM generate_series(1, 90) i}) if $used;
	$standby->stop('immediate');
	start_again($standby);
	is($standby->safe_psql('postgres', q{SELECT count(*) FROM rows WHERE id < 0 AND name IN ('kept', '} . $name . q{')}), 1 + $used, "$name: the rows are there");
	all_is_right($name);
	goes_on($name);
}

# Not promoted, but started as an ordinary server.
new_standby();
$standby->stop('immediate');
unlink($standby->data_dir . '/standby.signal') or die 'there is no standby.signal';
start_again($standby);
all_is_right('started as an ordinary server');
goes_on('started as an ordinary server');

log_is_quiet($primary);
done_testing();
