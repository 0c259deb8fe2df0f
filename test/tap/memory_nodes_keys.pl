# The key is changed while sessions work, by the commands of doc/memory-nodes.md.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

use SmartMemnode;
use SmartTest;

my $old = '00112233445566778899aabbccddeeff';
my ($at_node, $at_server) = (secret_file($old), secret_file($old));
my $memory = SmartMemnode->new('one', '--size=64M', "--secret-file=$at_node");
my $node = smart_node('main', 'autovacuum = off', 'smart.memory_nodes = ' . addresses($memory), "smart.secret_file = '$at_server'");
my $directory = PostgreSQL::Test::Utils::tempdir();

# The commands of the page, one a line, as they are here.
sub commands
{
	my $page = PostgreSQL::Test::Utils::slurp_file("$ENV{TESTDIR}/doc/memory-nodes.md");
	my ($block) = $page =~ /^## Changing the key\n.*?^```sh\n(.*?)^```/ms or die 'no commands in the documentation';

	$block =~ s{/etc/postgresql/smart\.secret}{$at_server}g;
	$block =~ s{/etc/smart\.secret}{$at_node}g;
	$block =~ s{systemctl reload smart-memnode}{kill -HUP $memory->{pid}}g;
	return grep { !/^#/ } split /\n/, $block;
}

sub run_next
{
	my ($commands) = @_;
	my $command = shift @$commands;
	my $status = system("cd '$directory' && { $command\n}");

	is($status, 0, "command: $command");
	return;
}

# What --status says of keys: a line each.
sub key_lines
{
	my ($said) = run_command([ 'smart-memnode', '--status', "--name=$memory->{name}" ]);

	return $said =~ /^((?:key|      ) +\S+.*\bsessions.* (?:of|keys) .*)$/mg;
}

# Waits until the node has read its keys again for the so many'th time.
sub keys_are_read
{
	my ($times) = @_;

	foreach my $attempt (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return if (() = $memory->log_text =~ /keys have been read again/g) == $times;
		sleep(0.1);
	}
	die 'the keys are not read: ' . $memory->log_text;
}

$node->safe_psql('postgres', 'CREATE TABLE numbers (id int, session text); CREATE INDEX numbers_id ON numbers USING smart (id);
	INSERT INTO numbers SELECT g, \'\' FROM generate_series(1, 10000) g');

# A session that stays, and others that come and go all the time: each has a connection of its own to the node.
my $stays = $node->background_psql('postgres');
my $worker = fork() // die "fork: $!";
if ($worker == 0)
{
	my $failed = 0;

	until (-e "$directory/enough")
	{
		my ($status) = $node->psql('postgres', "SET enable_seqscan = off; SELECT 1 / count(*) FROM numbers WHERE id = 77;
			INSERT INTO numbers VALUES ((random() * 1e6)::int, 'worker')", on_error_stop => 1);
		$failed++ if $status != 0;
	}
	POSIX::_exit($failed > 99 ? 99 : $failed);
}

sub work_goes_on
{
	my ($when) = @_;
	my $rows = $node->safe_psql('postgres', q(SELECT count(*) FROM numbers WHERE session = 'worker'));

	$stays->query_safe(q(INSERT INTO numbers VALUES ((random() * 1e6)::int, 'stays')));
	is($stays->query_safe('SET enable_seqscan = off; SELECT count(*) > 0 FROM numbers WHERE id = 77'), 't', "$when: a session that stays");
	ok($node->poll_query_until('postgres', "SELECT count(*) > $rows + 3 FROM numbers WHERE session = 'worker'"), "$when: sessions that come");
	return;
}

my @commands = commands();
is(scalar @commands, 6, 'steps');
work_goes_on('the old key');
my @lines = key_lines();
is(scalar @lines, 1, 'one key');
my ($old_name) = $lines[0] =~ /^key +([0-9a-f]{16}), [1-9]/;

run_next(\@commands);
run_next(\@commands);
keys_are_read(1);
@lines = key_lines();
like("@lines", qr/^key +$old_name, [1-9]\d* sessions.*key +[0-9a-f]{16}, 0 sessions/, 'both keys');
work_goes_on('both keys');

run_next(\@commands);
run_next(\@commands);
work_goes_on('the server shows the new key');
like($memory->log_text, qr/^(?!.*refused)/s, 'nobody was refused');

run_next(\@commands);
keys_are_read(2);
work_goes_on('the new key');
@lines = key_lines();
like("@lines", qr/^key +(?!$old_name)[0-9a-f]{16}, \d+ sessions.* [1-9]\d* sessions of keys that are not accepted any more$/, 'the session that stays has the old key');
like($memory->log_text, qr/[1-9]\d* sessions go on that were made with a key which is not accepted any more/, 'said in the log');
run_next(\@commands);

PostgreSQL::Test::Utils::append_to_file("$directory/enough", '');
waitpid($worker, 0);
is($? >> 8, 0, 'no session has failed');
unlike($memory->log_text, qr/refused/, 'nobody was refused');

# The old key is good for nothing now, the new one also for what comes after a restart of either side.
my $other = smart_node('other', 'autovacuum = off', 'smart.memory_nodes = ' . addresses($memory), q(smart.secret_file = ') . secret_file($old) . q('));
node_becomes($other, $memory, 'down');
like($other->safe_psql('postgres', 'SELECT problem FROM smart_memory_nodes'), qr/same secret key/, 'the old key is refused');
$other->stop;
$stays->quit;
$memory->kill9;
$memory->start;
node_becomes($node, $memory, 'up');
index_is_sound($node, 'postgres', 'numbers_id', 'after a restart of the memory node');
$node->restart;
looks_for_nodes($node);
same_answers($node, 'postgres', 'SELECT id FROM numbers WHERE id BETWEEN 100 AND 200 ORDER BY id', 'after a restart of the server');

# A file that is no good changes nothing.
PostgreSQL::Test::Utils::append_to_file($at_node, "no key\n");
$memory->signal('HUP');
foreach my $attempt (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
{
	last if $memory->log_text =~ /the settings stay as they are: secret-file/;
	sleep(0.1);
}
is($node->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*) > 0 FROM numbers WHERE id = 77'), 't', 'a bad file is refused as a whole');
$node->stop;
done_testing();
