# Compaction of a journal: the tree becomes a new run while others read and write, the file stays small, and a tree can be
# loaded after each; what interrupts a compaction does no harm.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

use SmartTest;

# What set_delay() changes has to stand in the file.
my $node = smart_node('main', 'autovacuum = off', 'max_wal_size = 4GB', 'shared_buffers = 32MB', 'autovacuum_vacuum_cost_delay = 2ms');

sub sql
{
	return $node->safe_psql('postgres', $_[0]);
}

sub pages
{
	my ($column, $index) = @_;

	return sql("SELECT $column FROM smart_index_pages('" . ($index // 'numbers_id') . "')");
}

# How long a compaction sleeps when its pages have cost autovacuum's limit.
sub set_delay
{
	my ($delay) = @_;

	$node->adjust_conf('postgresql.conf', 'autovacuum_vacuum_cost_delay', $delay);
	$node->reload;
	return;
}

# Waits until no compaction is due any more, or next to due: the metapage does not count what is on the last page.
sub settle
{
	my ($index) = @_;

	$node->poll_query_until('postgres', "SELECT unfinished_pages = 0 AND (chain_pages <= greatest(run_pages, 128) + 8 OR 4 * removals < run_entries + adds + removals + 4000)
		FROM smart_index_pages('$index')") or die "$index is not compacted";
	return;
}

# All processes are killed, and the region is not accepted any more: trees are loaded.
sub lose_trees
{
	my ($name, @indexes) = @_;
	my $offset = -s $node->logfile;

	$node->kill9;
	unlink $node->data_dir . '/smart/pgsql_tmp_run' or die $!;
	start_again($node);
	foreach my $index (@indexes)
	{
		becomes($node, $index, 'ready');
		index_is_sound($node, 'postgres', $index, $name);
	}
	ok(!$node->log_contains(qr/has been rebuilt|is damaged/, $offset), "$name: all was loaded");
	return;
}

# So much that it is written anew although nothing of it is superfluous: more than 32 MB of keys.
my $many = 36000;

sub fill
{
	my ($table) = @_;

	sql("INSERT INTO $table SELECT id, word FROM filling");
	return;
}

# A compaction by the worker that is in the middle of writing its run.
sub begin_slowly
{
	my ($table, $index) = @_;

	set_delay('100ms');
	fill($table);
	ok($node->poll_query_until('postgres', "SELECT unfinished_pages > 20 FROM smart_index_pages('$index')"), "the journal of $index is being compacted");
	is(sql(q{SELECT count(*), count(backend_xmin) FROM pg_stat_activity WHERE backend_type = 'smart compaction'}), '1|0',
		'its worker keeps no rows from VACUUM');
	ok($node->poll_query_until('postgres', q{SELECT wait_event = 'VacuumDelay' FROM pg_stat_activity WHERE backend_type = 'smart compaction'}),
		'and sleeps as autovacuum would');
	return;
}

sql(<<'SQL');
CREATE TABLE numbers (id int, word int);
CREATE INDEX numbers_id ON numbers USING smart (id) INCLUDE (word);
CREATE TABLE filling AS SELECT g || (SELECT string_agg(md5(i::text || g), '') FROM generate_series(1, 32) i) AS id, g % 100 AS word FROM generate_series(1, 36000) g;
CREATE UNLOGGED TABLE forgetful (id int);
CREATE INDEX forgetful_id ON forgetful USING smart (id);
SQL

# A chain that only grows is left alone until it is large; then a worker comes.
sql('INSERT INTO numbers SELECT g, 0 FROM generate_series(1, 150000) g');
sql('VACUUM numbers');
is(pages("run || ' ' || adds || ' ' || (chain_pages > 130)"), '0 150000 true', 'a chain without anything superfluous stays');
sql('DELETE FROM numbers WHERE id > 90000');
sql('VACUUM numbers');
ok($node->poll_query_until('postgres', "SELECT run = 1 AND unfinished_pages = 0 FROM smart_index_pages('numbers_id')"),
	'after VACUUM a worker makes a run when half of the journal is superfluous');
is(pages("run || ' ' || run_entries || ' ' || adds || ' ' || removals"), '1 90000 0 0', 'and has all of the journal in it');
cmp_ok(pages('run_fill'), '>', 0.9, 'pages of the run are full');
sql('CREATE TABLE large (id text COLLATE "C", word int); CREATE INDEX large_id ON large USING smart (id)');
fill('large');
ok($node->poll_query_until('postgres', "SELECT run > 0 AND chain_pages <= 4097 AND unfinished_pages = 0 FROM smart_index_pages('large_id')"),
	'a worker compacts a large chain');
is(pages('journal', 'large_id'), 'whole', 'the journal is whole');
cmp_ok(pages('run_entries + adds', 'large_id'), '>=', $many, 'run and chain have all entries');
lose_trees('after the first compactions', 'numbers_id', 'large_id');
sql('DROP TABLE large');
is(sql("SELECT journal, run FROM smart_index_pages('forgetful_id')"), 'none|0', 'an unlogged index has no journal');

# Many of them while others write and remove; after each a tree can be loaded.
my $script = pgbench_script(<<'SQL');
\set from :client_id * 25000 + random(1, 24000)
INSERT INTO numbers SELECT g, 1 FROM generate_series(:from, :from + 20) g;
DELETE FROM numbers WHERE id BETWEEN :from AND :from + 20;
INSERT INTO numbers SELECT g, 2 FROM generate_series(:from, :from + 20) g;
SQL
my $first = pages('run');
for my $round (1 .. 3)
{
	my ($out, $err) = ('', '');
	my $writers = IPC::Run::start([ 'pgbench', '-n', '-c', '4', '-j', '2', '-T', '5', '-f', $script, $node->connstr('postgres') ], '>', \$out, '2>', \$err);

	while ($writers->pumpable)
	{
		$node->psql('postgres', 'VACUUM numbers');
		$writers->pump_nb;
	}
	$writers->finish;
	settle('numbers_id');
	like($out, qr/number of failed transactions: 0|number of transactions actually processed/, "round $round: the writers come to their end");
	lose_trees("round $round", 'numbers_id');
	same_answers($node, 'postgres', 'SELECT id, word FROM numbers WHERE id BETWEEN 1 AND 200000 ORDER BY id, word', "round $round");
}
cmp_ok(pages('run'), '>', $first, 'there were compactions meanwhile');

# The file stays small while rows come and go.
sql('CREATE TABLE steady (id int, word int); INSERT INTO steady SELECT g, 0 FROM generate_series(1, 200000) g; CREATE INDEX steady_id ON steady USING smart (id)');
my $live = 0;
my $largest = 0;
for my $round (1 .. 16)
{
	sql("DELETE FROM steady WHERE id % 4 = $round % 4; VACUUM steady");
	settle('steady_id');
	sql("INSERT INTO steady SELECT g, $round FROM generate_series(1, 200000) g WHERE g % 4 = $round % 4; VACUUM steady");
	settle('steady_id');
	my $size = sql("SELECT pg_relation_size('steady_id') / current_setting('block_size')::int");
	my $run = pages('run_pages', 'steady_id');
	$largest = $size if $size > $largest;
	$live = $run if $run > $live;
	note("round $round, file: $size pages, run, its pages, chain, previous, unfinished, free: ",
		pages("concat_ws(' ', run, run_pages, chain_pages, previous_pages, unfinished_pages, free_pages)", 'steady_id'));
}
cmp_ok(pages('run', 'steady_id'), '>=', 5, 'a table that changes is compacted again and again');
cmp_ok($largest, '<=', 4.5 * $live, 'its file has about four times what lives, at most');
cmp_ok($largest, '>=', 2 * $live, 'but a run and a chain');
lose_trees('steady', 'steady_id');

# Compaction also gives way to what needs the table for itself, and WAL can be replayed afterwards.
for my $statement ('TRUNCATE slow', 'DROP INDEX slow_id', 'DROP TABLE slow', 'ALTER TABLE slow ADD COLUMN more int', 'REINDEX INDEX slow_id')
{
	sql('DROP TABLE IF EXISTS slow; CREATE TABLE slow (id text COLLATE "C", word int); CREATE INDEX slow_id ON slow USING smart (id)');
	begin_slowly('slow', 'slow_id');
	my ($status, undef, $err) = $node->psql('postgres', "SET statement_timeout = '60s'; $statement");
	is($status, 0, "$statement while compacting") or diag($err);
	set_delay('0');
}
lose_trees('after statements that compaction gave way to', 'numbers_id', 'slow_id');

# A cancelled one: what it has written is free for the next one.
sql('DROP TABLE slow; CREATE TABLE slow (id text COLLATE "C", word int); CREATE INDEX slow_id ON slow USING smart (id)');
begin_slowly('slow', 'slow_id');
sql("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE backend_type = 'smart compaction'");
ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_locks WHERE locktype = 'userlock' AND objid = pg_relation_filenode('slow_id')"), 'a cancelled compaction ends');
is(pages('run', 'slow_id'), '0', 'there is no run');
cmp_ok(pages('unfinished_pages', 'slow_id'), '>', 20, 'but pages of one');
set_delay('0');
sql('VACUUM slow');
ok($node->poll_query_until('postgres', "SELECT run_entries = $many AND unfinished_pages = 0 FROM smart_index_pages('slow_id')"),
	'the next one makes a run, and pages of the other one are free');
lose_trees('after a cancel', 'slow_id');

# A crash in the middle.
sql('DROP TABLE slow; CREATE TABLE slow (id text COLLATE "C", word int); CREATE INDEX slow_id ON slow USING smart (id)');
begin_slowly('slow', 'slow_id');
sql('CHECKPOINT');
lose_trees('in the middle of a compaction', 'slow_id');
cmp_ok(pages('unfinished_pages', 'slow_id'), '>', 20, 'pages of a run that never came are left');
set_delay('0');
my $before = sql("SELECT pg_relation_size('slow_id')");
my $left = pages('unfinished_pages', 'slow_id');
sql('VACUUM slow');
ok($node->poll_query_until('postgres', "SELECT run_entries = $many AND unfinished_pages = 0 FROM smart_index_pages('slow_id')"), 'the next compaction makes a run');
cmp_ok(sql("SELECT pg_relation_size('slow_id')") - $before, '<=', 8192 * (pages('run_pages + run_fences', 'slow_id') - $left), 'and uses those pages');
lose_trees('and after it', 'slow_id');

# A damaged journal is stale until the index, rebuilt from its table, has been written as a new run.
my $path = $node->data_dir . '/' . sql("SELECT pg_relation_filepath('slow_id')");
sql('CHECKPOINT');
$node->kill9;
unlink $node->data_dir . '/smart/pgsql_tmp_run' or die $!;
open(my $file, '+<:raw', $path) or die $!;
for my $block (1 .. (-s $path) / 8192 - 1)
{
	my $header;

	seek($file, $block * 8192, 0);
	read($file, $header, 16);
	next if $header eq "\0" x 16;
	seek($file, $block * 8192 + 100, 0);
	print $file 'damage';
}
close($file);
my $offset = -s $node->logfile;
start_again($node);
becomes($node, 'slow_id', 'ready');
ok($node->log_contains(qr/journal of index "slow_id" is damaged/, $offset), 'damage is found');
ok($node->poll_query_until('postgres', "SELECT journal = 'whole' FROM smart_index_pages('slow_id')"), 'the journal is made whole again');
is(pages('run_entries', 'slow_id'), $many, 'from the tree');
sql('INSERT INTO slow SELECT g, 0 FROM generate_series(1, 1000) g');
lose_trees('a journal made whole', 'slow_id');

# smart_index_check finds what the journal has and the tree has not: here, since the metapage does not know of removals.
sql('CREATE TABLE few AS SELECT generate_series(1, 1000) AS id; CREATE INDEX few_id ON few USING smart (id); CHECKPOINT');
$path = $node->data_dir . '/' . sql("SELECT pg_relation_filepath('few_id')");
open($file, '<:raw', $path) or die $!;
read($file, my $metapage, 8192);
close($file);
sql('DELETE FROM few WHERE id > 500; VACUUM few');
index_is_sound($node, 'postgres', 'few_id', 'after a removal');
$node->stop;
open($file, '+<:raw', $path) or die $!;
print $file $metapage;
close($file);
$node->start;
is(state_of($node, 'few_id'), 'ready', 'the tree is there');
my ($status, undef, $err) = $node->psql('postgres', "SELECT smart_index_check('few_id')");
like($err, qr/the journal of index "few_id" has 500 entries that the index does not have/, 'more in the journal than in the tree is found');

# An index that is read from its pages: its delta has what the chain has, so a chain that is longer than the run is long.
sql(q{CREATE TABLE paged (a bigint); CREATE INDEX paged_a ON paged USING smart (a) WITH (resident = never);
	INSERT INTO paged SELECT hashint8extended(g, 0) FROM generate_series(1, 150000) g});
ok($node->poll_query_until('postgres', q{SELECT run_entries > 0 FROM smart_index_pages('paged_a')}), 'it is compacted, though it is small');
compaction_ends($node);
# With a chain as short as this, what VACUUM removes makes no compaction due, which would empty the delta.
sql('REINDEX INDEX paged_a; INSERT INTO paged SELECT generate_series(1, 1000)');
same_answers($node, 'postgres', 'SELECT a FROM paged WHERE a BETWEEN 0 AND 100000000000000000 ORDER BY a', 'its delta is made');
my $bytes = sql(q{SELECT bytes FROM smart_index_state WHERE index = 'paged_a'::regclass});
sql(q{DELETE FROM paged WHERE ctid < '(40,1)'});
sql('VACUUM paged');
ok($node->poll_query_until('postgres', "SELECT bytes > $bytes FROM smart_index_state WHERE index = 'paged_a'::regclass"), 'nobody has to ask the index: the delta gets what VACUUM has removed');
index_is_sound($node, 'postgres', 'paged_a', 'read from its pages');

log_is_quiet($node);
$node->stop;
done_testing;
