# Trees move to other memory nodes while they are read, written and cleaned: no statement fails, and no answer is wrong.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

use SmartLoad;
use SmartMemnode;
use SmartTest;

my @memory = map { SmartMemnode->new($_, '--size=96M') } ('one', 'two');
my $node = smart_node('main', 'autovacuum = off', 'max_worker_processes = 16', 'smart.memory_nodes = ' . addresses(@memory), 'smart.fabric_timeout = 20s');
my @indexes = qw(pairs_k pairs_word keys_n keys_word loose_n fleeting_n ranges_during);

# Every transaction leaves an even number of rows of each key.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE pairs (k int, word text, filler int) WITH (fillfactor = 80);
INSERT INTO pairs SELECT g / 2, 'word ' || g, 0 FROM generate_series(0, 39999) g;
CREATE INDEX pairs_k ON pairs USING smart (k);
CREATE INDEX pairs_word ON pairs USING smart (word) INCLUDE (k);
CREATE TABLE keys (n int, word text);
INSERT INTO keys SELECT g, 'key ' || g FROM generate_series(1, 20000) g;
CREATE UNIQUE INDEX keys_n ON keys USING smart (n);
CREATE UNIQUE INDEX keys_word ON keys USING smart (word);
CREATE TABLE loose AS SELECT n FROM keys;
CREATE INDEX loose_n ON loose USING smart (n) WITH (logged = off);
CREATE UNLOGGED TABLE fleeting AS SELECT n FROM keys;
CREATE UNIQUE INDEX fleeting_n ON fleeting USING smart (n);
CREATE TABLE ranges (during int);
INSERT INTO ranges SELECT generate_series(1, 1000);
CREATE INDEX ranges_during ON ranges USING smart (during);
ALTER TABLE ranges ADD EXCLUDE USING smart (during WITH =);
VACUUM pairs;
CREATE FUNCTION same(a bigint, b bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF a IS DISTINCT FROM b THEN RAISE EXCEPTION '% is not %', a, b USING ERRCODE = 'XX001'; END IF;
END
$$;

-- A snapshot sees the same rows by any index at any time; the cursor is open over a move now and then.
CREATE FUNCTION one_snapshot() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	c CURSOR FOR SELECT k FROM pairs WHERE k >= 0 ORDER BY k;
	rows bigint;
	n bigint := 0;
	row record;
BEGIN
	PERFORM set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true);
	OPEN c;
	FETCH c INTO row;
	SELECT count(k) INTO rows FROM pairs WHERE k >= 0;
	FOR row IN SELECT k FROM pairs WHERE k >= 0 ORDER BY k DESC LOOP
		n := n + 1;
		IF n % 10000 = 0 THEN PERFORM pg_sleep(0.1); END IF;
	END LOOP;
	PERFORM same(n, rows);
	n := 1;
	LOOP FETCH c INTO row; EXIT WHEN NOT FOUND; n := n + 1; END LOOP;
	PERFORM same(n, rows);
	PERFORM same(n % 2, 0);
	PERFORM set_config('enable_seqscan', 'on', true);
	PERFORM set_config('enable_indexscan', 'off', true);
	PERFORM set_config('enable_indexonlyscan', 'off', true);
	SELECT count(*) INTO rows FROM pairs;
	PERFORM same(n, rows);
	PERFORM set_config('enable_indexscan', 'on', true);
	PERFORM set_config('enable_indexonlyscan', 'on', true);
END
$$;
CREATE FUNCTION rolled_back(id int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO pairs SELECT id % 30000, 'gone ' || id || ' ' || g, 0 FROM generate_series(1, 3) g;
	BEGIN
		INSERT INTO keys VALUES (-id, 'gone ' || id);
		RAISE 'a part';
	EXCEPTION WHEN raise_exception THEN NULL;
	END;
	RAISE 'all of it';
END
$$;
SQL

my %sessions = (
	pairs => { statements => [ "INSERT INTO pairs SELECT :id % 30000, 'word ' || :id || ' ' || g, 0 FROM generate_series(1, 2) g",
		'DELETE FROM pairs WHERE k = :id % 30000', 'UPDATE pairs SET k = :id % 30000 WHERE k = (:id / 7) % 30000', 'UPDATE pairs SET filler = filler + 1 WHERE k = :id % 30000' ], fails => '' },
	rolled_back => { statements => [ 'SELECT rolled_back(:id)' ], fails => 'P0001' },
	keys => { statements => [ "INSERT INTO keys VALUES (:id % 40000, 'key ' || :id) ON CONFLICT DO NOTHING", 'DELETE FROM keys WHERE n = (:id / 3) % 40000' ], fails => '' },
	other_keys => { statements => [ "INSERT INTO keys VALUES (:id % 40000, 'other ' || :id % 40000) ON CONFLICT DO NOTHING", 'DELETE FROM keys WHERE n = (:id / 5) % 40000' ], fails => '' },
	duplicates => { statements => [ "DO \$\$ BEGIN INSERT INTO keys VALUES (:id % 40000, 'again'); DELETE FROM keys WHERE word = 'again'; EXCEPTION WHEN unique_violation THEN NULL; END \$\$" ], fails => '' },
	loose => { statements => [ 'INSERT INTO loose VALUES (:id % 40000)', 'DELETE FROM loose WHERE n = :id % 40000', 'INSERT INTO fleeting VALUES (:id % 40000) ON CONFLICT DO NOTHING', 'DELETE FROM fleeting WHERE n = :id % 40000' ], fails => '' },
	ranges => { statements => [ 'INSERT INTO ranges VALUES (:id % 3000) ON CONFLICT DO NOTHING', 'DELETE FROM ranges WHERE during = :id % 3000' ], fails => '' },
	snapshots => { statements => [ 'SET default_transaction_isolation = "repeatable read"', 'SELECT one_snapshot()' ], fails => '' },
	readers => { statements => [ 'SELECT 1 / (count(*) % 2 = 0)::int FROM pairs WHERE k = :id % 30000', 'SELECT 1 / (count(k) % 2 = 0)::int FROM pairs WHERE k BETWEEN :id % 30000 AND :id % 30000 + 100', "SELECT word, k FROM pairs WHERE word BETWEEN 'word 1' AND 'word 11' ORDER BY word" ], fails => '' },
	vacuum => { statements => [ 'VACUUM (INDEX_CLEANUP on) pairs', 'VACUUM (INDEX_CLEANUP on) keys', 'VACUUM (INDEX_CLEANUP on) loose', 'VACUUM fleeting', 'VACUUM ranges' ], fails => '' });

# What lies on a memory node, as trees and bytes.
sub left_on
{
	my ($memory) = @_;
	my $address = $memory->address;

	return $node->safe_psql('postgres', "SELECT coalesce(sum(bytes), 0) FROM pg_class c, LATERAL smart_index_nodes(c.oid) n
		WHERE c.relkind = 'i' AND c.relam = (SELECT oid FROM pg_am WHERE amname = 'smart') AND n.address = '$address'");
}

sub all_are_sound
{
	my ($when) = @_;

	index_is_sound($node, 'postgres', $_, $when) for @indexes;
	same_answers($node, 'postgres', 'SELECT k, count(*) FROM pairs WHERE k >= 0 GROUP BY k ORDER BY k', "$when: pairs");
	same_answers($node, 'postgres', 'SELECT n FROM keys WHERE n > -1 ORDER BY n', "$when: keys");
	same_answers($node, 'postgres', 'SELECT n FROM loose WHERE n > -1 ORDER BY n', "$when: loose");
	is($node->safe_psql('postgres', 'SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off;
		SELECT (SELECT count(*) - count(DISTINCT n) FROM keys) + (SELECT count(*) - count(DISTINCT n) FROM fleeting) + (SELECT count(*) - count(DISTINCT during) FROM ranges)'),
		'0', "$when: no key is there twice");
	return;
}

# ---- a third node comes, and one of the first two goes ----

push @memory, SmartMemnode->new('three', '--size=96M');
my ($address) = map { $_->address } $memory[0];
cmp_ok(left_on($memory[0]), '>', 0, 'indexes are on the node that will go');
during($node, 'a node is retired', \%sessions, sub {
	$node->append_conf('postgresql.conf', 'smart.memory_nodes = ' . addresses(@memory));
	$node->reload;
	node_becomes($node, $memory[2], 'up');
	$node->safe_psql('postgres', "SELECT smart_retire_node('$address')");
	ok(node_becomes($node, $memory[0], 'retired'), 'it becomes empty');
	is($node->safe_psql('postgres', "SELECT reason, trees, bytes FROM smart_moves WHERE address = '$address'"), 'retired|0|0', 'as smart_moves tells');
});
is(left_on($memory[0]), '0', 'nothing is left on it');
all_are_sound('one retired');

# ---- its daemon is killed, and nothing happens ----

my $offset = -s $node->logfile;
during($node, 'a retired node is killed', \%sessions, sub {
	$memory[0]->kill9;
	$node->append_conf('postgresql.conf', 'smart.memory_nodes = ' . addresses(@memory[ 1, 2 ]));
	$node->reload;
	ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM smart_memory_nodes WHERE address = '$address'"), 'it is forgotten');
});
unlike(PostgreSQL::Test::Utils::slurp_file($node->logfile, $offset), qr/statements do without|given up|has been (?:loaded|rebuilt)/, 'no index has noticed');
all_are_sound('its daemon killed');

log_is_quiet($node);
$node->stop;
done_testing();
