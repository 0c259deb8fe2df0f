# Helper for the TAP tests: memory nodes, each a smart-memnode on a loopback port with shared memory of its own. The port is
# below those that the kernel gives to connections: else one of them could have it while the node is away.
#
#   use SmartMemnode;
#   my $memory = SmartMemnode->new('one', '--size=64M');
#   my $node = smart_node('main', 'smart.memory_nodes = ' . addresses($memory));
#   $memory->kill9; $memory->start;             # as it was
#   $memory->kill9; $memory->forget; $memory->start;   # with an empty region
package SmartMemnode;

use strict;
use warnings;

use Exporter 'import';
use POSIX qw(WNOHANG);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

our @EXPORT = qw(addresses node_becomes secret_file);

my %running;

# SmartMemnode->new(NAME, OPTION...): a memory node that runs.
sub new
{
	my ($class, $name, @options) = @_;
	my $directory = PostgreSQL::Test::Utils::tempdir();
	my $self = bless {
		name => "tap.$$.$name", options => \@options, output => "$directory/out", log => "$directory/log",
		port => PostgreSQL::Test::Cluster::get_free_port()
	}, $class;

	return $self->start;
}

# Starts it on its port, and waits until it is ready.
sub start
{
	my ($self) = @_;
	my $pid;

	unlink $self->{output};
	$pid = fork() // die "fork: $!";
	if ($pid == 0)
	{
		open(STDIN, '<', '/dev/null') or POSIX::_exit(1);
		open(STDOUT, '>', $self->{output}) or POSIX::_exit(1);
		open(STDERR, '>>', $self->{log}) or POSIX::_exit(1);
		exec('smart-memnode', "--listen=127.0.0.1:$self->{port}", "--name=$self->{name}", '--transport=tcp',
			@{ $self->{options} }) or POSIX::_exit(1);
	}
	$self->{pid} = $running{$pid} = $pid;
	foreach my $attempt (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return $self if -e $self->{output} && PostgreSQL::Test::Utils::slurp_file($self->{output}) =~ /ready on 127\.0\.0\.1:$self->{port}\b/;
		last if waitpid($pid, WNOHANG) == $pid;
		sleep(0.1);
	}
	die "smart-memnode does not start: " . PostgreSQL::Test::Utils::slurp_file($self->{log});
}

sub signal
{
	my ($self, $signal) = @_;

	kill $signal, $self->{pid};
	return;
}

sub end
{
	my ($self, $signal) = @_;

	kill $signal, $self->{pid};
	waitpid($self->{pid}, 0);
	delete $running{ $self->{pid} };
	return $?;
}

# A clean stop; returns its exit status.
sub stop
{
	my ($self) = @_;

	return $self->end('TERM');
}

sub kill9
{
	my ($self) = @_;

	$self->end('KILL');
	return;
}

# Takes away the memory of one that does not run.
sub forget
{
	my ($self) = @_;

	unlink "/dev/shm/smart-memnode.$self->{name}" or die "shared memory of $self->{name}: $!";
	return;
}

# Overwrites what the clients of one that does not run have stored there.
sub wipe
{
	my ($self) = @_;
	my $path = "/dev/shm/smart-memnode.$self->{name}";
	my $first = 2 * 1024 * 1024; # what comes before is the node's own

	open(my $file, '+<:raw', $path) or die "$path: $!";
	seek($file, $first, 0) && print {$file} "\0" x ((-s $path) - $first) or die "$path: $!";
	close($file) or die "$path: $!";
	return;
}

sub address
{
	my ($self) = @_;

	return "127.0.0.1:$self->{port}";
}

sub log_text
{
	my ($self) = @_;

	return PostgreSQL::Test::Utils::slurp_file($self->{log});
}

# addresses(MEMORY...): the value of smart.memory_nodes.
sub addresses
{
	return "'" . join(', ', map { $_->address } @_) . "'";
}

# node_becomes(SERVER, MEMORY, STATE): waits until the server sees it like that.
sub node_becomes
{
	my ($server, $memory, $state) = @_;
	my $address = $memory->address;

	return $server->poll_query_until('postgres',
		"SELECT count(*) = 1 FROM smart_memory_nodes WHERE address = '$address' AND state = '$state'");
}

# secret_file(DIGITS): a file with a key, removed when the test ends.
sub secret_file
{
	my ($digits) = @_;
	my $path = PostgreSQL::Test::Utils::tempdir() . '/secret';

	PostgreSQL::Test::Utils::append_to_file($path, "$digits\n");
	chmod 0600, $path;
	return $path;
}

END
{
	my $status = $?;

	foreach my $pid (keys %running)
	{
		kill 'CONT', $pid;
		kill 'KILL', $pid;
		waitpid($pid, 0);
	}
	unlink glob("/dev/shm/smart-memnode.tap.$$.*");
	$? = $status;
}

1;
