# Indexes that are in memory while there is room (resident = auto, the default), in a region that is too small: an index gives up
# its tree and goes on, in the middle of a statement, too; none fails. When there is room again, trees are loaded.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SmartTest;
use Test::More;

my $node = smart_node('main', 'autovacuum = off', 'shared_buffers = 64MB', q{smart.wait_timeout = '300s'},
	q{smart.embedded_max_size = '16MB'}, 'max_parallel_workers_per_gather = 0', 'log_statement = none');

sub sql
{
	return $node->safe_psql('postgres', $_[0]);
}

sub states
{
	my ($pattern) = @_;

	return sql("SELECT string_agg(DISTINCT state, ' ' ORDER BY state) FROM smart_index_state WHERE index::text LIKE '$pattern'");
}

my @queries = (
	'SELECT a, c FROM rows WHERE a BETWEEN -50000000000000000 AND 50000000000000000 ORDER BY a',
	'SELECT a FROM rows WHERE a BETWEEN -50000000000000000 AND 50000000000000000 ORDER BY a DESC LIMIT 300',
	q{SELECT b, c FROM rows WHERE b = 'k77' ORDER BY c}, 'SELECT b, c FROM rows WHERE c IN (1, 7, 500, 501, 700001, 1000000) ORDER BY c',
	'SELECT count(*), sum(c) FROM rows WHERE c BETWEEN 100 AND 15000');

sub all_is_right
{
	my ($name) = @_;

	same_answers($node, 'postgres', $_, "$name: $_") foreach (@queries);
	index_is_sound($node, 'postgres', $_, $name) foreach ('rows_a', 'rows_b', 'rows_c');
	return;
}

# ---- inserts ----

sql(<<'SQL');
CREATE TABLE rows (a bigint, b text COLLATE "C", c int);
CREATE INDEX rows_a ON rows USING smart (a);
CREATE INDEX rows_b ON rows USING smart (b, c);
CREATE UNIQUE INDEX rows_c ON rows USING smart (c);
INSERT INTO rows SELECT hashint8extended(g, 0), 'k' || g % 1000, g FROM generate_series(1, 50000) g;
SQL
is(states('rows_%'), 'ready', 'there is room');
# One transaction, which looks for duplicates in what it has inserted.
my $offset = -s $node->logfile;
sql(q{INSERT INTO rows SELECT hashint8extended(g, 0), 'k' || g % 1000, g FROM generate_series(50001, 1000000) g});
ok($node->log_contains(qr/smart index "rows_c" has left memory: there is no room for its tree/, $offset), 'an index gives up its tree');
like(states('rows_%'), qr/paged/, 'its pages answer');
all_is_right('one statement');
my ($status, undef, $complaint) = $node->psql('postgres', 'INSERT INTO rows VALUES (1, NULL, 999999)', extra_params => [ '-v', 'VERBOSITY=verbose' ]);
like($complaint, qr/ERROR:  23505/, 'a duplicate');
# Many, with rows that go.
$node->pgbench('--client=4 --transactions=40 --no-vacuum', 0, [qr/processed: 160/], [qr/^$/], 'sessions that insert and delete', {'resident_auto' => <<'SQL'});
\set c random(1, 1000000)
INSERT INTO rows SELECT hashint8extended(:c + g, 1), 'new', g + 2000000 + :c * 1000 FROM generate_series(1, 2000) g ON CONFLICT DO NOTHING;
DELETE FROM rows WHERE c BETWEEN :c AND :c + 500;
SELECT count(*) FROM rows WHERE a BETWEEN :c AND :c + 100000000000;
SQL
sql('VACUUM rows');
all_is_right('sessions have written');
sql('CREATE TABLE others AS SELECT g AS a, md5(g::text) AS b FROM generate_series(1, 400000) g; CREATE INDEX others_b ON others USING smart (b)');
is(states('others_b'), 'paged', 'CREATE INDEX without room for a tree');
index_is_sound($node, 'postgres', 'others_b', 'built');
same_answers($node, 'postgres', q{SELECT a FROM others WHERE b >= 'ff' ORDER BY b}, 'built');
sql('REINDEX INDEX rows_a; REINDEX INDEX CONCURRENTLY rows_b');
all_is_right('built anew');

# ---- after a power loss: what does not fit stays without a tree ----

lose_power($node);
start_again($node);
all_is_right('after a power loss');
ok($node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM smart_index_state WHERE state NOT IN ('ready', 'paged')}), 'workers have done what they can');
all_is_right('and when workers have done what they can');

# ---- there is room again ----

sql('DROP TABLE others; DELETE FROM rows WHERE c > 20000; VACUUM rows');
ok($node->poll_query_until('postgres', q{SELECT count(*) >= 0 AND (SELECT bool_and(state = 'ready') FROM smart_index_state) FROM rows WHERE c = 1 AND b = 'k1' AND a = 1}), 'they are loaded')
	or diag(sql('SELECT index, state, run_pages, chain_pages FROM smart_index_state, smart_index_pages(index)'));
all_is_right('loaded');
$node->restart;
all_is_right('after a restart');

# ---- one that must have a tree gets the room of one that may do without ----

sql(<<'SQL');
CREATE TABLE large AS SELECT hashint8extended(g, 2) AS a FROM generate_series(1, 600000) g;
CREATE INDEX large_a ON large USING smart (a);
CREATE TABLE must AS SELECT hashint8extended(g, 3) AS a FROM generate_series(1, 400000) g;
CREATE INDEX must_a ON must USING smart (a) WITH (resident = never);
SQL
is(states('large_a'), 'ready', 'one takes most of the room');
sql('ALTER INDEX must_a SET (resident = always)');
sql('SELECT count(*) FROM must WHERE a BETWEEN 0 AND 1000000000000');
becomes($node, 'must_a', 'ready');
is(states('large_a'), 'paged', 'it has given it up');
ok($node->log_contains(qr/smart index "large_a" has left memory: an index that must have a tree needs the room/), 'the log tells why');
foreach my $table ('large', 'must')
{
	same_answers($node, 'postgres', "SELECT a FROM $table WHERE a BETWEEN 0 AND 50000000000000000 ORDER BY a", "$table, after that");
	index_is_sound($node, 'postgres', "${table}_a", 'after that');
}
all_is_right('after that');

# ---- one that has no room even then takes nobody's ----

sql(<<'SQL');
CREATE TABLE small AS SELECT g AS a FROM generate_series(1, 50000) g;
CREATE INDEX small_a ON small USING smart (a);
CREATE TABLE huge AS SELECT md5(g::text) COLLATE "C" AS a FROM generate_series(1, 600000) g;
CREATE INDEX huge_a ON huge USING smart (a) WITH (resident = never);
SQL
is(states('small_a'), 'ready', 'there is room for a small one');
$offset = -s $node->logfile;
sql('ALTER INDEX huge_a SET (resident = always)');
$node->psql('postgres', q{SET smart.wait_timeout = '100ms'; SELECT count(*) FROM huge WHERE a = 'x'});
ok($node->poll_query_until('postgres', q{SELECT failures > 0 FROM smart_index_state WHERE index = 'huge_a'::regclass}), 'its loading fails');
sleep 1;
is(states('small_a'), 'ready', 'the small one has its tree');
ok(!$node->log_contains(qr/has left memory/, $offset), 'none has given up its tree');
sql('DROP TABLE huge');
log_is_quiet($node);
$node->stop;
done_testing;
