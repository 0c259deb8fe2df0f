# Carrying to memory nodes can take long. Whoever needs a lock of the table, or waits until all who have one have ended, as CREATE INDEX
# CONCURRENTLY does, waits for a piece of it and not for the end.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SmartMemnode;
use SmartTest;
use Test::More;

my $memory = SmartMemnode->new('one', '--size=128M');
my $node = smart_node('main', 'autovacuum = off', 'log_min_messages = debug1', 'smart.node_lost_after = 0', 'smart.node_down_after = 300s',
	'smart.fabric_timeout = 300s', 'smart.write_back = on', 'smart.carry_above = 0', 'smart.memory_nodes = ' . addresses($memory));
my $PIECES = 'SELECT hashint8(g), g FROM generate_series(1, 50000) g';

sub sql
{
	return $node->safe_psql('postgres', $_[0]);
}

# gives_way(STATEMENT, LOCKTYPE): the worker that carries is held up in a piece, and not the last one, until the statement waits for it.
sub gives_way
{
	my ($statement, $locktype) = @_;
	my $from = -s $node->logfile;
	my ($output, $errors) = ('', '');
	my $session;

	$memory->signal('STOP');
	sql("INSERT INTO numbers $PIECES");
	ok($node->poll_query_until('postgres', q{SELECT EXISTS (SELECT FROM pg_stat_activity a JOIN pg_locks l USING (pid)
		WHERE a.backend_type = 'smart carrier' AND l.relation = 'numbers'::regclass)}), "$statement: the worker has a lock of the table");
	$session = IPC::Run::start([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres'), '-c', $statement ],
		'<', \undef, '>', \$output, '2>', \$errors);
	ok($node->poll_query_until('postgres', "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = '$locktype' AND NOT granted)"), "$statement: it waits");
	$memory->signal('CONT');
	ok($session->finish, "$statement: it ends") or diag($errors);
	like(PostgreSQL::Test::Utils::slurp_file($node->logfile, $from), qr/carrying index "numbers_[a-z]+" gives way to others/, "$statement: the worker gave way");
	ok($node->poll_query_until('postgres', "SELECT smart_carry('numbers_number')"), "$statement: the rest is carried");
	index_is_sound($node, 'postgres', 'numbers_number', $statement);
	return;
}

sql(<<'SQL');
CREATE EXTENSION IF NOT EXISTS smart;
CREATE TABLE numbers (number int, id int);
CREATE INDEX numbers_number ON numbers USING smart (number);
INSERT INTO numbers SELECT g, g FROM generate_series(1, 10000) g;
SQL
becomes($node, 'numbers_number', 'carried');
gives_way('CREATE INDEX CONCURRENTLY numbers_id ON numbers (id)', 'virtualxid');
gives_way('DROP INDEX CONCURRENTLY numbers_id', 'virtualxid');
gives_way('ALTER TABLE numbers ADD COLUMN word text', 'relation');
$node->stop;
$memory->stop;
done_testing();
