# pglogical: a subscriber finds rows by smart indexes that are primary keys or replica identities, and conflicts by all unique ones.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartTest;
use SmartTools;

needs(extension('pglogical'));

my $NOTED = 'CREATE TABLE noted (k int NOT NULL, v text); CREATE UNIQUE INDEX noted_k ON noted USING smart (k); ALTER TABLE noted REPLICA IDENTITY USING INDEX noted_k';
my $node = PostgreSQL::Test::Cluster->new('main');

$node->init;
$node->append_conf('postgresql.conf', join("\n", "shared_preload_libraries = 'smart, pglogical'", @ITEM_SETTINGS, 'wal_level = logical', 'max_worker_processes = 30',
	'max_replication_slots = 10', 'max_wal_senders = 10', 'track_commit_timestamp = on', "pglogical.conflict_resolution = 'last_update_wins'",
	'pglogical.conflict_log_level = log', ''));
$node->start;
# Some minor releases of the server ask for this, others do not know it.
if ($node->safe_psql('postgres', q{SELECT count(*) FROM pg_settings WHERE name = 'output_plugin_libraries'}))
{
	$node->append_conf('postgresql.conf', q{output_plugin_libraries = 'pgoutput, test_decoding, pglogical_output'});
	$node->reload;
}

sub sql
{
	my ($database, $statements) = @_;

	return $node->safe_psql($database, "SET client_min_messages = warning; $statements");
}

# settles(): what was committed is with the subscriber.  pglogical's function that waits for that has no limit.
sub settles
{
	my $place = sql('provider', 'SELECT pg_current_wal_flush_lsn()');

	$node->poll_query_until('provider', "SELECT bool_and(confirmed_flush_lsn >= '$place') FROM pg_replication_slots") or die 'the subscriber does not follow';
	return;
}

# is_synchronized(): the subscription, or a table of it, has been copied.  Here, too; and where nobody
# writes, pglogical waits for the next transaction.
sub is_synchronized
{
	return wait_until(sub
	{
		sql('provider', q{UPDATE noted SET v = v || '.' WHERE k = 50});
		return sql('subscriber', q{SELECT count(*) > 0 AND bool_and(sync_status IN ('y', 'r')) AND
			(SELECT bool_and(status = 'replicating') FROM pglogical.show_subscription_status()) FROM pglogical.local_sync_status}) eq 't';
	});
}

sub are_the_same
{
	my ($what) = @_;
	my $query = 'SELECT count(*), sum(hashtext(t::text)::bigint) FROM %s t';

	settles();
	items_are_right($node, "$what, subscriber", 'subscriber');
	is(sql('subscriber', sprintf($query, $_)), sql('provider', sprintf($query, $_)), "$what: $_ is the same") for ('items', 'noted');
	return;
}

sql('postgres', "CREATE DATABASE $_") for ('provider', 'subscriber');
sql($_, "CREATE EXTENSION smart; CREATE EXTENSION pglogical; $ITEM_SCHEMA $NOTED") for ('provider', 'subscriber');
sql('subscriber', 'TRUNCATE items');
sql('provider', q{INSERT INTO noted SELECT g, 'v' FROM generate_series(1, 100) g});
sql('provider', q{SELECT pglogical.create_node('provider', '} . $node->connstr('provider') =~ s/'/''/gr . q{');
	SELECT pglogical.replication_set_add_table('default', t) FROM unnest('{items, noted}'::regclass[]) t});
sql('subscriber', q{SELECT pglogical.create_node('subscriber', '} . $node->connstr('subscriber') =~ s/'/''/gr . q{');
	SELECT pglogical.create_subscription('s', '} . $node->connstr('provider') =~ s/'/''/gr . q{')});
ok(is_synchronized(), 'the subscription begins');
are_the_same('copied');

# Rows are found by the primary key and by the replica identity.
my $clients = start_clients($node->connstr('provider'));
sql('provider', q{UPDATE noted SET v = 'w' WHERE k < 10; UPDATE noted SET k = k + 1000 WHERE k BETWEEN 20 AND 30; DELETE FROM noted WHERE k > 90});
goes_on($clients, 'changes');
end_clients($clients, 'changes');
are_the_same('changed');

# Rows that the subscriber has, too: by the primary key and by another unique index.  The later one wins.
sql('subscriber', q{INSERT INTO items VALUES (700001, 'mine 1', 1), (700002, 'theirs', 2)});
sql('provider', q{INSERT INTO items VALUES (700001, 'theirs 1', 10), (700003, 'theirs', 30)});
settles();
is(sql('subscriber', 'SET enable_seqscan = off; SELECT id, code, a FROM items WHERE id > 700000 ORDER BY id'), "700001|theirs 1|10\n700003|theirs|30", 'conflicts are found');
is(scalar(() = slurp_file($node->logfile) =~ /CONFLICT: remote INSERT on relation public.items .*index items_(pkey|code_key)/g), 2, 'and logged');
are_the_same('conflicts');

# A crash on the way, and a table that is copied anew.
$clients = start_clients($node->connstr('provider'));
lose_power($node);
end_clients($clients);
start_again($node);
ok(is_synchronized(), 'it goes on after a power loss');
are_the_same('power loss');
sql('subscriber', q{DELETE FROM items WHERE id < 100; SELECT pglogical.alter_subscription_resynchronize_table('s', 'items')});
ok(is_synchronized(), 'a table is copied anew');
are_the_same('copied anew');

sql('subscriber', q{SELECT pglogical.drop_subscription('s')});
$node->stop;
done_testing();
