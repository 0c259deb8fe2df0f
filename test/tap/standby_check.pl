# An index on a standby is checked while replay gives the pages of the run that the check reads to another one: the check does not take
# that for damage. It is stopped meanwhile.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SmartTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $CHECK = q{SELECT smart_index_check('rows_a')};
my $RUN = q{SELECT run FROM smart_index_pages('rows_a')};
my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', <<'CONF');
shared_preload_libraries = 'smart'
autovacuum = off
wal_keep_size = 1GB
smart.embedded_max_size = 16MB
autovacuum_vacuum_cost_delay = 0
log_error_verbosity = verbose
CONF
$primary->start;
$primary->safe_psql('postgres', <<'SQL');
CREATE EXTENSION smart;
CREATE TABLE rows (a bigint);
INSERT INTO rows SELECT hashint8extended(g, 0) FROM generate_series(1, 300000) g;
CREATE INDEX rows_a ON rows USING smart (a) WITH (resident = never);
SQL
$primary->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$standby->start;
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));

# Two more runs, as the delta gets too large: the second one takes the pages of the run that was there before. No row is removed, for which replay would wait.
sub make_runs
{
	foreach my $seed (1, 2)
	{
		my $run = $primary->safe_psql('postgres', $RUN);

		$primary->safe_psql('postgres', "INSERT INTO rows SELECT hashint8extended(g, $seed) FROM generate_series(1, 150000) g");
		$primary->poll_query_until('postgres', "SELECT run > $run FROM smart_index_pages('rows_a')") or die 'there is no compaction';
		compaction_ends($primary);
	}
	return;
}

# Once, with a check that is stopped in the middle. It may have ended before, or not begun.
sub check_meanwhile
{
	my $session = $standby->background_psql('postgres', on_error_stop => 0);
	my $pid = $session->query_safe('\set VERBOSITY verbose
		SELECT pg_backend_pid()');
	my $begin = time;

	$session->query_safe($CHECK);
	my $takes = time - $begin;
	$standby->safe_psql('postgres', 'SELECT pg_wal_replay_pause()');
	make_runs();
	my $lsn = $primary->lsn('insert');
	$session->query_until(qr/begun/, "\\echo begun\n$CHECK;\n\\echo ended\n");
	sleep($takes / 3);
	kill 'STOP', $pid;
	$standby->safe_psql('postgres', 'SELECT pg_wal_replay_resume()');
	# Should it be stopped with a page locked, replay waits for it.
	for (my $i = 0; $i < 50 && $standby->safe_psql('postgres', "SELECT pg_last_wal_replay_lsn() < '$lsn'") eq 't'; $i++)
	{
		sleep(0.1);
	}
	kill 'CONT', $pid;
	$session->query_until(qr/ended/, '');
	$session->quit;
	my $error = $session->{stderr};
	$primary->wait_for_catchup($standby, 'replay', $lsn);
	return $error;
}

my $met = 0;
my @errors;
for (my $round = 0; $round < 8 && !$met && !@errors; $round++)
{
	my $error = check_meanwhile();

	$met = $error =~ /55000: the pages of index "rows_a" were used anew while they were read/;
	push @errors, $error if $error =~ /ERROR/ && !$met;
}
is_deeply(\@errors, [], 'nothing is damaged');
ok($met, 'a check has met pages that were used anew');
index_is_sound($standby, 'postgres', 'rows_a', 'afterwards');
done_testing();
