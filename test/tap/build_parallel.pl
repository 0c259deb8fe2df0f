# CREATE INDEX by several processes: the index is what one process would have built, and what happens in a worker
# (duplicates, errors, cancellation) comes out as if it had happened in the session.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use SmartTest;
use PostgreSQL::Test::Utils;
use Test::More;
use IPC::Run;

# As little memory as possible makes every process write several runs. wal_level minimal: no WAL but the metapage's.
my $node = smart_node('main', 'autovacuum = off', 'wal_level = minimal', 'max_wal_senders = 0', 'max_worker_processes = 12',
	'max_parallel_workers = 8', 'max_parallel_maintenance_workers = 4', 'smart.auto_rebuild = off');

$node->safe_psql('postgres', <<'SQL');
CREATE TABLE built (id bigint, word text COLLATE "C", wide uuid, kind int, far text COLLATE "C");
INSERT INTO built SELECT i::bigint * 7919 % 20011, 'word ' || md5(i::text), md5((i * 3)::text)::uuid, i % 10,
		repeat(md5(i::text), 4) FROM generate_series(1, 20000) i;
INSERT INTO built (id) VALUES (NULL), (NULL);
CREATE FUNCTION runs_here() RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE AS
	$$ SELECT pg_backend_pid() = current_setting('test.leader', true)::int $$;
-- Every process stops at its first row as long as the file is there, so that none is without.
CREATE FUNCTION told(n bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
	WHILE (pg_stat_file('hold', true)).size IS NOT NULL LOOP
		PERFORM pg_sleep(0.01);
	END LOOP;
	IF NOT public.runs_here() THEN
		RAISE NOTICE 'in another process: %', pg_backend_pid();
	END IF;
	RETURN n;
END $$;
-- True; but if there are workers, the session leaves nearly all rows to them.
CREATE FUNCTION shared(n int) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
	IF current_setting('max_parallel_maintenance_workers') <> '0' AND public.runs_here() THEN
		PERFORM pg_sleep(0.0005);
	END IF;
	RETURN true;
END $$;
CREATE FUNCTION refused(n bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
	IF public.runs_here() THEN
		PERFORM pg_sleep(0.001);
	ELSE
		RAISE EXCEPTION 'no entry for row %', n;
	END IF;
	RETURN n;
END $$;
CREATE FUNCTION slow(n bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS
	$$ BEGIN PERFORM pg_sleep(0.05); RETURN n; END $$;
SQL

my $LEADER = q{SELECT set_config('test.leader', pg_backend_pid()::text, false);};
my $SERIAL = 'SET max_parallel_maintenance_workers = 0;';

# Leaves the number of processes to the table's own setting.
sub workers
{
	my ($count) = @_;

	$node->safe_psql('postgres', "ALTER TABLE built SET (parallel_workers = $count)");
	return;
}

# How many there are; what dropped indexes have left is freed before, if that was not done yet.
sub trees
{
	$node->safe_psql('postgres', 'SELECT smart_collect_orphans()');
	return $node->safe_psql('postgres', 'SELECT sum(trees) FROM smart_stat_space');
}

# Two workers take part, and their notices come to the session; with none allowed only the session does.
workers(2);
my $FEW = 'USING smart (told(id)) WHERE id < 1000';
my $hold = $node->data_dir . '/hold';
my ($status, $out, $err);
append_to_file($hold, '');
my $build = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', $LEADER, '-c', "CREATE INDEX built_told ON built $FEW" ],
	'<', \undef, '>', \$out, '2>', \$err);
$node->poll_query_until('postgres', q{SELECT count(*) = 3 FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND
	(backend_type = 'parallel worker' OR query LIKE 'CREATE INDEX%')}) or die 'the workers do not start';
unlink $hold or die "$hold: $!";
ok($build->finish, 'an index is built') or diag($err);
my %others = map { $_ => 1 } $err =~ /in another process: (\d+)/g;
is(scalar(keys %others), 2, 'by two workers, too');
($status, $out, $err) = $node->psql('postgres', "$LEADER $SERIAL CREATE INDEX built_alone ON built $FEW");
is("$status $err", '0 ', 'max_parallel_maintenance_workers = 0: by none');
workers(0);
($status, $out, $err) = $node->psql('postgres', "$LEADER CREATE INDEX built_alone_2 ON built $FEW");
is("$status $err", '0 ', 'parallel_workers = 0: by none');
$node->safe_psql('postgres', 'DROP INDEX built_told, built_alone, built_alone_2');

# Every kind of entry, built by one process and by four, with and without runs on disk.
workers(3);
my %INDEXES = (
	built_id => '(id) WHERE shared(kind)',
	built_word => '(word) WHERE shared(kind)',
	built_both => '(kind DESC, word, id) WHERE shared(kind)',
	built_wide => '(wide, id, kind) WHERE shared(kind)',
	built_far => '(far) WHERE shared(kind)',
	built_include => '(id) INCLUDE (word) WHERE shared(kind)',
	built_partial => '(id) WHERE kind = 3 AND shared(kind)',
	built_none => '(id) WHERE kind > 10 AND shared(kind)',
	built_expression => '((id / 2), lower(word)) WHERE shared(kind)',
	built_unique => '(word, id) WHERE shared(kind)',
	built_whole => '(id, word)');
for my $name (sort keys %INDEXES)
{
	my $create = $name eq 'built_unique' ? 'CREATE UNIQUE INDEX' : 'CREATE INDEX';

	# In memory the kinds of items make a difference: one index of each.
	for my $memory ($name =~ /_(id|wide|far)$/ ? '64MB' : (), '1MB')
	{
		$node->safe_psql('postgres', "$LEADER SET maintenance_work_mem = '$memory';
			$create $name ON built USING smart $INDEXES{$name};
			$SERIAL $create serial ON built USING smart $INDEXES{$name}");
		is($node->safe_psql('postgres', "SELECT smart_index_stats('$name')::text"),
			$node->safe_psql('postgres', "SELECT smart_index_stats('serial')::text"), "$name, $memory: the same tree");
		is($node->safe_psql('postgres', "SELECT reltuples FROM pg_class WHERE relname = '$name'"),
			$node->safe_psql('postgres', "SELECT reltuples FROM pg_class WHERE relname = 'serial'"), 'the same count');
		index_is_sound($node, 'postgres', $name, "built with $memory");
		$node->safe_psql('postgres', 'DROP INDEX serial' . ($memory eq '64MB' ? ", $name" : ''));
	}
}
same_answers($node, 'postgres', 'SELECT id, word, ctid FROM built WHERE id BETWEEN 100 AND 300 ORDER BY id, word', 'a range');

# What else builds.
$node->safe_psql('postgres', "$LEADER REINDEX TABLE built");
index_is_sound($node, 'postgres', $_, 'after REINDEX TABLE') for 'built_word', 'built_unique';
$node->safe_psql('postgres', 'REINDEX INDEX CONCURRENTLY built_whole');
$node->safe_psql('postgres', 'CREATE INDEX CONCURRENTLY built_concurrently ON built USING smart (word, kind)');
index_is_sound($node, 'postgres', $_, 'built concurrently') for 'built_whole', 'built_concurrently';
$node->safe_psql('postgres', 'BEGIN; ALTER TABLE built ADD COLUMN more int DEFAULT 3; CREATE INDEX built_more ON built USING smart (more, id);
	UPDATE built SET more = 4 WHERE kind = 1; COMMIT');
index_is_sound($node, 'postgres', 'built_more', 'in the transaction that changed the table');
$node->safe_psql('postgres', "$LEADER VACUUM FULL built");
index_is_sound($node, 'postgres', $_, 'after VACUUM FULL') for 'built_word', 'built_unique', 'built_partial', 'built_more';

# Workers see what a transaction that has not ended yet has made.
$node->safe_psql('postgres', 'BEGIN; CREATE TABLE made WITH (parallel_workers = 2) AS SELECT i FROM generate_series(1, 20000) i;
	CREATE INDEX made_i ON made USING smart (i); COMMIT');
index_is_sound($node, 'postgres', 'made_i', 'of a table of the same transaction');

# Duplicates: two live rows; one live row and dead ones that a snapshot may still see are none.
($status, $out, $err) = $node->psql('postgres', 'CREATE UNIQUE INDEX doubled ON built USING smart (kind)');
like($err, qr/could not create unique index "doubled"\nDETAIL:  Key \(kind\)=\(0\) is duplicated/, 'duplicates');
$node->safe_psql('postgres', 'CREATE TABLE updated (id int, n int) WITH (autovacuum_enabled = off, parallel_workers = 2);
	INSERT INTO updated SELECT i, 0 FROM generate_series(1, 500) i; CREATE INDEX ON updated (n)');
my $reader = $node->background_psql('postgres');
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM updated');
$node->safe_psql('postgres', "UPDATE updated SET n = $_") for 1, 2;
$node->safe_psql('postgres', "$LEADER CREATE UNIQUE INDEX updated_id ON updated USING smart (told(id))");
is($reader->query_safe('SELECT count(*) FROM updated'), '500', 'an older snapshot');
$reader->query_safe('COMMIT');
$reader->quit;
($status, $out, $err) = $node->psql('postgres', "$LEADER INSERT INTO updated VALUES (17, 0)");
like($err, qr/duplicate key value/, 'a unique index that several processes have built');

# An error of a worker, with where it was.
my $before = trees();
workers(2);
($status, $out, $err) = $node->psql('postgres', "$LEADER CREATE INDEX refused ON built USING smart (refused(id))");
like($err, qr/ERROR:  no entry for row \d+\n.*CONTEXT:.*parallel worker/s, 'an error in a worker');

# Cancelled and terminated while workers read: no process and no memory is left.
for my $function ('pg_cancel_backend', 'pg_terminate_backend')
{
	my $output;
	my $run = IPC::Run::start([ 'psql', '-X', '-q', '-h', $node->host, '-p', $node->port, '-d', 'postgres',
			'-c', 'CREATE INDEX slow ON built USING smart (slow(id))' ], '&>', \$output);

	$node->poll_query_until('postgres', q{SELECT count(*) = 2 FROM pg_stat_activity WHERE backend_type = 'parallel worker'})
		or die 'the workers do not start';
	my $pid = $node->safe_psql('postgres', 'SELECT pid FROM pg_stat_progress_create_index');
	is($node->safe_psql('postgres', "SELECT $function($pid)"), 't', $function);
	$run->finish;
	like($output, qr/canceling statement|terminating connection/, 'the build ends');
	ok($node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'parallel worker'}),
		'and so do its workers');
	is_gone($node, $pid);
}
is(trees(), $before, 'no tree is left');
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_ls_tmpdir()'), '0', 'and no file');

$node->stop;
log_is_quiet($node);
done_testing();
