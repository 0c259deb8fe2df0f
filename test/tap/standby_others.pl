# Standbys of other kinds: of a standby, without the library, with a small limit for conflicts, in recovery from an archive to
# a target; and what a standby does when its journal is of no use.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use SmartTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1, has_archiving => 1);
$primary->append_conf('postgresql.conf', "shared_preload_libraries = 'smart'\nautovacuum = off");
$primary->start;
$primary->safe_psql('postgres', <<'SQL');
CREATE EXTENSION smart;
CREATE TABLE copied (id int UNIQUE, name text) WITH (fillfactor = 50);
INSERT INTO copied SELECT i, 'name ' || i % 100 FROM generate_series(1, 5000) i;
CREATE INDEX copied_id ON copied USING smart (id);
CREATE INDEX copied_name ON copied USING smart (name) INCLUDE (id);
SQL
$primary->backup('base');

my $by_index = 'SET enable_seqscan = off; ';
my @QUERIES = ('SELECT * FROM copied WHERE id BETWEEN 90 AND 110 ORDER BY id', q{SELECT * FROM copied WHERE name = 'name 5' ORDER BY id});

# standby(NAME, OF, OPTIONS...): one of another server, with these settings, and running.
sub standby
{
	my ($name, $of, %options) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init_from_backup($of, 'base', %{ $options{from} // { has_streaming => 1 } });
	$node->append_conf('postgresql.conf', $options{settings} // '');
	$node->start;
	return $node;
}

my $first = standby('first', $primary, settings => 'max_standby_streaming_delay = 0');
$first->backup('base');
my $second = standby('second', $first);
my $without = standby('without', $primary, settings => "shared_preload_libraries = ''");

sub replayed
{
	my $lsn = $primary->lsn('insert');

	$primary->wait_for_catchup($_, 'replay', $lsn) for $first, $without;
	$first->wait_for_catchup($second, 'replay', $lsn);
	return;
}

replayed();
for my $node ($first, $second)
{
	becomes($node, $_, 'ready') for ('copied_id', 'copied_name');
}
$primary->safe_psql('postgres', q{DELETE FROM copied WHERE id % 10 = 0; VACUUM copied; INSERT INTO copied SELECT i, 'name 5' FROM generate_series(100, 200, 10) i});
replayed();
for my $node ($first, $second)
{
	same_answers($node, 'postgres', $_, $node->name . ": $_") for @QUERIES;
	index_is_sound($node, 'postgres', $_, $node->name) for ('copied_id', 'copied_name');
}

# Without the library what it would have done is done by the heap.
is($without->safe_psql('postgres', "$by_index$_"), $primary->safe_psql('postgres', $_), "without the library: $_") for @QUERIES;
unlike($without->safe_psql('postgres', "SET enable_bitmapscan = off; ${by_index}EXPLAIN (COSTS OFF) $QUERIES[1]"), qr/copied_name/, 'which does not use them');

# Conflicts end in the usual errors.
my $reader = $first->background_psql('postgres', on_error_stop => 0);
$reader->query_safe("BEGIN ISOLATION LEVEL REPEATABLE READ; $by_index SELECT count(*) FROM copied WHERE name = 'name 7'");
$primary->safe_psql('postgres', q{DELETE FROM copied WHERE name = 'name 7'; VACUUM copied});
replayed();
ok(!eval { $reader->query_safe(q{SELECT count(*) FROM copied WHERE name = 'name 7'}); 1 }, 'a snapshot in the way of VACUUM is given up');
like(PostgreSQL::Test::Utils::slurp_file($first->logfile), qr/conflict with recovery/, 'for the usual reason');
$reader->{run}->kill_kill if $reader->{run};
same_answers($first, 'postgres', q{SELECT count(*) FROM copied WHERE name = 'name 7'}, 'and the next one does not see those rows');

# Recovery from the archive to a target: open for queries there, and then another timeline.
$primary->safe_psql('postgres', q{SELECT pg_create_restore_point('here')});
my $here = $primary->safe_psql('postgres', $QUERIES[0]);
$primary->safe_psql('postgres', q{DELETE FROM copied WHERE id < 100; SELECT pg_switch_wal()});
my $back = standby('back', $primary, from => { has_restoring => 1, standby => 0 },
	settings => "recovery_target_name = 'here'\nrecovery_target_action = 'pause'");
$back->poll_query_until('postgres', q{SELECT pg_get_wal_replay_pause_state() = 'paused'}) or die 'the target is not reached';
becomes($back, $_, 'ready') for ('copied_id', 'copied_name');
is($back->safe_psql('postgres', "$by_index$QUERIES[0]"), $here, 'at the target');
same_answers($back, 'postgres', $_, "at the target: $_") for @QUERIES;
my $offset = -s $back->logfile;
$back->safe_psql('postgres', 'SELECT pg_wal_replay_resume()');
$back->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'recovery does not end';
is($back->safe_psql('postgres', q{SELECT string_agg(state, ' ') FROM smart_index_state}), 'ready ready', 'ready at once on the new timeline');
$back->safe_psql('postgres', q{UPDATE copied SET name = 'name 5' WHERE id < 20; VACUUM copied});
same_answers($back, 'postgres', $_, "on the new timeline: $_") for @QUERIES;
unlike(PostgreSQL::Test::Utils::slurp_file($back->logfile, $offset), qr/has been (loaded|rebuilt)/, 'nothing was loaded or rebuilt');
index_is_sound($back, 'postgres', $_, 'on the new timeline') for ('copied_id', 'copied_name');

# A standby of a standby that is promoted goes on.
$first->promote;
$first->safe_psql('postgres', q{INSERT INTO copied VALUES (-1, 'name 5')});
$first->wait_for_catchup($second, 'replay', $first->lsn('insert'));
same_answers($second, 'postgres', $_, "behind the promoted one: $_") for @QUERIES;
index_is_sound($_, 'postgres', 'copied_name', $_->name) for ($first, $second);
log_is_quiet($_) for ($primary, $first, $second, $without, $back);
done_testing();
