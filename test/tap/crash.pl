# The server dies and the machine stays up: indexes are there and right at once, without being rebuilt, whatever part of
# WAL is lost. Entries of rows that are lost are gone, rows whose removal is lost are found.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

use SmartCrash;
use SmartTest;

# VACUUM removes entries of rows whose removal is not durable.
sub removes_after_wal
{
	my ($node, $how) = @_;
	my $offset = -s $node->logfile;
	my $walwriter = stop_walwriter($node);

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
	my $walwriter = stop_walwriter($node);

	my $open = session($node, "BEGIN; INSERT INTO numbers SELECT g, md5(g::text) FROM generate_series(300001, 360000) g");
	$ends{$how}->($node, $walwriter);
	is($node->safe_psql('postgres', 'SELECT count(*) FROM numbers'), '1000', "much, and $how: rows are lost");
	is_kept($node, $offset, "much, and $how");
	$node->safe_psql('postgres', 'VACUUM numbers');
	is_right($node, "much, $how and VACUUM");
	$open->{run}->kill_kill;
	return;
}

# Trees that were made by a transaction that was not to end belong to no index; those that it was to replace stay.
sub builds
{
	my ($node, $how) = @_;
	my $offset = -s $node->logfile;
	my $session = session($node, 'BEGIN; CREATE INDEX again ON numbers USING smart (id); REINDEX INDEX numbers_id; TRUNCATE keys');

	$ends{$how}->($node, undef);
	$session->{run}->kill_kill;
	is_kept($node, $offset, "build and $how");
	$node->safe_psql('postgres', 'SELECT smart_collect_orphans()');
	is($node->safe_psql('postgres', 'SELECT sum(trees) FROM smart_memory_nodes'), '3', "build and $how: what was built is gone");
	return;
}

my $node = smart_node('main', @CRASH_SETTINGS);
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

# What is flushed of WAL may end within a record, which is lost with the rest of it. The first insert of a session looks
# how far WAL is flushed; then nothing else may write or flush much of it.
$node->safe_psql('postgres', 'CHECKPOINT');
$node->safe_psql('postgres', "INSERT INTO numbers VALUES (7002, 'before')");
my $before = $node->safe_psql('postgres', 'SELECT pg_current_wal_insert_lsn()');
$node->safe_psql('postgres', q{SELECT pg_logical_emit_message(false, 'torn', repeat('x', 100000))});
$node->poll_query_until('postgres', "SELECT pg_current_wal_flush_lsn() > '$before'") or die 'WAL is not flushed';
my $walwriter = stop_walwriter($node);
my $unlucky = session($node, "BEGIN; INSERT INTO numbers VALUES (7003, 'torn')");
$offset = -s $node->logfile;
$ends{'kill -9 of the postmaster'}->($node, $walwriter);
$unlucky->{run}->kill_kill;
is_kept($node, $offset, 'WAL that ends within a record');

# A server that was started without the library in between has used positions in WAL again that undo records name.
$node->kill9;
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
start_again($node);
$node->safe_psql('postgres', 'CREATE TABLE other AS SELECT generate_series(1, 1000)');
$node->kill9;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'smart'");
$offset = -s $node->logfile;
start_again($node);
becomes($node, $_, 'ready') for @INDEXES;
ok($node->log_contains(qr/smart index "$_" has been loaded/, $offset), "a start without the library: $_ is loaded") for @INDEXES;
is_right($node, 'a start without the library');
$node->stop;

# What a transaction writes into files of its own is not in WAL.
my $minimal = smart_node('minimal', @CRASH_SETTINGS, 'wal_level = minimal', 'max_wal_senders = 0', 'wal_skip_threshold = 0');
set_up($minimal);
foreach my $how (sort keys %ends)
{
	my $from = -s $minimal->logfile;
	my $copy = "COPY keys FROM stdin WITH (FREEZE);\n" . join("\n", 1 .. 500) . "\n\\.\n";

	# A truncation makes its commit durable.
	$minimal->safe_psql('postgres', "BEGIN; TRUNCATE keys; $copy INSERT INTO keys VALUES (501); COMMIT");
	my $walwriter = stop_walwriter($minimal);
	my $open = session($minimal, 'SET synchronous_commit = off; INSERT INTO keys VALUES (502); BEGIN; TRUNCATE keys; INSERT INTO keys VALUES (1)');
	$ends{$how}->($minimal, $walwriter);
	$open->{run}->kill_kill;
	is_kept($minimal, $from, "minimal, $how");
	is($minimal->safe_psql('postgres', 'SET enable_seqscan = off; SELECT max(id) FROM keys WHERE id > 0'), '501', "minimal, $how: what came behind it is lost");
}
$minimal->stop;

done_testing();
