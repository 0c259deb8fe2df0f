# Many processes of a standby bring the same tree up to date, and are cancelled and terminated while they do; the journal becomes
# stale on the primary while the standby reads; the library goes and comes; and functions that show an index show all of it.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use SmartTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', "shared_preload_libraries = 'smart'\nautovacuum = off\nlog_statement = none\nwal_keep_size = 1GB");
$primary->start;
$primary->safe_psql('postgres', <<'SQL');
CREATE EXTENSION smart;
CREATE TABLE rows (id int, name text) WITH (fillfactor = 70);
INSERT INTO rows SELECT i, 'name ' || i % 100 FROM generate_series(1, 50000) i;
CREATE INDEX rows_id ON rows USING smart (id);
SQL
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->append_conf('postgresql.conf', 'log_statement = none');
$standby->start;

sub caught_up
{
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	return;
}

sub pause
{
	$standby->safe_psql('postgres', 'SELECT pg_wal_replay_pause()');
	$standby->poll_query_until('postgres', q{SELECT pg_get_wal_replay_pause_state() = 'paused'}) or die 'replay is not paused';
	return;
}

# The worker is stopped when it has nothing in hand; so the queries have to apply what is replayed.
sub stop_worker
{
	my $worker = pid_of($standby, 'smart rebuild');

	pause();
	for my $look (1 .. 3)
	{
		$standby->poll_query_until('postgres', "SELECT xact_start IS NULL FROM pg_stat_activity WHERE pid = $worker") or die 'the worker has no end';
		sleep(0.3);
	}
	kill 'STOP', $worker;
	$standby->safe_psql('postgres', 'SELECT pg_wal_replay_resume()');
	return $worker;
}

caught_up();
becomes($standby, 'rows_id', 'ready');

# ---- functions that show an index ----

my $worker = stop_worker();
$primary->safe_psql('postgres', q{INSERT INTO rows SELECT i, 'shown' FROM generate_series(50001, 60000) i});
caught_up();
is($standby->safe_psql('postgres', q{SELECT entries FROM smart_index_stats('rows_id')}), '60000', 'smart_index_stats counts what was replayed');
my $before = $standby->safe_psql('postgres', q{SELECT bytes FROM smart_index_state WHERE index = 'rows_id'::regclass});
$primary->safe_psql('postgres', q{INSERT INTO rows SELECT i, 'shown' FROM generate_series(60001, 90000) i});
caught_up();
is($standby->safe_psql('postgres', q{SELECT entries FROM smart_index_stats('rows_id')}), '90000', 'again');
cmp_ok($standby->safe_psql('postgres', q{SELECT bytes FROM smart_index_state WHERE index = 'rows_id'::regclass}), '>', $before, 'smart_index_state shows the size');
is($standby->safe_psql('postgres', q{SELECT adds + run_entries FROM smart_index_pages('rows_id')}), '90000', 'smart_index_pages looks at the pages themselves');

# ---- many that apply ----

# Each query finds a backlog. Some are cancelled in it, some terminated; what they have begun others do again.
my ($cancelled, $terminated, $wrong) = (0, 0, '');
for my $round (1 .. 8)
{
	my @sessions = map { $standby->background_psql('postgres', on_error_stop => 0) } (1 .. 6);

	$_->query_safe('SET enable_seqscan = off; SET enable_bitmapscan = off') for @sessions;
	$sessions[$_]->query_safe('SET statement_timeout = ' . (1 + $_)) for 1 .. 2;
	my $pid = $sessions[3]->query_safe('SELECT pg_backend_pid()');
	$primary->safe_psql('postgres', qq{DELETE FROM rows WHERE name = 'batch'; VACUUM rows; INSERT INTO rows SELECT 100000 + i * 7 % 30000, 'batch' FROM generate_series(1, 30000) i});
	caught_up();
	# A fast one has said all of it already.
	my @out = map { $_->query_until(qr/begun/, "\\echo begun\nSELECT count(*) FROM rows WHERE id > 99999;\n\\echo ended\n") } @sessions;
	sleep(0.003 * $round);
	$standby->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
	for my $i (0 .. $#sessions)
	{
		my $out = $out[$i] . ($out[$i] =~ /ended/ ? '' : eval { $sessions[$i]->query_until(qr/ended/, '') } // '');
		# What it says of errors comes by another pipe than the word for which was waited, and may come later.
		$i == 3 ? $sessions[$i]->{run}->kill_kill : $sessions[$i]->quit;
		my $error = $sessions[$i]->{stderr} // '';

		# At the very end of a statement core has forgotten that it was the time, and tells of a user.
		my $late = ($i == 1 || $i == 2) && $error =~ /canceling statement due to (?:statement timeout|user request)/;

		$cancelled++ if $late;
		$terminated++ if $i == 3 && $out !~ /30000/;
		$wrong .= "round $round, session $i: $out $error\n" if $out !~ /^30000$/m && $i != 3 && !$late;
	}
}
is($wrong, '', 'all that were not cancelled are right');
cmp_ok($cancelled, '>', 0, 'some were cancelled');
note("$cancelled were cancelled, $terminated terminated");
index_is_sound($standby, 'postgres', 'rows_id', 'applied by many');
same_answers($standby, 'postgres', 'SELECT id, name FROM rows WHERE id > 89990 ORDER BY id, name', 'applied by many');
kill 'CONT', $worker;

# ---- the journal becomes stale ----

# A session has a plan with the index. The primary gives the journal up, and then makes it whole again: a new base.
my $session = $standby->background_psql('postgres', on_error_stop => 0);
$session->query_safe('SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan; PREPARE q AS SELECT count(*) FROM rows WHERE id BETWEEN 100 AND 199');
is($session->query_safe('EXECUTE q'), '100', 'before the journal is stale');
$primary->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$primary->restart;
$primary->safe_psql('postgres', 'DELETE FROM rows WHERE id BETWEEN 150 AND 159');
$primary->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP on) rows');
caught_up();
my $out = $session->query('EXECUTE q');
ok($out eq '90' || $session->{stderr} =~ /content of index "rows_id" is lost/, 'a stale journal: right, or an error that says so') or diag("$out $session->{stderr}");
$session->{stderr} = '';
is($session->query('EXECUTE q'), '90', 'the next execution does without the index') or diag($session->{stderr});
is($standby->safe_psql('postgres', q{SELECT state || ': ' || reason FROM smart_index_state}), 'lost: Its journal is not whole, and has to be written anew on the primary server', 'the state');
is($standby->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM rows WHERE id BETWEEN 100 AND 199'), '90', 'so do new queries');
$primary->append_conf('postgresql.conf', "shared_preload_libraries = 'smart'");
$primary->restart;
becomes($primary, 'rows_id', 'ready');
$primary->poll_query_until('postgres', q{SELECT journal = 'whole' FROM smart_index_pages('rows_id')}) or die 'the journal is not made whole';
$primary->safe_psql('postgres', q{INSERT INTO rows SELECT i, 'new' FROM generate_series(150, 155) i});
caught_up();
becomes($standby, 'rows_id', 'ready');
is($session->query('EXECUTE q'), '96', 'loaded anew');
like($session->query('EXPLAIN (COSTS OFF) EXECUTE q'), qr/rows_id/, 'and used');
$session->quit;
index_is_sound($_, 'postgres', 'rows_id', 'a new base, ' . $_->name) for ($primary, $standby);

# ---- the library goes and comes; the memory is too small ----

$primary->safe_psql('postgres', q{INSERT INTO rows SELECT i, 'many' FROM generate_series(300001, 600000) i;
	CREATE INDEX rows_wide ON rows USING smart ((md5(id::text) || md5(id || name)))});
for my $setting ("shared_preload_libraries = ''", "shared_preload_libraries = 'smart'\nsmart.embedded_max_size = 16MB")
{
	my ($name) = $setting =~ /embedded/ ? 'too little memory' : 'without the library';

	$standby->append_conf('postgresql.conf', $setting);
	$standby->restart;
	$primary->safe_psql('postgres', qq{INSERT INTO rows SELECT i, '$name' FROM generate_series(200001, 200100) i; DELETE FROM rows WHERE id = 120; VACUUM rows});
	caught_up();
	is($standby->safe_psql('postgres', q{SET enable_seqscan = off; SELECT count(*) FROM rows WHERE name = '} . $name . q{' AND id > 200000}), '100', "$name: queries are right");
	isnt(state_of($standby, 'rows_wide'), 'ready', "$name: there is no index");
}
$standby->append_conf('postgresql.conf', 'smart.embedded_max_size = 1GB');
$standby->restart;
becomes($standby, $_, 'ready') for ('rows_id', 'rows_wide');
same_answers($standby, 'postgres', 'SELECT id, name FROM rows WHERE id BETWEEN 199990 AND 200200 OR id < 200 ORDER BY id, name', 'with all that it needs');
index_is_sound($standby, 'postgres', $_, 'with all that it needs') for ('rows_id', 'rows_wide');
log_is_quiet($_) for ($primary, $standby);
done_testing();
