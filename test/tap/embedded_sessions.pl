# More sessions than a small region has segments of undo records: no insert fails, and after a crash the indexes are sound.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartTest;

my $SESSIONS = 20; # 16 MB have 8 segments
my @SETTINGS = ('smart.embedded_max_size = \'16MB\'', 'autovacuum = off', 'fsync = off', 'max_connections = 50');
my $TABLE = 'CREATE TABLE t (a int, b int); CREATE UNIQUE INDEX t_a ON t USING smart (a) WITH (resident = always);
	CREATE INDEX t_b ON t USING smart (b) WITH (resident = always);';
my $node = smart_node('sessions', @SETTINGS);
my @sessions = begin_sessions($SESSIONS);

sub begin_sessions
{
	my ($count) = @_;

	return map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. $count;
}

# each_inserts(STATEMENT, NAME): each session runs it, with its own number for :i, and none fails.
sub each_inserts
{
	my ($statement, $name) = @_;
	my $failed = 0;

	for my $i (0 .. $#sessions)
	{
		my $sql = $statement;

		$sql =~ s/:i/$i/g;
		$sessions[$i]->query($sql);
		next if $sessions[$i]->{stderr} !~ /ERROR/;
		diag("session $i: $sessions[$i]->{stderr}");
		$failed++;
		$sessions[$i]->{stderr} = '';
	}
	is($failed, 0, "$name: every session inserts");
	return;
}
$node->safe_psql('postgres', $TABLE);
each_inserts('INSERT INTO t VALUES (:i, :i)', 'one after the other');
each_inserts('BEGIN; INSERT INTO t SELECT 1000 + 100 * :i + g, g FROM generate_series(1, 50) g', 'all at once');
each_inserts('COMMIT', 'the ends');
each_inserts('BEGIN; INSERT INTO t SELECT 10000 + 100 * :i + g, g FROM generate_series(1, 50) g', 'before a crash');
is($node->safe_psql('postgres', 'SELECT count(*) FROM t'), $SESSIONS * 51, 'the rows of those that have committed');
$node->stop('immediate');
$_->{run}->finish for @sessions;
start_again($node);
is($node->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM t WHERE a >= 0'), $SESSIONS * 51, 'after a crash');
index_is_sound($node, 'postgres', $_, 'after a crash') for ('t_a', 't_b');
log_is_quiet($node);
$node->stop;

# A full region has no room for one more segment: the index leaves memory, and no insert fails.
$node = smart_node('full', @SETTINGS);
$node->safe_psql('postgres', "$TABLE CREATE TABLE auto (a int); CREATE INDEX auto_a ON auto USING smart (a); INSERT INTO auto SELECT generate_series(1, 100)");
@sessions = begin_sessions(7);
each_inserts('INSERT INTO t VALUES (20000 + :i, :i)', 'those that have the other segments');
my @others = @sessions;
my $filler = $node->background_psql('postgres');
$filler->query_safe('BEGIN; ' . fill_up('INSERT INTO t SELECT g, hashint4(g) FROM generate_series(n, n + 9) g', 1000000));
@sessions = begin_sessions($SESSIONS);
is(state_of($node, 'auto_a'), 'ready', 'a full region: the index has a tree');
each_inserts('INSERT INTO auto VALUES (1000 + :i)', 'a full region');
is(state_of($node, 'auto_a'), 'paged', 'a full region: it has left memory');
is($node->safe_psql('postgres', 'SELECT count(*) FROM auto'), 100 + $SESSIONS, 'a full region: the rows');
same_answers($node, 'postgres', 'SELECT a FROM auto WHERE a > 90 ORDER BY a', 'a full region: by the index');
$filler->query_safe('COMMIT');
index_is_sound($node, 'postgres', $_, 'a full region') for ('t_a', 't_b', 'auto_a');
$_->quit for @sessions, @others, $filler;
log_is_quiet($node);
done_testing();
