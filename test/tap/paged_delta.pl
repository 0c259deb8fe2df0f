# The deltas of an index without a tree come and go with its runs: one that is being made while a compaction ends is let go before
# anybody has found it. Its maker is stopped meanwhile, and goes on as it likes. And where a delta would be too large for the memory,
# a compaction does not sleep.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SmartTest;
use Test::More;
use Time::HiRes qw(sleep);

my $TREES = q{SELECT coalesce(sum(trees), 0) FROM smart_stat_space};
# A compaction takes some seconds. It is due when the delta is large for this region.
my $node = smart_node('main', 'autovacuum = off', q{smart.embedded_max_size = '16MB'}, 'autovacuum_vacuum_cost_delay = 50ms', 'autovacuum_vacuum_cost_limit = 200', 'max_parallel_workers_per_gather = 0');
my $count = 1000;

sub sql
{
	return $node->safe_psql('postgres', $_[0]);
}

sub run_of
{
	return sql(q{SELECT run FROM smart_index_pages('rows_a')});
}

sql(<<'SQL');
CREATE TABLE rows (a bigint, b int);
INSERT INTO rows SELECT hashint8extended(g, 0), g FROM generate_series(1, 1000) g;
CREATE INDEX rows_a ON rows USING smart (a) WITH (resident = never);
SQL
my $met = 0;
foreach my $round (1 .. 4)
{
	# Deltas end with the server.
	sql('TRUNCATE rows');
	$node->restart;
	ok($node->poll_query_until('postgres', $TREES, '0'), "round $round: there is no delta");
	my $reader = $node->background_psql('postgres');
	my $watcher = $node->background_psql('postgres');
	my $other = $node->background_psql('postgres');
	my $pid = $reader->query_safe('SET enable_seqscan = off; SELECT pg_backend_pid()');

	$watcher->query_until(qr/watching/, "\\echo watching\nDO \$\$ BEGIN WHILE ($TREES) = 0 LOOP COMMIT; END LOOP; END \$\$;\n\\echo seen\n");
	sql('INSERT INTO rows SELECT hashint8extended(g, 0), g FROM generate_series(1, 200000) g');
	sql('VACUUM rows');
	my $run = run_of();
	$reader->query_until(qr/asks/, "\\echo asks\nSELECT count(*) FROM rows WHERE a >= -9223372036854775808;\n\\echo answered\n");
	$watcher->query_until(qr/seen/, '');
	kill 'STOP', $pid;
	# It may have a lock, for which others wait: nothing is asked now. The worker that frees what is let go looks five times a second.
	sleep(2.5);
	$other->query_until(qr/begun/, <<'SQL');
\echo begun
CREATE TEMPORARY TABLE other (a int, b text); CREATE INDEX ON other USING smart (b, a); INSERT INTO other SELECT g, md5(g::text) FROM generate_series(1, 20000) g;
SQL
	sleep(1);
	kill 'CONT', $pid;
	$met++ if run_of() > $run;
	like($reader->query_until(qr/answered/, ''), qr/^200000$/m, "round $round: all rows");
	$_->quit foreach ($reader, $watcher, $other);
	compaction_ends($node);
	index_is_sound($node, 'postgres', 'rows_a', "round $round");
}
cmp_ok($met, '>=', 1, 'a compaction has ended while a delta was made or used');

# The longest sleeps that there are, at every page.
$node->adjust_conf('postgresql.conf', 'autovacuum_vacuum_cost_delay', '100ms');
$node->adjust_conf('postgresql.conf', 'autovacuum_vacuum_cost_limit', '1');
sql('TRUNCATE rows');
$node->restart;

# A chain of some 100 pages is worth a compaction, which sleeps.
sql('INSERT INTO rows SELECT hashint8extended(g, 0), g FROM generate_series(1, 60000) g');
ok($node->poll_query_until('postgres', q{SELECT wait_event = 'VacuumDelay' FROM pg_stat_activity WHERE backend_type = 'smart compaction'}),
	'where there is memory a compaction sleeps');
my $before = run_of();

# It gives way to this, and comes again when the chain is so long that a delta of it would take more than the memory has. Whenever it
# is looked at before it has another run, it is at work.
sql(<<"SQL");
BEGIN;
LOCK TABLE rows IN SHARE ROW EXCLUSIVE MODE;
INSERT INTO rows SELECT hashint8extended(g, 0), g FROM generate_series(60001, 1200000) g;
CREATE TABLE seen (event text);
COMMIT;
SET statement_timeout = '${PostgreSQL::Test::Utils::timeout_default}s';
DO \$\$
DECLARE
	event text;
BEGIN
	LOOP
		SELECT coalesce(wait_event, 'none') INTO event FROM pg_stat_activity WHERE backend_type = 'smart compaction';
		EXIT WHEN (SELECT run > $before FROM smart_index_pages('rows_a'));
		INSERT INTO seen SELECT event WHERE event IS NOT NULL;
		COMMIT;
	END LOOP;
END
\$\$;
SQL
note(sql('SELECT event, count(*) FROM seen GROUP BY event'));
cmp_ok(sql('SELECT count(*) FROM seen'), '>=', 3, 'a compaction was seen');
is(sql(q{SELECT count(*) FROM seen WHERE event = 'VacuumDelay'}), '0', 'where there is no memory it does not sleep');
index_is_sound($node, 'postgres', 'rows_a', 'after a compaction without sleep');
log_is_quiet($node);
$node->stop;
done_testing();
