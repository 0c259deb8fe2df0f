# What happens to memory nodes, one thing after the other, while sessions work: statements that need no memory node do not notice,
# others fail as the documentation says, and the indexes come back with what their tables have.
#
# A network that loses packets without a word is in test/network, which may make networks.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

use SmartFaults;
use SmartLoad;
use SmartMemnode;
use SmartTest;

my @memory = map { SmartMemnode->new($_, '--size=24M') } ('one', 'two');
my $node = faults_node('main', 'smart.spread_above = 0', 'smart.memory_nodes = ' . addresses(@memory));
my %sessions = fault_sessions();
my $up = sub { node_becomes($node, $_, 'up') for @memory };

# ---- a daemon is killed: back before anybody does without it, and later ----

foreach my $pause (0, 4)
{
	my $name = "killed, away for $pause s";

	during($node, $name, \%sessions, sub {
		$memory[1]->kill9;
		sleep($pause);
		$memory[1]->start;
		$up->();
	});
	all_is_back($node, $name);
}

# ---- both are killed, one after the other ----

during($node, 'both killed', \%sessions, sub {
	$_->kill9 for @memory;
	sleep(1);
	$_->start for reverse @memory;
	$up->();
});
all_is_back($node, 'both killed');

# ---- a daemon stands still, its connections stay ----

during($node, 'stopped', \%sessions, sub {
	$memory[0]->signal('STOP');
	sleep(5);
	$memory[0]->signal('CONT');
	$up->();
});
all_is_back($node, 'stopped');

# ---- a daemon has lost its memory ----

during($node, 'memory lost', \%sessions, sub {
	$memory[0]->kill9;
	$memory[0]->forget;
	$memory[0]->start;
	$up->();
});
all_is_back($node, 'memory lost');

# ---- all memory is in use ----

# The statement is done until it finds no memory.
sub until_full
{
	my ($statement) = @_;

	foreach my $attempt (1 .. 200)
	{
		my ($status, undef, $err) = $node->psql('postgres', $statement, extra_params => [ '-v', 'VERBOSITY=verbose' ]);

		next if $status == 0;
		return 1 if $err =~ /ERROR:  53200:/;
		diag($err);
		return 0;
	}
	return 0;
}

# The statement is done until it succeeds.
sub is_done
{
	my ($statement) = @_;

	foreach my $attempt (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return 1 if $node->psql('postgres', $statement) == 0;
		sleep(0.1);
	}
	return 0;
}

my $few = 'SELECT md5(g::text) || md5((g + 1)::text) || md5((g + 2)::text) AS b FROM generate_series(1, %d) g';
my %full = map { $_ => { %{ $sessions{$_} } } } keys %sessions;
$full{$_}{fails} = join('|', grep { $_ ne '' } $full{$_}{fails}, '53200') for grep { !/^plain/ } keys %full;
during($node, 'full', \%full, sub {
	$node->safe_psql('postgres', 'CREATE TABLE large AS ' . sprintf($few, 40000) . '; CREATE TABLE small AS ' . sprintf($few, 2000));
	ok(until_full('CREATE INDEX ON large USING smart (b) WITH (resident = always)'), 'full: no room for a large index');
	ok(until_full('CREATE INDEX ON small USING smart (b) WITH (resident = always)'), 'full: nor for a small one');
	sleep(2);
	$node->safe_psql('postgres', 'DROP TABLE large, small');
	$node->safe_psql('postgres', 'SELECT smart_collect_orphans()');
	ok(is_done('INSERT INTO numbers SELECT g, md5(g::text) FROM generate_series(1, 1000) g'), 'full: there is room again');
});
all_is_back($node, 'full');
ends_well($node, @memory);
done_testing();
