# VACUUM gives a row's place to others only when no index-only scan can still ask the visibility map about it: it waits
# for scans that have read an entry which it removed, and for no others. However such a scan ends, VACUUM goes on.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use SmartTest;
use PostgreSQL::Test::Utils;
use Test::More;
use IPC::Run;

my $node = smart_node('main', 'autovacuum = off');
my $limit = $PostgreSQL::Test::Utils::timeout_default;

# A psql that stays: { in, out, run }.
sub session
{
	my %session = (in => '', out => '');

	$session{run} = IPC::Run::start(
		[ 'psql', '-XAtq', '-h', $node->host, '-p', $node->port, '-d', 'postgres' ],
		'<', \$session{in}, '>', \$session{out}, '2>&1', IPC::Run::timeout($limit));
	return \%session;
}

# Sends statements and returns what they print.
sub ask
{
	my ($session, $sql) = @_;

	$session->{out} = '';
	$session->{in} .= "$sql\n\\echo done\n";
	$session->{run}->pump until $session->{out} =~ /^done$/m;
	$session->{out} =~ s/^done\n//m;
	chomp $session->{out};
	return $session->{out};
}

# Forty rows, four to a page (VACUUM passes over dead rows on pages that a scan has pinned); the last twenty are dead.
sub prepare
{
	$node->safe_psql('postgres', <<'SQL');
DROP TABLE IF EXISTS scanned;
CREATE TABLE scanned (id int, filler text);
ALTER TABLE scanned ALTER filler SET STORAGE plain;
CREATE INDEX scanned_id ON scanned USING smart (id);
INSERT INTO scanned SELECT i, repeat('x', 1900) FROM generate_series(1, 40) i;
SQL
	$node->safe_psql('postgres', 'VACUUM scanned');
	$node->safe_psql('postgres', 'DELETE FROM scanned WHERE id > 20');
	return;
}

# A session that has returned the first row of an index-only scan.
sub scanning_session
{
	my $session = session();

	ask($session, 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off;');
	like(ask($session, 'EXPLAIN (COSTS OFF) SELECT id FROM scanned WHERE id > 0 ORDER BY id;'),
		qr/Index Only Scan/, 'the scan is index-only');
	ask($session, 'BEGIN; DECLARE c CURSOR FOR SELECT id FROM scanned WHERE id > 0 ORDER BY id;');
	is(ask($session, 'FETCH 1 FROM c;'), '1', 'its first row');
	return $session;
}

sub entries
{
	return $node->safe_psql('postgres', "SELECT (smart_index_stats('scanned_id')).entries");
}

my $vacuum_state = "SELECT state || coalesce(' ' || wait_event, '') FROM pg_stat_activity WHERE query LIKE 'VACUUM (INDEX%'";

my %ends = (
	'comes to its end' => 'MOVE FORWARD ALL IN c;',
	'is closed' => 'CLOSE c;',
	'is rolled back' => 'ROLLBACK;',
	'fails' => 'SELECT 1 / 0;',
	'belongs to a session that ends' => undef);

# A VACUUM that was started and waits.
sub waiting_vacuum
{
	my ($name) = @_;
	my $vacuum = session();

	$vacuum->{in} .= "VACUUM (INDEX_CLEANUP on) scanned;\n\\echo done\n";
	$vacuum->{run}->pump_nb;
	ok($node->poll_query_until('postgres', $vacuum_state, 'active Extension'), $name);
	is(entries(), '20', 'the entries are gone all the same');
	return $vacuum;
}

sub comes_to_its_end
{
	my ($vacuum) = @_;

	$vacuum->{run}->pump until $vacuum->{out} =~ /^done$/m;
	pass('and then goes on');
	return;
}

foreach my $end (sort keys %ends)
{
	prepare();
	my $scan = scanning_session();
	my $vacuum = waiting_vacuum("VACUUM waits for a scan that $end");

	if (defined $ends{$end})
	{
		ask($scan, $ends{$end});
	}
	else
	{
		$scan->{in} .= "\\q\n";
		$scan->{run}->finish;
	}
	comes_to_its_end($vacuum);
	index_is_sound($node, 'postgres', 'scanned_id', "after a scan that $end");
	foreach my $session ($scan, $vacuum)
	{
		$session->{run}->kill_kill;
	}
}

# A wait of more than a second is in the log, with the process that holds it up; it can be cancelled.
prepare();
my $scan = scanning_session();
my $pid = ask($scan, 'SELECT pg_backend_pid();');
my $offset = -s $node->logfile;
my $cancelled = waiting_vacuum('VACUUM waits');

ok($node->wait_for_log(qr/bulk deletion in index "scanned_id" waits for scans.*hold it up: $pid\./s, $offset),
	'the log tells for whom it waits');
$node->safe_psql('postgres', "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE 'VACUUM (INDEX%'");
comes_to_its_end($cancelled);
like($cancelled->{out}, qr/canceling statement due to user request/, 'VACUUM can be cancelled while it waits');
$cancelled->{run}->kill_kill;
index_is_sound($node, 'postgres', 'scanned_id', 'after a cancelled VACUUM');

# The next one finds nothing to remove, but the scan is still there.
my $vacuum = waiting_vacuum('VACUUM waits although another one removed the entries');
ask($scan, 'ROLLBACK;');
comes_to_its_end($vacuum);
$vacuum->{run}->kill_kill;

# A scan that needs the heap anyway is in no other's way: its snapshot protects it.
prepare();
is(ask($scan, 'BEGIN; SET enable_indexonlyscan = off; DECLARE c CURSOR FOR SELECT id FROM scanned ORDER BY id; FETCH 1 FROM c;'),
	'1', 'a plain index scan');
$node->safe_psql('postgres', "SET statement_timeout = '60s'; VACUUM (INDEX_CLEANUP on) scanned");
pass('VACUUM does not wait for it');
ask($scan, 'ROLLBACK;');
$scan->{run}->kill_kill;
log_is_quiet($node);
done_testing();
