# Barman: backups of a server that works, by pg_basebackup and by rsync, with WAL by streaming; a restore of the last state and one to a
# point in time.  The indexes of each restored server are loaded from their journals.
use strict;
use warnings;

use File::Find;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartTest;
use SmartTools;
use SmartWork;

my ($barman) = needs(program('barman'), program('rsync'));
my $home = PostgreSQL::Test::Utils::tempdir();
my $primary = PostgreSQL::Test::Cluster->new('primary');
my $user = getpwuid($<);
my ($bin) = program('pg_ctl') =~ m{(.*)/};

$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', join("\n", "shared_preload_libraries = 'smart'", @WORK_SETTINGS, 'wal_level = replica',
	"smart.embedded_path = '" . $primary->data_dir . "/smart'", ''));
$primary->start;
$primary->safe_psql('postgres', 'CREATE EXTENSION smart');
$primary->safe_psql('postgres', $WORK_SCHEMA);

my $connection = 'host=' . $primary->host . ' port=' . $primary->port . " user=$user dbname=postgres";
my $server = "conninfo = $connection\nstreaming_conninfo = $connection\nstreaming_archiver = on\npath_prefix = $bin\nminimum_redundancy = 0\nimmediate_checkpoint = true\n";

write_file("$home/barman.conf", <<"INI");
[barman]
barman_user = $user
barman_home = $home/barman
log_file = $home/log
log_level = INFO
[main]
description = by pg_basebackup
backup_method = postgres
slot_name = barman
$server
[copied]
description = by rsync
backup_method = local-rsync
backup_options = concurrent_backup
slot_name = copied
$server
INI

sub barman
{
	my ($what, @arguments) = @_;

	return command_ok([ $barman, '-q', '-c', "$home/barman.conf", @arguments ], "barman: $what") || diag((split /^/, slurp_file("$home/log"))[ -10 .. -1 ]);
}

my %receiver;

END
{
	my $status = $?;

	$_->kill_kill(grace => 10) for values %receiver;
	$? = $status;
}

mkdir "$home/barman" or die "$home/barman: $!";
foreach my $name ('main', 'copied')
{
	my $log = '';

	barman("$name: a slot", 'receive-wal', '--create-slot', $name);
	$receiver{$name} = IPC::Run::start([ $barman, '-c', "$home/barman.conf", 'receive-wal', $name ], '<', \undef, '>', \$log, '2>&1');
}
$primary->poll_query_until('postgres', 'SELECT count(*) = 2 FROM pg_replication_slots WHERE active') or die 'WAL is not received';

# archive(): all WAL until now is with both.  Barman takes a segment when the next one has begun.
sub archive
{
	my $segment = $primary->safe_psql('postgres', 'SELECT pg_walfile_name(pg_current_wal_insert_lsn())');

	$primary->safe_psql('postgres', $_) for ('SELECT pg_switch_wal()', 'CREATE TABLE IF NOT EXISTS segments (n int)', 'INSERT INTO segments VALUES (1)');
	foreach my $name ('main', 'copied')
	{
		my $path = "$home/barman/$name/wals/" . substr($segment, 0, 16) . "/$segment";

		wait_until(sub { return -e $path || (IPC::Run::run([ $barman, '-q', '-c', "$home/barman.conf", 'archive-wal', $name ]) && -e $path) })
		  or die "$name: $segment is not archived";
	}
	return;
}

# A first segment, before which Barman makes no backup.
archive();
foreach my $name ('main', 'copied')
{
	my $work = start_work($primary, 1);

	barman("$name: a backup under load", 'backup', $name);
	end_work($primary, $work);
}
my @regions;
find(sub { push @regions, $File::Find::name if /pgsql_tmp_region/ }, "$home/barman/main");
is("@regions", '', 'the backup by pg_basebackup has no region');

$primary->safe_psql('postgres', "INSERT INTO rows (a, b, c) SELECT g, 'early ' || g, 55 FROM generate_series(1, 300) g; DELETE FROM rows WHERE a % 5 = 0; VACUUM rows;
	SELECT pg_create_restore_point('early')");
my $early = state_of_rows($primary);
$primary->safe_psql('postgres', "INSERT INTO rows (a, b, c) SELECT g, 'late ' || g, 56 FROM generate_series(1, 300) g; DELETE FROM rows WHERE a % 7 = 0; VACUUM rows;
	REINDEX INDEX rows_a");
my $late = state_of_rows($primary);
archive();

# restore(NAME, BACKUP, STATE, OPTION...): a server of its own, which has this state.
sub restore
{
	my ($name, $backup, $state, @options) = @_;
	my $restored = PostgreSQL::Test::Cluster->new($name);

	barman("$name: a restore", 'recover', @options, $backup, 'latest', $restored->data_dir);
	$restored->append_conf('postgresql.conf', join("\n", 'port = ' . $restored->port, "unix_socket_directories = '" . $restored->host . "'", 'archive_mode = off',
		"smart.embedded_path = '" . $restored->data_dir . "/smart'", ''));
	$restored->start;
	$restored->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die "$name: recovery does not end";
	is(state_of_rows($restored), $state, "$name: what was there");
	is_loaded($restored, $name);
	$restored->safe_psql('postgres', "INSERT INTO rows (a, b, c) SELECT g, 'restored ' || g, 57 FROM generate_series(1, 300) g; DELETE FROM rows WHERE a % 3 = 0; VACUUM rows");
	all_is_well($restored, "$name, used");
	$restored->stop;
	log_is_sound($restored);
	return;
}

restore('last', 'main', $late);
restore('early', 'main', $early, '--target-name=early', '--target-action=promote');
restore('copied', 'copied', $late);
$primary->stop;
done_testing();
