# The disk under an index's file is full: removals cannot be put into its journal. VACUUM fails, and nothing else happens.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartTest;

my @VERBOSE = (extra_params => [ '-v', 'VERBOSITY=verbose' ]);
my @alone = ('unshare', '--user', '--map-current-user', '--keep-caps', '--mount');
my $disk = PostgreSQL::Test::Utils::tempdir();
my $mount = "mount -t tmpfs -o size=12m smart '$disk'";

plan skip_all => 'no file system can be mounted here' if system(@alone, 'sh', '-c', "$mount 2>/dev/null") != 0;

my $node = PostgreSQL::Test::Cluster->new('tight');
$node->init;
$node->append_conf('postgresql.conf', join("\n", "shared_preload_libraries = 'smart'", 'autovacuum = off', 'fsync = off', 'smart.auto_rebuild = off', ''));
PostgreSQL::Test::Utils::system_or_bail(@alone, 'sh', '-c',
	"$mount && mkdir '$disk/space' && exec pg_ctl -w -s -D '" . $node->data_dir . "' -l '" . $node->logfile . "' start");
$node->_update_pid(1);
$node->safe_psql('postgres', 'CREATE EXTENSION smart');
$node->safe_psql('postgres', "CREATE TABLESPACE tight LOCATION '$disk/space'");
$node->safe_psql('postgres', 'CREATE TABLE t (n int, k int);
	INSERT INTO t SELECT g, (g * 7919::bigint % 1000003)::int FROM generate_series(1, 200000) g;
	CREATE INDEX t_k ON t USING smart (k) TABLESPACE tight');

foreach my $time (1 .. 2)
{
	my ($status, undef, $err) = $node->psql('postgres', "COPY (SELECT repeat('x', 1000) FROM generate_series(1, 20000)) TO '$disk/filler'", @VERBOSE);

	like($err, qr/ERROR:  53100:/, "$time: the disk is full");
	$node->safe_psql('postgres', "DELETE FROM t WHERE n % 3 = $time");
	foreach my $again (1 .. 3)
	{
		(undef, undef, $err) = $node->psql('postgres', 'VACUUM t', @VERBOSE);
		like($err, qr/ERROR:  53100:/, "$time: VACUUM fails, $again");
		is(state_of($node, 't_k'), 'ready', "$time: the index can be used, $again");
	}
	same_answers($node, 'postgres', 'SELECT n FROM t WHERE k < 20000 ORDER BY k', "$time: its rows");
	ok(!$node->log_contains(qr/has been loaded/), "$time: it has kept its tree");
	$node->safe_psql('postgres', "COPY (SELECT 1) TO '$disk/filler'");
	($status, undef, $err) = $node->psql('postgres', 'VACUUM t', @VERBOSE);
	ok($status == 0 && $err eq '', "$time: VACUUM when there is room again") or diag($err);
	index_is_sound($node, 'postgres', 't_k', $time);
}

# What a DBA does who has no room to give there: the index's file goes elsewhere, and its tree stays.
$node->psql('postgres', "COPY (SELECT repeat('x', 1000) FROM generate_series(1, 20000)) TO '$disk/filler'");
$node->safe_psql('postgres', 'DELETE FROM t WHERE n % 6 = 0; ALTER INDEX t_k SET TABLESPACE pg_default');
my ($status, undef, $err) = $node->psql('postgres', 'VACUUM t', @VERBOSE);
ok($status == 0 && $err eq '', 'VACUUM of an index that has moved') or diag($err);
index_is_sound($node, 'postgres', 't_k', 'moved');
$node->stop;
log_is_quiet($node);
done_testing();
