# No worker is started for a database that is being dropped, or has gone, while something is to be done to one of its indexes: it
# would end with FATAL in the log, and keep what other databases want waiting.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

use SmartTest;

my $node = smart_node('main', 'autovacuum = off', q{smart.embedded_max_size = '16MB'}, 'log_min_messages = debug1');
# A chain of some 100 pages, which is worth a compaction where memory is scarce.
my $FILL = 'INSERT INTO rows SELECT hashint8extended(g, 0) FROM generate_series(1, 60000) g';
my $COMPACTED = q{SELECT run > 0 FROM smart_index_pages('rows_a')};
my $OF_DATABASE = q{locktype = 'object' AND classid = 'pg_database'::regclass};

$node->safe_psql('postgres', 'CREATE DATABASE gone');
$node->safe_psql($_, 'CREATE EXTENSION IF NOT EXISTS smart; CREATE TABLE rows (a bigint); CREATE INDEX rows_a ON rows USING smart (a) WITH (resident = never)')
	foreach ('gone', 'postgres');

# The worker cannot have the table, and tries again each second.
my $user = $node->background_psql('gone', on_error_die => 0, on_error_stop => 0);
$user->query("BEGIN; LOCK TABLE rows IN SHARE MODE; $FILL");
$node->wait_for_log(qr/starting background worker process "smart compaction"/);
my $blocker = $node->background_psql('postgres');
$blocker->query_safe('BEGIN; LOCK TABLE pg_shdepend IN SHARE MODE');
my $dropper = $node->background_psql('postgres');
my $offset = -s $node->logfile;
$dropper->query_until(qr/drops/, "\\echo drops\nDROP DATABASE gone WITH (FORCE);\n\\echo dropped\n");
ok($node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_locks WHERE relation = 'pg_shdepend'::regclass AND NOT granted}),
	'its database is being dropped');
# The request is due each second, and the launcher looks twice a second.
sleep(3);
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_locks WHERE $OF_DATABASE AND NOT granted"), '0', 'nobody waits for the database');
$node->safe_psql('postgres', $FILL);
ok($node->poll_query_until('postgres', $COMPACTED), 'another database is served meanwhile');
$blocker->query_safe('COMMIT');
$dropper->query_until(qr/dropped/, '');
$_->quit foreach ($blocker, $dropper);

# The request is due again, and is forgotten.
sleep(3);
$node->safe_psql('postgres', "TRUNCATE rows; $FILL");
ok($node->poll_query_until('postgres', $COMPACTED), 'and afterwards');
$node->stop;
ok(!$node->log_contains(qr/FATAL: .*database .* does not exist/, $offset), 'no worker was started for the database');
done_testing();
