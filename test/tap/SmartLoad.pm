# Helper for the TAP tests of faults: sessions that work all the time, while something happens to memory nodes, and what came of
# each of their statements.
#
#   my %sessions = (plain => { statements => [ 'INSERT INTO plain VALUES (:id)' ], fails => '' }, ...);
#   during($node, 'a memory node is killed', \%sessions, sub { ... });
#
# A session does its statements in turn, with :id a number at random. A statement may end with the SQLSTATEs that the pattern
# "fails" matches as a whole, and no other error. With "anew" the session connects anew for every statement. The longest
# statement of sessions that must not fail is noted; the bound on it finds one that hangs, and measures nothing.
package SmartLoad;

use strict;
use warnings;

use Exporter 'import';
use IPC::Open3;
use POSIX ();
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

our @EXPORT = qw($HANGS_S during);

our $HANGS_S = 30;

my %running;

# A psql that answers a line for each statement: its SQLSTATE.
sub connect_psql
{
	my ($node, $errors) = @_;
	my $pid = open3(my $in, my $out, '>&' . fileno($errors), 'psql', '-XAtq', '-d', $node->connstr('postgres'));

	$in->autoflush(1);
	print {$in} "\\o /dev/null\n";
	return { pid => $pid, in => $in, out => $out };
}

sub end_psql
{
	my ($psql) = @_;

	close $psql->{in};
	close $psql->{out};
	waitpid($psql->{pid}, 0);
	return;
}

# Works until it is told to stop; a line in its log for each statement that has ended.
sub work
{
	my ($node, $session, $directory, $name) = @_;
	my @statements = @{ $session->{statements} };
	my $psql;

	open(my $log, '>', "$directory/$name") or POSIX::_exit(1);
	open(my $errors, '>', "$directory/$name.err") or POSIX::_exit(1);
	$log->autoflush(1);
	$SIG{PIPE} = 'IGNORE';
	srand($$);
	for (my $i = 0; !-e "$directory/enough"; $i++)
	{
		my $id = int(rand(1_000_000_000));
		my $statement = $statements[ $i % @statements ] =~ s/:id/$id/gr;
		my $begun = time();

		$psql //= connect_psql($node, $errors);
		print { $psql->{in} } "$statement;\n\\echo :SQLSTATE\n";
		my $sqlstate = readline($psql->{out}) // 'no connection';
		chomp $sqlstate;
		printf {$log} "%s\t%.6f\t%s\n", $sqlstate, time() - $begun, $statement;
		if ($session->{anew} || $sqlstate eq 'no connection')
		{
			end_psql($psql);
			undef $psql;
		}
		# The machine has other work, and what fails at once would do so thousands of times.
		sleep($sqlstate eq '00000' ? 0.002 : 0.02);
	}
	end_psql($psql) if defined $psql;
	POSIX::_exit(0);
}

# The statements of a session that have ended: SQLSTATE, seconds, text.
sub ended
{
	my ($directory, $name) = @_;
	my $log = "$directory/$name";

	return -e $log ? map { [ split /\t/ ] } PostgreSQL::Test::Utils::slurp_file($log) =~ /^(.*)\n/mg : ();
}

# Waits until each session has done so many statements more; returns the names of those that have not.
sub goes_on
{
	my ($directory, $count, @names) = @_;
	my %before = map { $_ => scalar(my @ended = ended($directory, $_)) } @names;
	my $deadline = time() + $PostgreSQL::Test::Utils::timeout_default;

	while (@names && time() < $deadline)
	{
		sleep(0.1);
		@names = grep { (my @ended = ended($directory, $_)) < $before{$_} + $count } @names;
	}
	return @names;
}

# What the sessions have met that they must not have met, and the longest statements.
sub judge
{
	my ($name, $sessions, $directory) = @_;
	my (@wrong, %count, $longest, $where);

	$longest = 0;
	foreach my $session (sort keys %$sessions)
	{
		my @ended = ended($directory, $session);
		my $may = qr/^(?:00000|$sessions->{$session}{fails})$/;

		$count{$_->[0]}++ for @ended;
		push @wrong, map { "$session: $_->[0]: $_->[2]" } grep { $_->[0] !~ $may } @ended;
		next if $sessions->{$session}{fails} ne '';
		foreach my $statement (@ended)
		{
			($longest, $where) = ($statement->[1], $session) if $statement->[1] > $longest;
		}
	}
	is(join("\n", grep { defined } @wrong[ 0 .. 9 ]), '', "$name: no statement fails that need not")
	  or diag(map { PostgreSQL::Test::Utils::slurp_file("$directory/$_.err") } sort keys %$sessions);
	cmp_ok($longest, '<', $HANGS_S, "$name: none of them hangs");
	note(sprintf('%s: the longest took %.2f s (%s); statements: %s', $name, $longest, $where // 'none',
		join(', ', map { "$count{$_} $_" } sort keys %count)));
	return;
}

# during(NODE, NAME, SESSIONS, ACTION): the sessions work before, during and after the action.
sub during
{
	my ($node, $name, $sessions, $action) = @_;
	my $directory = PostgreSQL::Test::Utils::tempdir();
	my @names = sort keys %$sessions;
	my @pids;

	foreach my $session (@names)
	{
		my $pid = fork() // die "fork: $!";

		work($node, $sessions->{$session}, $directory, $session) if $pid == 0;
		$running{$pid} = 1;
		push @pids, $pid;
	}
	is(join(' ', goes_on($directory, 3, @names)), '', "$name: all sessions work before");
	$action->();
	is(join(' ', goes_on($directory, 3, @names)), '', "$name: all sessions go on");
	PostgreSQL::Test::Utils::append_to_file("$directory/enough", '');
	waitpid($_, 0), delete $running{$_} for @pids;
	judge($name, $sessions, $directory);
	return;
}

END
{
	my $status = $?;

	kill 'KILL', keys %running;
	$? = $status;
}

1;
