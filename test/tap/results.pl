# Cached results: what is known about a few keys that many sessions read and write; a crash of the server, and of the memory
# node.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartMemnode;
use SmartTest;

my $KEYS = 8;
my $SECONDS = 4;

my $memory = SmartMemnode->new('one', '--size=64M');
my $node = smart_node('main', 'autovacuum = off', 'max_connections = 40', "smart.fabric_timeout = '2s'", 'smart.debug_collect_orphans = off',
	'smart.auto_rebuild = off', 'smart.node_down_after = 0', 'smart.memory_nodes = ' . addresses($memory));

sub stat_cache
{
	my ($what) = @_;

	return $node->safe_psql('postgres', "SELECT $what FROM smart_stat_cache");
}

# Every hot key has by the index what it has by the table.
sub all_same
{
	my ($name) = @_;

	is($node->safe_psql('postgres', "SELECT count(same(k)) FROM generate_series(1, $KEYS) k"), $KEYS, "$name: index and table agree");
	return;
}

$node->safe_psql('postgres', <<'SQL');
CREATE TABLE hot (k int, n int);
CREATE INDEX hot_k ON hot USING smart (k);
CREATE INDEX hot_word ON hot USING smart (('key ' || k)) INCLUDE (n) WITH (logged = off);
CREATE SEQUENCE hot_n;
INSERT INTO hot SELECT g % 1000, nextval('hot_n') FROM generate_series(1, 3000) g;
VACUUM ANALYZE hot;

CREATE FUNCTION by_index(key int) RETURNS int[] LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
BEGIN
	RETURN (SELECT array_agg(n ORDER BY n) FROM hot WHERE k = key);
END
$$;
CREATE FUNCTION by_word(key int) RETURNS int[] LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
BEGIN
	RETURN (SELECT array_agg(n ORDER BY n) FROM hot WHERE 'key ' || k IN ('key ' || key, 'none'));
END
$$;
CREATE FUNCTION by_heap(key int) RETURNS int[] LANGUAGE plpgsql
SET enable_indexscan = off SET enable_indexonlyscan = off SET enable_bitmapscan = off AS $$
BEGIN
	RETURN (SELECT array_agg(n ORDER BY n) FROM hot WHERE k = key);
END
$$;
-- To be called in one snapshot.
CREATE FUNCTION same(key int) RETURNS bool LANGUAGE plpgsql STABLE AS $$
DECLARE
	right_rows int[] := by_heap(key);
BEGIN
	IF by_index(key) IS DISTINCT FROM right_rows OR by_word(key) IS DISTINCT FROM right_rows THEN
		RAISE EXCEPTION 'key %: % and %, but %', key, by_index(key), by_word(key), right_rows;
	END IF;
	RETURN true;
END
$$;
SQL

# Readers and writers.
my $k = "\\set k random(1, $KEYS)\n";
$node->pgbench("-n -c 8 -j 2 -T $SECONDS -M prepared", 0, [qr/processed: [1-9]/], [qr/^$/], 'readers and writers of hot keys', {
	'look@54' => "${k}BEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT same(:k);\nCOMMIT;",
	'insert@12' => "${k}INSERT INTO hot VALUES (:k, nextval('hot_n'));",
	'move@8' => "${k}\\set other random(1, $KEYS)
		UPDATE hot SET k = :other WHERE ctid = (SELECT ctid FROM hot WHERE k = :k ORDER BY n LIMIT 1);",
	'delete@12' => "${k}DELETE FROM hot WHERE k = :k;",
	'undone@6' => "${k}BEGIN;\nINSERT INTO hot VALUES (:k, nextval('hot_n'));\nROLLBACK;",
	'vacuum@6' => 'VACUUM (TRUNCATE off) hot;',
	'others@2' => "\\set a random(1, 1000)\nINSERT INTO hot SELECT :a + g, nextval('hot_n') FROM generate_series(1, 10) g WHERE :a > $KEYS;" });
note(stat_cache('smart_stat_cache'));
is(stat_cache('result_hits > 0 AND result_drops > 0'), 't', 'cached results were found, and dropped');
all_same('afterwards');
index_is_sound($node, 'postgres', $_, 'afterwards') for ('hot_k', 'hot_word');

# The server crashes with a change under way.
my $session = $node->background_psql('postgres');
$session->query_safe('BEGIN; INSERT INTO hot SELECT 1, -1 FROM generate_series(1, 3); UPDATE hot SET k = 3 WHERE k = 2');
all_same('before a crash');
$node->stop('immediate');
eval { $session->quit; };
start_again($node);
ok($node->poll_query_until('postgres', "SELECT bool_and(state = 'up') FROM smart_memory_nodes"), 'the memory node is there again');
all_same('after a crash');
index_is_sound($node, 'postgres', $_, 'after a crash') for ('hot_k', 'hot_word');

# The memory node goes.  What is known is right, until the index is known to be lost.
all_same('before the memory node goes');
$node->safe_psql('postgres', 'INSERT INTO hot VALUES (2000, 1)');
is($node->safe_psql('postgres', 'SELECT by_index(2000)'), '{1}', 'a key to know');
$memory->kill9;
is($node->safe_psql('postgres', 'SELECT by_index(2000)'), '{1}', 'the memory node is away: it is known');
is($node->safe_psql('postgres', 'SELECT by_index(555) = by_heap(555)'), 't', 'the memory node is away: another comes from pages');
isnt($node->psql('postgres', q{SELECT by_word(556)}), 0, 'the memory node is away: but not without a journal');
$memory->forget;
$memory->start;
becomes($node, 'hot_word', 'lost');
becomes($node, 'hot_k', 'ready');
$node->safe_psql('postgres', 'INSERT INTO hot VALUES (2000, 2)');
is($node->safe_psql('postgres', 'SELECT by_index(2000)'), '{1,2}', 'its memory is gone: the result comes from the loaded tree');
is($node->safe_psql('postgres', 'SELECT by_word(2000)'), '{1,2}', 'the one without a journal is lost: it comes from the table');
$node->safe_psql('postgres', 'REINDEX TABLE hot');
is($node->safe_psql('postgres', 'SELECT by_index(2000)'), '{1,2}', 'rebuilt: nothing of the older tree is known');
all_same('rebuilt');
all_same('rebuilt, and known');
log_is_quiet($node);
$node->stop;
is($memory->stop, 0, 'the memory node stops cleanly');
done_testing();
