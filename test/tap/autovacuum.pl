# Autovacuum keeps smart indexes as it keeps others: it removes entries of dead rows, and while it waits for a scan it gives way
# to a session that wants the table.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartMemnode;
use SmartTest;

my @SETTINGS = ('autovacuum_naptime = 1s', 'autovacuum_vacuum_cost_delay = 0');
my $memory = SmartMemnode->new('one', '--size=64M');
my %node = (embedded => smart_node('embedded', @SETTINGS),
	'memory node' => smart_node('remote', @SETTINGS, 'smart.memory_nodes = ' . addresses($memory)));
my $WORKER = "FROM pg_stat_activity WHERE backend_type = 'autovacuum worker' AND query ~ 'public.rows'";

foreach my $name (sort keys %node)
{
	my $node = $node{$name};

	$node->safe_psql('postgres', <<'SQL');
CREATE TABLE rows (a int, b text COLLATE "C") WITH (autovacuum_vacuum_threshold = 100, autovacuum_vacuum_scale_factor = 0);
INSERT INTO rows SELECT g, md5(g::text) FROM generate_series(1, 5000) g;
CREATE INDEX rows_a ON rows USING smart (a);
CREATE UNIQUE INDEX rows_b ON rows USING smart (b, a);
DELETE FROM rows WHERE a > 2000;
SQL
	ok($node->poll_query_until('postgres', q{SELECT (smart_index_stats('rows_a')).entries = 2000 AND (smart_index_stats('rows_b')).entries = 2000}),
		"$name: entries of dead rows are gone");
	ok($node->poll_query_until('postgres', q{SELECT autovacuum_count > 0 FROM pg_stat_user_tables}), "$name: autovacuum says so");
	index_is_sound($node, 'postgres', $_, $name) for ('rows_a', 'rows_b');

	# An index-only scan that has returned a row holds it up; it gives way to a lock, and comes again.
	$node->safe_psql('postgres', 'ALTER TABLE rows SET (autovacuum_enabled = off); DELETE FROM rows WHERE a > 1000');
	my $scan = $node->background_psql('postgres');
	$scan->query_safe('SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; BEGIN;
		DECLARE c CURSOR FOR SELECT a FROM rows WHERE a > 0 ORDER BY a; FETCH 1 FROM c');
	$node->safe_psql('postgres', 'ALTER TABLE rows RESET (autovacuum_enabled)');
	ok($node->poll_query_until('postgres', "SELECT count(*) = 1 $WORKER AND wait_event_type = 'Extension'"), "$name: autovacuum waits for a scan");
	my $offset = -s $node->logfile;
	$node->safe_psql('postgres', 'BEGIN; LOCK rows IN SHARE UPDATE EXCLUSIVE MODE; COMMIT');
	ok($node->wait_for_log(qr/canceling autovacuum task/, $offset), "$name: it gives way to a lock");
	$scan->query_safe('COMMIT');
	$scan->quit;
	ok($node->poll_query_until('postgres', q{SELECT (smart_index_stats('rows_a')).entries = 1000}), "$name: and comes again");
	index_is_sound($node, 'postgres', $_, "$name, in the end") for ('rows_a', 'rows_b');
	$node->stop;
	log_is_quiet($node);
}
done_testing();
