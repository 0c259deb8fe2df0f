# Entries of dead rows are removed by the scans that meet them, but not before the WAL of the rows' death is durable: after a
# crash the rows could be alive again, and their entries missed.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use SmartTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $node = smart_node('main', 'autovacuum = off', 'wal_writer_delay = 10s', 'checkpoint_timeout = 1h', 'bgwriter_lru_maxpages = 0');
my $writer = pid_of($node, 'walwriter');

my $crashed = 0;

kill 'STOP', $writer;

sub entries
{
	return $node->safe_psql('postgres', "SELECT (smart_index_stats('killed_id')).entries");
}

# What a scan by the index finds, without the visibility map.
sub found
{
	return $node->safe_psql('postgres',
		'SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(filler) FROM killed WHERE id BETWEEN 1 AND 60');
}

# Is WAL flushed up to its end?
sub flushed
{
	return $node->safe_psql('postgres', 'SELECT pg_current_wal_flush_lsn() = pg_current_wal_insert_lsn()');
}

$node->safe_psql('postgres', <<'SQL');
CREATE TABLE killed (id int, filler text);
CREATE INDEX killed_id ON killed USING smart (id);
INSERT INTO killed SELECT i, 'x' FROM generate_series(1, 100) i;
SQL
is(entries(), 100, 'one entry for each row');

# A row that comes and goes in the same page: then the page's WAL reaches behind the commit, so that the rows that were
# deleted are known to be dead.
$node->safe_psql('postgres', <<'SQL');
SET synchronous_commit = off;
DELETE FROM killed WHERE id <= 50;
BEGIN;
INSERT INTO killed VALUES (101, 'y');
ROLLBACK;
SQL
is(flushed(), 'f', 'the deletion is not durable');
is(found(), 10, 'what is left is found');
is(found(), 10, 'and again');
is(flushed(), 'f', 'still not durable');
is(entries(), 101, 'entries of rows whose death is not durable stay');

# The crash undoes the deletion.
$node->kill9;
kill 'KILL', $writer;
$crashed = 1;
start_again($node);
is(found(), 60, 'after a crash all rows are found by the index');
is($node->safe_psql('postgres', 'SET enable_indexscan = off; SET enable_bitmapscan = off; SELECT count(*) FROM killed WHERE id <= 60'),
	60, 'as by the table');

$node->safe_psql('postgres', 'DELETE FROM killed WHERE id <= 50');
$node->safe_psql('postgres', 'CHECKPOINT');
is(found(), 10, 'when the deletion is durable, the other rows are found');
# They stay while another process has an older snapshot.
foreach my $attempt (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
{
	last if entries() == 50;
	sleep(0.1);
	found();
}
is(entries(), 50, 'and the entries of those that were deleted are gone');
is($node->safe_psql('postgres', "SELECT smart_index_check('killed_id', true)"), '', 'index and table agree');

$node->stop;
done_testing();

END
{
	kill 'CONT', $writer if $writer && !$crashed;
}
