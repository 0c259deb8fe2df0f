# Filters of the keys of unique indexes that answer from pages: who inserts a key that an index does not have reads no page of its
# run, and who inserts one that it has is told so, whatever became of the filter.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SmartMemnode;
use SmartTest;
use Test::More;

my $ROWS = 80000;
my $node = smart_node('main', 'autovacuum = off', 'smart.embedded_max_size = 16MB', 'smart.cache_size = 1MB', 'autovacuum_vacuum_cost_delay = 0',
	'log_statement = none');

sub sql
{
	my ($statements, $database) = @_;

	return $node->safe_psql($database // 'postgres', $statements);
}

sub filter_bytes
{
	my ($index, $database) = @_;

	return sql("SELECT filter_bytes FROM smart_index_pages('$index')", $database);
}

# compacted(NAME, STATEMENTS): runs these, and waits for a new run of rows_a.
sub compacted
{
	my ($name, $statements) = @_;
	my $run = sql(q{SELECT run FROM smart_index_pages('rows_a')});

	sql($statements);
	ok($node->poll_query_until('postgres', "SELECT run <> $run AND unfinished_pages = 0 FROM smart_index_pages('rows_a')"), "$name: there is a new run");
	compaction_ends($node);
	note("$name: ", sql(q{SELECT concat_ws(' ', run, run_pages, run_kept, run_entries, filter_bytes) FROM smart_index_pages('rows_a')}));
	return;
}

# is_unique(NAME, DATABASE): a key that the table has is refused. By single inserts some are tried, by ON CONFLICT all.
sub is_unique
{
	my ($name, $database) = @_;

	is( sql(<<"SQL", $database), '0', "$name: no key comes twice");
CREATE TEMPORARY TABLE taken (a text);
DO \$\$
DECLARE
	each text;
BEGIN
	FOR each IN SELECT a FROM rows WHERE b % 97 = 0 OR b > $ROWS - 500 LOOP
		BEGIN
			INSERT INTO rows VALUES (each, -1);
			INSERT INTO taken VALUES (each);
		EXCEPTION WHEN unique_violation THEN NULL;
		END;
	END LOOP;
END \$\$;
SELECT count(*) FROM taken;
SQL
	is( sql('WITH added AS (INSERT INTO rows SELECT a, -1 FROM rows ON CONFLICT DO NOTHING RETURNING 1) SELECT count(*) FROM added', $database),
		'0', "$name: nor by ON CONFLICT DO NOTHING");
	index_is_sound($node, $database // 'postgres', 'rows_a', $name);
	return;
}

# asked_per_row(FROM, TO): blocks that are asked for, the table's too, for each row that is inserted.
sub asked_per_row
{
	my ($from, $to) = @_;
	my $plan = sql("EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, FORMAT JSON) INSERT INTO rows SELECT key(-g), g FROM generate_series($from, $to) g");
	my ($hit) = $plan =~ /"Shared Hit Blocks": (\d+)/;
	my ($read) = $plan =~ /"Shared Read Blocks": (\d+)/;

	return ($hit + $read) / ($to - $from + 1);
}

sub make_rows
{
	sql(<<"SQL");
CREATE TABLE rows (a text COLLATE "C", b int);
CREATE FUNCTION key(g int) RETURNS text IMMUTABLE LANGUAGE sql AS \$\$ SELECT md5(g::text) || md5((3 * g)::text) \$\$;
INSERT INTO rows SELECT key(g), g FROM generate_series(1, $ROWS) g;
SQL
	return;
}

make_rows();
sql(<<'SQL');
CREATE UNIQUE INDEX rows_a ON rows USING smart (a) WITH (resident = never);
CREATE UNIQUE INDEX rows_tree ON rows USING smart (b);
CREATE INDEX rows_many ON rows USING smart (a) WITH (resident = never);
SQL

# Which indexes have a filter.
cmp_ok(filter_bytes('rows_a'), '>=', $ROWS * 10 / 8, 'a unique index of pages has a filter');
is(filter_bytes('rows_tree'), '0', 'one with a tree has none');
is(filter_bytes('rows_many'), '0', 'nor has one that is not unique');
sql('DROP INDEX rows_tree, rows_many');
is_unique('a build');

# A run that keeps pages goes on with the filter of the one before; another one may begin its own.
compacted('one place', q{INSERT INTO rows SELECT '88' || key(g), g FROM generate_series(200001, 220000) g});
cmp_ok(sql(q{SELECT run_kept FROM smart_index_pages('rows_a')}), '>', 100, 'pages were kept');
cmp_ok(filter_bytes('rows_a'), '>', 0, 'and the filter, too');
is_unique('pages that were kept');
# What it is for.
my $with_filter = asked_per_row(100001, 102000);
is_unique('a chain');

compacted('everywhere', q{UPDATE rows SET a = md5(a) WHERE b % 2 = 0; VACUUM rows; UPDATE rows SET a = md5(a) WHERE b % 2 = 0; VACUUM rows});
cmp_ok(filter_bytes('rows_a'), '>', 0, 'a run that was written as a whole has a filter');
is_unique('another run');
is(sql(q{WITH added AS (INSERT INTO rows SELECT key(g), g FROM generate_series(2, 80000, 2) g ON CONFLICT DO NOTHING RETURNING 1) SELECT count(*) FROM added}),
	'40000', 'keys that were removed are taken again');
is_unique('keys that came back');

# It is of one file.
sql('CREATE DATABASE copy TEMPLATE postgres');
is(filter_bytes('rows_a', 'copy'), '0', 'a copied database has no filter');
is_unique('a copied database', 'copy');
sql('DROP DATABASE copy');
cmp_ok(filter_bytes('rows_a'), '>', 0, 'its template has one still');

# Without it all is as before. The chain has nothing that would concern all pages.
sql('REINDEX INDEX rows_a');
$node->stop('immediate');
$node->start;
is(filter_bytes('rows_a'), '0', 'it does not survive the server');
is_unique('after a crash');
compacted('one place again', q{INSERT INTO rows SELECT '89' || key(g), g FROM generate_series(300001, 320000) g});
cmp_ok(sql(q{SELECT run_kept FROM smart_index_pages('rows_a')}), '>', 100, 'pages were kept again');
cmp_ok(filter_bytes('rows_a'), '>', 0, 'and read for a new filter');
is_unique('a filter of pages that were kept');

# Memory for filters is limited: the one that was asked longest ago has to go.
sql(<<'SQL');
CREATE TABLE numbers (a int, b int);
INSERT INTO numbers SELECT 2 * g, g FROM generate_series(1, 300000) g;
CREATE UNIQUE INDEX numbers_a ON numbers USING smart (a) WITH (resident = never);
CREATE UNIQUE INDEX numbers_b ON numbers USING smart (b) WITH (resident = never);
SQL
is(filter_bytes('rows_a'), '0', 'it made room');
cmp_ok(filter_bytes('numbers_a') + filter_bytes('numbers_b'), '<=', 1048576, 'for what fits');
is_unique('a filter that was thrown away');
is( sql(q{WITH added AS (INSERT INTO numbers SELECT 2 * g, 300000 + g FROM generate_series(1, 300000, 7) g ON CONFLICT (a) DO NOTHING RETURNING 1) SELECT count(*) FROM added}),
	'0', 'the others tell duplicates');
# missed(KEYS): for how many of 1,000 keys that lie between those of numbers_a a page of its run is read. A lookup reads the metapage,
# too.
sub missed
{
	my ($keys) = @_;
	my $plan = sql("SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_seqscan = off; SET enable_bitmapscan = off;
		EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, FORMAT JSON) SELECT count(a) FROM generate_series(1, 50000) g LEFT JOIN numbers ON a = 2 * (g * 7919 % $keys) + 1");
	my ($hit) = $plan =~ /"Shared Hit Blocks": (\d+)/;
	my ($read) = $plan =~ /"Shared Read Blocks": (\d+)/;

	return ($hit + $read - 50000) / 50;
}

# Filters have neighbouring blocks, so that the second one may have needed the place of the first.
sql('REINDEX INDEX numbers_a');
sql('VACUUM numbers');
my $missed = missed(300000);
cmp_ok($missed, '>=', 0, 'a lookup reads the metapage');
cmp_ok($missed, '<', 10, "with 12.5 bits for a key few new keys are missed: $missed of 1,000");
is(sql(q{SELECT count(*) FROM (SELECT g FROM generate_series(-1000, 1000) g WHERE EXISTS (SELECT FROM numbers WHERE a = g)) found}), '500', 'and lookups');

sql('INSERT INTO numbers SELECT 2 * g, g FROM generate_series(300001, 1000000) g');
sql('REINDEX INDEX numbers_a');
sql('VACUUM numbers');
cmp_ok(filter_bytes('numbers_a'), '<', 1000000 * 7 / 8, 'a filter of more keys has fewer bits for each');
$missed = missed(1000000);
cmp_ok($missed, '<', 120, "with 6.3 bits more are missed: $missed of 1,000");
cmp_ok($missed, '>', 20, 'as it has to be');

$node->append_conf('postgresql.conf', 'smart.cache_size = 0');
$node->restart;
sql('REINDEX INDEX rows_a');
is(filter_bytes('rows_a'), '0', 'without memory there is no filter');
my $without = asked_per_row(102001, 104000);
cmp_ok($without - $with_filter, '>', 0.8, "and who inserts a new key reads a page more: $without instead of $with_filter for a row");
is_unique('no filters');
log_is_quiet($node);
$node->stop;

# With memory nodes: an index that writes back, whether it is carried there or read from its pages alone. A part of the memory is for
# filters, the rest is the cache's.
my $memory = SmartMemnode->new('one', '--size=128M');
$node = smart_node('remote', 'autovacuum = off', 'smart.cache_size = 2MB', 'smart.write_back = on', 'smart.carry_above = 0', 'log_statement = none',
	'smart.memory_nodes = ' . addresses($memory));
make_rows();
sql('CREATE UNIQUE INDEX rows_a ON rows USING smart (a)');
becomes($node, 'rows_a', 'carried');
cmp_ok(filter_bytes('rows_a'), '>=', $ROWS * 6 / 8, 'a carried index has a filter');
is_unique('a carried index');
compacted('a carried index', q{INSERT INTO rows SELECT key(-g), g FROM generate_series(1, 90000) g});
cmp_ok(filter_bytes('rows_a'), '>=', $ROWS * 6 / 8, 'and so has its next run');
is_unique('a carried index that was compacted');
log_is_quiet($node);
$node->stop;
$memory->stop;
done_testing();
