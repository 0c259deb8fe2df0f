# pgBackRest: full and incremental backups of a server that works, a restore onto what a power loss has left, and one to a point in
# time.  The indexes of each restored server are loaded from their journals.
use strict;
use warnings;

use File::Find;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartTest;
use SmartWork;

plan skip_all => 'pgBackRest is not installed' if !grep { -x "$_/pgbackrest" } split /:/, $ENV{PATH};

my $home = PostgreSQL::Test::Utils::tempdir();
my $primary = PostgreSQL::Test::Cluster->new('primary');
my @pgbackrest = ('pgbackrest', "--config=$home/pgbackrest.conf", '--stanza=main');

mkdir "$home/$_" or die "$home/$_: $!" for ('repository', 'log', 'lock', 'spool');
PostgreSQL::Test::Utils::append_to_file("$home/pgbackrest.conf", join("\n", '[global]',
	"repo1-path=$home/repository", "log-path=$home/log", "lock-path=$home/lock", "spool-path=$home/spool", 'start-fast=y', 'compress-level=1',
	'log-level-console=warn', 'log-level-file=off', 'archive-timeout=300', '[main]', 'pg1-path=' . $primary->data_dir, 'pg1-port=' . $primary->port,
	'pg1-socket-path=' . $primary->host, 'pg1-user=' . getpwuid($<), 'pg1-database=postgres', ''));

# With a region in the data directory, which must not go along.
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', join("\n", "shared_preload_libraries = 'smart'", @WORK_SETTINGS, 'wal_level = replica', 'archive_mode = on',
	"archive_command = '@pgbackrest archive-push %p'", "smart.embedded_path = '" . $primary->data_dir . "/smart'", ''));
$primary->start;
$primary->safe_psql('postgres', 'CREATE EXTENSION smart');
$primary->safe_psql('postgres', $WORK_SCHEMA);
ok(-f $primary->data_dir . '/smart/pgsql_tmp_region', 'the region is a file in the data directory');

# ---- backups ----

# A backup of this type is made while the server works.
sub back_up
{
	my ($type, $seed) = @_;
	my $work = start_work($primary, $seed);

	command_ok([ @pgbackrest, "--type=$type", 'backup' ], "$type backup under load");
	end_work($primary, $work);
	return;
}

# All WAL until now is in the archive.
sub archive
{
	my $segment = $primary->safe_psql('postgres', 'SELECT pg_walfile_name(pg_current_wal_insert_lsn())');

	$primary->safe_psql('postgres', 'SELECT pg_switch_wal()');
	$primary->poll_query_until('postgres', "SELECT last_archived_wal >= '$segment' FROM pg_stat_archiver") or die 'not archived';
	return;
}

command_ok([ @pgbackrest, 'stanza-create' ], 'stanza-create');
back_up('full', 1);
back_up('incr', 2);
my @regions;
find(sub { push @regions, $_ if /pgsql_tmp_region/ }, "$home/repository");
is("@regions", '', 'no backup has the region');
$primary->safe_psql('postgres', "INSERT INTO rows (a, b, c) SELECT g, 'early ' || g, 55 FROM generate_series(1, 300) g; DELETE FROM rows WHERE a % 5 = 0; VACUUM rows;
	SELECT pg_create_restore_point('early')");
my $early = state_of_rows($primary);
$primary->safe_psql('postgres', "INSERT INTO rows (a, b, c) SELECT g, 'late ' || g, 56 FROM generate_series(1, 300) g; DELETE FROM rows WHERE a % 7 = 0; VACUUM rows;
	REINDEX INDEX rows_a");
my $late = state_of_rows($primary);
archive();

# ---- restores ----

# A server in the place of the first one: what is left of that is compared, and what differs is fetched.
lose_power($primary);
unlink glob($primary->data_dir . '/base/5/*'), map { $primary->data_dir . "/$_" } ('global/pg_control', 'postmaster.pid');
command_ok([ @pgbackrest, '--delta', 'restore' ], 'a restore onto what is left');
ok(!-e $primary->data_dir . '/smart/pgsql_tmp_region', 'it has no region');
start_again($primary);
$primary->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
is(state_of_rows($primary), $late, 'all that was archived is there');
is_loaded($primary, 'restored');
$primary->safe_psql('postgres', "INSERT INTO rows (a, b, c) SELECT g, 'restored ' || g, 57 FROM generate_series(1, 300) g; DELETE FROM rows WHERE a % 3 = 0; VACUUM rows");
all_is_well($primary, 'restored, used');

# Another server, as things were at a point in time.
my $past = PostgreSQL::Test::Cluster->new('past');
mkdir $past->data_dir, 0700 or die $past->data_dir . ": $!";
command_ok([ @pgbackrest, '--pg1-path=' . $past->data_dir, '--type=name', '--target=early', '--target-action=promote', '--target-timeline=current',
	'restore' ], 'a restore to a point in time');
$past->append_conf('postgresql.conf', join("\n", 'port = ' . $past->port, "unix_socket_directories = '" . $past->host . "'", 'archive_mode = off',
	"smart.embedded_path = '" . $past->data_dir . "/smart'", ''));
$past->start;
$past->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
is(state_of_rows($past), $early, 'an earlier state');
is_loaded($past, 'an earlier state');

$_->stop for ($past, $primary);
log_is_sound($past);
done_testing();
