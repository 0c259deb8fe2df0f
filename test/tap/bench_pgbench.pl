# The scripts of bench/pgbench run on both indexes, and use them.
use strict;
use warnings;

use File::Basename;
use File::Spec;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $SCRIPTS = File::Spec->rel2abs(dirname(__FILE__) . '/../../bench/pgbench');
my $ROWS = 2000;
my $EACH = 50;

my $node = PostgreSQL::Test::Cluster->new('bench');

$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'smart'\nenable_seqscan = off\nenable_bitmapscan = off\n");
$node->start;
$node->command_ok([ 'psql', '-X', '-v', 'ON_ERROR_STOP=1', '-v', "rows=$ROWS", '-d', $node->connstr('postgres'), '-f', "$SCRIPTS/setup.sql" ],
	'the tables');

for my $method ('btree', 'smart')
{
	for my $script ('lookup', 'range', 'insert', 'update', 'mixed')
	{
		$node->command_like(
			[ 'pgbench', '-n', '-M', 'simple', '-c', 2, '-t', $EACH, '-D', "rows=$ROWS", '-D', "method=$method",
				'-f', "$SCRIPTS/$script.sql", $node->connstr('postgres') ],
			qr{processed: @{[ 2 * $EACH ]}/}, "$script, $method");
	}
	is($node->safe_psql('postgres', "SELECT count(*) FROM bench_$method"), $ROWS + 4 * $EACH, "$method: rows");
}
$node->safe_psql('postgres', "SELECT smart_index_check('bench_smart_id', true)");
ok($node->poll_query_until('postgres', "SELECT bool_and(idx_scan >= 200) FROM pg_stat_user_indexes WHERE indexrelname ~ '^bench_'"),
	'both indexes are used');
$node->stop;
done_testing();
