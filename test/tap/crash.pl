# The server dies and the machine stays up: indexes are there and right at once, without being rebuilt, whatever part of
# WAL is lost. Entries of rows that are lost are gone, rows whose removal is lost are found.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

use SmartTest;

my @VERBOSE = (extra_params => [ '-v', 'VERBOSITY=verbose' ]);
my @INDEXES = ('numbers_id', 'numbers_word', 'keys_id');

# Nothing but the test makes WAL durable; nobody rebuilds an index.
my @SETTINGS = (
	'autovacuum = off', 'smart.auto_rebuild = off', 'restart_after_crash = on', 'max_prepared_transactions = 4',
	'checkpoint_timeout = 1h', 'bgwriter_lru_maxpages = 0', 'wal_buffers = 16MB', 'shared_buffers = 32MB');

sub pid_of
{
	my ($node, $type) = @_;

	return $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = '$type'");
}

# Three ways to die. A process that was stopped gets its signal when it goes on.
my %ends = (
	'immediate stop' => sub {
		my ($node, $stopped) = @_;
		kill 'QUIT', $node->{_pid};
		sleep(0.3);
		kill 'CONT', $stopped if $stopped;
		$node->stop('immediate', fail_ok => 1);
		start_again($node);
	},
	'kill -9 of the postmaster' => sub {
		my ($node, $stopped) = @_;
		$node->kill9;
		kill 'KILL', $stopped if $stopped;
		start_again($node);
	},
	'kill -9 of a backend' => sub {
		my ($node, $stopped) = @_;
		my $session = $node->background_psql('postgres', on_error_stop => 0);
		kill 'KILL', $session->query_safe('SELECT pg_backend_pid()');
		sleep(0.3);
		kill 'CONT', $stopped if $stopped;
		$session->{run}->kill_kill;
		$node->poll_query_until('postgres', 'SELECT true') or die 'the server did not come back';
	});

# Statements in a session of its own that is left open.
sub session
{
	my ($node, $statements) = @_;
	my $session = $node->background_psql('postgres', on_error_stop => 0);

	$session->query_safe($statements);
	return $session;
}

# The indexes are what they were, and were not made anew.
sub is_kept
{
	my ($node, $offset, $name) = @_;

	is($node->safe_psql('postgres', "SELECT string_agg(state, ' ') FROM smart_index_state WHERE index::regclass::text IN ('numbers_id', 'numbers_word', 'keys_id')"),
		'ready ready ready', "$name: the indexes are ready at once");
	ok(!$node->log_contains(qr/smart starts with an empty region|smart index .* has been rebuilt/, $offset), "$name: nothing was rebuilt");
	ok($node->log_contains(qr/smart has recovered its region/, $offset), "$name: the log says that it was recovered");
	is_right($node, $name);
	return;
}

sub is_right
{
	my ($node, $name) = @_;

	index_is_sound($node, 'postgres', $_, $name) for @INDEXES;
	same_answers($node, 'postgres', 'SELECT id, word FROM numbers WHERE id BETWEEN 0 AND 1000000 ORDER BY id, word', $name);
	same_answers($node, 'postgres', 'SELECT id FROM keys WHERE id BETWEEN 0 AND 1000000 ORDER BY id', "$name, unique");
	return;
}

sub set_up
{
	my ($node) = @_;

	$node->safe_psql('postgres', <<'SQL');
CREATE TABLE numbers (id int, word text COLLATE "C");
CREATE INDEX numbers_id ON numbers USING smart (id);
CREATE INDEX numbers_word ON numbers USING smart (word) INCLUDE (id);
CREATE TABLE keys (id int);
CREATE UNIQUE INDEX keys_id ON keys USING smart (id);
INSERT INTO numbers SELECT g, md5(g::text) FROM generate_series(1, 1000) g;
INSERT INTO keys SELECT generate_series(1, 1000);
CREATE UNLOGGED TABLE forgetful (id int);
CREATE INDEX forgetful_id ON forgetful USING smart (id);
INSERT INTO forgetful SELECT generate_series(1, 1000);
SQL
	return;
}

# WAL is lost from some point on: what came before it stays, what came behind it is as if it had never been.
sub loses_wal
{
	my ($node, $how) = @_;
	my $offset = -s $node->logfile;
	my $open = session($node, "BEGIN; INSERT INTO numbers SELECT g, 'open' FROM generate_series(2001, 2100) g");
	my $walwriter;

	# PREPARE makes all durable that came before.
	$node->safe_psql('postgres', "BEGIN; INSERT INTO numbers SELECT g, 'prepared' FROM generate_series(3001, 3100) g;
		SAVEPOINT a; INSERT INTO keys SELECT generate_series(3001, 3100); RELEASE a; PREPARE TRANSACTION 'open'");
	$walwriter = pid_of($node, 'walwriter');
	kill 'STOP', $walwriter;
	$open->query_safe("INSERT INTO numbers SELECT g, 'open' FROM generate_series(2101, 2200) g");
	$node->safe_psql('postgres', <<'SQL');
SET synchronous_commit = off;
INSERT INTO numbers SELECT g, 'lost' FROM generate_series(100001, 100500) g;
BEGIN;
SAVEPOINT a; INSERT INTO keys SELECT generate_series(4001, 4100);
SAVEPOINT b; INSERT INTO keys SELECT generate_series(4101, 4200); ROLLBACK TO b;
INSERT INTO keys SELECT generate_series(4201, 4300) ON CONFLICT DO NOTHING;
COMMIT;
DELETE FROM numbers WHERE id BETWEEN 1 AND 50;
DELETE FROM keys WHERE id BETWEEN 1 AND 50;
UPDATE numbers SET id = id + 50000, word = 'moved' WHERE id BETWEEN 51 AND 100;
SQL
	is($node->safe_psql('postgres', "SELECT count(*) FROM numbers WHERE word IN ('lost', 'moved')"), '550', "$how: rows are there before");
	$ends{$how}->($node, $walwriter);
	is($node->safe_psql('postgres', "SELECT count(*) FROM numbers WHERE word IN ('lost', 'moved', 'open')"), '0', "$how: rows are lost");
	is($node->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM numbers WHERE id BETWEEN 1 AND 100'),
		'100', "$how: rows whose removal is lost are found");
	is_kept($node, $offset, $how);

	# New rows come to the places of those that are lost.
	$node->safe_psql('postgres', "COMMIT PREPARED 'open'; INSERT INTO keys SELECT generate_series(4001, 4300);
		INSERT INTO numbers SELECT g, 'new' FROM generate_series(200001, 200700) g");
	is_right($node, "$how, and new rows");
	$node->safe_psql('postgres', "DELETE FROM numbers WHERE id > 1000; DELETE FROM keys WHERE id > 1000; VACUUM numbers, keys");
	is_right($node, "$how, and VACUUM");
	is($node->safe_psql('postgres', 'SELECT count(*) FROM forgetful'), '0', "$how: an unlogged table is empty");
	is(state_of($node, 'forgetful_id'), 'empty', "$how: and its index");
	$node->safe_psql('postgres', 'INSERT INTO forgetful SELECT generate_series(1, 1000)');
	index_is_sound($node, 'postgres', 'forgetful_id', $how);
	$open->{run}->kill_kill;
	return;
}

# VACUUM removes entries of rows whose removal nobody has made durable.
sub removes_after_wal
{
	my ($node, $how) = @_;
	my $offset = -s $node->logfile;
	my $walwriter = pid_of($node, 'walwriter');

	kill 'STOP', $walwriter;
	$node->safe_psql('postgres', 'SET synchronous_commit = off; BEGIN; INSERT INTO numbers SELECT g FROM generate_series(5001, 5200) g; ROLLBACK;
		DELETE FROM numbers WHERE id BETWEEN 901 AND 950; VACUUM numbers; INSERT INTO numbers SELECT g FROM generate_series(6001, 6100) g');
	$ends{$how}->($node, $walwriter);
	is_kept($node, $offset, "VACUUM and $how");
	$node->safe_psql('postgres', "DELETE FROM numbers WHERE id BETWEEN 901 AND 950 OR id > 1000; VACUUM numbers;
		INSERT INTO numbers SELECT g, md5(g::text) FROM generate_series(901, 950) g");
	return;
}

# More undo records than there is room for.
sub writes_much
{
	my ($node, $how) = @_;
	my $offset = -s $node->logfile;
	my $walwriter = pid_of($node, 'walwriter');

	kill 'STOP', $walwriter;
	my $open = session($node, "BEGIN; INSERT INTO numbers SELECT g, md5(g::text) FROM generate_series(300001, 330000) g");
	$ends{$how}->($node, $walwriter);
	is($node->safe_psql('postgres', 'SELECT count(*) FROM numbers'), '1000', "much, and $how: rows are lost");
	is_kept($node, $offset, "much, and $how");
	$node->safe_psql('postgres', 'VACUUM numbers');
	is_right($node, "much, $how and VACUUM");
	$open->{run}->kill_kill;
	return;
}

# Trees that were made by a transaction that was not to end belong to nobody; those that it was to replace stay.
sub builds
{
	my ($node, $how) = @_;
	my $offset = -s $node->logfile;
	my $session = session($node, 'BEGIN; CREATE INDEX again ON numbers USING smart (id); REINDEX INDEX numbers_id; TRUNCATE keys');

	$ends{$how}->($node, undef);
	$session->{run}->kill_kill;
	is_kept($node, $offset, "build and $how");
	$node->safe_psql('postgres', 'SELECT smart_sweep()');
	is($node->safe_psql('postgres', 'SELECT sum(trees) FROM smart_memory_nodes'), '3', "build and $how: what was built is gone");
	return;
}

my $node = smart_node('main', @SETTINGS);
set_up($node);
foreach my $how (sort keys %ends)
{
	loses_wal($node, $how);
}
removes_after_wal($node, 'kill -9 of the postmaster');
writes_much($node, 'kill -9 of the postmaster');
$node->stop;
$node->start;
is_right($node, 'a clean restart');
builds($node, 'kill -9 of a backend');

# Backends that outlive their postmaster keep a new server out until they are gone.
my $orphan = session($node, "BEGIN; INSERT INTO numbers VALUES (7001, 'orphan')");
my $pid = $orphan->query_safe('SELECT pg_backend_pid()');
my $offset = -s $node->logfile;
kill 'STOP', $pid;
$node->kill9;
sleep(1);
ok(!$node->start(fail_ok => 1), 'a backend that is still there keeps a new server out');
$node->stop('fast', fail_ok => 1);
kill 'CONT', $pid;
$orphan->{run}->kill_kill;
start_again($node);
is_kept($node, $offset, 'after an orphan');

# A server that was started without the library in between has used positions in WAL again that undo records name.
$node->kill9;
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
start_again($node);
$node->safe_psql('postgres', 'CREATE TABLE other AS SELECT generate_series(1, 1000)');
$node->kill9;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'smart'");
start_again($node);
is(state_of($node, $_), 'lost', "a start without the library: $_ is lost") for @INDEXES;
$node->stop;

# What a transaction writes into files of its own is not in WAL.
my $minimal = smart_node('minimal', @SETTINGS, 'wal_level = minimal', 'max_wal_senders = 0', 'wal_skip_threshold = 0');
set_up($minimal);
foreach my $how (sort keys %ends)
{
	my $from = -s $minimal->logfile;
	my $copy = "COPY keys FROM stdin WITH (FREEZE);\n" . join("\n", 1 .. 500) . "\n\\.\n";
	my $walwriter = pid_of($minimal, 'walwriter');

	# A truncation makes its commit durable.
	$minimal->safe_psql('postgres', "BEGIN; TRUNCATE keys; $copy INSERT INTO keys VALUES (501); COMMIT");
	kill 'STOP', $walwriter;
	my $open = session($minimal, 'SET synchronous_commit = off; INSERT INTO keys VALUES (502); BEGIN; TRUNCATE keys; INSERT INTO keys VALUES (1)');
	$ends{$how}->($minimal, $walwriter);
	$open->{run}->kill_kill;
	is_kept($minimal, $from, "minimal, $how");
	is($minimal->safe_psql('postgres', 'SET enable_seqscan = off; SELECT max(id) FROM keys WHERE id > 0'), '501', "minimal, $how: what came behind it is lost");
}
$minimal->stop;

done_testing();
