# What is remembered of an index's dead rows counts for no other index: not for that of a copied database, whose journal has the same
# id, and not for another table's, whose files were exchanged as pg_repack does it. In each case a place that was one index's dead row
# is the other one's living row; and other rows are dead there, so that the memory is asked.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use SmartTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $BY_INDEX = 'SET enable_seqscan = off; SET enable_bitmapscan = off;';
my $node = smart_node('main', 'autovacuum = off');

sub sql
{
	my ($database, $statements) = @_;

	return $node->safe_psql($database, $statements);
}

# is_remembered(DATABASE, TABLE, CONDITION): scans by the index until none of these rows, which are dead, is looked up in the table.
sub is_remembered
{
	my ($database, $table, $condition) = @_;
	my $plan;

	foreach my $attempt (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		$plan = sql($database, "$BY_INDEX EXPLAIN (ANALYZE, TIMING OFF) SELECT count(k) FROM $table WHERE $condition");
		last if $plan =~ /Heap Fetches: 0\b/;
		sleep(0.1);
	}
	return like($plan, qr/Heap Fetches: 0\b/, "$table in $database: dead rows are remembered");
}

# ---- dead rows among others ----

# Scrolls through a table whose dead rows lie alone, in stretches, and at the end of keys that many rows share: first while nothing is
# remembered, then passing by. The rows of both tables are at the same places, and so come in the same order; but of what nbtree keeps
# as one item it returns the TIDs forward in any case.
sub scroll
{
	my ($table, $columns) = @_;

	return sql('postgres', "$BY_INDEX BEGIN; DECLARE c SCROLL CURSOR FOR SELECT $columns FROM $table ORDER BY k;
		FETCH 700 FROM c; FETCH BACKWARD 300 FROM c; FETCH 1500 FROM c; FETCH BACKWARD ALL FROM c; FETCH 31 FROM c; FETCH BACKWARD 9 FROM c;
		FETCH ALL FROM c; FETCH BACKWARD 2100 FROM c; COMMIT");
}

foreach my $shape ('g', 'g / 40', 'hashint4(g)')
{
	foreach my $kind ('btree', 'smart')
	{
		my $options = $kind eq 'btree' ? 'WITH (deduplicate_items = off)' : '';

		sql('postgres', "DROP TABLE IF EXISTS mixed_$kind; CREATE TABLE mixed_$kind (id int, k int); INSERT INTO mixed_$kind SELECT g, $shape
			FROM generate_series(1, 3000) g; CREATE INDEX ON mixed_$kind USING $kind (k) $options");
		sql('postgres', "VACUUM (ANALYZE) mixed_$kind");
		sql('postgres', "DELETE FROM mixed_$kind WHERE id % 100 = 1 OR id % 40 > 36 OR id BETWEEN 1000 AND 1300");
	}
	foreach my $time ('first', 'second', 'third')
	{
		foreach my $columns ('k', 'k, id')
		{
			ok(scroll('mixed_smart', $columns) eq scroll('mixed_btree', $columns), "$shape: $columns, the $time time");
		}
	}
}

# ---- a copied database ----

sql('postgres', 'CREATE DATABASE original');
sql('original', q{CREATE EXTENSION smart; CREATE TABLE copied (id int, k int);
	CREATE UNIQUE INDEX copied_k ON copied USING smart (k) WITH (resident = never);
	INSERT INTO copied SELECT g, g FROM generate_series(1, 100) g});
sql('postgres', 'CREATE DATABASE copy TEMPLATE original');
sql('copy', 'DELETE FROM copied WHERE k = 5');
is_remembered('copy', 'copied', 'k = 5');
sql('original', 'DELETE FROM copied WHERE k = 50');
is_remembered('original', 'copied', 'k = 50');
is(sql('original', "$BY_INDEX SELECT k, id FROM copied WHERE k = 5"), '5|5', 'the original has the row that was deleted in the copy');
my ($status, undef, $error) = $node->psql('original', '\set VERBOSITY verbose' . "\nINSERT INTO copied VALUES (5, 5)");
like($error, qr/ERROR:  23505:/, 'and its key is taken');
is(sql('copy', "$BY_INDEX SELECT count(k) FROM copied WHERE k IN (5, 50)"), '1', 'the copy has the row that was deleted in the original');
index_is_sound($node, $_, 'copied_k', "database $_") for ('original', 'copy');

# ---- exchanged files ----

foreach my $resident ('always', 'never')
{
	my ($one, $two) = ("one_$resident", "two_$resident");

	foreach my $table ($one, $two)
	{
		sql('postgres', "CREATE TABLE $table (id int, k int); INSERT INTO $table SELECT g, g FROM generate_series(1, 100) g;
			CREATE INDEX ${table}_k ON $table USING smart (k) WITH (resident = $resident)");
	}
	sql('postgres', "DELETE FROM $two WHERE k BETWEEN 5 AND 9");
	is_remembered('postgres', $two, 'k BETWEEN 5 AND 9');
	# The new rows get the places of the old ones.
	sql('postgres', "VACUUM (INDEX_CLEANUP on) $two");
	sql('postgres', "INSERT INTO $two SELECT g, g FROM generate_series(5, 9) g");
	sql('postgres', "BEGIN; LOCK $one, $two;
		CREATE TEMPORARY TABLE files AS SELECT oid, relname, relfilenode FROM pg_class WHERE relname ~ '^(one|two)_$resident';
		UPDATE pg_class c SET relfilenode = f.relfilenode FROM files f
		WHERE c.oid IN (SELECT oid FROM files) AND f.relname = CASE WHEN c.relname ~ '^one' THEN replace(c.relname, 'one', 'two') ELSE replace(c.relname, 'two', 'one') END;
		COMMIT");
	sql('postgres', "DELETE FROM $one WHERE k BETWEEN 50 AND 52");
	is_remembered('postgres', $one, 'k BETWEEN 50 AND 52');
	is(sql('postgres', "$BY_INDEX SELECT count(id) FROM $one WHERE k BETWEEN 5 AND 9"), '5', "resident = $resident: rows that came with the other table's file are found");
	index_is_sound($node, 'postgres', "${_}_k", "exchanged, resident = $resident") for ($one, $two);
}
$node->stop;
log_is_quiet($node);
done_testing();
