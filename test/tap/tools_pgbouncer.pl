# PgBouncer, which gives a connection to another client after each transaction: many clients over few connections, and settings.
use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartTest;
use SmartTools;

my ($pgbouncer) = needs(program('pgbouncer'));
my $node = smart_node('main', @ITEM_SETTINGS);
my $home = PostgreSQL::Test::Utils::tempdir_short();
my $user = getpwuid($<);
my $pool = "host=$home port=6432 dbname=postgres user=$user";

$node->safe_psql('postgres', $ITEM_SCHEMA);
write_file("$home/users", qq{"$user" ""\n});
write_file("$home/pgbouncer.ini", <<"INI");
[databases]
postgres = host=@{[$node->host]} port=@{[$node->port]} pool_size=2
smart = host=@{[$node->host]} port=@{[$node->port]} dbname=postgres pool_size=1 connect_query='SET smart.constraints = on'
[pgbouncer]
listen_addr =
listen_port = 6432
unix_socket_dir = $home
auth_type = trust
auth_file = $home/users
admin_users = $user
logfile = $home/log
pool_mode = transaction
max_client_conn = 50
INI

my $log = '';
my $process = IPC::Run::start([ $pgbouncer, '-q', "$home/pgbouncer.ini" ], '<', \undef, '>', \$log, '2>&1');

END
{
	my $status = $?;

	$process->kill_kill(grace => 10) if defined $process;
	$? = $status;
}

# through(CONNECTION, STATEMENT...): each in a transaction of its own, and what they print.
sub through
{
	my ($connection, @statements) = @_;
	my ($out, $err) = ('', '');

	IPC::Run::run([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $connection, map { ('-c', $_) } @statements ], '<', \undef, '>', \$out, '2>', \$err);
	return $out . $err;
}

# access_method(TABLE): of its primary key.
sub access_method
{
	my ($table) = @_;

	return $node->safe_psql('postgres', "SELECT amname FROM pg_index JOIN pg_class c ON c.oid = indexrelid JOIN pg_am a ON a.oid = relam WHERE indrelid = '$table'::regclass");
}

wait_until(sub { system('pg_isready', '-q', '-d', $pool) == 0 }) or die "pgbouncer does not answer: $log";

# Twenty clients, whose transactions stage entries, over two connections, some of which are replaced meanwhile.
foreach my $protocol ('simple', 'extended')
{
	my $clients = start_clients($pool, '-c', 20, '-M', $protocol);

	is($node->safe_psql('postgres', "SELECT count(*) <= 2 FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"), 't',
		"$protocol: they have few connections");
	is(through("host=$home port=6432 dbname=pgbouncer user=$user", 'RECONNECT'), '', "$protocol: other connections");
	goes_on($clients, "$protocol, by other connections");
	end_clients($clients, $protocol);
	items_are_right($node, $protocol);
}

# A client may get another connection for each transaction, and its settings go to the next client. Those that hold are of a
# transaction, of a constraint, or of all connections of a pool, a role or a database.
like(through("$pool options='-csmart.constraints=on'", 'SELECT 1'), qr/unsupported startup parameter: options/, 'options of a connection are refused');
through($pool, 'BEGIN; SET LOCAL smart.constraints = on; CREATE TABLE one (id int PRIMARY KEY); COMMIT', 'CREATE TABLE two (id int PRIMARY KEY)',
	'CREATE TABLE three (id int PRIMARY KEY WITH (smart = on))');
through($pool =~ s/dbname=\S+/dbname=smart/r, 'CREATE TABLE four (id int PRIMARY KEY)');
$node->safe_psql('postgres', 'ALTER DATABASE postgres SET smart.constraints = on');
through("host=$home port=6432 dbname=pgbouncer user=$user", 'RECONNECT postgres');
through($pool, 'CREATE TABLE five (id int PRIMARY KEY)');
is(join(' ', map { access_method($_) } ('one', 'two', 'three', 'four', 'five')), 'smart btree smart smart smart', 'settings');
$node->safe_psql('postgres', 'ALTER DATABASE postgres RESET smart.constraints');

# A cursor, a savepoint, and a transaction that ends with its client.
is(through($pool, q{BEGIN; SET LOCAL enable_seqscan = off; DECLARE c CURSOR FOR SELECT id FROM items WHERE id IN (2, 3) ORDER BY id;
	SAVEPOINT s; INSERT INTO items VALUES (900001, 'gone'); ROLLBACK TO s; INSERT INTO items VALUES (900002, 'kept'); FETCH ALL c; COMMIT}), '2
3
', 'a transaction');
is(through($pool, q{BEGIN; INSERT INTO items VALUES (900003, 'gone, too')}), '', 'its client goes in the middle');
$node->poll_query_until('postgres', "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE state LIKE 'idle in%')") or die 'the transaction does not end';
is($node->safe_psql('postgres', 'SET enable_seqscan = off; SELECT id FROM items WHERE id > 900000'), '900002', 'rows of transactions that ended otherwise are not there');
items_are_right($node, 'in the end');
$node->stop;
log_is_quiet($node);
done_testing();
