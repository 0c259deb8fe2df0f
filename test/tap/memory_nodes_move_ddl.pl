# Indexes are made, made anew and dropped, concurrently too, while their trees move back and forth between memory nodes, and rows
# come and go.  Whatever tree an index has in the end, it holds what the table holds.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartLoad;
use SmartMemnode;
use SmartTest;

my @memory = map { SmartMemnode->new($_, '--size=128M') } ('one', 'two');
my $node = smart_node('main', 'autovacuum = off', 'smart.memory_nodes = ' . addresses(@memory));

sub sql
{
	my ($text) = @_;

	return $node->safe_psql('postgres', $text);
}

# Statements that change the indexes of one table meet in deadlocks, as with other kinds of indexes, too.  They leave the table
# alone now and then, so that moves get their turn.
my %sessions = (
	rows => {
		statements => [ "INSERT INTO t VALUES (:id, md5(:id::text)) ON CONFLICT (n) DO NOTHING",
			"INSERT INTO t SELECT g, md5(g::text) FROM generate_series(:id, :id + 50) g ON CONFLICT (n) DO NOTHING",
			'INSERT INTO t SELECT -nextval($$numbers$$), $$no$$ FROM generate_series(1, 300)',
			'UPDATE t SET word = md5(word) WHERE n BETWEEN :id - 100000 AND :id', 'DELETE FROM t WHERE n BETWEEN :id AND :id + 1000000' ],
		fails => '' },
	reads => {
		statements => [ 'SET enable_seqscan = off', 'SELECT 1 / (count(*) > 0)::int FROM t WHERE n BETWEEN 1 AND 30000',
			'SELECT count(*) FROM t WHERE word BETWEEN $$a$$ AND $$b$$' ],
		fails => '' },
	anew => {
		statements => [ 'REINDEX INDEX CONCURRENTLY t_n', 'SELECT pg_sleep(0.3)', 'REINDEX INDEX CONCURRENTLY t_word', 'SELECT pg_sleep(0.3)', 'REINDEX INDEX t_loose' ],
		fails => '40P01' },
	made => {
		statements => [ 'CREATE INDEX CONCURRENTLY extra ON t USING smart (word, n)', 'SELECT pg_sleep(0.3)', 'DROP INDEX CONCURRENTLY extra',
			'CREATE INDEX CONCURRENTLY extra ON t USING smart (n DESC)', 'SELECT pg_sleep(0.3)', 'ALTER INDEX extra RENAME TO other', 'DROP INDEX other' ],
		fails => '40P01|42P07|42P01|42704' },
	vacuum => { statements => [ 'VACUUM t', 'SELECT pg_sleep(0.5)' ], fails => '40P01' });

sql('CREATE SEQUENCE numbers; CREATE TABLE t (n int, word text); INSERT INTO t SELECT g, md5(g::text) FROM generate_series(1, 30000) g;
	CREATE UNIQUE INDEX t_n ON t USING smart (n); CREATE INDEX t_word ON t USING smart (word);
	CREATE INDEX t_loose ON t USING smart (n, word) WITH (logged = off)');

during($node, 'trees move while indexes are made', \%sessions, sub {
	foreach my $turn (1 .. 4)
	{
		my ($from, $to) = @memory[ $turn % 2, 1 - $turn % 2 ];
		my $address = $from->address;

		sql("SELECT smart_retire_node('$address')");
		ok($node->poll_query_until('postgres', "SELECT NOT EXISTS (SELECT FROM unnest('{t_n,t_word,t_loose}'::regclass[]) i, smart_index_nodes(i) n WHERE n.address = '$address')"),
			"turn $turn: they move away");
		sql("SELECT smart_retire_node('$address', cancel => true)");
		ok(node_becomes($node, $from, 'up'), "turn $turn: the node is in use again");
	}
});

# What a statement that failed has left.
sql(q{DO $$
DECLARE
	i regclass;
BEGIN
	FOR i IN SELECT indexrelid FROM pg_index WHERE indrelid = 't'::regclass AND indexrelid NOT IN ('t_n'::regclass, 't_word'::regclass, 't_loose'::regclass)
	LOOP
		EXECUTE format('DROP INDEX %s', i);
	END LOOP;
END
$$});
is(sql("SELECT count(*) FROM pg_index WHERE indrelid = 't'::regclass AND indisvalid"), '3', 'all indexes are valid');
foreach my $index ('t_n', 't_word', 't_loose')
{
	index_is_sound($node, 'postgres', $index, 'in the end');
}
same_answers($node, 'postgres', 'SELECT n FROM t WHERE n IS NOT NULL ORDER BY n', 'the same rows by number');
same_answers($node, 'postgres', 'SELECT word, n FROM t WHERE word >= $$$$ ORDER BY word, n', 'the same rows by word');
is(sql('SELECT count(*) - count(DISTINCT n) FROM t'), '0', 'no number is there twice');

# Nothing is left behind on a node that is left by all.
sql("SELECT smart_retire_node('" . $memory[0]->address . "')");
ok(node_becomes($node, $memory[0], 'retired'), 'every tree can leave');
log_is_quiet($node);
$node->stop;
done_testing();
