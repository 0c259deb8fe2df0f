# A primary and its standby keep their trees on the same memory nodes, side by side: under load, while a node is away, has lost
# its memory, and after a promotion, which waits for nothing. Two servers of one identity are told apart; who does not come
# back is forgotten.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartLoad;
use SmartMemnode;
use SmartTest;

my @INDEXES = ('rows_id', 'rows_name', 'rows_key');
my @QUERIES = ('SELECT * FROM rows WHERE id BETWEEN 100 AND 300 ORDER BY id, name, key', q{SELECT id FROM rows WHERE name = 'name 7' ORDER BY id, key},
	'SELECT key FROM rows WHERE key > 1000000 ORDER BY key');
my @memory = map { SmartMemnode->new($_, '--size=128M') } ('one', 'two');
my $primary = PostgreSQL::Test::Cluster->new('primary');
my $standby = PostgreSQL::Test::Cluster->new('standby');

$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', "shared_preload_libraries = 'smart'\n$NODE_SETTINGS\nautovacuum = off\nwal_keep_size = 1GB\n"
	. "smart.node_lost_after = 0\nsmart.memory_nodes = " . addresses(@memory) . "\n");
$primary->start;
$primary->safe_psql('postgres', <<'SQL');
CREATE EXTENSION smart;
CREATE TABLE rows (id int, name text, key int) WITH (fillfactor = 70);
INSERT INTO rows SELECT i, 'name ' || i % 100, i FROM generate_series(1, 20000) i;
CREATE INDEX rows_id ON rows USING smart (id);
CREATE INDEX rows_name ON rows USING smart (name) INCLUDE (id);
CREATE UNIQUE INDEX rows_key ON rows USING smart (key);
ANALYZE rows;
SQL
$primary->backup('base');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;

sub caught_up
{
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	return;
}

# Every index of the server is there, and gives what its table gives.
sub all_is_right
{
	my ($node, $name) = @_;

	becomes($node, $_, 'ready') for @INDEXES;
	index_is_sound($node, 'postgres', $_, $node->name . ", $name") for @INDEXES;
	same_answers($node, 'postgres', $_, $node->name . ", $name: $_") for @QUERIES;
	return;
}

# What is known of owners on a memory node: identity => the rest of its line.
sub owners_on
{
	my ($memory) = @_;
	my ($said) = run_command([ 'smart-memnode', '--status', "--name=$memory->{name}" ]);

	return $said =~ /^owner +([0-9a-f]{16}): (.*)$/mg;
}

# ---- side by side ----

node_becomes($standby, $_, 'up') for @memory;
all_is_right($_, 'at first') for ($primary, $standby);
my (%clusters, %trees);
for my $memory (@memory)
{
	my %owners = owners_on($memory);

	is(scalar(keys %owners), 2, 'two owners');
	/^cluster (\d+), / and $clusters{$1} = 1 for values %owners;
	$owners{$_} =~ /, (\d+) trees, / and $trees{$_} += $1 for keys %owners;
}
is(join(' ', keys %clusters), $primary->safe_psql('postgres', 'SELECT system_identifier FROM pg_control_system()'), 'of one cluster');
is(join(' ', values %trees), '3 3', 'each with its trees');
ok($standby->poll_query_until('postgres', 'SELECT sum(trees) = 3 AND sum(used_bytes) > 0 AND sum(allocated_bytes) >= 2 * sum(used_bytes) FROM smart_memory_nodes'),
	'what the standby sees of them');
is($standby->safe_psql('postgres', 'SELECT count(*) > 0 AND sum(trees) = 3 FROM smart_stat_space'), 't', 'and its own trees');
unlike(PostgreSQL::Test::Utils::slurp_file($_->logfile), qr/is refused|another server of the same identity/, 'no server is refused') for ($primary, $standby);

# ---- under load ----

my %writes = (
	inserts => { fails => '', statements => [ q{INSERT INTO rows SELECT g, 'name ' || g % 100, 1000000 + g FROM generate_series(:id, :id + 2) g ON CONFLICT DO NOTHING} ] },
	updates => { fails => '', statements => [ q{UPDATE rows SET name = 'name ' || :id % 100 WHERE id = :id % 20000}, 'DELETE FROM rows WHERE id = 1 + :id % 20000' ] },
	vacuums => { fails => '', statements => [ 'VACUUM rows', 'SELECT pg_sleep(0.5)' ] });

# The standby answers what its table has, in one snapshot by index and by table, while it follows.
sub standby_agrees
{
	my ($name, $rounds) = @_;
	my $query = q{SELECT count(*) || ' ' || coalesce(sum(id), 0) || ' ' || coalesce(sum(key), 0) FROM rows WHERE id BETWEEN %d AND %d};
	my @bad;

	for my $round (1 .. $rounds)
	{
		my $of = sprintf($query, $round * 37 % 20000, 1_000_000_000 - $round);
		my ($status, $out, $err) = $standby->psql('postgres', "BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL enable_seqscan = off; $of; "
			. "SET LOCAL enable_seqscan = on; SET LOCAL enable_indexscan = off; SET LOCAL enable_bitmapscan = off; $of; COMMIT");
		my @lines = split /\n/, $out;

		push @bad, "$out$err" if @lines == 2 ? $lines[0] ne $lines[1] : $err !~ /conflict with recovery/;
	}
	is(join('; ', @bad), '', "$name: the standby's indexes give what its table gives");
	return;
}
during($primary, 'load', \%writes, sub { standby_agrees('load', 30) });
caught_up();
all_is_right($_, 'after the load') for ($primary, $standby);

# What comes and goes on the primary comes and goes on the standby's side of the nodes, too.
$primary->safe_psql('postgres', 'CREATE INDEX rows_more ON rows USING smart (key, name)');
caught_up();
becomes($standby, 'rows_more', 'ready');
same_answers($standby, 'postgres', q{SELECT key FROM rows WHERE key < 100 AND name >= 'name 5' ORDER BY key, name}, 'another index');
$primary->safe_psql('postgres', 'DROP INDEX rows_more');
caught_up();
ok($standby->poll_query_until('postgres', 'SELECT sum(trees) = 3 FROM smart_memory_nodes'), 'the tree of an index that was dropped leaves');

# ---- a memory node is away, is back, comes back empty ----

my $offset = -s $standby->logfile;
$memory[0]->kill9;
node_becomes($_, $memory[0], 'down') for ($primary, $standby);
ok($standby->wait_for_log(qr/memory node \d+ is away: statements do without/, $offset), 'a standby does without a node that is away');
$primary->safe_psql('postgres', q{INSERT INTO rows SELECT g, 'away', 500000 + g FROM generate_series(1, 1000) g});
caught_up();
all_is_right($_, 'loaded on the other node') for ($primary, $standby);
$memory[0]->start;
node_becomes($_, $memory[0], 'up') for ($primary, $standby);
$primary->safe_psql('postgres', q{INSERT INTO rows SELECT g, 'back', 600000 + g FROM generate_series(1, 1000) g});
caught_up();
all_is_right($_, 'the node is back') for ($primary, $standby);
$memory[1]->kill9;
$memory[1]->forget;
$memory[1]->start;
node_becomes($_, $memory[1], 'up') for ($primary, $standby);
$primary->safe_psql('postgres', q{DELETE FROM rows WHERE name = 'back'; VACUUM rows; INSERT INTO rows SELECT g, 'empty', 700000 + g FROM generate_series(1, 1000) g});
caught_up();
all_is_right($_, 'a node came back empty') for ($primary, $standby);

# ---- a promotion, while the other one goes on ----

$offset = -s $standby->logfile;
during($primary, 'promotion', \%writes, sub {
	$standby->promote;
	$standby->safe_psql('postgres', q{INSERT INTO rows VALUES (1, 'promoted', 2000000000)});
	my (undef, undef, $err) = $standby->psql('postgres', q{INSERT INTO rows VALUES (2, 'promoted', 2000000000)});
	like($err, qr/duplicate key value violates unique constraint/, 'promotion: a key is unique');
	$standby->safe_psql('postgres', q{DELETE FROM rows WHERE id % 7 = 0; VACUUM rows; INSERT INTO rows SELECT g, 'name ' || g % 100, 800000 + g FROM generate_series(1, 3000) g});
});
all_is_right($_, 'after the promotion') for ($primary, $standby);
unlike(PostgreSQL::Test::Utils::slurp_file($standby->logfile, $offset), qr/has been (?:loaded|rebuilt)|memory node \d+ at \S+ is (?:down|refused|up|given up)/,
	'promotion: nothing is loaded, and no memory node is leased anew');

# Each goes on with its own after a crash, and after a stop.
for my $node ($primary, $standby)
{
	$node->stop('immediate');
	$node->start;
	looks_for_nodes($node);
	all_is_right($node, 'after a crash');
}
$memory[0]->kill9;
$_->stop for ($primary, $standby);
$memory[0]->start;
$_->start for ($primary, $standby);
node_becomes($_, $memory[0], 'up') for ($primary, $standby);
all_is_right($_, 'after a stop of all') for ($primary, $standby);
unlike(PostgreSQL::Test::Utils::slurp_file($standby->logfile, $offset), qr/has been (?:loaded|rebuilt)/, 'nothing was loaded or rebuilt');

# ---- a copy of the data directory claims its identity ----

my $copy = PostgreSQL::Test::Cluster->new('copy');
$primary->stop;
system_or_bail('cp', '-a', $primary->data_dir, $copy->data_dir);
$copy->append_conf('postgresql.conf', 'port = ' . $copy->port . "\n");
$primary->start;
node_becomes($primary, $_, 'up') for @memory;
$copy->start;
node_becomes($copy, $_, 'refused') for @memory;
like($copy->safe_psql('postgres', 'SELECT problem FROM smart_memory_nodes WHERE state = \'refused\' LIMIT 1'), qr/another server of the same identity/, 'a copy is told why');
all_is_right($_, 'beside a copy') for ($primary, $standby);
$primary->stop;
node_becomes($copy, $_, 'up') for @memory;
all_is_right($copy, 'the original has gone');
$copy->safe_psql('postgres', q{INSERT INTO rows VALUES (5, 'of the copy', 2000000005)});
$copy->stop;
$offset = -s $primary->logfile;
$primary->start;
ok($primary->wait_for_log(qr/given up: it is not as this server left it/, $offset), 'the original finds that its copy was there');
all_is_right($_, 'after the copy') for ($primary, $standby);

# As a standby it takes an identity of its own.
$copy->set_standby_mode;
$copy->start;
node_becomes($copy, $_, 'up') for @memory;
all_is_right($copy, 'as a standby');
$copy->stop;

# ---- who does not come back ----

$standby->stop;
my %known = owners_on($memory[0]);
my @gone = grep { $known{$_} =~ /not connected since/ } keys %known;
my ($other) = grep { $known{$_} !~ /not connected/ } keys %known;
is(scalar(@gone), 2, 'two are not connected');
for my $memory (@memory)
{
	my ($said, $err) = run_command([ 'smart-memnode', "--forget=$other", "--name=$memory->{name}" ]);
	like($err, qr/is connected: stop its server first/, 'who is connected is not forgotten');
	for my $gone (@gone)
	{
		($said, $err) = run_command([ 'smart-memnode', "--forget=$gone", "--name=$memory->{name}" ]);
		like($said, qr/^owner $gone is forgotten, \d+ MB are free again$/, 'who is not, is') or diag($err);
	}
	like(PostgreSQL::Test::Utils::slurp_file($primary->logfile), qr/knows this server as owner $other\./, 'its log tells its name');
	my %left = owners_on($memory);
	is(join(' ', keys %left), $other, 'the other one stays');
}
all_is_right($primary, 'after the other one was forgotten');
$standby->start;
all_is_right($standby, 'begun anew');
$_->stop for ($primary, $standby);
is($_->stop, 0, 'a memory node stops cleanly') for @memory;
log_is_quiet($_) for ($primary, $standby, $copy);
done_testing();
