# A server that may remove rows which an old snapshot still sees (old_snapshot_threshold, until version 16) says so to
# a session that reads an index with such a snapshot: rows are not silently missed.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use SmartTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = smart_node('main', 'autovacuum = off');

plan skip_all => 'the server has no old_snapshot_threshold'
	if $node->safe_psql('postgres', "SELECT count(*) FROM pg_settings WHERE name = 'old_snapshot_threshold'") eq '0';

# With a threshold of 0 a snapshot is old after five seconds.
$node->append_conf('postgresql.conf', 'old_snapshot_threshold = 0');
$node->restart;
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE aged (id int, n int) WITH (autovacuum_enabled = off);
CREATE INDEX aged_id ON aged USING smart (id);
INSERT INTO aged SELECT i, i FROM generate_series(1, 1000) i;
VACUUM ANALYZE;
SQL

# One session has the snapshot; others are started from it.
my $other = "psql -qX -d postgres";
my ($status, $out, $err) = $node->psql('postgres', <<"SQL", on_error_stop => 0);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT 'young', n FROM aged WHERE id = 500;
SELECT pg_sleep(6);
\\! $other -c "UPDATE aged SET id = -id WHERE id BETWEEN 400 AND 600"
SAVEPOINT before;
SELECT 'old', n FROM aged WHERE id = 500;
ROLLBACK TO before;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SET enable_bitmapscan = on;
SELECT 'bitmap', n FROM aged WHERE id = 500;
COMMIT;
SELECT 'new', count(n) FROM aged WHERE id IN (500, 700);
SQL
like($out, qr/^young\|500$/m, 'the row is there while the snapshot is young');
is(scalar(() = $err =~ /snapshot too old/g), 2, 'two scans of an old snapshot get errors') or diag($out, "ERR", $err);
unlike($out, qr/^(?:old|bitmap)/m, 'and no rows');
like($out, qr/^new\|1$/m, 'a new snapshot reads');

$node->stop;
done_testing();
