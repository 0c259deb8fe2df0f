# sysbench: each of its tests of transactions, with smart primary keys and secondary indexes.
use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartTest;
use SmartTools;

my ($sysbench) = needs(program('sysbench'));
my $node = smart_node('main', @ITEM_SETTINGS);
my @options = ('--db-driver=pgsql', '--pgsql-host=' . $node->host, '--pgsql-port=' . $node->port, '--pgsql-user=' . getpwuid($<), '--pgsql-db=bench',
	'--tables=2', '--table-size=2000', '--threads=4', '--time=60', '--rand-type=uniform', '--rand-seed=1');

# sysbench(TEST, COMMAND, OPTION...): what it prints.
sub sysbench
{
	my ($test, @arguments) = @_;
	my $output = '';

	IPC::Run::run([ $sysbench, $test, @options, @arguments ], '<', \undef, '>', \$output, '2>&1') or die "sysbench $test: $output";
	return $output;
}

# Each row by each of its indexes.
sub are_right
{
	my ($what) = @_;
	my ($status, $out, $err) = $node->psql('bench', 'SELECT smart_index_check(index, true) FROM smart_index_state');
	my $query = join('; ', map { ("SELECT count(*), sum(k::bigint * id) FROM (SELECT k, id FROM sbtest$_ WHERE id > 0 ORDER BY id) i",
		"SELECT count(*), sum(k::bigint * id) FROM (SELECT k, id FROM sbtest$_ WHERE k >= 0 ORDER BY k) i") } (1, 2));

	is($err, '', "indexes are sound: $what");
	is($node->safe_psql('bench', "SET enable_seqscan = off; SET enable_sort = off; SET enable_bitmapscan = off; $query"),
		$node->safe_psql('bench', "SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; $query"), "indexes have the tables' rows: $what");
	return;
}

$node->safe_psql('postgres', 'CREATE DATABASE bench');
$node->safe_psql('bench', 'CREATE EXTENSION smart; ALTER DATABASE bench SET smart.constraints = on');
sysbench('oltp_read_write', '--create-secondary=off', 'prepare');
$node->safe_psql('bench', 'CREATE INDEX k_1 ON sbtest1 USING smart (k); CREATE INDEX k_2 ON sbtest2 USING smart (k)');
is($node->safe_psql('bench', q{SELECT string_agg(DISTINCT amname, ' ') FROM pg_am a JOIN pg_class c ON c.relam = a.oid JOIN pg_index ON indexrelid = c.oid WHERE indrelid >= 16384}),
	'smart', 'all indexes are smart');
foreach my $test ('oltp_read_write', 'oltp_write_only', 'oltp_insert', 'oltp_delete', 'oltp_update_index', 'oltp_update_non_index', 'oltp_point_select', 'oltp_read_only',
	'select_random_points', 'select_random_ranges')
{
	my $output = sysbench($test, '--events=1000', 'run');

	# Two clients may delete the same row, and add it again; sysbench repeats what fails then with a duplicate key, and counts it.
	like($output, qr/transactions: +1000 /, $test);
	are_right($test) if $test =~ /^oltp_[rwidu].*(write|insert|delete|index)/;
}
lose_power($node);
start_again($node);
indexes_become($node, q{'ready'}, undef, 'bench') or die 'the indexes are not loaded';
are_right('after a power loss');

# Rows in bulk, in tables of its own.
sysbench('oltp_read_write', 'cleanup');
sysbench('bulk_insert', 'prepare');
like(sysbench('bulk_insert', '--events=20000', 'run'), qr/transactions: +20\d\d\d /, 'bulk_insert');
is($node->safe_psql('bench', 'SELECT count(smart_index_check(index, true)::text) FROM smart_index_state'), '4', 'its indexes are sound');
$node->stop;
done_testing();
