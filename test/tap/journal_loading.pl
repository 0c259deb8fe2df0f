# Lost indexes are loaded from their journals: by workers, whatever smart.auto_rebuild says; by a session that keeps workers out;
# and what ends a loading early leaves nothing behind.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

use SmartMemnode;
use SmartTest;

my @VERBOSE = (extra_params => [ '-v', 'VERBOSITY=verbose' ]);
my $node = smart_node('main', 'autovacuum = off', 'smart.answer_from_pages = off', 'smart.auto_rebuild = off', 'max_parallel_maintenance_workers = 4', 'max_prepared_transactions = 2',
	'shared_buffers = 32MB');
my $offset;

# A loss, and a server that may start no workers unless told how many.
sub lose
{
	my (%how) = @_;

	lose_power($node);
	$offset = -s $node->logfile;
	$node->append_conf('postgresql.conf', 'max_worker_processes = ' . ($how{workers} // 8));
	start_again($node);
	return;
}

sub all_loaded
{
	my ($name) = @_;

	ok(indexes_become($node, q{'ready', 'empty'}, "index::text <> 'plain_a'"), "$name: all are there");
	unlike(slurp_file($node->logfile, $offset), qr/rebuilding smart index/, "$name: none is rebuilt");
	return;
}

$node->safe_psql('postgres', <<'SQL');
CREATE TABLE keys (a int, b text);
CREATE UNIQUE INDEX keys_a ON keys USING smart (a);
INSERT INTO keys SELECT g, 'first' FROM generate_series(1, 1000) g;
CREATE TABLE plain (a int);
INSERT INTO plain SELECT generate_series(1, 1000);
CREATE INDEX plain_a ON plain USING smart (a) WITH (logged = off);
CREATE TABLE excluded (a int, EXCLUDE USING smart (a WITH =));
INSERT INTO excluded SELECT generate_series(1, 10);
CREATE TABLE empty (a int);
CREATE INDEX empty_a ON empty USING smart (a);
SQL

# ---- by workers ----

$node->safe_psql('postgres', "BEGIN; INSERT INTO keys VALUES (2001, 'prepared'); PREPARE TRANSACTION 'open'");
lose();
all_loaded('smart.auto_rebuild is off');
is(state_of($node, 'plain_a'), 'lost', 'an index without a journal stays lost');
index_is_sound($node, 'postgres', 'keys_a', 'loaded');
my (undef, undef, $err) = $node->psql('postgres', "INSERT INTO keys VALUES (1000, 'twice')", @VERBOSE);
like($err, qr/ERROR:  23505:/, 'it is unique');
$node->safe_psql('postgres', "COMMIT PREPARED 'open'");
is($node->safe_psql('postgres', 'SET enable_seqscan = off; SELECT b FROM keys WHERE a = 2001'), 'prepared', 'a prepared transaction is there');
(undef, undef, $err) = $node->psql('postgres', "INSERT INTO keys VALUES (2001, 'twice')", @VERBOSE);
like($err, qr/ERROR:  23505:/, 'and its key');

# Several indexes of one database, by several workers; unique ones come first, then larger ones.
$node->safe_psql('postgres', "CREATE TABLE many_$_ AS SELECT g AS a, md5(g::text) AS b FROM generate_series(1, 60000) g;
	CREATE INDEX many_${_}_b ON many_$_ USING smart (b)") for (1 .. 8);
$node->safe_psql('postgres', 'CREATE UNIQUE INDEX many_8_a ON many_8 USING smart (a); INSERT INTO many_7 SELECT a, b || 1 FROM many_6');
lose();
all_loaded('many indexes');
my @loaded = slurp_file($node->logfile, $offset) =~ /\[(\d+)\] LOG:  smart index "(\w+)" has been loaded/g;
my %worker = @loaded;
cmp_ok(scalar(keys %worker), '>', 1, 'several workers');
is(scalar(@loaded), 2 * 11, 'each index is loaded once');
my ($first) = grep { !/keys/ } map { $loaded[ 2 * $_ + 1 ] } (0 .. 10);
is($first, 'many_8_a', 'a unique one comes first');
index_is_sound($node, 'postgres', "many_${_}_b", 'by several workers') for (1 .. 8);
$node->adjust_conf('postgresql.conf', 'max_parallel_maintenance_workers', 0);
lose();
all_loaded('one at a time');
%worker = slurp_file($node->logfile, $offset) =~ /\[(\d+)\] LOG:  smart index "(\w+)" has been loaded/g;
is(scalar(keys %worker), 1, 'one worker, if there are to be none for maintenance');
$node->safe_psql('postgres', "DROP TABLE many_$_") for (2 .. 8);

# ---- by a session ----

# With no worker: the statement waits, and then fails.
lose(workers => 0);
(undef, undef, $err) = $node->psql('postgres', "SET smart.wait_timeout = '1s'; INSERT INTO keys VALUES (2002, 'no')", @VERBOSE);
like($err, qr/ERROR:  55000: .*index "keys_a" has not been loaded yet/, 'nothing loads it: an insert fails in the end');
like($err, qr/HINT:.*smart\.wait_timeout/, 'with a hint');
is($node->safe_psql('postgres', 'SELECT count(*) FROM keys WHERE a < 10'), '9', 'queries do without it');
lose();
all_loaded('later');

# A memory node loses what it has while the server runs.
my $memory = SmartMemnode->new('memory', '--size=256M');
$node->append_conf('postgresql.conf', 'smart.memory_nodes = ' . addresses($memory));
$node->restart;
all_loaded('on a memory node');

$offset = -s $node->logfile;
$memory->kill9;
$memory->forget;
$memory->start;
ok($node->wait_for_log(qr/has lost its memory/, $offset), 'a memory node is lost');
is($node->safe_psql('postgres', "INSERT INTO keys VALUES (2003, 'waited') RETURNING b"), 'waited', 'a memory node is lost: an insert waits');
all_loaded('a memory node is lost');
index_is_sound($node, 'postgres', $_, 'a memory node is lost') for ('keys_a', 'many_1_b');
$node->append_conf('postgresql.conf', "smart.memory_nodes = ''");
$node->restart;
all_loaded('embedded again');

# Sessions whose locks keep workers out load the index themselves.
sub by_session
{
	my ($name, $statements) = @_;

	lose(workers => 0);
	$offset = -s $node->logfile;
	$node->safe_psql('postgres', $statements);
	index_is_sound($node, 'postgres', 'keys_a', $name);
	return;
}
by_session('a table lock', "SET smart.wait_timeout = '2s'; BEGIN; LOCK TABLE keys IN SHARE ROW EXCLUSIVE MODE; INSERT INTO keys VALUES (2010, 'locked'); COMMIT");
by_session('a savepoint', "SET smart.wait_timeout = '2s'; BEGIN; LOCK TABLE keys IN EXCLUSIVE MODE; SAVEPOINT s; INSERT INTO keys VALUES (2011, 'gone'); ROLLBACK TO s;
	INSERT INTO keys VALUES (2011, 'there'); COMMIT");
by_session('moved', "SET smart.wait_timeout = '2s'; BEGIN; ALTER INDEX keys_a SET TABLESPACE pg_default; LOCK TABLE keys; INSERT INTO keys VALUES (2012, 'moved'); COMMIT");
by_session('ON CONFLICT', "SET smart.wait_timeout = '2s'; BEGIN; LOCK TABLE keys IN EXCLUSIVE MODE; INSERT INTO keys VALUES (2012, 'again') ON CONFLICT (a) DO UPDATE SET b = 'again'; COMMIT");
is($node->safe_psql('postgres', "SELECT count(*) FROM keys WHERE b = 'again'"), '1', 'ON CONFLICT: the row was found');
by_session('an exclusion constraint', "SET smart.wait_timeout = '2s'; BEGIN; LOCK TABLE excluded IN EXCLUSIVE MODE; INSERT INTO excluded VALUES (11); COMMIT;
	BEGIN; LOCK TABLE keys IN EXCLUSIVE MODE; INSERT INTO keys VALUES (2014, 'x'); COMMIT");
(undef, undef, $err) = $node->psql('postgres', 'INSERT INTO excluded VALUES (5)', @VERBOSE);
like($err, qr/ERROR:  23P01:/, 'an exclusion constraint: it is one');

# One that waits for its lock keeps workers out, too.
lose(workers => 0);
my $session = $node->background_psql('postgres', on_error_stop => 0);
$session->query_safe("SET smart.wait_timeout = '20s'; BEGIN; DELETE FROM keys WHERE a = 2012");
my $waiting = $node->background_psql('postgres', on_error_stop => 0);
$waiting->query_until(qr/waiting/, "\\echo waiting\nBEGIN; LOCK TABLE keys;\n");
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_locks WHERE NOT granted");
$session->query("INSERT INTO keys VALUES (2013, 'meanwhile')");
is($session->{stderr}, '', 'a session waits for this one: it loads the index itself');
$session->query_safe('COMMIT');
$_->quit for ($session, $waiting);
index_is_sound($node, 'postgres', 'keys_a', 'loaded while a session waited');

# ---- loadings that end early ----

$node->safe_psql('postgres', "INSERT INTO keys SELECT g, 'more' FROM generate_series(10001, 400000) g; DELETE FROM keys WHERE a % 10 = 3");
lose(workers => 0);
my $killer = $node->background_psql('postgres');
my ($cancelled, $terminated) = (0, 0);
foreach my $ms (1 .. 12)
{
	my $open = $node->background_psql('postgres', on_error_stop => 0);
	my $pid = $open->query_safe('BEGIN; LOCK TABLE keys IN EXCLUSIVE MODE; SELECT pg_backend_pid()');

	if ($ms % 2 == 0)
	{
		$open->query("SET LOCAL statement_timeout = @{[ 4 * $ms ]}; INSERT INTO keys VALUES (10003, 'cancelled')");
		# At the very end of a statement core has forgotten that it was the time, and tells of a user.
		$cancelled++ if $open->{stderr} =~ /canceling statement due to (?:statement timeout|user request)/;
		$open->query('ROLLBACK');
		$open->quit;
	}
	else
	{
		$open->query_until(qr/begun/, "\\echo begun\nINSERT INTO keys VALUES (10003, 'terminated');\n");
		$killer->query_safe("SELECT pg_sleep(@{[ 0.004 * $ms ]}); SELECT pg_terminate_backend($pid)");
		is_gone($node, $pid);
		$open->{run}->kill_kill;
		$terminated++ if state_of($node, 'keys_a') eq 'lost';
	}
	is($node->safe_psql('postgres', "SELECT count(*) FROM pg_locks WHERE relation = 'keys_a'::regclass AND pid <> pg_backend_pid()"), '0', "ended after some time, $ms: no lock is left");
	next if state_of($node, 'keys_a') ne 'ready';
	last if $cancelled > 0 && $terminated > 0;
	# Beside other work the end may come when all is loaded.
	$killer->quit;
	lose(workers => 0);
	$killer = $node->background_psql('postgres');
}
$killer->quit;
cmp_ok($cancelled, '>', 0, 'a loading was cancelled');
cmp_ok($terminated, '>', 0, 'one was terminated');
$node->append_conf('postgresql.conf', 'max_worker_processes = 8');
$node->safe_psql('postgres', "BEGIN; LOCK TABLE keys IN EXCLUSIVE MODE; INSERT INTO keys VALUES (3000, 'at last'); COMMIT");
is(state_of($node, 'keys_a'), 'ready', 'another attempt succeeds');
index_is_sound($node, 'postgres', 'keys_a', 'after attempts that ended early');
$node->restart;
ok($node->poll_query_until('postgres', 'SELECT smart_collect_orphans() IS NOT NULL AND (SELECT leaked_trees = 0 FROM smart_stat_space WHERE database = current_database())'),
	'nothing is left of the attempts');
index_is_sound($node, 'postgres', 'keys_a', 'nothing that is in use was freed');

# ---- files that are made in other ways ----

$node->safe_psql('postgres', <<'SQL');
CREATE TABLE ways (a int, b text);
CREATE INDEX ways_a ON ways USING smart (a);
INSERT INTO ways SELECT g, 'x' FROM generate_series(1, 500) g;
BEGIN;
TRUNCATE ways;
INSERT INTO ways SELECT g, 'y' FROM generate_series(1, 500) g;
TRUNCATE ways;
INSERT INTO ways SELECT g, 'z' FROM generate_series(1, 300) g;
SAVEPOINT s;
TRUNCATE ways;
INSERT INTO ways SELECT g, 'rolled back' FROM generate_series(1, 700) g;
ROLLBACK TO s;
INSERT INTO ways SELECT g, 'z' FROM generate_series(301, 400) g;
COMMIT;
INSERT INTO ways SELECT g, 'w' FROM generate_series(401, 600) g;
REINDEX INDEX CONCURRENTLY ways_a;
INSERT INTO ways SELECT g, 'w' FROM generate_series(601, 700) g;
CREATE INDEX CONCURRENTLY ways_b ON ways USING smart (b, a);
INSERT INTO ways SELECT g, 'v' FROM generate_series(701, 800) g;
BEGIN;
CREATE TABLE young (a int);
CREATE INDEX young_a ON young USING smart (a);
INSERT INTO young SELECT generate_series(1, 1000);
TRUNCATE young;
INSERT INTO young SELECT generate_series(501, 2000);
COMMIT;
DELETE FROM young WHERE a % 3 = 0;
VACUUM young;
ALTER TABLE ways ALTER b TYPE varchar(100);
ALTER TABLE ways ALTER b TYPE varchar(200);
INSERT INTO ways SELECT g, 'u' FROM generate_series(801, 900) g;
SQL
foreach my $level ('replica', 'minimal')
{
	lose();
	all_loaded("wal_level = $level");
	index_is_sound($node, 'postgres', $_, "wal_level = $level") for ('ways_a', 'ways_b', 'young_a', 'keys_a');
	same_answers($node, 'postgres', 'SELECT a, b FROM ways WHERE a > 0 ORDER BY a', "wal_level = $level");
	last if $level eq 'minimal';
	$node->append_conf('postgresql.conf', "wal_level = minimal\nmax_wal_senders = 0");
	$node->restart;
	$node->safe_psql('postgres', <<'SQL');
BEGIN;
TRUNCATE ways;
INSERT INTO ways SELECT g, 'minimal' FROM generate_series(1, 20000) g;
COMMIT;
INSERT INTO ways SELECT g, 'minimal' FROM generate_series(20001, 20200) g;
DELETE FROM ways WHERE a % 4 = 0;
VACUUM ways;
BEGIN;
DROP TABLE young;
CREATE TABLE young (a int);
INSERT INTO young SELECT generate_series(1, 3000);
CREATE INDEX young_a ON young USING smart (a);
INSERT INTO young SELECT generate_series(3001, 4000);
COMMIT;
INSERT INTO young SELECT generate_series(4001, 4100);
SQL
}

# ---- without the library ----

# VACUUM gives TIDs to other rows that the index still has: its journal does not hold what the table does any more.
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$node->restart;
(undef, undef, $err) = $node->psql('postgres', 'INSERT INTO keys VALUES (-1)', @VERBOSE);
like($err, qr/ERROR:  55000:.*HINT:.*shared_preload_libraries/s, 'without the library: a unique index takes nothing');
$node->safe_psql('postgres', 'DELETE FROM keys WHERE a % 3 = 0');
(my $status, undef, $err) = $node->psql('postgres', 'VACUUM (INDEX_CLEANUP on) keys');
is($status, 0, 'without the library: VACUUM does not fail');
like($err, qr/WARNING:  skipping index "keys_a"/, 'without the library: but says what it leaves out');
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'smart'\nsmart.auto_rebuild = on");
$offset = -s $node->logfile;
$node->restart;
becomes($node, 'keys_a', 'ready');
like(slurp_file($node->logfile, $offset), qr/smart index "keys_a" has been rebuilt/, 'then the index is rebuilt from its table');
$node->safe_psql('postgres', "INSERT INTO keys SELECT g, 'in the place of others' FROM generate_series(1, 3000) g ON CONFLICT DO NOTHING; VACUUM keys");
index_is_sound($node, 'postgres', 'keys_a', 'rebuilt');
$node->stop;
log_is_quiet($node);
done_testing();
