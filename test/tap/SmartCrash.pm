# Helper for the TAP tests of crashes: ways in which a server dies, and a set of tables whose indexes have to survive it.
#
#   use SmartCrash;
#   my $node = smart_node('main', @CRASH_SETTINGS);
#   set_up($node);
#   loses_wal($node, $_) for sort keys %ends;
package SmartCrash;

use strict;
use warnings;

use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartTest;

our @EXPORT = qw(@CRASH_SETTINGS @INDEXES %ends session is_kept is_right set_up loses_wal);

our @INDEXES = ('numbers_id', 'numbers_word', 'keys_id');

# Nothing but the test makes WAL durable; no worker rebuilds an index.
our @CRASH_SETTINGS = (
	'autovacuum = off', 'smart.auto_rebuild = off', 'restart_after_crash = on', 'max_prepared_transactions = 4',
	'checkpoint_timeout = 1h', 'bgwriter_lru_maxpages = 0', 'wal_buffers = 16MB', 'shared_buffers = 32MB');

# A process that was stopped goes on only to end: it has the signal already that the postmaster sends to all.
sub end_stopped
{
	my ($stopped) = @_;

	return if !$stopped;
	kill 'QUIT', $stopped;
	kill 'CONT', $stopped;
	return;
}

# Three ways to die.
our %ends = (
	'immediate stop' => sub {
		my ($node, $stopped) = @_;
		kill 'QUIT', $node->{_pid};
		end_stopped($stopped);
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
		my $offset = -s $node->logfile;
		kill 'KILL', $session->query_safe('SELECT pg_backend_pid()');
		end_stopped($stopped);
		$node->wait_for_log(qr/all server processes terminated; reinitializing.*ready to accept connections/s, $offset);
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

# WAL is lost from some position on: what came before it stays, what came behind it is as if it had never been.
sub loses_wal
{
	my ($node, $how) = @_;
	my $offset = -s $node->logfile;
	my $open = session($node, "BEGIN; INSERT INTO numbers SELECT g, 'open' FROM generate_series(2001, 2100) g");
	my $walwriter;

	# PREPARE makes all durable that came before.
	$node->safe_psql('postgres', "BEGIN; INSERT INTO numbers SELECT g, 'prepared' FROM generate_series(3001, 3100) g;
		SAVEPOINT a; INSERT INTO keys SELECT generate_series(3001, 3100); RELEASE a; PREPARE TRANSACTION 'open'");
	$walwriter = stop_walwriter($node);
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

1;
