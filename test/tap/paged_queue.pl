# A queue whose index answers from pages: what was removed at its front is passed by again and again, until that has cost more than
# another run.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SmartTest;
use Test::More;

my $LEAST = 'SELECT id FROM queue WHERE id > 0 ORDER BY id LIMIT 1';
my $node = smart_node('main', 'autovacuum = off');

sub sql
{
	return $node->safe_psql('postgres', "SET enable_seqscan = off; SET enable_bitmapscan = off; $_[0]");
}

sub run_of
{
	return sql(q{SELECT run FROM smart_index_pages('queue_id')});
}

# look(TIMES): at the least entry, each time with a view of its own.
sub look
{
	sql("DO \$\$ BEGIN FOR i IN 1 .. $_[0] LOOP PERFORM id FROM queue WHERE id > 0 ORDER BY id LIMIT 1; END LOOP; END \$\$");
	return;
}

sql(<<'SQL');
CREATE TABLE queue (id bigint, note text);
INSERT INTO queue SELECT g, 'to do' FROM generate_series(1, 20000) g;
CREATE INDEX queue_id ON queue USING smart (id) WITH (resident = never);
SQL
my $run = run_of();

# Removed, and passed by less often than a run of 20,000 entries is worth.
sql('DELETE FROM queue WHERE id <= 3000');
sql('VACUUM queue');
compaction_ends($node);
is(sql($LEAST), '3001', 'the least entry that is left');
look(40);
compaction_ends($node);
is(run_of(), $run, 'the run stays as long as little was in vain');
look(40);
ok($node->poll_query_until('postgres', "SELECT run > $run FROM smart_index_pages('queue_id')"), 'then another run is written');
compaction_ends($node);
is(sql($LEAST), '3001', 'the same entry is the least one');
is(sql(q{SELECT run_entries FROM smart_index_pages('queue_id')}), '17000', 'what was removed is not in the run any more');

# Now nothing is passed by.
$run = run_of();
look(500);
compaction_ends($node);
is(run_of(), $run, 'and that run stays');

# One end is taken from, the other one is added to, and nobody comes with VACUUM.
sql(<<'SQL');
DO $$
DECLARE
	taken bigint;
BEGIN
	FOR i IN 1 .. 3000 LOOP
		DELETE FROM queue WHERE id = (SELECT id FROM queue WHERE id > 0 ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id INTO STRICT taken;
		INSERT INTO queue VALUES (20000 + i, 'to do');
		COMMIT;
		ASSERT taken = 3000 + i;
	END LOOP;
END $$;
SQL
is(sql('SELECT count(*), min(id), max(id) FROM queue WHERE id > 0'), '17000|6001|23000', 'the queue has moved on');
index_is_sound($node, 'postgres', 'queue_id', 'after all that');
log_is_quiet($node);
$node->stop;
done_testing();
