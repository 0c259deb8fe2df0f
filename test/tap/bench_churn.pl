# bench/measure.py measures what dead entries cost on both kinds of index, leaves the server as it was, and README.md's
# picture shows the worst of it.
use strict;
use warnings;

use File::Basename;
use File::Copy;
use File::Spec;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $TOP = File::Spec->rel2abs(dirname(__FILE__) . '/../..');
my $ROWS = 11;
my $CPU_ROWS = 9; # of those that pgbench runs
my $out = PostgreSQL::Test::Utils::tempdir();

# The measurements that a CSV file holds, each with its ratio.
sub ratios
{
	my ($path) = @_;
	my %ratio;

	foreach my $line (split /\n/, slurp_file($path))
	{
		$ratio{$1} = $4 / $3 if $line =~ /^"?((?:CPU of )?churn, .*?)"?,(us\/txn),([0-9.]+),([0-9.]+),[0-9.]+\r?$/;
	}
	return %ratio;
}

my $node = PostgreSQL::Test::Cluster->new('bench');

$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'smart'\nautovacuum = off\nsynchronous_commit = off\n");
$node->start;
$ENV{PGHOST} = $node->host;
$ENV{PGPORT} = $node->port;
$ENV{PGDATABASE} = 'postgres';
command_ok([ "$TOP/bench/measure.py", '--quick', '--rows', 10000, '--seconds', 1, '--cpu', '--only', 'churn', '--out', $out ], 'the measurements are made');
my %measured = ratios("$out/vs_nbtree.csv");
is(scalar(grep { /^churn/ } keys %measured), $ROWS, 'all of them');
is(scalar(grep { /^CPU/ } keys %measured), $CPU_ROWS, 'the processor time of those that have a rate');
is(scalar(grep { $_ > 0 } values %measured), $ROWS + $CPU_ROWS, 'and each has a ratio');
is($node->safe_psql('postgres', "SELECT string_agg(setting, ' ' ORDER BY name) FROM pg_settings
	WHERE name IN ('autovacuum', 'autovacuum_naptime', 'enable_seqscan', 'synchronous_commit')"), 'off 60 on off', 'the settings are as they were');
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"), 0,
	'no table is left');
$node->stop;

# The picture, of what doc/ has and of what is worse than all of that.
copy("$TOP/doc/vs_nbtree.csv", "$out/vs_nbtree.csv") or die;
append_to_file("$out/vs_nbtree.csv", "\"churn, of this test\",us/txn,1.000,77.000,77.0000\r\n");
my $of_doc = (grep { /^churn/ && $_ ne 'churn, of this test' } keys %{ { ratios("$out/vs_nbtree.csv") } });
command_ok([ 'python3', "$TOP/bench/report.py", "$out/vs_nbtree.csv", 'a title' ], 'pictures are drawn of a CSV file');
like(slurp_file("$out/glance.svg"), qr{>worst of @{[ $of_doc + 1 ]}: of this test</text>\n<rect class="more".*\n.*>77\.00</text>},
	'that of README.md shows the worst, in red');
done_testing();
