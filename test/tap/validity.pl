# Data directories that are copied, restored, rolled back or promoted, and memory that is not as old as they are: no query gets a
# result from a tree that may not be the content of the index; a server that can prove that it is goes on with it.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartMemnode;
use SmartTest;

my @SETTINGS = ('autovacuum = off', 'log_statement = none', 'smart.embedded_max_size = 256MB', 'smart.cache_size = 8MB', 'smart.fabric_timeout = 2s',
	'wal_keep_size = 64MB');
my $INDEXES = q{('numbers_id', 'numbers_word')};

my @memory;
my $serial = 0;

# ---- servers ----

# Where the trees of a server are: with it, in a directory elsewhere, or on a memory node.
sub place
{
	my ($place) = @_;

	return () if $place eq 'embedded';
	return ("smart.embedded_path = '" . PostgreSQL::Test::Utils::tempdir() . "'") if $place eq 'elsewhere';
	return ('smart.memory_nodes = ' . addresses(@memory));
}

sub original
{
	my ($place, %init) = @_;
	my $node = PostgreSQL::Test::Cluster->new('original' . ++$serial);

	$node->init(%init);
	$node->append_conf('postgresql.conf', join("\n", "shared_preload_libraries = 'smart'", $NODE_SETTINGS, @SETTINGS, place($place), ''));
	$node->start;
	$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION smart;
CREATE TABLE numbers (id int, word text COLLATE "C");
INSERT INTO numbers SELECT g, md5(g::text) FROM generate_series(1, 2000) g;
CREATE INDEX numbers_id ON numbers USING smart (id);
CREATE UNIQUE INDEX numbers_word ON numbers USING smart (word, id);
SQL
	return $node;
}

# A server with a copy of another one's data directory, as cp makes it; the caller that starts it has to remove what was added there.
sub copy_of
{
	my ($node) = @_;
	my $copy = PostgreSQL::Test::Cluster->new('copy' . ++$serial);

	system_or_bail('cp', '-a', $node->data_dir, $copy->data_dir);
	unlink $copy->data_dir . '/postmaster.pid';
	$copy->append_conf('postgresql.conf', join("\n", 'port = ' . $copy->port, "unix_socket_directories = '" . $copy->host . "'", ''));
	return $copy;
}

# Takes entries out, gives their TIDs to other rows, and adds some: a tree that has not seen that is wrong.
sub change
{
	my ($node) = @_;

	$serial++;
	$node->safe_psql('postgres', "DELETE FROM numbers WHERE id % 10 = $serial % 10");
	$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP on) numbers');
	$node->safe_psql('postgres', "INSERT INTO numbers SELECT $serial * 1000 + g, md5((-g)::text) FROM generate_series(1, 300) g");
	return;
}

# ---- what has to be true ----

# What the plan without sequential scans gives now is right, or an error says that the index cannot be had.
sub answers
{
	my ($node, $name, $database) = @_;

	foreach my $query ('SELECT id FROM numbers WHERE id > 0 ORDER BY id', q{SELECT word, id FROM numbers WHERE word > '' ORDER BY word, id})
	{
		# One snapshot, since a standby moves on.
		my ($status, $out, $err) = $node->psql($database // 'postgres', "BEGIN ISOLATION LEVEL REPEATABLE READ; SET enable_indexscan = off;
			SET enable_indexonlyscan = off; SET enable_bitmapscan = off; $query; SELECT '---'; RESET ALL; SET enable_seqscan = off; $query",
			extra_params => [ '-v', 'VERBOSITY=sqlstate' ]);
		my ($right, $answer) = split /^---\n?/m, "$out\n";

		ok($status == 0 ? $answer eq $right : $err =~ /ERROR:  (?:08006|55000)/, "$name: no wrong answer") or diag("status $status: $err");
	}
	return;
}

# How many were loaded from their journals; none is ever rebuilt from its table.
sub loaded
{
	my ($node) = @_;
	my $log = PostgreSQL::Test::Utils::slurp_file($node->logfile);

	unlike($log, qr/rebuilding smart index/, 'nothing was rebuilt');
	return scalar(() = $log =~ /smart index "\w+" has been loaded/g);
}

# The indexes can be used, without or after a loading, and are whole; then and after changes.
sub is_usable
{
	my ($node, $name, $database) = @_;

	$database //= 'postgres';
	answers($node, $name, $database);
	ok(indexes_become($node, q{'ready'}, "index::text IN $INDEXES", $database), "$name: usable");
	index_is_sound($node, $database, $_, $name) for ('numbers_id', 'numbers_word');
	return if $database ne 'postgres';
	change($node);
	answers($node, "$name, changed");
	index_is_sound($node, 'postgres', $_, "$name, changed") for ('numbers_id', 'numbers_word');
	return;
}

# The same, and it was left alone.
sub is_kept
{
	my ($node, $loaded, $name) = @_;

	is_usable($node, $name);
	is(loaded($node), $loaded, "$name: not loaded anew");
	return;
}

# Of two servers with one system identifier a memory node takes the first: the other one has no replies from it.
sub is_shut_out
{
	my ($node, $name) = @_;

	ok($node->poll_query_until('postgres', q{SELECT count(*) > 0 FROM smart_memory_nodes WHERE state = 'refused'}), "$name: shut out");
	answers($node, $name);
	return;
}

# ---- the rows ----

sub copy_beside_the_original
{
	my ($place) = @_;
	my $node = original($place);
	my $copy;

	$node->stop;
	$copy = copy_of($node);
	$node->start;
	change($node);
	$copy->start;
	if ($place eq 'embedded')
	{
		is_usable($copy, 'the copy');
		is_kept($node, 0, 'the original');
		$copy->stop;
		return $node->stop;
	}
	$place eq 'elsewhere' ? answers($copy, 'the copy') : is_shut_out($copy, 'the copy');
	is_kept($node, 0, 'the original while the copy runs');
	# The first to start has it, and the other one's turn comes when it is gone.
	$node->stop;
	$copy->stop;
	$copy->start;
	is_usable($copy, 'the copy without the original');
	$node->start;
	$place eq 'elsewhere' ? answers($node, 'the original') : is_shut_out($node, 'the original');
	is_usable($copy, 'the copy while the original runs');
	$copy->stop;
	$node->stop;
	$node->start;
	is_usable($node, 'the original after the copy');
	return $node->stop;
}

sub copy_of_a_running_server
{
	my ($place) = @_;
	my $node = original($place, allows_streaming => 1, has_archiving => 1);
	my $session = $node->background_psql('postgres');
	my ($copy, $label);

	$session->query_safe(q{SET client_min_messages = warning; SELECT pg_backup_start('copy', true)});
	change($node);
	$copy = copy_of($node);
	change($node);
	$label = $session->query_safe('SELECT labelfile FROM pg_backup_stop()');
	$session->quit;
	PostgreSQL::Test::Utils::append_to_file($copy->data_dir . '/backup_label', "$label\n");
	$copy->append_conf('postgresql.conf', "archive_mode = off\nrestore_command = 'cp \"" . $node->archive_dir . "/%f\" \"%p\"'\n");
	$copy->append_conf('recovery.signal', '');
	$copy->start;
	$copy->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
	$place eq 'memory node' ? is_shut_out($copy, 'the copy') : is_usable($copy, 'the copy');
	is_kept($node, 0, 'the original');
	$copy->stop;
	return $node->stop;
}

# With and without recovery.signal, to a point before the end, and a standby that is promoted.
sub restored_backups
{
	my ($place) = @_;
	my $node = original($place, allows_streaming => 1, has_archiving => 1);
	my (%restored, $target);

	$node->backup('base');
	change($node);
	$target = $node->lsn('insert');
	$node->safe_psql('postgres', 'SELECT pg_switch_wal()');
	change($node);
	$node->safe_psql('postgres', 'SELECT pg_switch_wal()');
	%restored = map { $_ => PostgreSQL::Test::Cluster->new("$_" . ++$serial) } ('plain', 'pitr', 'standby');
	$restored{plain}->init_from_backup($node, 'base');
	$restored{pitr}->init_from_backup($node, 'base', has_restoring => 1, standby => 0);
	$restored{pitr}->append_conf('postgresql.conf', "recovery_target_lsn = '$target'\nrecovery_target_action = promote");
	$restored{standby}->init_from_backup($node, 'base', has_streaming => 1);
	foreach my $name (sort keys %restored)
	{
		my $copy = $restored{$name};

		$copy->append_conf('postgresql.conf', 'archive_mode = off');
		$copy->start;
		answers($copy, $name);
		$node->wait_for_catchup($copy, 'replay', $node->lsn('insert')) if $name eq 'standby';
		answers($copy, $name);
		$name eq 'standby' ? $copy->promote : $copy->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
		$place eq 'memory node' ? is_shut_out($copy, $name) : is_usable($copy, $name);
		$copy->stop;
	}
	is_kept($node, 0, 'the original');
	return $node->stop;
}

# The files that a server's trees lie in.
sub files_of_trees
{
	my ($place, $node) = @_;

	return map { '/dev/shm/smart-memnode.' . $_->{name} } @memory if $place eq 'memory node';
	return region_of($node) if $place eq 'embedded';
	return $node->safe_psql('postgres', 'SHOW smart.embedded_path') . '/pgsql_tmp_region';
}

# The data directory goes back in time, and the memory of the trees does not.  The server was stopped in this way each time.
sub data_directory_that_went_back
{
	my ($place, $mode) = @_;
	my $node = original($place);
	my $data = $node->data_dir;
	my $older = $node->basedir . '/older';

	$node->stop($mode);
	system_or_bail('cp', '-a', $data, $older);
	$node->start;
	is_usable($node, "before, $mode");
	$node->stop($mode);
	(rename($data, "$older.newer") && rename($older, $data)) or die "$data: $!";
	unlink "$data/postmaster.pid";
	$node->start;
	is_usable($node, "the data directory is older, $mode");
	isnt(loaded($node), 0, "it was loaded, $mode") if $place ne 'embedded';
	return $node->stop;
}

# The other way round.
sub trees_that_went_back
{
	my ($place, $mode) = @_;
	my $node = original($place);
	my @trees = files_of_trees($place, $node);
	my $older = $node->basedir . '/older';

	$node->stop($mode);
	$_->stop for @memory;
	system_or_bail('cp', '-a', $_, "$older." . ($_ =~ s/.*\///r)) for @trees;
	$_->start for @memory;
	$node->start;
	is_usable($node, "in between, $mode");
	$node->stop($mode);
	$_->stop for @memory;
	system_or_bail('cp', '-a', "$older." . ($_ =~ s/.*\///r), $_) for @trees;
	$_->start for @memory;
	$node->start;
	is_usable($node, "the trees are older, $mode");
	isnt(loaded($node), 0, "they were loaded, $mode");
	return $node->stop;
}

sub storage_that_went_back
{
	my ($place) = @_;

	for my $mode ('fast', 'immediate')
	{
		data_directory_that_went_back($place, $mode);
		trees_that_went_back($place, $mode);
	}
	return;
}

# The log tells what does not fit; each time, the region is made anew.
sub reasons
{
	my ($place) = @_;
	my $node = original($place);
	my $mark = $node->data_dir . '/smart/pgsql_tmp_owner';
	my $region = region_of($node);
	my $kept = $node->basedir . '/region';
	my @rows = (
		[ 'without the library', 'the server has been started without it since it was closed', sub {
			$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
			$node->start;
			$node->stop;
			$node->append_conf('postgresql.conf', "shared_preload_libraries = 'smart'");
		} ],
		[ 'the older region', 'it was closed at another time than this data directory', sub {
			system_or_bail('cp', $region, $kept);
			$node->start;
			is_usable($node, 'once more');
			$node->stop;
			system_or_bail('cp', $kept, $region);
		} ],
		[ 'no whole mark', 'its owner file cannot be read', sub { truncate($mark, 20) or die "$mark: $!" } ],
		[ 'no mark', 'there is no whole run file of the server that used it', sub { unlink($mark) or die "$mark: $!" } ],
		[ 'in use', 'it was not closed when this data directory was', sub {
			$node->start;
			system_or_bail('cp', $region, $kept);
			$node->stop;
			system_or_bail('cp', $kept, $region);
		} ],
		[ 'another region', 'it is not the region that was closed with this data directory', sub {
			my $other = original($place);

			$other->stop;
			system_or_bail('cp', region_of($other), $region);
		} ],
		[ 'another mark', q{its owner file is another database cluster's}, sub {
			my $other = original($place);

			$other->stop;
			system_or_bail('cp', $other->data_dir . '/smart/pgsql_tmp_owner', $mark);
		} ]);

	foreach my $row (@rows)
	{
		my ($name, $reason, $trouble) = @$row;
		my $offset;

		$node->stop;
		$trouble->();
		$offset = -s $node->logfile;
		$node->start;
		ok($node->wait_for_log(qr/smart starts with an empty region: \Q$reason\E\n/, $offset), "$name: the log says so");
		ok(indexes_become($node, q{'ready'}, "index::text IN $INDEXES"), "$name: loaded");
	}
	return $node->stop;
}

# A primary that was left behind is rewound, follows its successor, and succeeds it.
sub rewound
{
	my ($place) = @_;
	my $first = original($place, allows_streaming => 1);
	my $second = PostgreSQL::Test::Cluster->new('second' . ++$serial);
	my $conf = $first->data_dir . '/postgresql.conf';
	my $loaded;

	$first->backup('base');
	$second->init_from_backup($first, 'base', has_streaming => 1);
	$second->start;
	$first->wait_for_catchup($second, 'replay', $first->lsn('insert'));
	$second->promote;
	change($first);
	$first->stop;
	is_usable($second, 'the successor');
	$loaded = loaded($second);
	system_or_bail('cp', $conf, $first->basedir . '/postgresql.conf');
	command_ok([ 'pg_rewind', '--no-sync', '--target-pgdata', $first->data_dir, '--source-server', $second->connstr('postgres') ], 'pg_rewind');
	system_or_bail('cp', $first->basedir . '/postgresql.conf', $conf);
	$first->enable_streaming($second);
	$first->set_standby_mode;
	$first->start;
	$second->wait_for_catchup($first, 'replay', $second->lsn('insert'));
	answers($first, 'the one that was rewound');
	is_kept($second, $loaded, 'the successor with a standby');
	$second->wait_for_catchup($first, 'replay', $second->lsn('insert'));
	$second->stop;
	$first->promote;
	is_usable($first, 'promoted again');
	return $first->stop;
}

sub copied_databases
{
	my ($place) = @_;
	my $node = original($place);

	$node->safe_psql('template1', 'CREATE DATABASE duplicate TEMPLATE postgres');
	answers($node, 'the duplicate', 'duplicate');
	is_usable($node, 'the duplicate', 'duplicate');
	is_kept($node, 2, 'the original');
	$node->safe_psql('duplicate', 'SELECT smart_collect_orphans()');
	$node->safe_psql('template1', 'DROP DATABASE duplicate WITH (FORCE)');
	$node->safe_psql('postgres', 'SELECT smart_collect_orphans()');
	is_kept($node, 2, 'the original without its duplicate');
	return $node->stop;
}

# They have different system identifiers, and share the node's memory and nothing else.
sub two_servers_on_a_node
{
	my ($place) = @_;
	my ($node, $other) = map { original($place) } (1, 2);

	change($other);
	is_kept($node, 0, 'one server');
	is_kept($other, 0, 'the other server');
	$other->safe_psql('postgres', 'DROP TABLE numbers; SELECT smart_collect_orphans()');
	$other->restart;
	is_kept($node, 0, 'one server when the other has dropped its table');
	$other->stop('immediate');
	$other->start;
	is_kept($node, 0, 'one server when the other was stopped');
	$other->stop;
	$node->restart;
	return is_kept($node, 0, 'one server without the other');
}

# Each row, and the places where it is always tried; VALIDITY=all in the environment tries it at all three where it makes sense.
my @ROWS = (
	[ 'a copy of a stopped server', \&copy_beside_the_original, 'embedded', 'memory node', '(elsewhere)' ],
	[ 'storage that went back', \&storage_that_went_back, 'elsewhere', 'memory node', '(embedded)' ],
	[ 'why a region is given up', \&reasons, 'embedded' ],
	[ 'a copy of a running server', \&copy_of_a_running_server, 'embedded', '(memory node)' ],
	[ 'restored backups', \&restored_backups, 'embedded', '(memory node)' ],
	[ 'pg_rewind', \&rewound, 'embedded', '(memory node)' ],
	[ 'CREATE DATABASE TEMPLATE', \&copied_databases, 'embedded', '(memory node)' ],
	[ 'two servers', \&two_servers_on_a_node, 'memory node' ]);

foreach my $row (@ROWS)
{
	my ($name, $function, @places) = @$row;

	foreach my $place (($ENV{VALIDITY} // '') eq 'all' ? map { s/[()]//gr } @places : grep { !/\(/ } @places)
	{
		@memory = $place eq 'memory node' ? SmartMemnode->new('one' . ++$serial, '--size=64M') : ();
		subtest "$place: $name" => sub { $function->($place) };
		$_->stop for @memory;
	}
}
done_testing();
