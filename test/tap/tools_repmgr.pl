# repmgr: a standby is cloned, the servers change roles, and a primary that has died comes back as a standby.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartTest;
use SmartTools;

needs(program('repmgr'), extension('repmgr'));

my $home = PostgreSQL::Test::Utils::tempdir();
my ($bin) = program('pg_ctl') =~ m{(.*)/};
my %node = map { $_ => PostgreSQL::Test::Cluster->new($_) } ('one', 'two');
my %number = (one => 1, two => 2);
my $user = getpwuid($<);

# repmgr reaches the other host by ssh; here that is this one.
mkdir "$home/bin" or die "$home/bin: $!";
write_file("$home/bin/ssh", <<'SH');
#!/bin/sh
while :; do
	case $1 in
		-o) shift 2 ;;
		-*) shift ;;
		*) break ;;
	esac
done
shift
exec sh -c "$*"
SH
chmod 0755, "$home/bin/ssh";
$ENV{PATH} = "$home/bin:$ENV{PATH}";

sub connection
{
	my ($name) = @_;

	return 'host=' . $node{$name}->host . ' port=' . $node{$name}->port . " user=$user dbname=repmgr connect_timeout=5";
}

foreach my $name (keys %node)
{
	my ($data, $log) = ($node{$name}->data_dir, $node{$name}->logfile);

	write_file("$home/$name.conf", <<"CONF");
node_id = $number{$name}
node_name = '$name'
conninfo = '@{[connection($name)]}'
data_directory = '$data'
pg_bindir = '$bin'
repmgr_bindir = '$bin'
log_level = NOTICE
service_start_command = '$bin/pg_ctl -D $data -l $log -w -o "--cluster-name=$name -p @{[$node{$name}->port]} -k @{[$node{$name}->host]}" start'
service_stop_command = '$bin/pg_ctl -D $data -m fast -w stop'
service_restart_command = '$bin/pg_ctl -D $data -l $log -w -o "--cluster-name=$name -p @{[$node{$name}->port]} -k @{[$node{$name}->host]}" restart'
service_reload_command = '$bin/pg_ctl -D $data reload'
shutdown_check_timeout = 60
standby_reconnect_timeout = 60
CONF
}

END
{
	my $status = $?;

	foreach my $data (map { $_->data_dir } values %node)
	{
		system('pg_ctl', '-s', '-D', $data, '-m', 'immediate', 'stop') if -e "$data/postmaster.pid";
	}
	$? = $status;
}

sub repmgr
{
	my ($what, $name, @arguments) = @_;

	return command_ok([ 'repmgr', '-f', "$home/$name.conf", @arguments ], "repmgr: $what");
}

# start(NAME): as repmgr does it.
sub start
{
	my ($name) = @_;

	system(slurp_file("$home/$name.conf") =~ /^service_start_command = '(.*)'$/m) == 0 or die "$name does not start";
	return;
}

# follows(NAME, OTHER, WHAT): the standby has what the primary has, and its indexes are right.
sub follows
{
	my ($name, $other, $what) = @_;

	$node{$other}->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_replication WHERE application_name = '$name' AND replay_lsn >= pg_current_wal_flush_lsn()")
	  or die "$name does not follow";
	is($node{$name}->safe_psql('postgres', 'SELECT pg_is_in_recovery()'), 't', "$name is a standby: $what");
	items_are_right($node{$_}, "$_, $what") for ($other, $name);
	same_items($node{$other}, $node{$name}, "$what: the same rows");
	return;
}

$node{one}->init(allows_streaming => 1);
$node{one}->append_conf('postgresql.conf', join("\n", "shared_preload_libraries = 'smart, repmgr'", @ITEM_SETTINGS, 'wal_log_hints = on', 'hot_standby = on',
	'wal_retrieve_retry_interval = 100ms', ''));
start('one');
$node{one}->safe_psql('postgres', "CREATE EXTENSION smart; $ITEM_SCHEMA");
$node{one}->safe_psql('postgres', 'CREATE DATABASE repmgr');
repmgr('the primary is registered', 'one', 'primary', 'register');

# A clone of a server that works.
my $clients = start_clients($node{one}->connstr('postgres'));
repmgr('a standby is cloned', 'two', '-h', $node{one}->host, '-p', $node{one}->port, '-U', $user, '-d', 'repmgr', 'standby', 'clone', '--fast-checkpoint');
start('two');
repmgr('it is registered', 'two', 'standby', 'register');
goes_on($clients, 'there is a standby');
end_clients($clients, 'the standby was made');
follows('two', 'one', 'cloned');

# They change roles, and back.
foreach my $pair (['two', 'one'], ['one', 'two'])
{
	my ($name, $other) = @$pair;

	repmgr("switchover to $name", $name, 'standby', 'switchover', '--force-rewind');
	$node{$name}->safe_psql('postgres', "INSERT INTO items SELECT g, '$name ' || g, g % 1000 FROM generate_series(20000, 20500) g ON CONFLICT (id) DO UPDATE SET code = excluded.code;
		DELETE FROM items WHERE id % 7 = $number{$name}; VACUUM items");
	follows($other, $name, "switchover to $name");
}

# The primary dies, with its region, and has what the other has not.
$clients = start_clients($node{one}->connstr('postgres'));
my ($postmaster) = split /\n/, slurp_file($node{one}->data_dir . '/postmaster.pid');
my @children = split ' ', `ps -o pid= --ppid $postmaster`;
kill 'KILL', $postmaster, @children;
wait_until(sub { !grep { kill 0, $_ } $postmaster, @children }) or die 'it does not die';
lose_region($node{one});
end_clients($clients);
repmgr('failover', 'two', 'standby', 'promote');
$node{two}->safe_psql('postgres', q{INSERT INTO items SELECT g, 'failover ' || g, g % 1000 FROM generate_series(30000, 30500) g});
items_are_right($node{two}, 'failover');
unlink $node{one}->data_dir . '/postmaster.pid';
start('one');
system('pg_ctl', '-s', '-D', $node{one}->data_dir, '-m', 'fast', 'stop') == 0 or die 'one does not stop';
repmgr('the old primary comes back', 'one', '-d', connection('two'), 'node', 'rejoin', '--force-rewind');
follows('one', 'two', 'it came back');

foreach my $name ('one', 'two')
{
	unlike(slurp_file($node{$name}->logfile), qr/rebuilding smart index/, "$name: no index was rebuilt");
	unlike(slurp_file($node{$name}->logfile), qr/PANIC|TRAP:|assertion/, "$name: the log is quiet");
}
done_testing();
