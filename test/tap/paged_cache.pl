# What runs have under single keys is remembered: who looks a key up again reads no page of the run, and finds what there is, whatever
# has become of the run, of the memory and of the rows. Builds for tests look into the run each time, too.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SmartTest;
use Test::More;

my $ROWS = 20000;
my @settings = (
	'autovacuum = off', 'smart.embedded_max_size = 16MB', 'smart.cache_size = 1MB', 'autovacuum_vacuum_cost_delay = 0',
	'enable_seqscan = off', 'enable_bitmapscan = off', 'enable_hashjoin = off', 'enable_mergejoin = off', 'enable_memoize = off',
	'max_parallel_workers_per_gather = 0', 'log_statement = none');
my $node = smart_node('main', @settings);

sub sql
{
	my ($statements, $database) = @_;

	return $node->safe_psql($database // 'postgres', $statements);
}

# both(STATEMENTS, DATABASE): for the rows of smart's indexes, and for those of nbtree's, which is what ROWS stands for.
sub both
{
	my ($statements, $database) = @_;

	for my $table ('rows', 'twin')
	{
		sql($statements =~ s/ROWS/$table/gr, $database);
	}
	return;
}

# blocks(KEYS, CONDITION, TABLE): of the table and the index, that a lookup of each of these keys k asks for.
sub blocks
{
	my ($keys, $condition, $table) = @_;
	my $from = $table // 'rows';
	my $plan = sql(<<"SQL");
EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, FORMAT JSON)
SELECT count(found.e) FROM (SELECT $keys OFFSET 0) AS keys CROSS JOIN LATERAL (SELECT e FROM $from WHERE $condition OFFSET 0) AS found
SQL
	my ($hit) = $plan =~ /"Shared Hit Blocks": (\d+)/;
	my ($read) = $plan =~ /"Shared Read Blocks": (\d+)/;
	my $count = sql("SELECT count(*) FROM (SELECT $keys) AS keys");

	return ($hit + $read) / $count;
}

# saves(NAME, BLOCKS, KEYS, CONDITION): a lookup asks for so many blocks less, the second time.
sub saves
{
	my ($name, $blocks, $keys, $condition) = @_;
	my $first = blocks($keys, $condition);
	my $second = blocks($keys, $condition);

	cmp_ok(abs($first - $second - $blocks), '<', 0.2, "$name: $second blocks instead of $first");
	return;
}

# is_same(NAME, DATABASE): lookups of keys, and of keys that are absent, find the same rows in both tables, and so do the next ones.
sub is_same
{
	my ($name, $database) = @_;
	my %absent = (a => 'a + 1', b => 'b + 100000', c => q{c || 'x'}, d => 'd + 0.05');
	my $differences = join ";\n", map { <<"SQL" } sort keys %absent;
SELECT count(*) FROM (SELECT $_ AS k FROM twin WHERE e % 8 = 0 UNION SELECT $absent{$_} FROM twin WHERE e % 32 = 0) AS keys
WHERE (SELECT array_agg(e ORDER BY e) FROM rows WHERE $_ = k) IS DISTINCT FROM (SELECT array_agg(e ORDER BY e) FROM twin WHERE $_ = k)
SQL

	is(sql("$differences;\n$differences", $database), join("\n", (0) x 8), $name);
	is( sql(q{SELECT count(smart_index_check(indexrelid)) FROM pg_index WHERE indrelid = 'rows'::regclass}, $database),
		'4', "$name: the indexes are sound");
	return;
}

sub run
{
	my ($database) = @_;

	return sql(q{SELECT run FROM smart_index_pages('rows_a')}, $database);
}

# new_run(NAME, DATABASE): changes rows of both tables to and fro until rows_a has a new run.
sub new_run
{
	my ($name, $database) = @_;
	my $before = run($database);

	for (my $times = 0; $times < 30 && run($database) == $before; $times++)
	{
		both('UPDATE ROWS SET a = a + 3 WHERE e % 2 = 0; UPDATE ROWS SET a = a - 3 WHERE e % 2 = 0; VACUUM ROWS', $database);
		compaction_ends($node);
	}
	cmp_ok(run($database), '>', $before, "$name: there is a new run");
	return;
}

# a has one row a key, b twelve, c text of many lengths, and d two, with other columns behind it and in descending order.
both(<<"SQL");
CREATE TABLE ROWS (a bigint, b int, c text COLLATE "C", d numeric, e int);
INSERT INTO ROWS SELECT 3 * g, g / 12, repeat('c', g % 131) || g, (g / 2) / 10.0, g FROM generate_series(1, $ROWS) g;
INSERT INTO ROWS SELECT NULL, NULL, NULL, NULL, 0 FROM generate_series(1, 3) g;
SQL
for my $column (qw(a b c d))
{
	my $columns = $column eq 'd' ? '(d DESC) INCLUDE (a, e)' : "($column)";

	sql("CREATE INDEX rows_$column ON rows USING smart $columns WITH (resident = never)");
	sql("CREATE INDEX twin_$column ON twin $columns");
}
both('VACUUM ANALYZE ROWS');

# Keys in no order, since a search for the next one goes on in the page where the one before has ended.
my $KEYS = 'FROM (SELECT g * 7919 % 20000 AS i FROM generate_series(1, 1000) g) numbers';
my $TEXTS = "repeat('c', i % 131) || i AS k $KEYS WHERE i % 131";

# Of the run that is a page: a session remembers the fence page.
saves('a key', 1, "3 * i AS k $KEYS", 'a = k');
saves('a key that is absent', 1, "3 * i + 1 AS k $KEYS", 'a = k');
saves('twelve rows of a key', 1, "i / 12 AS k $KEYS", 'b = k');
saves('text', 1, "$TEXTS < 90", 'c = k');
saves('long text', 0, "$TEXTS > 115", 'c = k');
saves('rows with other columns', 1, "i / 10.0 AS k $KEYS", 'd = k');
saves('NULL', 0, "3 * i AS k $KEYS", 'a IS NULL AND k > 0');
saves('a range', 0, "3 * i AS k $KEYS", 'a >= k AND a <= k + 1');
is_same('a build');

# What comes lies over it.
both('INSERT INTO ROWS SELECT a + (g % 2), b, c, d, e + 30000 FROM ROWS, generate_series(0, 2) g WHERE e % 5 = 0');
is_same('rows that were added');
both('DELETE FROM ROWS WHERE e % 3 = 0');
is_same('rows that were deleted');
both('VACUUM ROWS');
is_same('after VACUUM');
both('INSERT INTO ROWS SELECT 3 * g + 7, g / 12, g, g, g FROM generate_series(1, 5000) g');
is_same('their places, used again');
sql('BEGIN; INSERT INTO rows SELECT a, b, c, d, -e FROM rows; UPDATE rows SET a = a + 3, b = b + 1, c = d, d = d + 1; ROLLBACK');
is_same('what was rolled back');

# Another run is asked anew.
new_run('once more');
is_same('another run');
both('INSERT INTO ROWS SELECT 3 * (g % 1000), g % 500, g % 700, g % 20, g FROM generate_series(200001, 220000) g; REINDEX TABLE ROWS');
is_same('many rows of a key');
both('DELETE FROM ROWS WHERE e > 200010; VACUUM ROWS');
new_run('few rows of a key');
is_same('few rows of a key');

# A database that was copied, and one that has the OID of another copy, have their journals' ids and files' names in common, and mostly
# their runs' ids.
for my $step (1, 2)
{
	sql('CREATE DATABASE copy TEMPLATE postgres OID 70000');
	is(sql('SELECT oid FROM pg_database WHERE datname = $$copy$$'), '70000', 'a copied database');
	is_same("copy $step", 'copy');
	both("UPDATE ROWS SET a = a + $step, d = d + $step; VACUUM ROWS", 'copy');
	new_run("copy $step", 'copy');
	note('run ', run('copy'));
	is_same("copy $step, changed", 'copy');
	sql("REINDEX INDEX rows_b", 'copy');
	is_same("copy $step, another file", 'copy');
	sql('DROP DATABASE copy');
}
is_same('its template');

# Memory that filters take, and give back.
sql('CREATE TABLE numbers (a int)');
sql('INSERT INTO numbers SELECT generate_series(1, 150000)');
for my $times (1, 2)
{
	for my $share (1, 3, 2, 5)
	{
		sql("CREATE UNIQUE INDEX numbers_$share ON numbers USING smart (a) WITH (resident = never) WHERE a % $share = 0");
		is(sql("SELECT count(*) FROM (SELECT DISTINCT c AS k FROM twin WHERE e % 4 = $share % 4) keys WHERE
				(SELECT array_agg(e ORDER BY e) FROM rows WHERE c = k) IS DISTINCT FROM (SELECT array_agg(e ORDER BY e) FROM twin WHERE c = k)"),
			'0', "a filter of a part of $share");
	}
	is_same("filters $times");
	sql('DROP INDEX numbers_1, numbers_2, numbers_3, numbers_5');
}
sql('CREATE UNIQUE INDEX numbers_a ON numbers USING smart (a) WITH (resident = never)');
is(sql('SELECT count(*) FROM generate_series(1, 150000) g WHERE NOT EXISTS (SELECT FROM numbers WHERE a = g)'), '0', 'a filter lacks nothing');
index_is_sound($node, 'postgres', 'numbers_a', 'nor does its run');

# A filter leaves less room for keys. When its index has been dropped, they have it.
sub blocks_again
{
	my $keys = 'g * 7919 % 150000 AS k FROM generate_series(1, 40000) g';

	blocks($keys, 'a = k', 'numbers');
	return blocks($keys, 'a = k', 'numbers');
}
sql('CREATE TABLE more AS SELECT generate_series(1, 400000) AS a');
sql('DROP INDEX numbers_a');
sql('CREATE UNIQUE INDEX more_a ON more USING smart (a) WITH (resident = never)');
sql('ALTER TABLE numbers ADD e int');
sql('CREATE INDEX numbers_a ON numbers USING smart (a) WITH (resident = never)');
sql('VACUUM numbers');
my $blocks = blocks_again();
cmp_ok($blocks, '>', 2.3, "a filter takes memory: $blocks blocks for a lookup");
sql('DROP TABLE more');
for (my $times = 0; $times < 60 && $blocks > 2.2; $times++)
{
	sleep(1);
	$blocks = blocks_again();
}
cmp_ok($blocks, '<', 2.2, "it is given back: $blocks blocks");

$node->stop('immediate');
$node->start;
is_same('after a crash');
saves('it is remembered again', 1, "3 * i AS k $KEYS WHERE i % 4 > 0", 'a = k');
$node->append_conf('postgresql.conf', 'smart.cache_size = 0');
$node->restart;
saves('not without memory', 0, "3 * i AS k $KEYS", 'a = k');
is_same('no memory');
log_is_quiet($node);
$node->stop;
done_testing();
