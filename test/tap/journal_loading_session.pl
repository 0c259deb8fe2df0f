# A session loads an index itself, since its locks keep workers out; a worker that comes meanwhile, and goes again, leaves the
# session's loading alone.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use SmartTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $node = smart_node('main', 'autovacuum = off', 'max_prepared_transactions = 2', 'smart.auto_rebuild = off', 'smart.answer_from_pages = off');
my $STATE = q{(SELECT state FROM smart_index_state WHERE index = 'keys_a'::regclass)};

$node->safe_psql('postgres', <<'SQL');
CREATE TABLE keys (a int, b text);
CREATE UNIQUE INDEX keys_a ON keys USING smart (a);
INSERT INTO keys SELECT g, 'first' FROM generate_series(1, 400000) g;
CREATE TABLE plain AS SELECT g AS a FROM generate_series(1, 100) g;
CREATE INDEX plain_a ON plain USING smart (a) WITH (logged = off);
SQL

# A session that is loading the index, and is stopped; undef: it was too fast.
sub stopped_loader
{
	my $offset;

	# The prepared transaction keeps workers out until the session has come.
	$node->safe_psql('postgres', "BEGIN; LOCK TABLE keys IN SHARE MODE; PREPARE TRANSACTION 'lock'");
	lose_power($node);
	$offset = -s $node->logfile;
	start_again($node);
	my $session = $node->background_psql('postgres');
	my $watcher = $node->background_psql('postgres');
	my $pid = $session->query_safe('SELECT pg_backend_pid()');

	$watcher->query_until(qr/watching/, "\\echo watching\nDO \$\$ BEGIN WHILE $STATE <> 'loading' LOOP PERFORM pg_sleep(0.0001); END LOOP; END \$\$;\n\\echo seen\n");
	$session->query_until(qr/begun/, "\\echo begun\nROLLBACK PREPARED 'lock';\nBEGIN;\nLOCK TABLE keys IN EXCLUSIVE MODE;\n"
		. "INSERT INTO keys VALUES (-1, 'loads');\n");
	$watcher->query_until(qr/seen/, '');
	kill 'STOP', $pid;
	$watcher->quit;
	return ($session, $pid, $offset) if answers($node) && $node->safe_psql('postgres', "SELECT $STATE") eq 'loading';
	kill 'CONT', $pid;
	$session->query_safe('ROLLBACK');
	$session->quit;
	return;
}

my ($session, $pid, $offset);
for my $attempt (1 .. 20)
{
	($session, $pid, $offset) = stopped_loader();
	last if $session;
}
ok($session, 'a session is loading the index') or BAIL_OUT('no loading was seen');
# A worker comes, which looks at unique indexes first.
$node->append_conf('postgresql.conf', 'smart.auto_rebuild = on');
$node->reload;
becomes($node, 'plain_a', 'ready');
is($node->safe_psql('postgres', "SELECT $STATE"), 'loading', 'it has left alone what the session loads');
kill 'CONT', $pid;
$session->query_safe('COMMIT');
$session->quit;
is($node->safe_psql('postgres', "SELECT $STATE"), 'ready', 'the index is there');
like(slurp_file($node->logfile, $offset), qr/\A(?!.*has been loaded)/s, 'by the session');
# What was loaded is not freed.
$node->safe_psql('postgres', "INSERT INTO keys SELECT g, 'later' FROM generate_series(400001, 400100) g; SELECT smart_collect_orphans()");
is($node->safe_psql('postgres', 'SELECT leaked_trees FROM smart_stat_space WHERE database = current_database()'), '0', 'nothing is left');
index_is_sound($node, 'postgres', 'keys_a', 'loaded by a session');
same_answers($node, 'postgres', 'SELECT a, b FROM keys WHERE a < 5 ORDER BY a', 'loaded by a session');
log_is_quiet($node);
done_testing();
