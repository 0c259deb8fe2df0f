# What replay removes on a standby that promises its sessions nothing: no feedback, no patience. Indexes are loaded all the same, a
# check finds them sound at every moment, and a query that has begun is cancelled, or right.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use SmartTest;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', "shared_preload_libraries = 'smart'\nautovacuum = off\nsynchronous_commit = off\nlog_statement = none");
$primary->start;
$primary->safe_psql('postgres', <<'SQL');
CREATE EXTENSION smart;
CREATE TABLE large (id int, name text);
INSERT INTO large SELECT i, 'name ' || i % 1000 FROM generate_series(1, 300000) i;
CREATE INDEX large_id ON large USING smart (id);
CREATE INDEX large_name ON large USING smart (name) INCLUDE (id);
CREATE TABLE rows (id int, fill int) WITH (fillfactor = 50);
INSERT INTO rows SELECT i % 500, i FROM generate_series(1, 2000) i;
CREATE INDEX rows_id ON rows USING smart (id);
SQL
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->append_conf('postgresql.conf', "max_standby_streaming_delay = 0\nhot_standby_feedback = off\nlog_line_prefix = '%m [%p] %b %q%a '");

# churn(SECONDS, CLIENTS): rows come and go on the primary, so that there is always something for VACUUM to remove.
sub churn
{
	my ($seconds) = @_;
	my $change = pgbench_script(<<'SQL');
\set a random(0, 499)
DELETE FROM rows WHERE id = :a;
INSERT INTO rows SELECT (:a + i) % 500, i FROM generate_series(1, 4) i;
SQL
	my $vacuum = pgbench_script("VACUUM (INDEX_CLEANUP on, TRUNCATE off) rows;\n\\sleep 5 ms\n");
	my $out = '';

	return map { IPC::Run::start([ 'pgbench', '-n', '-T', $seconds, '-c', 1, '-f', $_, '-h', $primary->host, '-p', $primary->port, 'postgres' ],
		'<', \undef, '>&', \$out) } ($change, $vacuum);
}

# ---- loading ----

# The workers have no snapshot while they fill a tree, or bring it up to date. One that connects, or lists the indexes, may be
# cancelled; the former exits.
sub cancelled_in_work
{
	my ($offset) = @_;
	my $log = PostgreSQL::Test::Utils::slurp_file($standby->logfile, $offset);

	return join "\n", grep { !/CONTEXT:  SQL statement "SELECT i\.indexrelid|exited with exit code 1/ } $log =~ /^.* smart rebuild (?:ERROR|FATAL):.*\n.* DETAIL:.*\n.*$/mg;
}
my @load = churn(6);
$standby->start;
becomes($standby, $_, 'ready') for ('large_id', 'large_name', 'rows_id');
$_->finish for @load;
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
is(cancelled_in_work(0), '', 'replay does not cancel who loads');
my @loaded = PostgreSQL::Test::Utils::slurp_file($standby->logfile) =~ /smart index "(\w+)" has been loaded/g;
is(join(' ', sort @loaded), 'large_id large_name rows_id', 'each index is loaded once');

# ---- checks ----

my $checks = pgbench_script("SELECT smart_index_check('rows_id', true);\n");
my $stats = pgbench_script("SELECT entries FROM smart_index_stats('rows_id');\n");
$standby->append_conf('postgresql.conf', 'max_standby_streaming_delay = 200ms');
$standby->reload;
@load = churn(300);
my %said = (check => '', stats => '');
my $end = time() + 6;
# A connection may be cancelled, too.
while (time() < $end || grep { !/actually processed: [1-9]/ } values %said)
{
	for my $kind (sort keys %said)
	{
		my $run = IPC::Run::start([ 'pgbench', '-n', '-t', 20, '-c', 1, '-f', $kind eq 'check' ? $checks : $stats, '-h', $standby->host, '-p', $standby->port, 'postgres' ],
			'<', \undef, '>&', \$said{$kind});
		$run->finish;
	}
}
$_->kill_kill for @load;
$standby->append_conf('postgresql.conf', 'max_standby_streaming_delay = 0');
$standby->reload;
is(join("\n", grep { !/conflict with recovery/ } $said{$_} =~ /ERROR:.*/g), '', "smart_index_$_ finds nothing while removals are replayed") for sort keys %said;

# ---- a long snapshot ----

# Rows that it sees are removed, and their places given to others: every query in it is right, or ends with the usual error.
sub long_snapshot
{
	my ($feedback, $method) = @_;
	my $session = $standby->background_psql('postgres', on_error_stop => 0);
	my $query = "SELECT count(*) || ' ' || coalesce(sum(fill), 0) FROM rows WHERE id BETWEEN 10 AND 60";
	my ($first, $right, $cancelled) = ('', 0, 0);

	$session->query_safe("BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL enable_seqscan = off; SET LOCAL $method = off");
	$first = $session->query_safe($query);
	for my $round (1 .. 10)
	{
		$primary->safe_psql('postgres', <<"SQL");
DELETE FROM rows WHERE id = 10 + $round * 3;
VACUUM (INDEX_CLEANUP on, TRUNCATE off) rows;
INSERT INTO rows SELECT 10 + i % 50, 1000000 + i FROM generate_series(1, 20) i;
SQL
		$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
		my $now = eval { $session->query($query) } // '';
		my $error = $session->{stderr} // '';

		if ($error =~ /conflict with recovery|server closed the connection|connection to server was lost/ || $now eq '')
		{
			$cancelled = 1;
			last;
		}
		is($now, $first, "feedback $feedback, $method off, round $round: the same rows");
		$right++;
	}
	$session->{run}->kill_kill if $cancelled;
	$session->quit if !$cancelled;
	return ($right, $cancelled);
}
for my $method ('enable_bitmapscan', 'enable_indexscan')
{
	my ($right, $cancelled) = long_snapshot('off', $method);
	ok($cancelled, "feedback off, $method off: it is cancelled in the end");
	same_answers($standby, 'postgres', 'SELECT id, fill FROM rows WHERE id BETWEEN 10 AND 60 ORDER BY id, fill', "feedback off, $method off: another one");
}
$standby->append_conf('postgresql.conf', "hot_standby_feedback = on\nwal_receiver_status_interval = 1s");
$standby->reload;
$primary->poll_query_until('postgres', 'SELECT backend_xmin IS NOT NULL FROM pg_stat_replication') or die 'there is no feedback';
for my $method ('enable_bitmapscan', 'enable_indexscan')
{
	my ($right, $cancelled) = long_snapshot('on', $method);
	ok($right == 10 || $cancelled, "feedback on, $method off: right to the end, or cancelled");
}
index_is_sound($_, 'postgres', 'rows_id', $_->name) for ($primary, $standby);
log_is_quiet($_) for ($primary, $standby);
done_testing();
