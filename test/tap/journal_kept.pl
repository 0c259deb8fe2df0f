# A compaction keeps pages of the run before that nothing has changed, and writes the others: what is kept is found by all who read,
# also on a standby, and after a crash in the middle; what is not kept is used again.
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
smart.wait_timeout = '60s'
wal_keep_size = 1GB
max_parallel_workers_per_gather = 0
autovacuum_vacuum_cost_delay = 2ms
CONF
$primary->start;

sub sql
{
	return $primary->safe_psql('postgres', $_[0]);
}

sub pages
{
	my ($column) = @_;

	return sql("SELECT $column FROM smart_index_pages('rows_a')");
}

# compacted(NAME, STATEMENTS, RUN): runs these, waits until there is another run than this, or the current one, and none is due;
# returns its pages, and those that it kept.
sub compacted
{
	my ($name, $statements, $run) = @_;

	$run //= pages('run');
	sql($statements);
	ok( $primary->poll_query_until(
			'postgres', "SELECT run <> $run AND unfinished_pages = 0 AND chain_pages <= greatest(run_pages, 64) FROM smart_index_pages('rows_a')"),
		"$name: there is a new run");
	my ($pages, $kept) = split / /, pages("run_pages || ' ' || run_kept");

	note("$name: ", pages(q{concat_ws(' ', run, run_pages, run_kept, run_entries, run_fences, round(run_fill::numeric, 2), previous_pages, free_pages)}));
	return ($pages, $kept);
}

# The index says what its table says, forward, backward, and looked up.
sub is_right
{
	my ($name, $node) = @_;

	$node //= $primary;
	index_is_sound($node, 'postgres', 'rows_a', $name) if $node == $primary;
	same_answers($node, 'postgres', $_, "$name: $_")
		foreach ('SELECT a, b FROM rows ORDER BY a, b', 'SELECT a FROM rows ORDER BY a DESC', 'SELECT a, b FROM rows WHERE a IN (key(1), key(777), key(7999), key(8001), key(17000), key(100500)) ORDER BY a',
		"SELECT a FROM rows WHERE a BETWEEN '0003990' AND '0004010' ORDER BY a DESC", "SELECT a, b FROM rows WHERE a BETWEEN '0007990' AND '0008010' ORDER BY a");
	return;
}

# A hundred entries and more on a page: keys that do not shrink to nothing.
sql(<<'SQL');
CREATE EXTENSION smart;
CREATE TABLE rows (a text COLLATE "C", b int);
CREATE FUNCTION key(g int) RETURNS text IMMUTABLE LANGUAGE sql AS $$ SELECT to_char(g, 'FM0000000') || md5(g::text) || md5((-g)::text) $$;
INSERT INTO rows SELECT key(g), 0 FROM generate_series(1, 8000) g;
CREATE INDEX rows_a ON rows USING smart (a) INCLUDE (b) WITH (resident = never);
SQL
$primary->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$standby->start;

sub standby_is_right
{
	my ($name) = @_;

	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	is_right("$name, on the standby", $standby);
	return;
}

# What comes at the end: all pages but the last few are kept.
my $built = pages('run_pages');
cmp_ok($built, '>', 64, 'the build makes pages');
is(pages('run_kept'), 0, 'and keeps none');
my ($all, $kept) = compacted('at the end', 'INSERT INTO rows SELECT key(g), 1 FROM generate_series(8001, 18000) g');
cmp_ok($kept, '>=', $built - 8, 'at the end: the pages before are kept');
cmp_ok($all, '>', 2 * $built, 'at the end: and others come behind them');
is(pages('run_entries + adds - removals'), 18000, 'at the end: with all entries');
is_right('at the end');
standby_is_right('at the end');

# In the middle, again and again: rows of few pages come and go. Pages of before are used again.
my $middle = q{DO $$ BEGIN FOR i IN 1 .. 30 LOOP UPDATE rows SET b = b + 1 WHERE a BETWEEN '0004000' AND '0004800'; COMMIT; END LOOP; END $$; VACUUM (INDEX_CLEANUP ON) rows};
my $largest = $all;
for my $round (1 .. 5)
{
	($all, $kept) = compacted("in the middle $round", $middle);
	cmp_ok($kept, '>', 80, "in the middle $round: pages on both sides are kept");
	$largest = $all if $all > $largest;
	is_right("in the middle $round");
}
standby_is_right('in the middle');
cmp_ok(sql("SELECT pg_relation_size('rows_a') / 8192"), '<=', 4.5 * $largest, 'the file hardly grows: what was not kept is used again');

# Some rows everywhere: behind each of them a page may be half empty; when there are many such, all pages are written anew.
my ($most, $least, $fill) = (0, 1e9, 1);
for my $round (1 .. 20)
{
	($all, $kept) = compacted("everywhere $round", q{DO $$ BEGIN FOR i IN 1 .. 1200 LOOP UPDATE rows SET b = b + 1 WHERE a IN (SELECT key(g) FROM generate_series(1, 17000, 1000) g); COMMIT; END LOOP; END $$; VACUUM (INDEX_CLEANUP ON) rows});
	$most = $kept / $all if $kept / $all > $most;
	$least = $kept / $all if $kept / $all < $least;
	my $now = pages('run_fill');
	$fill = $now if $now < $fill;
	is_right("everywhere $round");
	last if $least == 0 && $most > 0;
}
cmp_ok($most, '>', 0.2, 'everywhere: pages are kept');
is($least, 0, 'everywhere: but once there are none');
cmp_ok($fill, '>', 0.75, 'everywhere: pages stay full');
standby_is_right('everywhere');

# A crash while such a run is written, and a cancel: what it has kept stays, and what it has written is free again.
for my $end ('crash', 'cancel')
{
	my $before = pages("concat_ws(' ', run, run_pages, run_kept, run_entries)");
	my $run = pages('run');

	$primary->adjust_conf('postgresql.conf', 'autovacuum_vacuum_cost_delay', '100ms');
	$primary->reload;
	sql("INSERT INTO rows SELECT key(g), 2 FROM generate_series(100001, 160000) g");
	ok($primary->poll_query_until('postgres', q{SELECT unfinished_pages > 5 FROM smart_index_pages('rows_a')}), "$end: a run is being written");
	if ($end eq 'crash')
	{
		$primary->safe_psql('postgres', 'CHECKPOINT');
		$primary->kill9;
		$primary->adjust_conf('postgresql.conf', 'autovacuum_vacuum_cost_delay', '2ms');
		start_again($primary);
	}
	else
	{
		sql(q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE backend_type = 'smart compaction'});
	}
	is(pages("concat_ws(' ', run, run_pages, run_kept, run_entries)"), $before, "$end: the run is the one before");
	is_right("$end, before the next run");
	$primary->adjust_conf('postgresql.conf', 'autovacuum_vacuum_cost_delay', '2ms');
	$primary->reload;
	compacted("after the $end", "DELETE FROM rows WHERE b = 2 AND a > '0150000'; VACUUM (INDEX_CLEANUP ON) rows", $run);
	is_right("after the $end");
	compacted("behind the $end", "DELETE FROM rows WHERE b = 2; VACUUM (INDEX_CLEANUP ON) rows");
}
standby_is_right('after a crash');

# All of it goes: there is no run; and comes again. VACUUM skips a page that another process has pinned, unless it freezes rows.
compacted('nothing is left', 'UPDATE rows SET b = b + 1; DELETE FROM rows; VACUUM (FREEZE, INDEX_CLEANUP ON) rows');
is(pages('run_entries + adds - removals'), 0, 'nothing is left');
is_right('nothing is left');
compacted('again', 'INSERT INTO rows SELECT key(g), 3 FROM generate_series(1, 30000) g');
is_right('again');
standby_is_right('again');

# A page that would be kept has gone from the disk, and looks free. It is not used for another one of the run: the damage is found, and
# the index rebuilt from its table. Mostly the compaction finds it, unless the chain has taken the page.
sql(q{CREATE TABLE harmed (a text COLLATE "C"); INSERT INTO harmed SELECT key(g) FROM generate_series(1, 8000) g;
	CREATE INDEX harmed_a ON harmed USING smart (a) WITH (resident = never); INSERT INTO harmed SELECT key(g) FROM generate_series(8001, 15000) g; CHECKPOINT});
is(sql(q{SELECT run || ' ' || (run_pages - chain_pages BETWEEN 0 AND 20) FROM smart_index_pages('harmed_a')}), '1 true', 'a compaction is nearly due');
my $path = $primary->data_dir . '/' . sql(q{SELECT pg_relation_filepath('harmed_a')});
$primary->stop;
open my $file, '+<:raw', $path or die "$path: $!";
seek $file, 30 * 8192, 0 or die $!;
print $file "\0" x 8192 or die $!;
close $file or die $!;
$primary->start;
my $offset = -s $primary->logfile;
sql('INSERT INTO harmed SELECT key(g) FROM generate_series(15001, 18000) g');
ok($primary->poll_query_until('postgres', q{SELECT run > 1 OR state <> 'paged' FROM smart_index_pages('harmed_a'), smart_index_condition('harmed_a')}), 'it comes');
$primary->psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM harmed WHERE a > \'\'');
ok($primary->poll_query_until('postgres', q{SELECT run_entries = 18000 AND unfinished_pages = 0 FROM smart_index_pages('harmed_a')}), 'a damaged page: there is a run with all entries');
ok($primary->log_contains(qr/journal of index "harmed_a" is damaged/, $offset), 'the damage was found');
ok($primary->log_contains(qr/smart index "harmed_a" has been rebuilt/, $offset), 'it has been rebuilt');
index_is_sound($primary, 'postgres', 'harmed_a', 'rebuilt');
same_answers($primary, 'postgres', 'SELECT a FROM harmed ORDER BY a', 'rebuilt');

# The standby goes on with it.
$primary->stop;
$standby->promote;
$primary = $standby;
compacted('promoted', 'INSERT INTO rows SELECT key(g), 4 FROM generate_series(40001, 80000) g');
cmp_ok(pages('run_kept'), '>', 100, 'promoted: pages are kept');
is_right('promoted');
log_is_quiet($primary);
done_testing();
