# A small region with more sessions than it has segments of undo records for: nobody's insert fails, and what a crash leaves is undone.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartTest;

my $SESSIONS = 20; # 16 MB have 8 segments
my $node = smart_node('sessions', 'smart.embedded_max_size = \'16MB\'', 'autovacuum = off', 'fsync = off', 'max_connections = 50');
my @sessions;

$node->safe_psql('postgres', 'CREATE TABLE t (a int, b int); CREATE UNIQUE INDEX t_a ON t USING smart (a) WITH (resident = always);
	CREATE INDEX t_b ON t USING smart (b) WITH (resident = always)');
push @sessions, $node->background_psql('postgres', on_error_stop => 0) for 1 .. $SESSIONS;

# Each of them: an insert whose transaction has ended, and one that is open beside all others.
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

# A full region, in which there is no segment for one more session: an index that may do without memory leaves it for that.
$node->safe_psql('postgres', 'CREATE TABLE auto (a int); CREATE INDEX auto_a ON auto USING smart (a); INSERT INTO auto SELECT generate_series(1, 100)');
@sessions = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. 7;
each_inserts('INSERT INTO t VALUES (20000 + :i, :i)', 'those that have the other segments');
my @others = @sessions;
my $filler = $node->background_psql('postgres');
$filler->query_safe(q{BEGIN; DO 'DECLARE
		failed int := 0;
		n int := 1000000;
	BEGIN
		WHILE failed < 300 LOOP
			BEGIN
				n := n + 10;
				INSERT INTO t SELECT g, hashint4(g) FROM generate_series(n, n + 9) g;
			EXCEPTION WHEN insufficient_resources THEN
				failed := failed + 1;
			END;
		END LOOP;
	END'});
@sessions = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. $SESSIONS;
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
