# The embedded region across the server's life: it is kept over a clean stop, and never taken for what it is not.
use strict;
use warnings;

use File::Copy qw(copy);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::RecursiveCopy;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

use SmartTest;

my $QUERY = 'SELECT id FROM numbers WHERE id BETWEEN 100 AND 200 ORDER BY id';

# The index of the table "numbers" is lost: queries do without it until REINDEX.
sub is_lost
{
	my ($node, $name) = @_;
	my $plan = $node->safe_psql('postgres', "SET enable_seqscan = off; EXPLAIN (COSTS OFF) $QUERY");
	my ($status, undef, $err);

	unlike($plan, qr/Index/, "$name: the index is not used");
	is($node->safe_psql('postgres', "SET enable_seqscan = off; $QUERY"), join("\n", 100 .. 200), "$name: the result comes from the table");
	is($node->safe_psql('postgres', "SELECT state FROM smart_index_state WHERE index = 'numbers_id'::regclass"), 'lost', "$name: lost");
	($status, undef, $err) = $node->psql('postgres', "SELECT smart_index_check('numbers_id')", extra_params => [ '-v', 'VERBOSITY=verbose' ]);
	like($err, qr/ERROR:  55000:.*REINDEX/s, "$name: a query that insists gets an error with a hint");
	$node->safe_psql('postgres', 'INSERT INTO numbers VALUES (-1)');
	$node->safe_psql('postgres', 'REINDEX TABLE numbers');
	same_answers($node, 'postgres', $QUERY, "$name: rebuilt");
	index_is_sound($node, 'postgres', 'numbers_id', $name);
	return;
}

sub is_kept
{
	my ($node, $name) = @_;

	same_answers($node, 'postgres', $QUERY, "$name: kept");
	index_is_sound($node, 'postgres', 'numbers_id', $name);
	$node->safe_psql('postgres', 'INSERT INTO numbers SELECT max(id) + 1 FROM numbers');
	return;
}

sub crc32c
{
	my ($bytes) = @_;
	my $crc = 0xffffffff;
	for my $byte (unpack 'C*', $bytes)
	{
		$crc ^= $byte;
		$crc = $crc & 1 ? ($crc >> 1) ^ 0x82f63b78 : $crc >> 1 for 1 .. 8;
	}
	return $crc ^ 0xffffffff;
}

# The run file tells of another boot (bytes 64 to 99), and its checksum (the last 4) is right.
sub pretend_reboot
{
	my ($path) = @_;
	my $bytes = slurp_file($path);
	die 'not a run file' unless length $bytes == 104 && unpack('L', substr $bytes, 100) == crc32c(substr $bytes, 0, 100);
	substr($bytes, 64, 36) =~ tr/0-9a-f/1-9a-f0/;
	substr($bytes, 100, 4) = pack 'L', crc32c(substr $bytes, 0, 100);
	# The file itself stays what it is.
	open my $file, '+<:raw', $path or die "$path: $!";
	print $file $bytes;
	close $file or die $!;
}

sub change_byte
{
	my ($path, $offset) = @_;

	open(my $file, '+<', $path) or die "$path: $!";
	binmode $file;
	seek($file, $offset, 0);
	read($file, my $byte, 1);
	seek($file, $offset, 0);
	print $file chr(ord($byte) ^ 1);
	close($file);
	return;
}

# From a clean stop to what may happen to the files.
sub across_restarts
{
	my ($place, @settings) = @_;
	my $node = smart_node($place, 'autovacuum = off', 'smart.auto_rebuild = off', 'restart_after_crash = on', 'wal_level = replica', 'max_wal_senders = 4', @settings);
	my $smart = $node->data_dir . '/smart';
	my $region = region_of($node);

	ok(!-s $region, 'a server without smart indexes has no region');
	$node->safe_psql('postgres', 'CREATE TABLE numbers (id int);
		INSERT INTO numbers SELECT g FROM generate_series(1, 20000) g; CREATE INDEX numbers_id ON numbers USING smart (id) WITH (logged = off)');
	is(sprintf('%o %o', (stat $smart)[2] & 07777, (stat $region)[2] & 07777), '700 600', 'no other user reads it');

	for my $mode ('fast', 'smart')
	{
		ok(!-e "$smart/pgsql_tmp_owner", 'there is no clean mark while the server runs');
		$node->stop($mode);
		ok(-e "$smart/pgsql_tmp_owner", "a $mode stop leaves one");
		$node->start;
		is_kept($node, "$mode stop");
	}

	# A start that fails before any session used the region leaves it good.
	$node->stop;
	$node->append_conf('postgresql.conf', 'hba_file = \'/nonexistent\'');
	ok(!$node->start(fail_ok => 1), 'a start that fails');
	$node->append_conf('postgresql.conf', 'hba_file = \'' . $node->data_dir . '/pg_hba.conf\'');
	$node->start;
	is_kept($node, 'a start that failed');

	# Unclean ends of every kind (crash.pl has more of them).
	$node->stop('immediate');
	ok(!-e "$smart/pgsql_tmp_owner", 'an immediate stop leaves no clean mark');
	ok(-e "$smart/pgsql_tmp_run", 'but a run file');
	$node->start;
	is_kept($node, 'immediate stop');
	$node->kill9;
	start_again($node);
	is_kept($node, 'kill -9 of the postmaster');

	my $victim = pid_of($node, 'background writer');
	kill 'KILL', $victim;
	$node->poll_query_until('postgres',
		"SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'background writer' AND pid <> $victim")
	  or die 'the server did not restart its processes';
	is_kept($node, 'a server process crashed');
	$node->stop;
	ok(!-e "$smart/pgsql_tmp_run", 'a clean stop leaves no run file');
	$node->start;
	is_kept($node, 'a clean restart after that');

	# What was left by a server that was killed, and is not proved to be what it was.
	$node->stop('immediate');
	unlink "$smart/pgsql_tmp_run" or die $!;
	$node->start;
	is_lost($node, 'no run file');

	$node->stop('immediate');
	change_byte("$smart/pgsql_tmp_run", 60);
	$node->start;
	is_lost($node, 'a damaged run file');

	$node->stop('immediate');
	pretend_reboot("$smart/pgsql_tmp_run");
	$node->start;
	is_lost($node, 'another boot of the machine');

	for my $file ("$smart/pgsql_tmp_run", $region)
	{
		$node->stop('immediate');
		copy($file, "$file.copy") or die $!;
		chmod 0600, "$file.copy";
		rename("$file.copy", $file) or die $!;
		$node->start;
		is_lost($node, "a copy of $file");
	}

	$node->stop('immediate');
	change_byte($region, 17);
	$node->start;
	is_lost($node, 'a damaged header after a crash');

	# The region has relied on WAL that is not there.
	$node->stop('immediate');
	change_byte($region, 448 + 16 + 7);
	$node->start;
	ok($node->poll_query_until('postgres', "SELECT state = 'lost' FROM smart_index_state"), 'a region that is ahead of WAL is not taken');
	is_lost($node, 'a region that is ahead of WAL');
	ok($node->log_contains(qr/empty region: the data directory is older than it/), 'the log says so');

	# What is in the file is not a region any more; or it is another one's.
	$node->stop;
	change_byte($region, 17);
	$node->start;
	is_lost($node, 'a damaged header');

	$node->stop;
	change_byte("$smart/pgsql_tmp_owner", 20);
	$node->start;
	is_lost($node, 'a damaged owner file');

	$node->stop;
	unlink $region or die $!;
	$node->start;
	is_lost($node, 'a lost region');

	return $node;
}

SKIP:
{
	my $room = `df --block-size=1M --output=size /dev/shm | tail -n 1`;

	skip 'little shared memory', 1 if $room < 64;
	my $shared = across_restarts('shared_memory', 'smart.embedded_max_size = \'16MB\'');
	like(region_of($shared), qr{^/dev/shm/}, 'the region was in shared memory');
	$shared->stop;
}
my $node = across_restarts('file', q{smart.embedded_path = 'smart'});
my $smart = $node->data_dir . '/smart';
is(region_of($node), "$smart/pgsql_tmp_region", 'the region was in a file');

# A base backup leaves the region out, and does not take another one for its own.
$node->backup('copy');
ok(!-e $node->backup_dir . "/copy/smart/$_", "a base backup has no $_") for ('pgsql_tmp_region', 'pgsql_tmp_owner');
my $restored = PostgreSQL::Test::Cluster->new('restored');
$restored->init_from_backup($node, 'copy');
$restored->start;
is_lost($restored, 'a restored base backup');
$restored->stop;

# The data directory goes back in time, the region elsewhere does not.
my $elsewhere = PostgreSQL::Test::Utils::tempdir();
$node->append_conf('postgresql.conf', "smart.embedded_path = '$elsewhere'");
$node->restart;
is_lost($node, 'another directory');
$node->stop;
PostgreSQL::Test::RecursiveCopy::copypath($node->data_dir, $node->basedir . '/older');
$node->start;
is_kept($node, 'another directory');
$node->stop;
rename($node->data_dir, $node->basedir . '/newer') or die $!;
rename($node->basedir . '/older', $node->data_dir) or die $!;
chmod 0700, $node->data_dir;
$node->start;
is_lost($node, 'storage that went back');

# Two servers, one directory: the second one goes without.
my $second = smart_node('second', "smart.embedded_path = '$elsewhere'", 'autovacuum = off');
my ($status, undef, $err) = $second->psql('postgres', 'CREATE TABLE t (a int); INSERT INTO t VALUES (1); CREATE INDEX ON t USING smart (a)',
	extra_params => [ '-v', 'VERBOSITY=verbose' ]);
isnt($status, 0, 'a second server on the same directory has no region');
like($err, qr/ERROR:  55000:.*in use by another server/s, 'and says why');
$second->stop;
is_kept($node, 'the first server');

# Without the library.
$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', "''");
$node->adjust_conf('postgresql.conf', 'smart.embedded_path', undef);
$node->adjust_conf('postgresql.conf', 'smart.auto_rebuild', undef);
$node->restart;
is($node->safe_psql('postgres', "SET enable_seqscan = off; $QUERY"), join("\n", 100 .. 200), 'without the library: the result comes from the table');
for my $statement ('INSERT INTO numbers VALUES (-1)', 'CREATE INDEX ON numbers USING smart (id)')
{
	(undef, undef, $err) = $node->psql('postgres', $statement, extra_params => [ '-v', 'VERBOSITY=verbose' ]);
	like($err, qr/ERROR:  55000:.*HINT:.*shared_preload_libraries/s, "without the library: $statement");
}
$node->stop;
log_is_quiet($second);

done_testing();
