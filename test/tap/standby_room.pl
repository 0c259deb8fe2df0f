# A standby whose trees outgrow its memory, which is less than the primary's: the index that needs more does without a tree there, and
# answers. When there is room it has one again. One that must have a tree gets the room of one that may do without.
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
wal_keep_size = 1GB
CONF
$primary->start;
$primary->safe_psql('postgres', <<'SQL');
CREATE EXTENSION smart;
CREATE TABLE others (a bigint);
INSERT INTO others SELECT hashint8extended(g, 1) FROM generate_series(1, 750000) g;
CREATE INDEX others_a ON others USING smart (a) WITH (resident = always);
CREATE TABLE rows (a bigint, b int);
INSERT INTO rows SELECT hashint8extended(g, 0), g FROM generate_series(1, 50000) g;
CREATE INDEX rows_a ON rows USING smart (a);
SQL
$primary->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$standby->append_conf('postgresql.conf', qq{smart.embedded_max_size = '16MB'\nsmart.wait_timeout = '3s'\nenable_seqscan = off});
$standby->start;

sub caught_up
{
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	return;
}

sub answers_are_right
{
	my ($name) = @_;

	caught_up();
	same_answers($standby, 'postgres', $_, "$name: $_")
		foreach ('SELECT a, b FROM rows WHERE a BETWEEN 0 AND 100000000000000000 ORDER BY a', 'SELECT count(*), sum(b) FROM rows WHERE a > 5000000000000000000');
	return;
}

is($primary->safe_psql('postgres', q{SELECT string_agg(state, ' ') FROM smart_index_state}), 'ready ready', 'the primary has both');
caught_up();
becomes($standby, 'others_a', 'ready');
becomes($standby, 'rows_a', 'ready');
answers_are_right('both have trees');

foreach my $step (1 .. 5)
{
	$primary->safe_psql('postgres', "INSERT INTO rows SELECT hashint8extended(g, 0), g FROM generate_series($step * 50000 + 1, $step * 50000 + 50000) g");
	caught_up();
	# The memory of a tree is free when the queries have ended that may use it; until then one may find no room.
	ok($standby->poll_query_until('postgres', 'SELECT count(*) >= 0 FROM rows WHERE a > 8000000000000000000'), "step $step: a query finds room");
	answers_are_right("step $step");
}
is(state_of($standby, 'rows_a'), 'paged', 'it has no tree any more');
is($primary->safe_psql('postgres', q{SELECT string_agg(state, ' ') FROM smart_index_state}), 'ready ready', 'the primary has both still');
# A new file, for whose tree there is no room from the beginning.
$primary->safe_psql('postgres', 'REINDEX INDEX rows_a; INSERT INTO rows VALUES (7, 7)');
answers_are_right('built anew');
$standby->restart;
answers_are_right('after a restart');
# It is loaded after the start, which may take a moment.
becomes($standby, 'others_a', 'ready');
# Who must have a tree comes before who may do without, also if that one has the room.
$primary->safe_psql('postgres', 'ALTER INDEX others_a SET (resident = never); INSERT INTO others VALUES (1)');
caught_up();
becomes($standby, 'others_a', 'paged');
becomes($standby, 'rows_a', 'ready');
answers_are_right('it has the room');
$primary->safe_psql('postgres', 'ALTER INDEX others_a SET (resident = always); INSERT INTO others VALUES (2)');
caught_up();
becomes($standby, 'others_a', 'ready');
is(state_of($standby, 'rows_a'), 'paged', 'it has given it up');
answers_are_right('it gave way');
# There is room.
$primary->safe_psql('postgres', 'DROP INDEX others_a; INSERT INTO rows VALUES (8, 8)');
caught_up();
becomes($standby, 'rows_a', 'ready');
answers_are_right('there is room');
index_is_sound($standby, 'postgres', 'rows_a', 'there is room');
log_is_quiet($standby);
$standby->stop;
$primary->stop;
done_testing();
