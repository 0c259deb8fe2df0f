# Small indexes lie on one memory node each, and no node has all of them; a large one lies on all. When a node goes, the indexes that do
# not lie on it go on.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartMemnode;
use SmartTest;

my $SMALL = 9;
my @memory = map { SmartMemnode->new($_, '--size=64M') } ('one', 'two', 'three');
my $node = smart_node('main', 'autovacuum = off', 'smart.node_lost_after = 0', 'smart.node_down_after = 0', 'smart.fabric_timeout = 2s',
	'smart.memory_nodes = ' . addresses(@memory));

node_becomes($node, $_, 'up') for @memory;

# Where an index lies: addresses, by their share of its bytes.
sub place_of
{
	my ($index) = @_;

	return split /\n/, $node->safe_psql('postgres',
		"SELECT address FROM smart_index_nodes('$index') ORDER BY bytes DESC");
}

# The first memory node on which an index lies.
sub home_of
{
	my ($index) = @_;
	my ($address) = place_of($index);

	return (grep { $_->address eq $address } @memory)[0];
}

# ---- small ones ----

# Half are made empty and filled, half are built.
foreach my $i (1 .. $SMALL)
{
	my $index = "CREATE INDEX small${i}_id ON small$i USING smart (id) WITH (logged = off)";
	my $rows = "INSERT INTO small$i SELECT generate_series(1, 5000)";

	$node->safe_psql('postgres', join(';', "CREATE TABLE small$i (id int)", $i % 2 ? ($index, $rows) : ($rows, $index)));
}
my %indexes;
foreach my $i (1 .. $SMALL)
{
	my @place = place_of("small${i}_id");

	is(@place, 1, "small index $i lies on one node");
	push @{ $indexes{ $place[0] } }, $i;
}
is(keys %indexes, 3, 'each node has some');
cmp_ok(@$_, '>=', 2, 'no node has few') for values %indexes;

# ---- a large one ----

$node->safe_psql('postgres', q{CREATE TABLE large (id int, word text); INSERT INTO large SELECT g, md5(g::text) FROM generate_series(1, 900000) g;
	CREATE INDEX large_word ON large USING smart (word) WITH (logged = off)});
is(place_of('large_word'), 3, 'a large index lies on all');
is($node->safe_psql('postgres', q{SELECT min(bytes) * 6 > sum(bytes) FROM smart_index_nodes('large_word')}), 't', 'and not little on any');

# ---- one goes ----

my $gone = home_of('small1_id');
my $before = join "\n", sort map { place_of("small${_}_id") } 1 .. $SMALL;

$gone->kill9;
foreach my $i (1 .. $SMALL)
{
	my $there = grep { $_ == $i } @{ $indexes{ $gone->address } };
	my (undef, $count, $err) = $node->psql('postgres', "SET enable_seqscan = off; INSERT INTO small$i SELECT generate_series(5001, 8000);
		SELECT count(*) FROM small$i WHERE id > 4000", extra_params => [ '-v', 'VERBOSITY=verbose' ]);

	like($err, qr/ERROR:  08006:/, "small index $i lies there") if $there;
	is($count . $err, '4000', "small index $i goes on") unless $there;
}
isnt($node->psql('postgres', q{SET enable_seqscan = off; SELECT count(*) FROM large WHERE word > 'a'}), 0, 'the large one does not');

# New ones, and what grows, use the nodes that are left.
$node->safe_psql('postgres', "CREATE TABLE new$_ (id int); INSERT INTO new$_ SELECT generate_series(1, 2000); CREATE INDEX new${_}_id ON new$_ USING smart (id)")
	for (1 .. 4);
isnt(home_of("new${_}_id")->address, $gone->address, "new index $_ lies elsewhere") for (1 .. 4);

$gone->start;
node_becomes($node, $gone, 'up');
index_is_sound($node, 'postgres', "small${_}_id", 'in the end') for (1 .. $SMALL);
index_is_sound($node, 'postgres', "new${_}_id", 'in the end') for (1 .. 4);
index_is_sound($node, 'postgres', 'large_word', 'in the end');
is(join("\n", sort map { place_of("small${_}_id") } 1 .. $SMALL), $before, 'all lie where they lay');

# ---- a setting ----

$node->append_conf('postgresql.conf', 'smart.spread_above = 0');
$node->reload;
ok($node->poll_query_until('postgres', q{SELECT setting = '0' FROM pg_settings WHERE name = 'smart.spread_above'}), 'the setting is there');
$node->safe_psql('postgres', 'CREATE TABLE spread (id int, word text); INSERT INTO spread SELECT g, md5(g::text) FROM generate_series(1, 60000) g;
	CREATE INDEX spread_word ON spread USING smart (word)');
is(place_of('spread_word'), 3, 'every index is spread where that is wanted');

$node->stop;
is($_->stop, 0, 'a memory node stops cleanly') for @memory;
log_is_quiet($node);
done_testing();
