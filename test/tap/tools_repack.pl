# pg_repack: a table is written anew while clients change it, and so are its indexes alone.  It exchanges files by the catalog.
# The indexes go on, on a standby, after a power loss, and where pg_repack or the server dies in the middle.
use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartTest;
use SmartTools;

needs(program('pg_repack'), extension('pg_repack'));

my $node = PostgreSQL::Test::Cluster->new('main');
my $standby = PostgreSQL::Test::Cluster->new('standby');

$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', join("\n", "shared_preload_libraries = 'smart'", @ITEM_SETTINGS, ''));
$node->start;
$node->safe_psql('postgres', "CREATE EXTENSION smart; CREATE EXTENSION pg_repack; $ITEM_SCHEMA");
$node->backup('backup');
$standby->init_from_backup($node, 'backup', has_streaming => 1);
$standby->append_conf('postgresql.conf', 'wal_retrieve_retry_interval = 100ms');
$standby->start;

my @repack = ('pg_repack', '-d', 'postgres', '-h', $node->host, '-p', $node->port);

# files(): those of the table's indexes.
sub files
{
	return split /\n/, $node->safe_psql('postgres', q{SELECT relfilenode FROM pg_class JOIN pg_index ON indexrelid = oid WHERE indrelid = 'items'::regclass});
}

# repack(WHAT, ARGUMENT...): it says that it has done it, and so many indexes have another file.
sub repack
{
	my ($what, $changed, @arguments) = @_;
	my %before = map { $_ => 1 } files();

	command_ok([ @repack, @arguments ], "pg_repack: $what");
	is(scalar(grep { !$before{$_} } files()), $changed, "$what: so many indexes were made anew");
	return;
}

# start_repack(): returns when it has made the new indexes.
sub start_repack
{
	my $output = '';
	my $repack = IPC::Run::start([ @repack, '-t', 'items' ], '<', \undef, '>', \$output, '2>&1');

	$node->poll_query_until('postgres', q{SELECT count(*) = 5 FROM pg_index JOIN pg_class ON oid = indexrelid WHERE relnamespace = 'repack'::regnamespace
		AND relname ~ '^index_' AND indisvalid}) or die $output;
	return $repack;
}

# are_right(WHAT): on both servers.
sub are_right
{
	my ($what) = @_;

	items_are_right($node, $what);
	$node->wait_for_catchup($standby);
	items_are_right($standby, "$what, on the standby");
	same_items($node, $standby, "$what: the standby has the same rows");
	return;
}

sub loses_power
{
	my ($what) = @_;

	lose_power($node);
	start_again($node);
	are_right("$what, after a power loss");
	unlike(slurp_file($node->logfile), qr/rebuilding smart index/, "$what: no index was rebuilt");
	return;
}

repack('nobody works', 5, '-t', 'items');
are_right('nobody has worked');

# The last changes are applied in the transaction that exchanges the files: those that were committed when it was about to begin.
# A first session keeps pg_repack waiting until the second one, which it does not know, has begun.
my ($old, $writer) = map { $node->background_psql('postgres') } (1, 2);
$old->query_safe('BEGIN; SELECT 1');
my $repack = start_repack();
$writer->query_safe(q{BEGIN; UPDATE items SET note = 'at the end', a = a + 1 WHERE id BETWEEN 100 AND 110; INSERT INTO items VALUES (5001, 'last', 7)});
$old->quit;
$node->poll_query_until('postgres', q{SELECT count(*) > 0 FROM pg_locks WHERE relation = 'items'::regclass AND mode = 'AccessExclusiveLock' AND NOT granted})
	or die 'pg_repack does not come to its end';
$writer->query_safe('COMMIT');
ok($repack->finish, 'pg_repack applies the last changes');
$writer->quit;
are_right('the last changes');
loses_power('the last changes');

my $clients = start_clients($node->connstr('postgres'));
repack('clients work', 5, '-t', 'items', '-o', 'a');
repack('indexes alone', 5, '-t', 'items', '--only-indexes');
repack('one index', 1, '-i', 'items_note');
goes_on($clients, 'afterwards');
end_clients($clients, 'pg_repack was at work');
are_right('clients have worked');
# It waits for the transactions that were there before it, and is killed there, or dies with the server.
foreach my $victim ('pg_repack', 'the server')
{
	my $session = $node->background_psql('postgres', on_error_stop => 0);

	$session->query_safe('BEGIN; SELECT 1');
	$repack = start_repack();
	$node->safe_psql('postgres', q{UPDATE items SET note = 'meanwhile' WHERE id = 3; DELETE FROM items WHERE id BETWEEN 4 AND 8});
	lose_power($node) if $victim ne 'pg_repack';
	$repack->kill_kill(grace => 0);
	start_again($node) if $victim ne 'pg_repack';
	eval { $session->quit };
	$node->safe_psql('postgres', 'SET client_min_messages = warning; DROP EXTENSION pg_repack CASCADE; CREATE EXTENSION pg_repack');
	are_right("$victim has died");
	repack("$victim has died, again", 5, '-t', 'items');
	are_right("$victim has died, again");
}
loses_power('in the end');
$node->safe_psql('postgres', 'DROP EXTENSION pg_repack CASCADE; DROP TABLE items; SELECT smart_collect_orphans()');
is($node->safe_psql('postgres', 'SELECT sum(trees) FROM smart_stat_space'), '0', 'nothing is left of it');

$_->stop for ($standby, $node);
log_is_quiet($standby);
done_testing();
