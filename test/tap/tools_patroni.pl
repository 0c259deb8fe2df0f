# Patroni: a cluster of two servers with etcd, in which the leader dies under load and comes back, and clients go on with the other
# one.  What was acknowledged is there, and all indexes are there with the rows: they are loaded, or kept up to date, and never rebuilt.
use strict;
use warnings;

use IPC::Run;
use POSIX ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

use SmartTest;
use SmartWork;

foreach my $program ('patroni', 'patronictl', 'etcd')
{
	plan skip_all => "$program is not installed" if !grep { -x "$_/$program" } split /:/, $ENV{PATH};
}

my $home = PostgreSQL::Test::Utils::tempdir();
my %port = map { $_ => PostgreSQL::Test::Cluster::get_free_port() } ('etcd', 'peers', 'one', 'two');
my %node = map { $_ => PostgreSQL::Test::Cluster->new($_) } ('one', 'two');
my %running;    # processes by name
my $client;

# ---- processes ----

sub start_process
{
	my ($name, $log, @command) = @_;

	$running{$name} = IPC::Run::start([@command], '<', \undef, '>>', $log, '2>&1');
	return;
}

sub kill_process
{
	my ($name) = @_;

	(delete $running{$name})->kill_kill(grace => 0);
	return;
}

END
{
	my $status = $?;

	kill 'KILL', $client if defined $client;
	kill_process($_) for grep { $_ ne 'etcd' } keys %running;
	foreach my $data (map { $_->data_dir } values %node)
	{
		system('pg_ctl', '-s', '-D', $data, '-m', 'immediate', 'stop') if -e "$data/postmaster.pid";
	}
	kill_process($_) for keys %running;
	$? = $status;
}

sub start_patroni
{
	my ($name) = @_;

	start_process($name, $node{$name}->logfile, 'patroni', "$home/$name.yml");
	return;
}

# patronictl(ANSWER, ARGUMENT...): it says whether it has done it; its exit status does not.
sub patronictl
{
	my ($answer, @arguments) = @_;
	my $out = '';

	IPC::Run::run([ 'patronictl', '-c', "$home/one.yml", @arguments ], '<', \undef, '>', \$out, '2>', \$out);
	return like($out, $answer, "patronictl $arguments[0]");
}

sub write_configuration
{
	my ($name) = @_;
	my ($node, $bin) = ($node{$name}, dirname_of('pg_ctl'));
	my $settings = join(', ', map { my ($setting, $value) = split / = /; qq{"$setting": "$value"} } @WORK_SETTINGS,
		'wal_log_hints = on', 'wal_keep_size = 256MB', 'shared_preload_libraries = smart');

	PostgreSQL::Test::Utils::append_to_file("$home/$name.yml", <<"YAML");
scope: smart
name: $name
restapi: { listen: "127.0.0.1:$port{$name}", connect_address: "127.0.0.1:$port{$name}" }
etcd3: { host: "127.0.0.1:$port{etcd}" }
bootstrap:
  dcs:
    { ttl: 20, loop_wait: 1, retry_timeout: 3, synchronous_mode: true, postgresql: { use_pg_rewind: true, parameters: { $settings } } }
  initdb: [ { encoding: UTF8 }, { locale: C }, no-sync ]
postgresql:
  listen: "127.0.0.1:@{[$node->port]}"
  connect_address: "127.0.0.1:@{[$node->port]}"
  data_dir: "@{[$node->data_dir]}"
  bin_dir: "$bin"
  pgpass: "$home/$name.pass"
  pg_hba: [ local all all trust, host all all 127.0.0.1/32 trust, host replication all 127.0.0.1/32 trust ]
  basebackup: [ { checkpoint: fast } ]
  authentication: { superuser: { username: "@{[scalar getpwuid($<)]}" }, replication: { username: replicator } }
  parameters: { unix_socket_directories: "@{[$node->host]}" }
YAML
	return;
}

sub dirname_of
{
	my ($program) = @_;
	my ($directory) = grep { -x "$_/$program" } split /:/, $ENV{PATH};

	return $directory;
}

# ---- the cluster ----

# becomes_leader(NAME, WHAT): the server takes connections, and writes.
sub becomes_leader
{
	my ($name, $what) = @_;
	my $server = $node{$name};

	# A psql that cannot connect does not read what it is to ask, which would end this test.
	wait_until_ready($server);
	return ok($server->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()'), "$name is the leader: $what");
}

sub wait_until_ready
{
	my ($server) = @_;
	my $deadline = time() + $PostgreSQL::Test::Utils::timeout_default;

	while (system('pg_isready', '-q', '-h', $server->host, '-p', $server->port) != 0 && time() < $deadline)
	{
		sleep(0.1);
	}
	return;
}

# is_secured(NAME): what the leader acknowledges is on the other server, too, and Patroni knows it: only then may that one lead.
sub is_secured
{
	my ($name) = @_;
	my $deadline = time() + $PostgreSQL::Test::Utils::timeout_default;
	my $out = '';

	while ($out !~ /"Role": "Sync Standby"/ && time() < $deadline)
	{
		sleep(0.2);
		IPC::Run::run([ 'patronictl', '-c', "$home/one.yml", 'list', '--format=json' ], '<', \undef, '>', \$out, '2>', '/dev/null');
	}
	return like($out, qr/"Role": "Sync Standby"/, "$name has a standby that may lead");
}

# follows(NAME, LEADER, WHAT): a standby answers as its leader does, by its own indexes.
sub follows
{
	my ($name, $leader, $what) = @_;
	my ($standby, $query) = ($node{$name}, 'SELECT a, id FROM rows WHERE a BETWEEN 100 AND 900 ORDER BY a, id');
	my $place = $node{$leader}->safe_psql('postgres', 'SELECT pg_current_wal_flush_lsn()');

	wait_until_ready($standby);
	ok($standby->poll_query_until('postgres', "SELECT pg_last_wal_replay_lsn() >= '$place'"), "$name follows: $what");
	ok(indexes_become($standby, q{'ready', 'empty'}, "index::text <> 'forgetful_a'"),
		"$name: indexes are ready: $what");
	same_answers($standby, 'postgres', $query, "$name: $what");
	is($standby->safe_psql('postgres', $query), $node{$leader}->safe_psql('postgres', $query), "as $leader has it");
	return;
}

# ---- a client that counts ----

# It adds rows, one by one, wherever it finds the leader, and remembers those that were acknowledged.
sub start_client
{
	my $pid = fork() // die "fork: $!";
	my $servers = join(' ', 'host=127.0.0.1,127.0.0.1', 'port=' . join(',', map { $node{$_}->port } ('one', 'two')),
		'dbname=postgres target_session_attrs=read-write connect_timeout=2');

	return $pid if $pid != 0;
	open(my $log, '>>', "$home/acknowledged") or POSIX::_exit(1);
	$log->autoflush(1);
	for (my $i = 1; !-e "$home/enough"; $i++)
	{
		my $out;

		IPC::Run::run([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $servers, '-c', "INSERT INTO counted VALUES ($i) RETURNING n" ],
			'<', \undef, '>', \$out, '2>', '/dev/null')
		  and print {$log} "$i\n";
		sleep(0.02);
	}
	POSIX::_exit(0);
}

sub acknowledged
{
	return -e "$home/acknowledged" ? split /\n/, slurp_file("$home/acknowledged") : ();
}

# goes_on(WHAT): the client's rows are acknowledged again.
sub goes_on
{
	my ($what) = @_;
	my $before = () = acknowledged();
	my $begun = time();
	my $now = $before;

	while ($now < $before + 5 && time() < $begun + $PostgreSQL::Test::Utils::timeout_default)
	{
		sleep(0.1);
		$now = () = acknowledged();
	}
	return cmp_ok($now, '>=', $before + 5, "clients go on: $what");
}

# nothing_is_lost(NAME, WHAT): each acknowledged row is found by its index.
sub nothing_is_lost
{
	my ($name, $what) = @_;
	my @rows = acknowledged();
	my $list = join(',', @rows);

	is($node{$name}->safe_psql('postgres', "SET enable_seqscan = off; SELECT count(*) FROM unnest('{$list}'::int[]) r WHERE NOT EXISTS (SELECT FROM counted WHERE n = r)"),
		'0', "$what: none of " . @rows . ' acknowledged rows is lost');
	index_is_sound($node{$name}, 'postgres', 'counted_n', $what);
	all_is_well($node{$name}, $what);
	return;
}

# ---- the story ----

start_process('etcd', "$home/etcd.log", 'etcd', "--data-dir=$home/etcd", "--listen-client-urls=http://127.0.0.1:$port{etcd}",
	"--advertise-client-urls=http://127.0.0.1:$port{etcd}", "--listen-peer-urls=http://127.0.0.1:$port{peers}",
	"--initial-advertise-peer-urls=http://127.0.0.1:$port{peers}", "--initial-cluster=default=http://127.0.0.1:$port{peers}", '--unsafe-no-fsync');
write_configuration($_) for ('one', 'two');
start_patroni('one');
becomes_leader('one', 'it began');
$node{one}->safe_psql('postgres', 'CREATE EXTENSION smart; CREATE TABLE counted (n int); CREATE UNIQUE INDEX counted_n ON counted USING smart (n)');
$node{one}->safe_psql('postgres', $WORK_SCHEMA);
start_patroni('two');
is_secured('one');
follows('two', 'one', 'it was made from a base backup');

# The leader dies, with Patroni, its region and all.
$client = start_client();
my $work = start_work($node{one}, 1);
goes_on('at the beginning');
my ($postmaster) = split /\n/, slurp_file($node{one}->data_dir . '/postmaster.pid');
my @children = split ' ', `ps -o pid= --ppid $postmaster`;
kill_process('one');
kill 'KILL', $postmaster, @children;
lose_region($node{one});
$work->kill_kill;
becomes_leader('two', 'the first one has died');
goes_on('after the failover');
nothing_is_lost('two', 'failover');

# It comes back as a standby: rewound, if it has what the other one has not.
start_patroni('one');
is_secured('two');
follows('one', 'two', 'it has come back');

# The leadership goes back while clients are at work.
$work = start_work($node{two}, 2);
patronictl(qr/Successfully switched over to "one"/, 'switchover', '--leader', 'two', '--candidate', 'one', '--force');
becomes_leader('one', 'it was told to');
$work->kill_kill;
goes_on('after the switchover');
is_secured('one');
nothing_is_lost('one', 'switchover');
follows('two', 'one', 'it was the leader');

# A standby is made anew.
patronictl(qr/Success: reinitialize/, 'reinit', 'smart', 'two', '--force', '--wait');
is_secured('one');
follows('two', 'one', 'it was made anew');

PostgreSQL::Test::Utils::append_to_file("$home/enough", '');
waitpid($client, 0);
undef $client;
unlike(slurp_file($node{$_}->logfile), qr/rebuilding smart index "(?!forgetful)/, "$_: nothing was rebuilt") for ('one', 'two');
log_is_quiet($node{$_}) for ('one', 'two');
done_testing();
