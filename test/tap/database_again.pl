# A database that is dropped, and another one that gets its OID: copies of one template have files of the same names, and journals of
# the same ids, so that nothing but the databases tells them apart. What shared memory has of the first one must not be taken for the
# second one's: not its deltas, nor its dead rows, filters, cached keys and followers, on the primary and on a standby.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SmartTest;
use Test::More;

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', <<'CONF');
shared_preload_libraries = 'smart'
autovacuum = off
smart.embedded_max_size = '64MB'
smart.cache_size = '2MB'
wal_keep_size = 1GB
max_parallel_workers_per_gather = 0
smart.debug_collect_orphans = off
CONF
$primary->start;
$primary->safe_psql('postgres', 'CREATE DATABASE source');
$primary->safe_psql('source', 'CREATE EXTENSION smart');
my %INDEX = (paged => ['', 'never'], uniquely => ['UNIQUE', 'never'], tree => ['', 'always']);
for my $table (sort keys %INDEX)
{
	my ($unique, $resident) = @{ $INDEX{$table} };

	$primary->safe_psql('source', <<"SQL");
CREATE TABLE $table (a int, b int);
INSERT INTO $table SELECT g, g FROM generate_series(1, 3000) g;
CREATE $unique INDEX ${table}_a ON $table USING smart (a) WITH (resident = $resident);
SQL
	$primary->safe_psql('source', "VACUUM ANALYZE $table");
}
$primary->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$standby->start;

# The index says what the table does, also when the scan before has remembered what it found.
sub answers_are_right
{
	my ($name) = @_;

	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	for my $table (sort keys %INDEX)
	{
		for my $node ($primary, $standby, $primary, $standby)
		{
			my $where = "$name, $table, " . $node->name;

			same_answers($node, 'copy', "SELECT count(b), sum(b) FROM $table WHERE a > -100000", $where);
			same_answers($node, 'copy', "SELECT count(*), sum(g) FROM generate_series(-10, 5200, 7) g WHERE EXISTS (SELECT FROM $table WHERE a = g OFFSET 0)", "$where: keys");
		}
		index_is_sound($primary, 'copy', "${table}_a", $name);
	}
	return;
}

sub change
{
	my ($name, @statements) = @_;

	for my $table (sort keys %INDEX)
	{
		$primary->safe_psql('copy', s/ROWS/$table/gr) for @statements;
	}
	answers_are_right($name);
	return;
}

my @changes = (
	sub { change('rows that are deleted', 'DELETE FROM ROWS WHERE a % 2 = 0') },
	sub { change('rows that are added', 'INSERT INTO ROWS SELECT 3000 + g, g FROM generate_series(1, 2000) g') },
	sub { change('places used again', 'DELETE FROM ROWS WHERE a % 3 = 0', 'VACUUM ROWS', 'INSERT INTO ROWS SELECT -g, g FROM generate_series(1, 2000) g') },
	sub {
		change('runs', ('UPDATE ROWS SET a = a + 20000', 'VACUUM ROWS', 'UPDATE ROWS SET a = a - 20000', 'VACUUM ROWS') x 6);
		compaction_ends($primary);
		answers_are_right('another run');
	},
	sub {
		change('other runs', ('UPDATE ROWS SET a = a + 19999', 'VACUUM ROWS', 'UPDATE ROWS SET a = a - 20000', 'VACUUM ROWS') x 6);
		compaction_ends($primary);
		answers_are_right('again another run');
	});

for my $i (0 .. $#changes)
{
	$primary->safe_psql('postgres', 'CREATE DATABASE copy TEMPLATE source OID 70000');
	is($primary->safe_psql('postgres', q{SELECT oid FROM pg_database WHERE datname = 'copy'}), '70000', "copy $i");
	answers_are_right("copy $i");
	$changes[$i]->();
	$primary->safe_psql('postgres', 'DROP DATABASE copy');
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
}

# A copy of a copy: the metapages of the second name trees of the first, which are there still and have changed.
sub copy_again
{
	my ($template) = @_;

	$primary->safe_psql('postgres', 'DROP DATABASE IF EXISTS copy');
	$primary->safe_psql('postgres', "CREATE DATABASE copy TEMPLATE $template OID 70000");
	return;
}

copy_again('source');
answers_are_right('the first');
$primary->safe_psql('postgres', 'CREATE DATABASE between TEMPLATE copy');
change('the first changes', 'DELETE FROM ROWS WHERE a % 3 = 0', 'VACUUM ROWS', 'INSERT INTO ROWS SELECT -g, g FROM generate_series(1, 2000) g');
copy_again('between');
answers_are_right('the second');
change('the second changes', 'INSERT INTO ROWS SELECT 5000 + g, g FROM generate_series(1, 200) g');
$standby->stop;
$primary->stop;
done_testing();
