# A standby's answers are right at every moment: while a primary inserts, deletes, updates and vacuums, sessions on the
# standby compare in one snapshot what index scans, bitmap scans and the heap give, now and a moment later. Whatever
# replay cancels says so with the usual errors. In the end the standby is promoted under load. With SMART_STRESS_NODES both have
# their trees on the same memory nodes (standby_stress_nodes.pl).
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use SmartMemnode;
use SmartTest;
use IPC::Run;
use Time::HiRes;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $SECONDS = $ENV{SMART_STRESS_SECONDS} || 8;
my @memory = $ENV{SMART_STRESS_NODES} ? map { SmartMemnode->new($_, '--size=128M') } ('one', 'two') : ();
my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', "shared_preload_libraries = 'smart'\n$NODE_SETTINGS\nautovacuum = off\nsynchronous_commit = off\nlog_statement = none\n" . (@memory ? 'smart.memory_nodes = ' . addresses(@memory) . "\n" : ''));
$primary->start;

# same_rows: in one snapshot. The functions are planned with their settings.
$primary->safe_psql('postgres', <<'SQL');
CREATE EXTENSION smart;
CREATE TABLE rows (id int, name text, fill int) WITH (fillfactor = 70);
INSERT INTO rows SELECT i % 1000, 'name ' || i % 50, i FROM generate_series(1, 5000) i;
CREATE INDEX rows_id ON rows USING smart (id);
CREATE INDEX rows_name ON rows USING smart (name);
CREATE TABLE keys AS SELECT generate_series(0, 1000) AS id;
ANALYZE keys;
CREATE FUNCTION by_index(a int, z int) RETURNS text STABLE LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off
	AS $$ BEGIN RETURN (SELECT count(*) || ' rows, ' || md5(string_agg(id || name || fill, ' ' ORDER BY id, name, fill)) FROM rows WHERE id BETWEEN a AND z); END $$;
CREATE FUNCTION by_bitmap(a int, z int) RETURNS text STABLE LANGUAGE plpgsql SET enable_seqscan = off SET enable_indexscan = off
	AS $$ BEGIN RETURN (SELECT count(*) || ' rows, ' || md5(string_agg(id || name || fill, ' ' ORDER BY id, name, fill)) FROM rows WHERE id BETWEEN a AND z); END $$;
CREATE FUNCTION by_heap(a int, z int) RETURNS text STABLE LANGUAGE plpgsql SET enable_indexscan = off SET enable_bitmapscan = off
	AS $$ BEGIN RETURN (SELECT count(*) || ' rows, ' || md5(string_agg(id || name || fill, ' ' ORDER BY id, name, fill)) FROM rows WHERE id BETWEEN a AND z); END $$;
CREATE FUNCTION names_by_index(n text) RETURNS bigint STABLE LANGUAGE plpgsql SET enable_seqscan = off
	AS $$ BEGIN RETURN (SELECT count(*) FROM rows WHERE name = n); END $$;
CREATE FUNCTION names_by_heap(n text) RETURNS bigint STABLE LANGUAGE plpgsql SET enable_indexscan = off SET enable_bitmapscan = off
	AS $$ BEGIN RETURN (SELECT count(*) FROM rows WHERE name = n); END $$;
CREATE FUNCTION same_rows(a int, z int, pause float) RETURNS void LANGUAGE plpgsql AS $$
DECLARE heap text := by_heap(a, z); n text := 'name ' || a % 50;
BEGIN
	IF pause < 0 THEN RAISE EXCEPTION 'WRONG in parallel'; END IF;
	IF by_index(a, z) IS DISTINCT FROM heap THEN RAISE EXCEPTION 'WRONG by index: % not %', by_index(a, z), heap; END IF;
	IF by_bitmap(a, z) IS DISTINCT FROM heap THEN RAISE EXCEPTION 'WRONG by bitmap: % not %', by_bitmap(a, z), heap; END IF;
	PERFORM pg_sleep(pause);
	IF by_index(a, z) IS DISTINCT FROM heap THEN RAISE EXCEPTION 'WRONG by index later: % not %', by_index(a, z), heap; END IF;
	IF names_by_index(n) <> names_by_heap(n) THEN RAISE EXCEPTION 'WRONG names: % not %', names_by_index(n), names_by_heap(n); END IF;
END $$;
SQL
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->append_conf('postgresql.conf', "max_standby_streaming_delay = 500ms\nhot_standby_feedback = on");
$standby->start;
$standby->poll_query_until('postgres', q{SELECT count(*) = 2 FROM smart_index_state WHERE state = 'ready'}) or die 'the indexes are not loaded';

my $change = pgbench_script(<<'SQL');
\set a random(0, 1000)
\set b random(0, 1000)
\set n random(0, 50)
BEGIN;
INSERT INTO rows VALUES (:a, 'name ' || :n, :b), (:b, 'name ' || :n, :a);
DELETE FROM rows WHERE id = :b;
UPDATE rows SET id = :b WHERE id = :a;
COMMIT;
SQL
my $grow = pgbench_script("\\set a random(0, 1000)\nINSERT INTO rows SELECT (:a + i * 7) % 1000, 'name ' || i % 50, i FROM generate_series(1, 20) i;\n");
my $vacuum = pgbench_script("VACUUM (INDEX_CLEANUP on) rows;\n\\sleep 100 ms\n");
my $read = pgbench_script("\\set a random(0, 990)\nSELECT same_rows(:a, :a + 8, 0.0);\n");
# The workers of a parallel query begin scans that their leader has not begun: the inner ones of a join.
my $parallel = pgbench_script(<<'SQL');
\set a random(0, 900)
BEGIN ISOLATION LEVEL REPEATABLE READ;
SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_material = off;
SET LOCAL parallel_setup_cost = 0; SET LOCAL parallel_tuple_cost = 0; SET LOCAL min_parallel_table_scan_size = 0; SET LOCAL parallel_leader_participation = off;
SELECT count(*) AS n, coalesce(sum(fill), 0) AS s FROM keys k JOIN rows r USING (id) WHERE k.id BETWEEN :a AND :a + 60 \gset parallel_
SET LOCAL enable_indexscan = off; SET LOCAL max_parallel_workers_per_gather = 0; SET LOCAL enable_hashjoin = on;
SELECT count(*) AS n, coalesce(sum(fill), 0) AS s FROM rows WHERE id BETWEEN :a AND :a + 60 \gset heap_
SELECT CASE WHEN :parallel_n <> :heap_n OR :parallel_s <> :heap_s THEN same_rows(0, 0, -1.0) END;
COMMIT;
SQL
my $slow = pgbench_script("\\set a random(0, 990)\nSELECT same_rows(:a, :a + 8, 0.3);\n");

# pgbench(NODE, SCRIPT, CLIENTS, OPTION...): starts it; what it said is in {out}.
sub pgbench
{
	my ($node, $script, $clients, @options) = @_;
	my %run = (out => '');
	local $ENV{PGOPTIONS} = '-c default_transaction_isolation=repeatable\ read';

	$run{run} = IPC::Run::start([ 'pgbench', '-n', '-T', $SECONDS, '-c', $clients, '-f', $script, '-h', $node->host, '-p', $node->port, @options, 'postgres' ],
		'<', \undef, '>&', \$run{out});
	return \%run;
}

my $by_reader;

for my $feedback ('on', 'off')
{
	$standby->safe_psql('postgres', "ALTER SYSTEM SET hot_standby_feedback = $feedback");
	$standby->reload;
	my @writers = (pgbench($primary, $change, 2, '--max-tries=0'), pgbench($primary, $grow, 1), pgbench($primary, $vacuum, 1));
	my @readers;
	# A reader whose query was cancelled begins again, as long as there is load, and until one has read.
	my $end = time() + $SECONDS;
	my ($wrong, $cancelled, $other) = ('', 0, '');

	my @scripts = ($read, $slow, $parallel, $parallel);

	@readers = map { pgbench($standby, $_, 1) } @scripts;
	while (time() < $end || (join('', $by_reader // '', map { $_->{out} } @readers) !~ /actually processed: [1-9]/ && time() < $end + 120))
	{
		for my $i (0 .. $#readers)
		{
			$readers[$i]{run}->pump_nb;
			next if $readers[$i]{run}->pumpable;
			$readers[$i]{run}->finish;
			$by_reader .= $readers[$i]{out};
			$readers[$i] = pgbench($standby, $scripts[$i], 1);
		}
		Time::HiRes::sleep(0.05);
	}
	$_->{run}->finish for @readers, @writers;
	# What is replayed later may still be in the way of what is asked next.
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	my $said = join('', $by_reader // '', map { $_->{out} } @readers);

	$cancelled = () = $said =~ /conflict with recovery/g;
	$wrong = join("\n", $said =~ /WRONG.*/g);
	$other = join("\n", grep { !/conflict with recovery|rows may|row versions/ } $said =~ /ERROR:.*/g);
	is($wrong, '', "feedback $feedback: no answer is wrong");
	is($other, '', "feedback $feedback: no other error ($cancelled were cancelled)");
	my ($done) = $said =~ /number of transactions actually processed: ([1-9]\d*)/;
	ok($done, "feedback $feedback: readers have read");
	like($_->{out}, qr/actually processed: [1-9]/, "feedback $feedback: a writer has written") for @writers;
	$by_reader = '';
}
# Where others work, too, the indexes may have been behind most of the time; now they are not.
my $used = q{SELECT min(idx_scan) > 20 FROM pg_stat_user_indexes WHERE relname = 'rows'};
for (1 .. 10)
{
	last if $standby->safe_psql('postgres', $used) eq 't';
	my $reader = pgbench($standby, $read, 1);
	$reader->{run}->finish;
	unlike($reader->{out}, qr/WRONG/, 'no answer is wrong without load');
}
ok($standby->poll_query_until('postgres', $used), 'both indexes were used');
like($standby->safe_psql('postgres', <<'SQL'), qr/Gather.*Nested Loop.*Index Scan/s, 'inner scans were begun by workers');
SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_bitmapscan = off; SET enable_material = off;
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET parallel_leader_participation = off;
EXPLAIN (COSTS OFF) SELECT count(*) AS n, coalesce(sum(fill), 0) AS s FROM keys k JOIN rows r USING (id) WHERE k.id BETWEEN 5 AND 65
SQL
unlike(PostgreSQL::Test::Utils::slurp_file($standby->logfile), qr/rebuilt/, 'nothing was rebuilt');

# A promotion under load.
my $writers = pgbench($primary, $change, 2, '--max-tries=0');
my $reader = pgbench($standby, $read, 2);
Time::HiRes::sleep(2);
# One that was left behind by compactions is being loaded for a moment.
ok($standby->poll_query_until('postgres', q{SELECT count(*) = 2 FROM smart_index_state WHERE state = 'ready'}), 'ready before');
my $offset = -s $standby->logfile;
$standby->promote;
is($standby->safe_psql('postgres', q{SELECT string_agg(state, ' ') FROM smart_index_state}), 'ready ready', 'ready at once');
my $on_new = pgbench($standby, $change, 2, '--max-tries=0');
$_->{run}->finish for $writers, $reader, $on_new;
unlike($reader->{out}, qr/WRONG/, 'no answer is wrong');
unlike($on_new->{out}, qr/ERROR/, 'writers of the promoted server meet no error');
unlike(PostgreSQL::Test::Utils::slurp_file($standby->logfile, $offset), qr/has been (loaded|rebuilt)/, 'nothing was loaded or rebuilt');
$standby->safe_psql('postgres', 'VACUUM rows');
index_is_sound($standby, 'postgres', $_, 'after the promotion') for ('rows_id', 'rows_name');
index_is_sound($primary, 'postgres', $_, 'on the primary') for ('rows_id', 'rows_name');
log_is_quiet($_) for ($primary, $standby);
done_testing();
