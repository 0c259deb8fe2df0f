# A region that cannot grow: an error for the statement, and nothing else.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartTest;

my @VERBOSE = (extra_params => [ '-v', 'VERBOSITY=verbose' ]);

# 96 bytes that nothing can shorten.
sub rows
{
	my ($from, $to) = @_;

	return "SELECT g AS a, md5(g::text) || md5((g + 1)::text) || md5((g + 2)::text) AS b FROM generate_series($from, $to) g";
}

# A table whose index fits, then rows that do not; the server goes on, and goes on using the index.
sub meets_the_limit
{
	my ($node, $sqlstate, $name) = @_;
	my ($status, undef, $err);

	$node->safe_psql('postgres', "CREATE TABLE t (a int, b text COLLATE \"C\"); CREATE INDEX t_b ON t USING smart (b) WITH (resident = always);
		CREATE TABLE other (a int, b text); CREATE INDEX other_b ON other USING smart (b) WITH (resident = always); INSERT INTO t " . rows(1, 1000));
	($status, undef, $err) = $node->psql('postgres', "INSERT INTO t " . rows(1001, 300000) . "", @VERBOSE);
	isnt($status, 0, "$name: the statement fails");
	like($err, qr/ERROR:  $sqlstate:.*HINT:.*smart\.embedded_/s, "$name: SQLSTATE $sqlstate and a hint");
	is($node->safe_psql('postgres', 'SELECT count(*) FROM t'), 1000, "$name: it was rolled back");
	same_answers($node, 'postgres', 'SELECT a FROM t ORDER BY b', "$name: the rows before it");
	(undef, undef, $err) = $node->psql('postgres', "CREATE TABLE big AS " . rows(1, 300000) . "; CREATE INDEX ON big USING smart (b) WITH (resident = always)",
		@VERBOSE);
	like($err, qr/ERROR:  $sqlstate:/, "$name: nor can an index be built that is too long");

	# Filled to the last page: nothing goes in any more. What is there is read all the same, wherever inserts have come to their
	# end, and VACUUM removes entries and makes room.
	my $fill = rows('n', 'n + 9');
	$node->safe_psql('postgres', fill_up("INSERT INTO t $fill", 400001));
	same_answers($node, 'postgres', 'SELECT a FROM t ORDER BY b', "$name: nothing is missed when it is full");
	$node->safe_psql('postgres', 'DELETE FROM t WHERE a % 10 = 0 OR a > 1000');
	($status, undef, $err) = $node->psql('postgres', 'VACUUM t');
	is($status, 0, "$name: VACUUM of a full region") or diag($err);
	$node->safe_psql('postgres', "INSERT INTO other " . rows(1, 1000) . "; INSERT INTO t " . rows(2001, 3000));
	index_is_sound($node, 'postgres', $_, $name) for ('t_b', 'other_b');
	$node->restart;
	index_is_sound($node, 'postgres', $_, "$name, after a restart") for ('t_b', 'other_b');
	log_is_quiet($node);
	return;
}

my $node = smart_node('limit', 'smart.embedded_max_size = \'16MB\'', 'autovacuum = off', 'fsync = off');
meets_the_limit($node, '53200', 'the greatest size');
is(-s region_of($node), 16 * 1024 * 1024, 'the file is no longer than that');

# A greater limit at the next start, and a smaller one.
$node->append_conf('postgresql.conf', 'smart.embedded_max_size = \'200MB\'');
$node->restart;
$node->safe_psql('postgres', "INSERT INTO t " . rows(3001, 250000));
index_is_sound($node, 'postgres', 't_b', 'with a greater limit');
cmp_ok(-s region_of($node), '>', 16 * 1024 * 1024, 'the file has grown');
$node->append_conf('postgresql.conf', 'smart.embedded_max_size = \'16MB\'');
$node->restart;
index_is_sound($node, 'postgres', 't_b', 'with a smaller limit');
$node->stop;

# A full disk: a small file system that is mounted where only this server sees it.
SKIP:
{
	my @alone = ('unshare', '--user', '--map-current-user', '--keep-caps', '--mount');
	my $disk = PostgreSQL::Test::Utils::tempdir();
	my $mount = sub { return "mount -t tmpfs -o size=$_[0] smart '$disk'" };
	my $start = sub {
		my ($command) = @_;
		PostgreSQL::Test::Utils::system_or_bail(@alone, 'sh', '-c',
			"$command && exec pg_ctl -w -s -D '" . $node->data_dir . "' -l '" . $node->logfile . "' start");
		$node->_update_pid(1);
	};

	skip 'no file system can be mounted here', 1 if system(@alone, 'sh', '-c', $mount->('1m') . ' 2>/dev/null') != 0;

	$node = PostgreSQL::Test::Cluster->new('disk');
	$node->init;
	$node->append_conf('postgresql.conf', join("\n", "shared_preload_libraries = 'smart'", "smart.embedded_path = '$disk'",
		'autovacuum = off', 'fsync = off', 'smart.auto_rebuild = off', ''));
	# No room for the first step.
	$start->($mount->('1m'));
	$node->safe_psql('postgres', 'CREATE EXTENSION smart; CREATE TABLE first (a int); INSERT INTO first VALUES (1)');
	my (undef, undef, $err) = $node->psql('postgres', 'CREATE INDEX ON first USING smart (a)', @VERBOSE);
	like($err, qr/ERROR:  53100:/, 'a disk without room for any region');
	is($node->safe_psql('postgres', 'SELECT a FROM first'), 1, 'the server goes on');
	$node->stop;

	$start->($mount->('24m'));
	{
		no warnings 'redefine';
		# The disk would be another one after a restart: only check that the server still runs queries.
		local *PostgreSQL::Test::Cluster::restart = sub { $node->safe_psql('postgres', 'SELECT 1') };
		meets_the_limit($node, '53100', 'a full disk');
	}
	$node->stop;
	$start->($mount->('24m'));
	ok(indexes_become($node, q{'ready', 'empty'}),
		'an empty disk after a restart is noticed');
	ok($node->log_contains(qr/smart index "t_b" has been loaded/), 'what was there is loaded');
	index_is_sound($node, 'postgres', $_, 'loaded') for ('t_b', 'other_b');
	$node->stop;

	# Shared memory that is as small as a container's: a file, unless the setting fits; and others may have taken it.
	my $container = 'mount -t tmpfs -o size=64m smart /dev/shm';

	$node = PostgreSQL::Test::Cluster->new('container');
	$node->init;
	$node->append_conf('postgresql.conf', join("\n", "shared_preload_libraries = 'smart'", 'dynamic_shared_memory_type = mmap', 'autovacuum = off', 'fsync = off',
		'smart.auto_rebuild = off', ''));
	$start->($container);
	$node->safe_psql('postgres', 'CREATE EXTENSION smart; CREATE TABLE first (a int); CREATE INDEX ON first USING smart (a); INSERT INTO first VALUES (1)');
	ok($node->log_contains(qr/DETAIL:  smart\.embedded_max_size is 65536 MB, more than half of the 64 MB/), 'a container has little shared memory');
	ok(-s $node->data_dir . '/smart/pgsql_tmp_region', 'the region is a file');
	$node->stop;
	$node->append_conf('postgresql.conf', q{smart.embedded_max_size = '32MB'});
	$start->("$container && head -c 42000000 /dev/zero >/dev/shm/other");
	ok(!-e $node->data_dir . '/smart/pgsql_tmp_region', 'a region that is so small is in shared memory');
	{
		no warnings 'redefine';
		local *PostgreSQL::Test::Cluster::restart = sub { $node->safe_psql('postgres', 'SELECT 1') };
		meets_the_limit($node, '53100', 'shared memory that others have taken');
	}
	$node->stop;
}

done_testing();
