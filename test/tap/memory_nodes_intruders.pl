# Others want something of the memory nodes while sessions work: connections without a key, a server with another key, a server
# from a backup of this one, a copy of this one. None of them keeps the sessions from their work, but those that have no key.
use strict;
use warnings;

use IO::Socket::INET;
use File::Copy qw(copy);
use POSIX ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

use SmartFaults;
use SmartLoad;
use SmartMemnode;
use SmartTest;

my $KEY = '00112233445566778899aabbccddeeff';
my ($theirs, $ours) = (secret_file($KEY), secret_file($KEY));
my @memory = map { SmartMemnode->new($_, '--size=64M', "--secret-file=$theirs") } ('one', 'two');
my $node = faults_node('main', 'wal_level = replica', 'max_wal_senders = 4', "smart.secret_file = '$ours'", 'smart.spread_above = 0', 'smart.memory_nodes = ' . addresses(@memory));
my %sessions = fault_sessions();
my $up = sub { node_becomes($node, $_, 'up') for @memory };

# Sessions that lack nothing but room at a node's door must not fail.
my %all_work = map { $_ => { %{ $sessions{$_} }, fails => '' } } keys %sessions;

# New sessions that use an index.
$all_work{reads_anew} = { fails => '', anew => 1, statements => ['SELECT count(*) FROM keys WHERE id = :id'] };

# ---- connections without a key ----

# A process that opens connections from another address, more than a door takes, and says nothing, or nothing sensible, until it is
# killed.
sub flood
{
	my @open;
	my $pid = fork() // die "fork: $!";

	return $pid if $pid != 0;
	$SIG{PIPE} = 'IGNORE';
	for (my $i = 0; ; $i++)
	{
		my $socket = IO::Socket::INET->new(LocalAddr => '127.0.0.2', PeerAddr => '127.0.0.1', PeerPort => $memory[ $i % 2 ]->{port}, Timeout => 1);

		next if !$socket;
		syswrite($socket, pack('N*', map { int(rand(2**32)) } 1 .. 16)) if $i % 3 == 0;
		push @open, $socket;
		shift @open if @open > 800;
		sleep(0.001);
	}
	POSIX::_exit(0);
}

during($node, 'flood', \%all_work, sub {
	my $pid = flood();
	my $deadline = time() + $PostgreSQL::Test::Utils::timeout_default;

	sleep(5);
	# Beside other work it takes longer until there are more than a door takes.
	sleep(0.1) while time() < $deadline && grep { $_->log_text !~ /127\.0\.0\.2/ } @memory;
	kill 'KILL', $pid;
	waitpid($pid, 0);
	like($_->log_text, qr/127\.0\.0\.2/, 'flood: the memory node has noticed') for @memory;
});
all_is_back($node, 'flood');

# ---- the server has another key for a while ----

sub write_key
{
	my ($digits) = @_;

	open(my $file, '>', "$ours.new") or die "$ours.new: $!";
	print {$file} "$digits\n";
	close($file) or die "$ours.new: $!";
	chmod 0600, "$ours.new";
	rename "$ours.new", $ours or die "$ours: $!";
	$node->reload;
	return;
}

during($node, 'another key', \%sessions, sub {
	write_key('ffeeddccbbaa99887766554433221100');
	node_becomes($node, $_, 'refused') for @memory;
	sleep(3);
	write_key($KEY);
	$up->();
});
all_is_back($node, 'another key');

# ---- a server from a backup has trees of its own beside ours ----

$node->backup('copy');
my $copy = PostgreSQL::Test::Cluster->new('copy');
$copy->init_from_backup($node, 'copy');
during($node, 'a backup', \%all_work, sub {
	$copy->start;
	node_becomes($copy, $_, 'up') for @memory;
	all_is_back($copy, 'a backup');
	$copy->safe_psql('postgres', 'INSERT INTO numbers SELECT g, md5(g::text) FROM generate_series(1, 1000) g; DELETE FROM keys WHERE id % 2 = 0; VACUUM keys');
	all_is_back($copy, 'a backup, changed');
	$copy->stop;
});
all_is_back($node, 'a backup');

# ---- a copy of the server asks for the nodes, also when they have just started ----

copy($node->data_dir . '/smart/pgsql_tmp_identity', $copy->data_dir . '/smart/pgsql_tmp_identity') or die "pgsql_tmp_identity: $!";
during($node, 'a copy', \%all_work, sub {
	$copy->start;
	node_becomes($copy, $_, 'refused') for @memory;
	becomes($copy, 'numbers_id', 'unreachable');
	is($copy->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM numbers WHERE id = -1'), '0', 'a copy: it reads its tables');
});
all_is_back($node, 'a copy');
during($node, 'a copy, and a node is killed', \%sessions, sub {
	$memory[0]->kill9;
	$memory[0]->start;
	sleep(3);
	$copy->stop;
	$up->();
});
all_is_back($node, 'a copy, and a node is killed');
log_is_quiet($copy);
ends_well($node, @memory);
done_testing();
