# What PostgreSQL copies carries the journals along: base backups, point-in-time recovery, pg_rewind, copies of databases and of
# tablespaces. Everywhere indexes are loaded, or keep their trees; none is rebuilt from its table.
use strict;
use warnings;

use File::Path qw(remove_tree);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

use SmartTest;
use SmartWork;

my @BACKUP_SETTINGS = ('wal_level = replica', 'max_wal_senders = 4', 'wal_log_hints = on', 'wal_keep_size = 256MB');

# A server on a copy of another's files, which uses its settings.
sub start_copy
{
	my ($name, $origin, $backup, %how) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init_from_backup($origin, $backup, %how);
	return $node;
}

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1, has_archiving => 1);
$primary->append_conf('postgresql.conf', join("\n", "shared_preload_libraries = 'smart'", @WORK_SETTINGS, @BACKUP_SETTINGS, ''));
$primary->start;
$primary->safe_psql('postgres', 'CREATE EXTENSION smart');
$primary->safe_psql('postgres', $WORK_SCHEMA);

# ---- a base backup under load ----

my $work = start_work($primary, 1);
sleep(0.3);
$primary->backup('under_load');
sleep(0.3);
my $second = start_work($primary, 2);
sleep(0.3);
end_work($primary, $work, $second);
my $copy = start_copy('copy', $primary, 'under_load');
# It goes on with the timeline of its origin, whose archive is not its own.
$copy->append_conf('postgresql.conf', 'archive_mode = off');
$copy->start;
is_loaded($copy, 'a base backup under load');
$copy->safe_psql('postgres', "INSERT INTO rows (a, b, c) SELECT g, 'copied ' || g, 60 FROM generate_series(1, 500) g; DELETE FROM rows WHERE a % 3 = 0; VACUUM rows");
all_is_well($copy, 'a base backup, used');
$copy->stop;
log_is_sound($copy);

# ---- recovery to a point, and from there to another one ----

$primary->safe_psql('postgres', "INSERT INTO rows (a, b, c) SELECT g, 'early ' || g, 55 FROM generate_series(1, 300) g; DELETE FROM rows WHERE a % 5 = 0; VACUUM rows;
	SELECT pg_create_restore_point('early')");
my $early = state_of_rows($primary);
$primary->safe_psql('postgres', "INSERT INTO rows (a, b, c) SELECT g, 'late ' || g, 56 FROM generate_series(1, 300) g; DELETE FROM rows WHERE a % 7 = 0; VACUUM rows;
	REINDEX INDEX rows_a; SELECT pg_create_restore_point('late')");
my $segment = $primary->safe_psql('postgres', 'SELECT pg_walfile_name(pg_current_wal_insert_lsn())');
$primary->safe_psql('postgres', 'SELECT pg_switch_wal()');
$primary->poll_query_until('postgres', "SELECT last_archived_wal >= '$segment' FROM pg_stat_archiver") or die 'not archived';

sub recover
{
	my ($name, $backup, $point, $timeline) = @_;
	my $node = start_copy($name, $primary, $backup, has_restoring => 1, standby => 0);

	$node->append_conf('postgresql.conf', join("\n", "recovery_target_name = '$point'", "recovery_target_timeline = '$timeline'",
		"recovery_target_action = 'promote'", "archive_mode = on", ''));
	$node->start;
	$node->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
	return $node;
}

my $past = recover('past', 'under_load', 'early', '1');
is(state_of_rows($past), $early, 'an earlier state');
is_loaded($past, 'an earlier state');
# The second timeline.
$past->safe_psql('postgres', "INSERT INTO rows (a, b, c) SELECT g, 'other ' || g, 57 FROM generate_series(1, 400) g; UPDATE rows SET a = a + 1 WHERE a < 300; VACUUM rows;
	SELECT pg_create_restore_point('other'); INSERT INTO rows (a, b, c) VALUES (1, 'too late', 1); SELECT pg_switch_wal()");
$past->poll_query_until('postgres', "SELECT archived_count > 1 AND last_archived_wal LIKE '00000002%' FROM pg_stat_archiver") or die 'not archived';
my $other = $past->safe_psql('postgres', "SELECT count(*), sum(hashtext(concat_ws(',', id, a, b, c))::bigint) FROM rows WHERE b <> 'too late'");
my $along = recover('along', 'under_load', 'other', '2');
is(state_of_rows($along), $other, 'a state of the second timeline');
is_loaded($along, 'a state of the second timeline');
my $late = recover('late', 'under_load', 'late', '1');
is_loaded($late, 'a later state of the first timeline');
$_->stop for ($past, $along, $late);
log_is_sound($_) for ($past, $along, $late);

# ---- pg_rewind ----

$primary->backup('again');
my $successor = start_copy('successor', $primary, 'again', has_streaming => 1);
$successor->start;
$primary->wait_for_catchup($successor);
$successor->promote;
$primary->safe_psql('postgres', "INSERT INTO rows (a, b, c) SELECT g, 'forgotten ' || g, 58 FROM generate_series(1, 400) g; DELETE FROM rows WHERE a % 11 = 0; VACUUM rows; UPDATE rows SET a = a + 3 WHERE a BETWEEN 500 AND 600");
$successor->safe_psql('postgres', "INSERT INTO rows (a, b, c) SELECT g, 'kept ' || g, 59 FROM generate_series(1, 400) g; DELETE FROM rows WHERE a % 13 = 0; VACUUM rows; CHECKPOINT");
$primary->stop;
command_ok([ 'pg_rewind', '--source-server=' . $successor->connstr('postgres'), '--target-pgdata=' . $primary->data_dir, '--config-file=' . $primary->data_dir . '/postgresql.conf' ], 'pg_rewind');
my $kept = state_of_rows($successor);
$successor->stop;
my $size = -s $primary->logfile;
# The settings are the successor's now.
$primary->append_conf('postgresql.conf', 'port = ' . $primary->port);
$primary->append_conf('postgresql.conf', "unix_socket_directories = '" . $primary->host . "'");
$primary->append_conf('postgresql.conf', "restore_command = 'cp " . $successor->data_dir . "/pg_wal/%f %p'");
PostgreSQL::Test::Utils::append_to_file($primary->data_dir . '/recovery.signal', '');
$primary->start;
$primary->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
is(state_of_rows($primary), $kept, 'rewound');
all_is_well($primary, 'rewound');
my $log = slurp_file($primary->logfile, $size);
unlike($log, qr/rebuilding smart index "rows/, 'rewound: not rebuilt');
like($log, qr/smart index "rows_b" has been loaded/, 'rewound: loaded');

# ---- copies within a server ----

$size = -s $primary->logfile;
$primary->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'smart rebuild'});
foreach my $strategy ('wal_log', 'file_copy')
{
	$primary->safe_psql('template1', "CREATE DATABASE copy_$strategy TEMPLATE postgres STRATEGY $strategy");
	is($primary->safe_psql("copy_$strategy", "INSERT INTO rows (a, b, c) VALUES (1, 'copied', 1) RETURNING b"), 'copied', "$strategy: an insert waits");
	ok(indexes_become($primary, q{'ready', 'empty'}, 'true', "copy_$strategy"), "$strategy: usable");
	index_is_sound($primary, "copy_$strategy", $_, $strategy) for @LOGGED;
	same_answers($primary, "copy_$strategy", 'SELECT a, b FROM rows ORDER BY a, b', $strategy);
	index_is_sound($primary, 'postgres', $_, "$strategy, the original") for @LOGGED;
}
is(scalar(() = slurp_file($primary->logfile, $size) =~ /smart index "rows\w+" has been loaded/g), '8', 'all of both were loaded');

# Files that move take their trees with them.
my $directory = PostgreSQL::Test::Utils::tempdir();
$size = -s $primary->logfile;
$primary->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'smart rebuild'});
$primary->safe_psql('postgres', "CREATE TABLESPACE elsewhere LOCATION '$directory'");
$primary->safe_psql('postgres', "ALTER INDEX rows_b SET TABLESPACE elsewhere; INSERT INTO rows (a, b, c) VALUES (1, 'moved', 1); DELETE FROM rows WHERE a % 17 = 0; VACUUM rows");
$primary->safe_psql('postgres', "ALTER DATABASE copy_wal_log SET TABLESPACE elsewhere");
all_is_well($primary, 'an index was moved');
$primary->safe_psql('copy_wal_log', "INSERT INTO rows (a, b, c) VALUES (1, 'moved', 1); DELETE FROM rows WHERE a % 17 = 0; VACUUM rows");
index_is_sound($primary, 'copy_wal_log', $_, 'a database was moved') for @LOGGED;
unlike(slurp_file($primary->logfile, $size), qr/has been loaded|rebuilding/, 'what is moved keeps its trees');
$primary->stop;
log_is_quiet($primary);
done_testing();
