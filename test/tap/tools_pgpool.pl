# Pgpool-II: it spreads queries over a primary and a standby, which answer by their own smart indexes, and goes on with the other one.
use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartTest;
use SmartTools;

my ($pgpool) = needs(program('pgpool'));
my $home = PostgreSQL::Test::Utils::tempdir_short();
my $user = getpwuid($<);
my $primary = PostgreSQL::Test::Cluster->new('primary');
my $standby = PostgreSQL::Test::Cluster->new('standby');
my $pool = "host=$home port=9999 dbname=postgres user=$user";
my ($pg_ctl) = program('pg_ctl');
my $log = "$home/log";

$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', join("\n", "shared_preload_libraries = 'smart'", @ITEM_SETTINGS, 'log_statement = all', ''));
$primary->start;
$primary->safe_psql('postgres', "CREATE EXTENSION smart; $ITEM_SCHEMA");
$primary->backup('backup');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$standby->start;
$primary->wait_for_catchup($standby);
write_file("$home/pool_hba.conf", "local all all trust\n");
write_file("$home/pcp.conf", '');
write_file("$home/pgpool.conf", <<"CONF");
backend_clustering_mode = 'streaming_replication'
listen_addresses = ''
port = 9999
socket_dir = '$home'
pcp_listen_addresses = ''
pcp_port = 9898
pcp_socket_dir = '$home'
pid_file_name = '$home/pid'
logdir = '$home'
work_dir = '$home'
backend_hostname0 = '@{[$primary->host]}'
backend_port0 = @{[$primary->port]}
backend_weight0 = 0
backend_data_directory0 = '@{[$primary->data_dir]}'
backend_flag0 = 'ALLOW_TO_FAILOVER'
backend_hostname1 = '@{[$standby->host]}'
backend_port1 = @{[$standby->port]}
backend_weight1 = 1
backend_data_directory1 = '@{[$standby->data_dir]}'
backend_flag1 = 'ALLOW_TO_FAILOVER'
num_init_children = 8
max_pool = 1
load_balance_mode = on
disable_load_balance_on_write = 'transaction'
sr_check_user = '$user'
sr_check_database = 'postgres'
sr_check_period = 1
delay_threshold_by_time = 0
health_check_period = 1
health_check_user = '$user'
health_check_database = 'postgres'
search_primary_node_timeout = 30
failover_command = '$pg_ctl -D @{[$standby->data_dir]} promote'
log_per_node_statement = on
use_watchdog = off
enable_pool_hba = off
memory_cache_enabled = off
CONF

my $process = IPC::Run::start([ $pgpool, '-n', '-f', "$home/pgpool.conf", '-F', "$home/pcp.conf", '-a', "$home/pool_hba.conf" ], '<', \undef, '>>', $log, '2>&1');

END
{
	my $status = $?;

	if (defined $process)
	{
		$process->signal('INT');
		$process->kill_kill(grace => 10);
	}
	$? = $status;
}

# through(STATEMENT...): a session of its own; what it prints, errors included.
sub through
{
	my ($out, $err) = ('', '');

	IPC::Run::run([ 'psql', '-XAtq', '-d', $pool, map { ('-c', $_) } @_ ], '<', \undef, '>', \$out, '2>', \$err);
	return $out . $err;
}

wait_until(sub { through('SELECT 1') eq "1\n" }) or die "pgpool does not answer: " . slurp_file($log);
ok(wait_until(sub { through('SHOW pool_nodes') =~ /^1\|.*\|standby\|\w+\|/m }), 'it knows which is the standby') or diag(through('SHOW pool_nodes'));

# Queries go to the standby, and use its indexes; changes go to the primary, and so do functions that change something.
my $by_index = 'SET enable_seqscan = off';
like(through($by_index, 'EXPLAIN (COSTS OFF) SELECT code FROM items WHERE id = 7'), qr/using items_pkey/, 'a plan of the standby');
is(through($by_index, q{SELECT current_setting('cluster_name'), code FROM items WHERE id = 7}), "standby|code 7\n", 'a query is answered by the standby');
is(through(q{INSERT INTO items VALUES (50001, 'pool', 1) RETURNING id, current_setting('cluster_name')}), "50001|primary\n", 'an insert goes to the primary');
is(through('BEGIN', 'UPDATE items SET a = 2 WHERE id = 50001', "SELECT a, current_setting('cluster_name') FROM items WHERE code = 'pool'", 'COMMIT'), "2|primary\n", 'a transaction that has written asks the primary');
is(through('SELECT trees >= 0 FROM smart_collect_orphans()'), "t\n", 'a function that changes something ...');
ok($primary->log_contains(qr/smart_collect_orphans/), '... goes to the primary');

my $clients = start_clients($pool, '-c', 4);
my $readers = '';
IPC::Run::run([ 'pgbench', '-n', '-c', 2, '-t', 300, '-f', pgbench_script("\\set a random(1, 3000)\nSELECT code FROM items WHERE id = :a;\nSELECT count(*) FROM items WHERE a = :a;\n"), $pool ],
	'<', \undef, '>', \$readers, '2>&1');
like($readers, qr{actually processed: 600/600}, 'readers');
ok($standby->poll_query_until('postgres', q{SELECT idx_scan >= 600 FROM pg_stat_user_indexes WHERE indexrelname = 'items_pkey'}), "they have used the standby's indexes");
goes_on($clients, 'through pgpool');
end_clients($clients, 'through pgpool');
$primary->wait_for_catchup($standby);
items_are_right($primary, 'primary');
items_are_right($standby, 'standby');
same_items($primary, $standby, 'both have the same rows');

# The primary dies; pgpool promotes the standby.
lose_power($primary);
ok(wait_until(sub { through(q{INSERT INTO items VALUES (50002, 'after', 1) ON CONFLICT DO NOTHING});
		through($by_index, q{SELECT id, current_setting('cluster_name') FROM items WHERE code = 'after'}) eq "50002|standby\n" }),
	'it goes on with the standby') or diag(slurp_file($log));
items_are_right($standby, 'promoted');
$standby->stop;
log_is_quiet($standby);
done_testing();
