# Eight clients insert, delete, update and scan for some seconds while VACUUM runs; then heap and index hold the same
# rows. While they run, each scan compares the index with the heap in one snapshot.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use SmartTest;
use PostgreSQL::Test::Utils;
use Test::More;
use IPC::Run;

my $seconds = $ENV{SMART_CONCURRENCY_SECONDS} || 18;
my $node = smart_node('main', 'autovacuum = off', 'shared_buffers = 64MB', 'max_wal_size = 2GB', 'fsync = off');

$node->safe_psql('postgres', <<'SQL');
CREATE TABLE busy (id int, word text, n int) WITH (fillfactor = 80);
INSERT INTO busy SELECT (i * 7919) % 20000, 'word ' || (i % 3000), 0 FROM generate_series(1, 20000) i;
CREATE INDEX busy_id ON busy USING smart (id);
CREATE INDEX busy_word ON busy USING smart (word COLLATE "C") WITH (leaf_size = 256);
CREATE INDEX busy_include ON busy USING smart (id DESC, word COLLATE "C") INCLUDE (n);
CREATE TABLE once (id int, n int);
CREATE UNIQUE INDEX once_id ON once USING smart (id);
CREATE TABLE hot (id int);
CREATE UNIQUE INDEX hot_id ON hot USING smart (id);

-- Counts a range by index and by heap, in one snapshot.
CREATE FUNCTION compare(low int, high int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	by_index bigint;
	by_heap bigint;
	last int;
	current int;
BEGIN
	SET LOCAL enable_seqscan = off;
	SET LOCAL enable_bitmapscan = off;
	EXECUTE format('SELECT count(*) FROM busy WHERE id BETWEEN %s AND %s', low, high) INTO by_index;
	FOR current IN EXECUTE format('SELECT id FROM busy WHERE id BETWEEN %s AND %s ORDER BY id DESC', low, high) LOOP
		IF current > last THEN
			RAISE EXCEPTION '% came behind %', current, last;
		END IF;
		last := current;
	END LOOP;
	SET LOCAL enable_seqscan = on;
	SET LOCAL enable_indexscan = off;
	SET LOCAL enable_indexonlyscan = off;
	EXECUTE format('SELECT count(*) FROM busy WHERE id BETWEEN %s AND %s', low, high) INTO by_heap;
	IF by_index <> by_heap THEN
		RAISE EXCEPTION 'from % to % the index has % rows, the heap has %', low, high, by_index, by_heap;
	END IF;
END
$$;
SQL

my %script = (
	insert => [30, <<'SQL'],
\set id random(1, 40000)
INSERT INTO busy SELECT :id + i, 'word ' || (:id % 3000), i FROM generate_series(1, 5) i;
SQL
	delete => [20, <<'SQL'],
\set id random(1, 40000)
DELETE FROM busy WHERE id BETWEEN :id AND :id + 8;
SQL
	update => [25, <<'SQL'],
\set id random(1, 40000)
\set to random(1, 40000)
UPDATE busy SET id = :to, n = n + 1 WHERE ctid = (SELECT ctid FROM busy WHERE id >= :id ORDER BY id LIMIT 1);
UPDATE busy SET n = n + 1 WHERE word = 'word ' || (:id % 3000) AND id < :to;
SQL
	scan => [5, <<'SQL'],
\set low random(1, 40000)
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT compare(:low, :low + 500);
COMMIT;
SQL
	once => [20, <<'SQL'],
\set id random(1, 200)
\set gone random(1, 200)
INSERT INTO once VALUES (:id, 0) ON CONFLICT (id) DO UPDATE SET n = once.n + 1;
DELETE FROM once WHERE id = :gone;
INSERT INTO once VALUES (:gone, 0) ON CONFLICT DO NOTHING;
SQL
	abort => [5, <<'SQL'],
\set id random(1, 40000)
BEGIN;
INSERT INTO busy SELECT :id, 'undone', i FROM generate_series(1, 20) i;
ROLLBACK;
SQL
);

my @connection = ('-h', $node->host, '-p', $node->port);

# First, everybody wants the same three keys: a row that is there twice divides by zero.
my $hot = pgbench_script(<<'SQL');
\set id random(1, 3)
INSERT INTO hot VALUES (:id) ON CONFLICT DO NOTHING;
SELECT 1 / (count(*) < 2)::int FROM hot WHERE id = :id;
DELETE FROM hot WHERE id = :id;
SQL
my ($hot_out, $hot_err) = ('', '');

ok(IPC::Run::run([ 'pgbench', '-n', '-c', 8, '-j', 2, '-T', 5, @connection, '-f', $hot, 'postgres' ], '>', \$hot_out, '2>', \$hot_err),
	'no key was there twice')
	or diag($hot_err);
index_is_sound($node, 'postgres', 'hot_id', 'after a fight for three keys');

my @files;
foreach my $name (sort keys %script)
{
	my ($weight, $text) = @{ $script{$name} };

	push @files, '-f', pgbench_script($text) . "\@$weight";
}

# Beside other work VACUUM may take as long as the clients: then they begin once more.
my $vacuums = 0;
for (1 .. 10)
{
	my ($bench_out, $bench_err) = ('', '');
	my $bench = IPC::Run::start(
		[ 'pgbench', '-n', '-c', 8, '-j', 2, '-T', $seconds, '--max-tries=1', @connection, @files, 'postgres' ],
		'>', \$bench_out, '2>', \$bench_err);

	while ($bench->pumpable)
	{
		my ($status) = $node->psql('postgres', 'VACUUM (INDEX_CLEANUP on) busy; VACUUM once');

		last if $status != 0;
		$vacuums++;
		$bench->pump_nb;
	}
	$bench->finish;
	is($bench->full_result(0), 0, 'no client failed') or diag($bench_err);
	unlike($bench_err, qr/ERROR/, 'no statement failed');
	like($bench_out, qr/number of transactions actually processed: [1-9]/, 'the clients did something');
	note($bench_out);
	last if $vacuums > 2;
}
cmp_ok($vacuums, '>', 2, "VACUUM ran all the time ($vacuums times)");

foreach my $index (qw(busy_id busy_word busy_include once_id))
{
	index_is_sound($node, 'postgres', $index, 'after the load');
}
is($node->safe_psql('postgres', 'SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off;
	SELECT count(*) - count(DISTINCT id) FROM once'), '0', 'unique keys are unique');
same_answers($node, 'postgres', 'SELECT id, n FROM busy WHERE id BETWEEN 1000 AND 3000 ORDER BY id, n', 'a range');

# And again when nothing is left.
$node->safe_psql('postgres', 'DELETE FROM busy; DELETE FROM once');
$node->safe_psql('postgres', 'VACUUM busy; VACUUM once');
foreach my $index (qw(busy_id busy_word busy_include once_id))
{
	index_is_sound($node, 'postgres', $index, 'empty');
	is($node->safe_psql('postgres', "SELECT (smart_index_stats('$index')).entries"), '0', "$index has no entries");
}
log_is_quiet($node);
done_testing();
