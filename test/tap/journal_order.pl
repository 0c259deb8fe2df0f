# A run is written from what the chain has in order and from what has to be sorted; of each entry the last operation counts,
# whichever of both it comes from. What is loaded afterwards is what the table has.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SmartTest;
use Test::More;

my $node = smart_node('main', 'autovacuum = off', 'max_wal_size = 4GB', 'log_min_messages = debug1');

sub sql
{
	return $node->safe_psql('postgres', $_[0]);
}

# How a chain was read since then: its operations, lanes, and operations that were sorted; of the first reading, or of one
# of so many operations.
sub reading
{
	my ($index, $offset, $operations) = @_;
	my $log = PostgreSQL::Test::Utils::slurp_file($node->logfile, $offset);
	my $pattern = defined $operations ? "($operations)" : '(\d+)';

	return $log =~ /chain of index "$index": $pattern operations, (\d+) lanes, (\d+) sorted/ ? ($1, $2, $3) : ();
}

# Loads trees from what the journals hold, and compares.
sub load
{
	my ($name, @indexes) = @_;
	my $offset = -s $node->logfile;

	$node->kill9;
	lose_region($node);
	start_again($node);
	foreach my $index (@indexes)
	{
		becomes($node, $index, 'ready');
		ok($node->log_contains(qr/smart index "$index" has been loaded/, $offset), "$index is loaded: $name");
		index_is_sound($node, 'postgres', $index, $name);
	}
	return $offset;
}

sql(<<'SQL');
CREATE TABLE rising (id bigint, word text COLLATE "C");
CREATE INDEX rising_id ON rising USING smart (id);
CREATE INDEX rising_word ON rising USING smart (word) INCLUDE (id);
CREATE TABLE any_order (id bigint);
CREATE INDEX any_order_id ON any_order USING smart (id);
SQL

# Keys that ascend, removed in their order: nothing has to be sorted.
sql(q{INSERT INTO rising SELECT g, to_char(g, 'FM0000000') || repeat('x', g % 50) FROM generate_series(1, 20000) g});
sql('DELETE FROM rising WHERE id % 3 = 0; VACUUM rising');
sql(q{INSERT INTO rising SELECT g, to_char(g, 'FM0000000') FROM generate_series(20001, 30000) g});
my $offset = load('what ascends', 'rising_id', 'rising_word');
foreach my $index ('rising_id', 'rising_word')
{
	my ($operations, $lanes, $sorted) = reading($index, $offset);

	is($operations, 20000 + 6666 + 10000, "$index: all operations are read");
	cmp_ok($lanes, '<=', 3, 'few lanes');
	cmp_ok($sorted, '<=', 256, 'hardly any of them are sorted');
}

# The same entries again and again, since rows get the places of those that were removed: added, removed, added.
for my $round (1 .. 3)
{
	sql('DELETE FROM rising WHERE id <= 9000; VACUUM rising');
	sql(q{INSERT INTO rising SELECT g, to_char(g, 'FM0000000') FROM generate_series(1, 9000) g});
}
sql('DELETE FROM rising WHERE id <= 9000 AND id % 2 = 0; VACUUM rising');
cmp_ok(sql(q{SELECT count(*) FROM rising WHERE id <= 9000 AND ctid < '(100, 0)'}), '>', 3000, 'rows are where others were');
load('added and removed again and again', 'rising_id', 'rising_word');
same_answers($node, 'postgres', 'SELECT id FROM rising WHERE id BETWEEN 1 AND 100000 ORDER BY id', 'after entries that came back');

# Any order is sorted, where rows go one by one; removals of it are in order.
sql('SET smart.batching = off; INSERT INTO any_order SELECT hashint8extended(g, 0) FROM generate_series(1, 20000) g');
sql('DELETE FROM any_order WHERE id % 2 = 0; VACUUM any_order');
my $removed = 20000 - sql('SELECT count(*) FROM any_order');
$offset = load('any order', 'any_order_id');
my ($operations, $lanes, $sorted) = reading('any_order_id', $offset);
is($operations, 20000 + $removed, 'all operations are read');
is($lanes, 1, 'removals are a lane');
cmp_ok($sorted, '>=', 20000, 'what was inserted in any order is sorted');
cmp_ok($sorted, '<=', 20000 + 256, 'removals are not');

# Rows of a statement go together, in order: so do their operations, but for those of the first rows.
sql('CREATE TABLE batches (id bigint); CREATE INDEX batches_id ON batches USING smart (id)');
sql('INSERT INTO batches SELECT hashint8extended(g, 0) FROM generate_series(1, 20000) g');
$offset = load('batches', 'batches_id');
($operations, $lanes, $sorted) = reading('batches_id', $offset);
is($operations, 20000, 'all operations of batches are read');
cmp_ok($lanes, '<=', 12, 'each batch is a lane');
cmp_ok($sorted, '<=', 12 * 256, 'few of their operations are sorted');

# Forty stretches that are long enough for a lane, of which there are sixteen: what finds none is sorted. And short stretches of long keys.
sql(<<'SQL');
CREATE TABLE combed (id bigint, word text COLLATE "C");
CREATE INDEX combed_id ON combed USING smart (id);
CREATE INDEX combed_word ON combed USING smart (word);
SET smart.batching = off;
INSERT INTO combed (id) SELECT s + 100 * g FROM generate_series(1, 40) s, generate_series(1, 600) g ORDER BY s, g;
INSERT INTO combed (word) SELECT to_char(s + 100 * g, 'FM0000000') || repeat('x', 900) FROM generate_series(1, 20) s, generate_series(1, 200) g
	ORDER BY s, g;
DELETE FROM combed WHERE id % 7 = 0;
SQL
$offset = load('stretches without a lane', 'combed_id', 'combed_word');
($operations, $lanes, $sorted) = reading('combed_id', $offset);
is($lanes, 16, 'all lanes are taken');
# A lane's stretch ends where the next lane is passed, so some keys of each are loose.
cmp_ok($sorted, '>=', 24 * 600, 'the other stretches are sorted');
cmp_ok($sorted, '<', 24 * 600 + 256, 'and no more');
($operations, $lanes, $sorted) = reading('combed_word', $offset);
cmp_ok($sorted, '>=', 19 * 200, 'short stretches are sorted');

# Several sessions at a time, each with keys that ascend, so that their batches lie among each other's.
my $script = pgbench_script(<<'SQL');
INSERT INTO rising SELECT 1000000 * (1 + :client_id) + g, to_char(1000000 * (1 + :client_id) + g, 'FM0000000') FROM generate_series(:from, :from + 999) g;
\set from :from + 1000
SQL
$node->command_ok([ 'pgbench', '-n', '-c', '4', '-j', '2', '-t', '5', '-D', 'from=1', '-f', $script, $node->connstr('postgres') ], 'sessions insert');
load('several sessions', 'rising_id', 'rising_word');
same_answers($node, 'postgres', 'SELECT id FROM rising WHERE id BETWEEN 1 AND 100000000 ORDER BY id', 'after several sessions');

# A run is written from all of that.
sql(q{UPDATE any_order SET id = id + 1; VACUUM any_order});
sql(q{INSERT INTO any_order SELECT g FROM generate_series(1, 400000) g; DELETE FROM any_order WHERE id BETWEEN 1 AND 400000; VACUUM any_order});
ok($node->poll_query_until('postgres', q{SELECT run > 0 AND run_entries = (SELECT count(*) FROM any_order) FROM smart_index_pages('any_order_id')}),
	'a compaction writes what is left');
load('after a compaction', 'any_order_id');
same_answers($node, 'postgres', 'SELECT id FROM any_order WHERE id > -9223372036854775807 ORDER BY id', 'after a compaction');

log_is_quiet($node);
$node->stop;
done_testing;
