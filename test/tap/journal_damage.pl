# Pages of a journal that are damaged: found when the index is loaded, told, and the index is rebuilt from its table by itself; or
# found by an insert, which goes on. And a disk that is full when a row is to be journaled.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartTest;

my $BLOCK = 8192;
my $QUERY = 'SELECT a FROM t WHERE a BETWEEN 990 AND 1010 ORDER BY a';
my $node;

# Changes the file of the index t_a while the server is down, and lets it start without its region.
sub damage
{
	my ($change) = @_;
	my $path = $node->data_dir . '/' . $node->safe_psql('postgres', "SELECT pg_relation_filepath('t_a')");
	my $file;

	$node->stop;
	open $file, '+<:raw', $path or die "$path: $!";
	$change->($file);
	close $file or die $!;
	lose_region($node);
	return;
}

sub overwrite
{
	my ($file, $at, $bytes) = @_;

	seek $file, $at, 0 or die $!;
	print $file $bytes or die $!;
	return;
}

sub bytes_at
{
	my ($file, $at, $length) = @_;
	my $bytes;

	seek $file, $at, 0 or die $!;
	die 'short' if read($file, $bytes, $length) != $length;
	return $bytes;
}

# A run of several pages, and a chain of several pages behind it.
sub make_index
{
	$node->safe_psql('postgres', <<'SQL');
DROP TABLE IF EXISTS t;
CREATE TABLE t (a int, b text);
INSERT INTO t SELECT g, md5(g::text) FROM generate_series(1, 1000) g;
CREATE UNIQUE INDEX t_a ON t USING smart (a, b);
INSERT INTO t SELECT g, md5(g::text) FROM generate_series(1001, 2000) g;
DELETE FROM t WHERE a % 7 = 0;
VACUUM t;
CHECKPOINT;
SQL
	return;
}

# Of what is not damaged, too: the file has the metapage, then the run, then the chain.
my %changes = (
	'a run page of zeros' => sub { overwrite($_[0], 2 * $BLOCK, "\0" x $BLOCK) },
	'a run page with wrong bytes' => sub { overwrite($_[0], 2 * $BLOCK + 4000, 'wrong') },
	'half a run page' => sub { overwrite($_[0], 2 * $BLOCK + $BLOCK / 2, bytes_at($_[0], 3 * $BLOCK + $BLOCK / 2, $BLOCK / 2)) },
	'two run pages in the wrong order' => sub {
		my ($one, $two) = map { bytes_at($_[0], $_ * $BLOCK, $BLOCK) } (2, 3);
		overwrite($_[0], 2 * $BLOCK, $two . $one);
	},
	'a log page of zeros' => sub { overwrite($_[0], (-s $_[0]) - 2 * $BLOCK, "\0" x $BLOCK) },
	'a log page with wrong bytes' => sub { overwrite($_[0], (-s $_[0]) - 2 * $BLOCK + 300, 'wrong') },
	'half a log page' => sub { overwrite($_[0], (-s $_[0]) - 2 * $BLOCK + 512, bytes_at($_[0], (-s $_[0]) - 3 * $BLOCK + 512, 512)) },
	'the last page of zeros' => sub { overwrite($_[0], (-s $_[0]) - $BLOCK, "\0" x $BLOCK) },
	'the last page is missing' => sub { truncate($_[0], (-s $_[0]) - $BLOCK) or die $! },
	'only the metapage is there' => sub { truncate($_[0], $BLOCK) or die $! });

# Rebuilt from the table, right afterwards and for good.
sub is_rebuilt
{
	my ($name) = @_;
	my $offset = -s $node->logfile;

	$node->start;
	# Waits until it is there again.
	ok(indexes_become($node, q{'ready'}, "index = 't_a'::regclass"), "$name: ready");
	my $log = slurp_file($node->logfile, $offset);
	like($log, qr/journal of index "t_a" is damaged|invalid page in block|could not read block/, "$name: the log tells of the damage");
	like($log, qr/smart index "t_a" is going to be rebuilt from its table/, "$name: and what comes of it");
	like($log, qr/smart index "t_a" has been rebuilt/, "$name: it is rebuilt");
	unlike($log, qr/smart index "t_a" has been loaded/, "$name: it was not loaded");
	$node->safe_psql('postgres', "INSERT INTO t SELECT g, 'new' FROM generate_series(3001, 3100) g; DELETE FROM t WHERE a % 7 = 1; VACUUM t");
	index_is_sound($node, 'postgres', 't_a', $name);
	same_answers($node, 'postgres', $QUERY, $name);
	return;
}

foreach my $checksums (0, 1)
{
	my $how = $checksums ? 'checksums' : 'no checksums';

	$node = PostgreSQL::Test::Cluster->new($checksums ? 'checksums' : 'plain');
	$node->init($checksums ? (extra => ['--data-checksums']) : ());
	$node->append_conf('postgresql.conf', join("\n", "shared_preload_libraries = 'smart'", 'autovacuum = off', 'shared_buffers = 4MB', ''));
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION smart');
	make_index();
	my $pages = $node->safe_psql('postgres', "SELECT pg_relation_size('t_a') / $BLOCK");
	cmp_ok($pages, '>', 8, "$how: there are pages to damage");

	# That nothing is found where nothing is damaged.
	damage(sub { });
	my $offset = -s $node->logfile;
	$node->start;
	ok($node->wait_for_log(qr/smart index "t_a" has been loaded/, $offset), "$how: a whole journal is loaded");
	index_is_sound($node, 'postgres', 't_a', "$how, whole");
	foreach my $what (sort keys %changes)
	{
		make_index();
		damage($changes{$what});
		is_rebuilt("$what, $how");
	}

	# The last page is found to be damaged by an insert, which has no need of it.
	make_index();
	$node->stop;
	my $path = $node->data_dir . '/' . do { $node->start; $node->safe_psql('postgres', "SELECT pg_relation_filepath('t_a')") };
	$node->restart;
	open my $file, '+<:raw', $path or die $!;
	overwrite($file, (-s $file) - $BLOCK, "\0" x $BLOCK);
	close $file or die $!;
	$offset = -s $node->logfile;
	$node->safe_psql('postgres', "INSERT INTO t VALUES (5000, 'after the damage')");
	like(slurp_file($node->logfile, $offset), qr/the last page of the journal of index "t_a" is damaged/, "$how: an insert finds a damaged tail");
	is(state_of($node, 't_a'), 'ready', "$how: which does not concern the tree");
	$node->safe_psql('postgres', "INSERT INTO t SELECT g, 'later' FROM generate_series(5001, 5500) g; DELETE FROM t WHERE a % 7 = 2; VACUUM t");
	index_is_sound($node, 'postgres', 't_a', "$how: and goes on");
	damage(sub { });
	$offset = -s $node->logfile;
	$node->start;
	ok(indexes_become($node, q{'ready'}, "index = 't_a'::regclass"), "$how: lost then, it is there again");
	index_is_sound($node, 'postgres', 't_a', "$how: right");

	# A metapage that is damaged concerns no other index, and REINDEX mends it.
	$node->safe_psql('postgres', 'CREATE TABLE other (a int); INSERT INTO other SELECT generate_series(1, 100); CREATE INDEX other_a ON other USING smart (a)');
	make_index();
	damage(sub { overwrite($_[0], 100, 'wrong') });
	$node->start;
	becomes($node, 'other_a', 'ready');
	is($node->safe_psql('postgres', 'DROP INDEX t_a; SELECT count(*) FROM t WHERE a = 3'), '1', "$how: an index with a damaged metapage can be dropped");
	$node->stop;
	log_is_quiet($node);
}

# ---- a full disk ----

SKIP: {
	my $disk = PostgreSQL::Test::Utils::tempdir();
	my @alone = ('unshare', '--user', '--map-current-user', '--keep-caps', '--mount');
	my $mount = "mount -t tmpfs -o size=3m smart '$disk'";

	skip 'no file system can be mounted here', 1 if system(@alone, 'sh', '-c', "$mount 2>/dev/null") != 0;
	$node = PostgreSQL::Test::Cluster->new('disk');
	$node->init;
	$node->append_conf('postgresql.conf', join("\n", "shared_preload_libraries = 'smart'", 'autovacuum = off', 'fsync = off', ''));
	PostgreSQL::Test::Utils::system_or_bail(@alone, 'sh', '-c', "$mount && exec pg_ctl -w -s -D '" . $node->data_dir . "' -l '" . $node->logfile . "' start");
	$node->_update_pid(1);
	$node->safe_psql('postgres', "CREATE EXTENSION smart");
	$node->safe_psql('postgres', "CREATE TABLESPACE small LOCATION '$disk'");
	$node->safe_psql('postgres', "CREATE TABLE t (a int, b text); CREATE UNIQUE INDEX t_a ON t USING smart (a, b) TABLESPACE small; INSERT INTO t SELECT g, md5(g::text) FROM generate_series(1, 1000) g");
	my ($status, undef, $err) = $node->psql('postgres', "INSERT INTO t SELECT g, md5(g::text) FROM generate_series(1001, 200000) g", extra_params => [ '-v', 'VERBOSITY=verbose' ]);
	isnt($status, 0, 'a full disk: the statement fails');
	like($err, qr/ERROR:  53100:/, 'a full disk: it says why');
	is($node->safe_psql('postgres', 'SELECT count(*) FROM t'), '1000', 'a full disk: the server goes on');
	# Not a byte is left: what is staged finds that out when its transaction commits.
	$node->psql('postgres', join(";\n", map { "INSERT INTO t VALUES ($_, 'x$_')" } 1 .. 300), on_error_stop => 0);
	index_is_sound($node, 'postgres', 't_a', 'a full disk');
	same_answers($node, 'postgres', $QUERY, 'a full disk');
	$node->psql('postgres', 'DELETE FROM t WHERE a % 2 = 0; VACUUM t');
	index_is_sound($node, 'postgres', 't_a', 'a full disk, VACUUM');
	$node->safe_psql('postgres', 'ALTER INDEX t_a SET TABLESPACE pg_default; INSERT INTO t SELECT g, md5(g::text) FROM generate_series(1001, 3000) g; VACUUM t');
	index_is_sound($node, 'postgres', 't_a', 'room again');
	same_answers($node, 'postgres', $QUERY, 'room again');
	$node->stop;
	log_is_quiet($node);
}

done_testing();
