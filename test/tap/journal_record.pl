# The records that append to a journal are made by hand for PostgreSQL's generic resource manager, whose format is private
# to it.  So each version of the server is asked: a standby compares every page that it has replayed with the primary's
# (wal_consistency_checking), its files are byte for byte the primary's, and a tree that is loaded from pages which crash
# recovery has replayed is sound.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use SmartTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my @INDEXES = ('items_n', 'items_word', 'items_wide', 'items_long');
my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', join("\n", "shared_preload_libraries = 'smart'", 'autovacuum = off', 'checkpoint_timeout = 1h',
	'max_wal_size = 4GB', 'wal_keep_size = 4GB', 'bgwriter_lru_maxpages = 0', "wal_consistency_checking = 'generic'", ''));
$primary->start;
$primary->safe_psql('postgres', <<'SQL');
CREATE EXTENSION smart;
CREATE TABLE items (n bigint, word text COLLATE "C", wide text COLLATE "C", long text);
ALTER TABLE items ALTER wide SET STORAGE EXTERNAL;
CREATE INDEX items_n ON items USING smart (n);
CREATE INDEX items_word ON items USING smart (word);
CREATE INDEX items_wide ON items USING smart (n) INCLUDE (wide);
CREATE INDEX items_long ON items USING smart (n) INCLUDE (long);
CREATE FUNCTION wide(bytes int, seed int) RETURNS text LANGUAGE sql AS
	$$SELECT left(string_agg(md5(seed::text || i), ''), bytes) FROM generate_series(0, bytes / 32) i$$;
SQL
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;

# contents(NODE): the files of all indexes, as they are on disk.  Pages of zeros have been taken and not used: the standby does
# not hear of them.
sub contents
{
	my ($node) = @_;

	$node->safe_psql('postgres', 'CHECKPOINT');
	return $node->safe_psql('postgres', join(' UNION ALL ', map { "SELECT '$_', count(*), md5(string_agg(md5(page), '' ORDER BY b)) FROM " .
		"(SELECT b, pg_read_binary_file(pg_relation_filepath('$_'), b * 8192, 8192) AS page FROM generate_series(0, pg_relation_size('$_') / 8192 - 1) b) AS pages " .
		"WHERE page <> decode(repeat('00', 8192), 'hex')" } @INDEXES));
}

# same_pages(NAME): both servers have the same files, when no compaction changes them any more.  The standby's checkpoint
# writes what has been replayed, if there has been a checkpoint of the primary since.
sub same_pages
{
	my ($name) = @_;
	my ($before, $there);

	for (1 .. 100)
	{
		$before = contents($primary);
		$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
		$there = contents($standby);
		last if contents($primary) eq $before;
	}
	is($there, $before, "$name: the pages of the standby are those of the primary");
	return;
}

my $begin = $primary->lsn('insert');
$primary->safe_psql('postgres', 'INSERT INTO items SELECT i, md5(i::text), NULL FROM generate_series(1, 3000) i');
my $end = $primary->lsn('insert');
my ($waldump) = run_command(['pg_waldump', '--path', $primary->data_dir . '/pg_wal', '--start', $begin, '--end', $end, '--stats', '--rmgr', 'Generic']);
my ($records) = $waldump =~ /^Generic\s+(\d+)/m;
cmp_ok($records, '>=', 10, 'entries have records of the generic resource manager');
same_pages('short entries');

# Entries of all lengths, so that they meet every place of a page's end.
$primary->safe_psql('postgres', 'INSERT INTO items SELECT i, left(repeat(md5(i::text), 100), i), wide(i, i) FROM generate_series(0, 3000) i');
$primary->safe_psql('postgres', 'INSERT INTO items SELECT -i, NULL, wide(7950 - i * 13, i) FROM generate_series(0, 600) i');
same_pages('entries of all lengths');
cmp_ok($primary->safe_psql('postgres', q{SELECT pg_relation_size('items_wide') / 8192}), '>', 700, 'on many pages');

# Batches of removals, of one entry and of thousands; a transaction that is not committed; an empty file.
$primary->safe_psql('postgres', 'DELETE FROM items WHERE n % 3 = 0; VACUUM items');
$primary->safe_psql('postgres', 'BEGIN; INSERT INTO items SELECT i, md5(i::text), wide(100, i) FROM generate_series(1, 500) i; ROLLBACK; VACUUM items');
same_pages('removals');
$primary->safe_psql('postgres', 'BEGIN; SAVEPOINT a; TRUNCATE items; INSERT INTO items VALUES (1); ROLLBACK TO a; INSERT INTO items VALUES (2); COMMIT');
same_pages('a file that was not kept');
$primary->safe_psql('postgres', 'REINDEX INDEX items_n; INSERT INTO items SELECT i, md5(i::text), wide(50, i) FROM generate_series(1, 500) i');
same_pages('new files');
index_is_sound($primary, 'postgres', $_, 'on the primary') for @INDEXES;

# Where a session saw the tail is no page of the chain any more: the file that it was in was not kept.
$primary->safe_psql('postgres', <<'SQL');
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE elsewhere LOCATION '';
BEGIN;
INSERT INTO items SELECT i, md5(i::text), wide(500, i) FROM generate_series(1, 500) i;
ALTER INDEX items_n SET TABLESPACE elsewhere;
ALTER INDEX items_wide SET TABLESPACE elsewhere;
INSERT INTO items SELECT i, md5(i::text), wide(500, i) FROM generate_series(1, 2000) i;
ROLLBACK;
INSERT INTO items SELECT -i, md5(i::text), wide(500, i) FROM generate_series(1, 1000) i;
BEGIN;
INSERT INTO items SELECT -i, md5(i::text), wide(500, i) FROM generate_series(1001, 1500) i;
REINDEX INDEX items_wide;
INSERT INTO items SELECT -i, md5(i::text), wide(500, i) FROM generate_series(1501, 2000) i;
COMMIT;
SQL
index_is_sound($primary, 'postgres', $_, 'after a file that was not kept') for @INDEXES;

# Sessions that all append to the same chains and make new pages, beside a VACUUM that appends removals.
my $script = pgbench_script("\\set n random(1, 4000)\nINSERT INTO items SELECT i, md5(i::text), wide(:n, :n) FROM generate_series(:n, :n + 4) i;\n"
	. "DELETE FROM items WHERE n = :n;\n");
my $sweeper = pgbench_script("VACUUM items;\n");
$primary->command_ok(['pgbench', '-n', '-c', '8', '-j', '2', '-t', '150', '-f', "$script\@99", '-f', "$sweeper\@1", 'postgres'], 'many sessions');
same_pages('many sessions');
index_is_sound($primary, 'postgres', $_, 'after many sessions') for @INDEXES;

# Crash recovery from a checkpoint far back, without and with the images; the trees are loaded from what it makes.
for my $images ('off', 'on')
{
	my $name = "full_page_writes = $images";

	$primary->append_conf('postgresql.conf', "full_page_writes = $images");
	$primary->reload;
	$primary->safe_psql('postgres', 'CHECKPOINT');
	$primary->safe_psql('postgres', 'INSERT INTO items SELECT i, left(repeat(md5(i::text), 100), i % 2500), wide(i % 5000, i) FROM generate_series(1, 6000) i');
	$primary->safe_psql('postgres', 'DELETE FROM items WHERE n % 5 = 0; VACUUM items; INSERT INTO items SELECT i FROM generate_series(1, 1000) i');
	# Values that are in their entries only because they are compressed.
	$primary->safe_psql('postgres', 'INSERT INTO items (n, long) SELECT i, repeat(md5(i::text), i) FROM generate_series(307, 3000, 100) i');
	my $rows = $primary->safe_psql('postgres', 'SELECT count(*), sum(n) FROM items');
	my $offset = -s $primary->logfile;
	$primary->kill9;
	ok(unlink(region_of($primary)), "$name: the region is gone");
	start_again($primary);
	becomes($primary, $_, 'ready') for @INDEXES;
	ok($primary->log_contains(qr/smart index "$_" has been loaded/, $offset), "$name: $_ was loaded") for @INDEXES;
	ok(!$primary->log_contains(qr/has been rebuilt|is damaged/, $offset), "$name: nothing was rebuilt");
	index_is_sound($primary, 'postgres', $_, $name) for @INDEXES;
	is($primary->safe_psql('postgres', 'SELECT count(*), sum(n) FROM items'), $rows, "$name: all rows are there");
	same_answers($primary, 'postgres', 'SELECT n, word FROM items WHERE n BETWEEN 100 AND 900 ORDER BY n, word', $name);
	same_answers($primary, 'postgres', 'SELECT n, md5(long) FROM items WHERE n BETWEEN 307 AND 907 ORDER BY n, md5(long)', "$name, long values");
	same_pages($name);
}
ok($standby->safe_psql('postgres', 'SELECT pg_is_in_recovery()') eq 't', 'the standby found no difference');
$standby->stop;

# A file that is made without WAL.
$primary->append_conf('postgresql.conf', "wal_level = minimal\nmax_wal_senders = 0");
$primary->restart;
for my $threshold ('0', "'1GB'")
{
	$primary->safe_psql('postgres', "SET wal_skip_threshold = $threshold;" . <<'SQL');
DROP TABLE IF EXISTS made;
BEGIN;
CREATE TABLE made (n bigint, wide text COLLATE "C");
CREATE INDEX made_n ON made USING smart (n);
INSERT INTO made SELECT i, wide(i, i) FROM generate_series(1, 2000) i;
CREATE INDEX made_wide ON made USING smart (wide);
INSERT INTO made SELECT i, wide(i, i) FROM generate_series(1, 2000) i;
COMMIT;
INSERT INTO made SELECT i FROM generate_series(1, 2000) i;
SQL
	my $offset = -s $primary->logfile;
	$primary->kill9;
	unlink(region_of($primary)) or die $!;
	start_again($primary);
	for my $index ('made_n', 'made_wide')
	{
		becomes($primary, $index, 'ready');
		ok($primary->log_contains(qr/smart index "$index" has been loaded/, $offset), "without WAL: $index was loaded");
		index_is_sound($primary, 'postgres', $index, 'without WAL');
	}
}
log_is_quiet($_) for ($primary, $standby);
done_testing();
