# The region in shared memory: where it lies there and where in a file, and what becomes of shared memory that nobody uses any more.
# (embedded_restart.pl has what happens to it from one start of its server to the next, embedded_full.pl what happens when it is full.)
use strict;
use warnings;

use File::Path qw(remove_tree);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartTest;

plan skip_all => 'little shared memory' if `df --block-size=1M --output=size /dev/shm | tail -n 1` < 256;

my $SHARED = qr{^/dev/shm/smart-region\.[0-9a-f]{16}\.[0-9a-f]+\.[0-9a-f]+$};
my $QUERY = 'SELECT id FROM numbers WHERE id BETWEEN 100 AND 200 ORDER BY id';
my @SETTINGS = ('autovacuum = off', q{smart.embedded_max_size = '16MB'}, 'restart_after_crash = on');

sub server
{
	my ($name, @settings) = @_;
	my $node = smart_node($name, @SETTINGS, @settings);

	$node->safe_psql('postgres', 'CREATE TABLE numbers (id int); INSERT INTO numbers SELECT generate_series(1, 5000);
		CREATE INDEX numbers_id ON numbers USING smart (id)');
	return $node;
}

# is_used(NODE, OFFSET, HOW, NAME): the index is what the log says from there on (a pattern, or nothing: kept), and works.
sub is_used
{
	my ($node, $offset, $how, $name) = @_;

	ok(indexes_become($node, q{'ready'}), "$name: all indexes are ready");
	same_answers($node, 'postgres', $QUERY, $name);
	index_is_sound($node, 'postgres', 'numbers_id', $name);
	$node->safe_psql('postgres', 'INSERT INTO numbers SELECT max(id) + 1 FROM numbers');
	my $log = slurp_file($node->logfile, $offset);
	$how ? like($log, $how, "$name: by the log") : unlike($log, qr/has been (loaded|rebuilt)/, "$name: kept");
	return;
}

my $LOADED = qr/smart index "numbers_id" has been loaded/;

# ---- where it lies ----

my $node = server('main');
my $data = $node->data_dir;
my $region = region_of($node);
my $offset = -s $node->logfile;

like($region, $SHARED, 'the region lies in shared memory, if that has room');
ok($node->log_contains(qr/smart keeps its indexes in shared memory "\Q$region\E"/), 'the log says so');
is(sprintf('%o', (stat $region)[2] & 07777), '600', 'no other user reads it');
ok(!-e "$data/smart/pgsql_tmp_region", 'there is no file');
$node->restart;
is($node->safe_psql('postgres', q{SELECT setting FROM pg_settings WHERE name = 'smart.embedded_path'}), '', 'nobody has asked for it');
is_used($node, $offset, undef, 'after a stop');

# The system removes it, as at the logout of a user (RemoveIPC of systemd): the server goes on, and the next start loads.
unlink $region or die $!;
$node->safe_psql('postgres', 'INSERT INTO numbers SELECT generate_series(10001, 60000)');
my $victim = pid_of($node, 'background writer');
kill 'KILL', $victim;
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'background writer' AND pid <> $victim")
  or die 'the server did not restart its processes';
is_used($node, $offset, undef, 'without its name');
$offset = -s $node->logfile;
$node->restart;
is_used($node, $offset, $LOADED, 'removed while the server ran');
is(region_of($node), $region, 'it has its name again');

# The machine is started anew after a clean stop.
$node->safe_psql('postgres', 'CREATE TABLE others (id int); INSERT INTO others SELECT generate_series(1, 100);
	CREATE INDEX others_id ON others USING smart (id) WITH (logged = off); CREATE UNLOGGED TABLE forgetful (id int);
	INSERT INTO forgetful SELECT generate_series(1, 100); CREATE INDEX forgetful_id ON forgetful USING smart (id)');
$node->stop;
unlink $region or die $!;
$offset = -s $node->logfile;
$node->start;
is_used($node, $offset, $LOADED, 'a boot of the machine');
ok($node->wait_for_log(qr/smart index "$_" has been rebuilt/, $offset), "a boot of the machine: $_ is rebuilt") for ('others_id', 'forgetful_id');
$node->safe_psql('postgres', 'DROP TABLE others, forgetful');

# More than it has room for, and a directory: then it is a file, and nothing is left in shared memory.
for my $setting (q{smart.embedded_max_size = '1TB'}, q{smart.embedded_path = 'smart'})
{
	$node->append_conf('postgresql.conf', $setting);
	$offset = -s $node->logfile;
	$node->restart;
	is(region_of($node), "$data/smart/pgsql_tmp_region", "$setting: in a file");
	is_used($node, $offset, $setting =~ /path/ ? undef : $LOADED, $setting);
	next if $setting =~ /path/;
	ok($node->log_contains(qr/in a file and not in shared memory\n.*DETAIL:  smart\.embedded_max_size is 1048576 MB, more than half/, $offset),
		"$setting: the log tells why");
	ok($node->log_contains(qr/smart removed shared memory "\Q$region\E"/, $offset), "$setting: shared memory is given back");
}
$node->append_conf('postgresql.conf', "smart.embedded_max_size = '16MB'\nsmart.embedded_path = ''");
$offset = -s $node->logfile;
$node->restart;
is(region_of($node), $region, 'in shared memory again');
ok(!-e "$data/smart/pgsql_tmp_region", 'and the file is gone');
is_used($node, $offset, $LOADED, 'in shared memory again');

# A file that others could write is not taken, whoever made it.
$node->stop;
chmod 0666, $region;
$offset = -s $node->logfile;
$node->start;
ok(-e "$data/smart/pgsql_tmp_region", 'shared memory that others could write: in a file');
is_used($node, $offset, $LOADED, 'shared memory that others could write');
$node->stop;
chmod 0600, $region;
unlink $region or die $!;
$offset = -s $node->logfile;
$node->start;
is_used($node, $offset, $LOADED, 'nobody stands in its way any more');

# ---- copies, and what is left ----

# A copy has its own, also while the original runs; so has a standby.
my $copy = PostgreSQL::Test::Cluster->new('copy');
$node->stop;
system_or_bail('cp', '-a', $data, $copy->data_dir);
$copy->append_conf('postgresql.conf', join("\n", 'port = ' . $copy->port, "unix_socket_directories = '" . $copy->host . "'", ''));
$copy->start;
is_used($copy, 0, $LOADED, 'a copy');
$offset = -s $node->logfile;
$node->start;
is_used($node, $offset, undef, 'its original');
isnt(region_of($copy), $region, 'each has its own');

# A data directory that is stopped keeps its region, whoever starts meanwhile.
$offset = -s $copy->logfile;
$copy->stop;
$node->restart;
$copy->start;
is_used($copy, $offset, undef, 'a server that was stopped meanwhile');

# Where the data directory is gone, the next server removes what is left, be it this one or that of another test.
my $left = region_of($copy);
$copy->stop;
ok(-s $left, 'a stop leaves it');
remove_tree($copy->data_dir);
$offset = -s $node->logfile;
$node->restart;
ok(!-e $left, 'shared memory of a data directory that was removed is removed');
is_used($node, $offset, undef, 'the server that has removed it');

# And what is left of a directory's earlier cluster.
my $older = $region =~ s/smart-region\.[0-9a-f]{16}/smart-region.0123456789abcdef/r;
$node->stop;
rename($region, $older) or die $!;
$offset = -s $node->logfile;
$node->start;
ok(!-e $older, q{shared memory of a data directory's earlier cluster is removed});
ok($node->log_contains(qr/smart removed shared memory "\Q$older\E"\n.*DETAIL:  The data directory holds another database cluster/, $offset), 'the log says so');
is_used($node, $offset, $LOADED, q{and not taken for this one's});

# What is in use stays, and so does what is not ours.
my @strangers = map { "/dev/shm/smart-region.$_.$$" } ('test', '0123456789abcdef');
append_to_file($_, 'x') for @strangers;
my $second = server('second');
ok(-e $_, "$_ stays") for ($region, @strangers);
unlink @strangers;
$second->restart;
is_used($second, 0, undef, 'a second server');
is_used($node, -s $node->logfile, undef, 'the first one');

$_->stop for ($node, $second);
log_is_quiet($second);
unlink(region_of($_)) for ($node, $second);

done_testing();
