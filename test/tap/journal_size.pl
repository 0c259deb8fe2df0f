# The file of an index whose rows are updated again and again does not become larger than that of a btree: what a new run
# makes superfluous is used anew in time.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SmartTest;
use Test::More;

my $ROWS = 150000;
my $ROUNDS = 6;

my $node = smart_node('main', 'autovacuum = off', 'max_wal_size = 4GB', 'shared_buffers = 256MB', 'fsync = off');
my $database = 'texts';

# Collations of ICU want an encoding that they know.
$node->safe_psql('postgres', "CREATE DATABASE $database ENCODING 'UTF8' LOCALE 'C' TEMPLATE template0");
$node->safe_psql($database, 'CREATE EXTENSION smart');

sub sql
{
	return $node->safe_psql($database, $_[0]);
}

sub becomes_true
{
	my ($condition, $index, $name) = @_;

	$node->poll_query_until($database, "SELECT $condition FROM smart_index_pages('$index')") or die "$name: $index";
	return;
}

# Updates all rows, or one part of so many, round after round; returns the pages of smart's file for each one of btree's.
sub work
{
	my ($table, $key, $parts) = @_;
	my $index = "${table}_smart";
	$parts //= 1;

	sql("CREATE TABLE $table AS SELECT $key AS id, 0 AS word FROM generate_series(1, $ROWS) g");
	sql("CREATE INDEX ${table}_btree ON $table (id); CREATE INDEX $index ON $table USING smart (id); VACUUM $table");
	# No update is HOT.
	sql("CREATE INDEX ON $table (word)");
	for my $round (1 .. $ROUNDS)
	{
		my $run = sql("SELECT run FROM smart_index_pages('$index')");

		sql("UPDATE $table SET word = word + 1 WHERE abs(hashtext(id::text) % $parts) = @{[$round % $parts]}");
		becomes_true('previous_pages = 0 OR chain_pages <= greatest(128, run_pages / 2) + 1', $index, 'what was superseded is let go when the chain is long');
		sql("VACUUM $table");
		becomes_true("run > $run AND chain_pages < 10 AND unfinished_pages = 0", $index, 'there is a new run');
		note("$table, round $round, file, run, chain, previous, free: ",
			sql("SELECT concat_ws(' ', pg_relation_size('$index') / 8192, run_pages, chain_pages, previous_pages, free_pages) FROM smart_index_pages('$index')"));
	}
	return sql("SELECT pg_relation_size('$index')::float8 / pg_relation_size('${table}_btree')");
}

# The pages of a chain are as full as those of a run: an ascending key takes some bytes in either.
my $rising = work('rising', 'g::bigint * 1000');
cmp_ok($rising, '<=', 0.75, 'keys that ascend: three quarters of a btree, at most');
cmp_ok($rising, '>', 0.1, 'but there is a run and a chain');
my $random = work('random', 'hashint8extended(g, 0)');
cmp_ok($random, '<=', 1.1, 'random keys: not much more than a btree');

# What is updated in halves is written anew after each of them: the file has two runs, and the chain of one half.
my %halves = (bigint => 'hashint8extended(g, 0)', c => q{substr(md5(g::text), 1, 18) COLLATE "C"},
	icu => q{substr(md5(g::text), 1, 18) COLLATE "en-x-icu"});
for my $type (sort keys %halves)
{
	cmp_ok(work("halves_$type", $halves{$type}, 2), '<=', 1, "$type, halves: no more than a btree");
}
cmp_ok(sql(q{SELECT 8192.0 * run_pages / run_entries FROM smart_index_pages('rising_smart')}), '<=', 6, 'bytes of an ascending entry');
cmp_ok(sql(q{SELECT 8192.0 * run_pages / run_entries FROM smart_index_pages('random_smart')}), '<=', 12, 'bytes of a random one');
index_is_sound($node, $database, $_, 'after all rounds') foreach ('rising_smart', 'random_smart', map { "halves_${_}_smart" } sort keys %halves);

log_is_quiet($node);
$node->stop;
done_testing;
