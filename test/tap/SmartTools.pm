# Helper for the TAP tests of tools: what they are skipped without, a table with an index of each kind, clients that change it, and
# whether its indexes have what it has.
#
#   needs(program('pg_repack'), extension('pg_repack'));
#   my $node = smart_node('main', @ITEM_SETTINGS);
#   $node->safe_psql('postgres', $ITEM_SCHEMA);
#   my $clients = start_clients($node, $node->connstr('postgres'));
#   ...
#   end_clients($clients, 'while the tool was at work');
#   items_are_right($node, 'after the tool');
package SmartTools;

use strict;
use warnings;

use Exporter 'import';
use File::Spec;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

use SmartTest;

our @EXPORT = qw(needs program extension module @ITEM_SETTINGS $ITEM_SCHEMA start_clients goes_on end_clients items_are_right same_items wait_until write_file);

# ---- what is there ----

# program(NAME): its path, or a text that says that it is missing. Daemons are where users' PATH may not lead.
sub program
{
	my ($name) = @_;
	my ($path) = grep { -x } map { "$_/$name" } split(/:/, $ENV{PATH}), '/usr/sbin';

	return $path // \"$name is not installed";
}

# extension(NAME), module(NAME): likewise, of the server's extensions and of Python's modules.
sub extension
{
	my ($name) = @_;
	my $path = `pg_config --sharedir` =~ s/\n//r . "/extension/$name.control";

	return -e $path ? $path : \"the extension $name is not installed";
}

sub module
{
	my ($name) = @_;

	return eval { IPC::Run::run([ 'python3', '-c', "import $name" ], '<', \undef, '>', \my $out, '2>', \my $err) } ? $name : \"Python's module $name is not installed";
}

# needs(THING...): the test is skipped if one of them is missing.
sub needs
{
	my ($missing) = grep { ref } @_;

	plan skip_all => $$missing if defined $missing;
	return @_;
}

# ---- a table ----

our @ITEM_SETTINGS = ('autovacuum = off', 'max_connections = 30', 'smart.embedded_max_size = 256MB', 'smart.cache_size = 8MB', 'log_statement = none');

our $ITEM_SCHEMA = <<'SQL';
CREATE TABLE items (id int PRIMARY KEY WITH (smart = on), code text COLLATE "C" UNIQUE WITH (smart = on), a int, note text);
CREATE INDEX items_note ON items USING smart (note COLLATE "C" DESC) INCLUDE (a);
CREATE INDEX items_some ON items USING smart ((a % 10), code text_pattern_ops) WHERE a > 500;
CREATE INDEX items_paged ON items USING smart (a, id) WITH (resident = never);
INSERT INTO items SELECT g, 'code ' || g, g * 7 % 1000, 'note ' || g FROM generate_series(1, 3000) g;
DELETE FROM items WHERE id % 4 = 1;
SQL

my %QUERY = (
	items_pkey => 'SELECT id, code FROM items WHERE id > 0 ORDER BY id',
	items_code_key => q{SELECT code, id FROM items WHERE code >= '' ORDER BY code},
	items_note => q{SELECT note, id, a FROM items WHERE note COLLATE "C" >= '' ORDER BY note COLLATE "C" DESC, id},
	items_some => 'SELECT a % 10, code, id FROM items WHERE a > 500 AND a % 10 >= 0 ORDER BY a % 10, code',
	items_paged => 'SELECT a, id FROM items WHERE a >= 0 ORDER BY a, id');

# rows_by(SERVER, INDEX, DATABASE): what the query of this index gives with it; undef: it is not used.
sub rows_by
{
	my ($server, $index, $database) = @_;
	my $mark = '--';

	my ($plan, $rows) = split /^$mark\n/m, $server->safe_psql($database, "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off;
		EXPLAIN (COSTS OFF) $QUERY{$index}; SELECT '$mark'; $QUERY{$index}");

	return $plan =~ /Index (Only )?Scan using $index / ? $rows // '' : undef;
}

# items_are_right(SERVER, WHAT, DATABASE): each index can be used, is sound, and gives what the table has.
sub items_are_right
{
	my ($server, $what, $database) = @_;
	my @problems;

	$database //= 'postgres';
	push @problems, 'an index is not usable' if !indexes_become($server, q{'ready', 'empty', 'paged'}, undef, $database);
	my ($status, $out, $err) = $server->psql($database, 'SELECT smart_index_check(index, true) FROM smart_index_state');
	push @problems, $err if $status != 0;
	foreach my $index (sort keys %QUERY)
	{
		my $by_index = rows_by($server, $index, $database);
		my $by_heap = $server->safe_psql($database, "SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off; $QUERY{$index}");

		push @problems, "$index is not used" if !defined $by_index;
		push @problems, "by $index there are other rows" if defined $by_index && $by_index ne $by_heap;
	}
	return is(join("\n", @problems), '', "indexes are right: $what");
}

# same_items(SERVER, OTHER, WHAT, DATABASE): both have the same rows.
sub same_items
{
	my ($server, $other, $what, $database) = @_;
	my $query = 'SELECT count(*), sum(hashtext(items::text)::bigint) FROM items';

	$database //= 'postgres';
	return is($other->safe_psql($database, $query), $server->safe_psql($database, $query), $what);
}

# ---- clients ----

my @SCRIPTS = (
	q{INSERT INTO items VALUES (10000 + :r, random(), :a, :r + 1) ON CONFLICT (id) DO UPDATE SET a = excluded.a, note = 'note ' || :r;},
	q{UPDATE items SET a = (a + :r) % 1000, code = id || ' ' || :a WHERE id = :r % 3000;},
	'DELETE FROM items WHERE id = 10000 + :r;',
	"BEGIN;\nSELECT count(*) FROM items WHERE a = :a;\nINSERT INTO items VALUES (100000 + :r, 'late ' || :r, :a) ON CONFLICT DO NOTHING;\nCOMMIT;");

# start_clients(CONNECTION, OPTION...): pgbench, until end_clients() or for a minute; returns when they have done something.
sub start_clients
{
	my ($connection, @options) = @_;
	my $self = { output => '', log => PostgreSQL::Test::Utils::tempdir() };
	my @scripts = map { ('-f', pgbench_script("\\set a random(1, 1000)\n\\set r random(1, 5000)\n$_\n")) } @SCRIPTS;

	$self->{process} = IPC::Run::start([ 'pgbench', '-n', '-c', 3, '-T', 60, '-P', 1, '--random-seed=1', '--max-tries=0', @options, @scripts, $connection ],
		'<', \undef, '>', \$self->{output}, '2>', \$self->{output});
	goes_on($self, 'at the beginning');
	return $self;
}

# goes_on(CLIENTS, WHAT): their next second brings transactions.
sub goes_on
{
	my ($self, $what) = @_;
	my $begun = sub { return scalar(() = $self->{output} =~ /progress: \S+ s, (?!0\.0 tps)/g) };
	my $seen = $begun->();
	my $goes_on = sub { $self->{process}->pump_nb if $self->{process}->pumpable; return $begun->() > $seen || !$self->{process}->pumpable };

	return ok(wait_until($goes_on) && $begun->() > $seen, "clients go on: $what") || diag($self->{output});
}

# end_clients(CLIENTS, WHAT): none of them has ended by itself with an error; without WHAT they may.
sub end_clients
{
	my ($self, $what) = @_;

	$self->{process}->kill_kill(grace => 10);
	unlike($self->{output}, qr/error|aborted|fatal/i, "no client had an error: $what") if defined $what;
	return;
}

# ---- others ----

# wait_until(CONDITION): whether it has come about within the limit that all tests have.
sub wait_until
{
	my ($condition) = @_;
	my $deadline = time() + $PostgreSQL::Test::Utils::timeout_default;

	while (!$condition->())
	{
		return 0 if time() > $deadline;
		sleep(0.05);
	}
	return 1;
}

# write_file(PATH, TEXT)
sub write_file
{
	my ($path, $text) = @_;

	unlink $path;
	PostgreSQL::Test::Utils::append_to_file($path, $text);
	return $path;
}

1;
