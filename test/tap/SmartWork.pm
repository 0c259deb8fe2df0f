# Helper for the TAP tests that kill a server again and again while it works: what its clients do, and what has to be true
# afterwards.
#
#   my $node = smart_node('main', @WORK_SETTINGS);
#   $node->safe_psql('postgres', $WORK_SCHEMA);
#   my $work = start_work($node, $seed);
#   ...
#   end_work($node, $work);
#   all_is_well($node, 'after the first kill');
#   run_cycle('the second', $node, $ENDS{'a memory node'}, @memory);     # all of that
package SmartWork;

use strict;
use warnings;

use Exporter 'import';
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

use SmartMemnode;
use SmartTest;

our @EXPORT = qw(@WORK_SETTINGS $WORK_SCHEMA @LOGGED %ENDS run_cycle start_work end_work all_is_well is_loaded state_of_rows damage_is_seen
	no_row_is_wrong log_is_sound);

# Rows are few, so that all that happens concerns the same leaves; and a commit that no session waits for is likely to be lost.
our @WORK_SETTINGS = (
	'autovacuum = off', 'restart_after_crash = on', 'wal_writer_delay = 10s', 'log_statement = none', 'shared_buffers = 8MB',
	'max_connections = 20', 'smart.embedded_max_size = 256MB', 'smart.cache_size = 8MB');

our $WORK_SCHEMA = <<'SQL';
CREATE TABLE rows (id bigserial, a int, b text COLLATE "C" DEFAULT 'default ' || random(), c int) WITH (fillfactor = 70);
CREATE INDEX rows_a ON rows USING smart (a);
CREATE UNIQUE INDEX rows_b ON rows USING smart (b);
CREATE INDEX rows_c_a ON rows USING smart (c DESC, a) INCLUDE (b);
CREATE INDEX rows_some ON rows USING smart ((a % 100), c) WHERE c > 50;
INSERT INTO rows (a, b, c) SELECT g, 'first ' || g, g % 100 FROM generate_series(1, 2000) g;
CREATE UNLOGGED TABLE forgetful AS SELECT id, a, b, c FROM rows;
CREATE INDEX forgetful_a ON forgetful USING smart (a, b);
CREATE FUNCTION add(a int, b text, c int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO rows (a, b, c) VALUES (a, b, c);
EXCEPTION WHEN unique_violation THEN
	INSERT INTO rows (a, b, c) VALUES (a, b || ' again ' || random(), c);
END
$$;
SQL

# Its indexes with a journal.
our @LOGGED = ('rows_a', 'rows_b', 'rows_c_a', 'rows_some');

my ($lost, $phantom) = (0, 0);

# What the clients do, and how often. Of a value of column a there are about two rows.
my @WORK = (
	[ 10, 'INSERT INTO rows (a, b, c) SELECT :a + g, :a || $$ $$ || :r || $$ $$ || g, g * 7 % 100 FROM generate_series(1, :few) g ON CONFLICT (b) DO NOTHING;' ],
	[ 6, 'SELECT add(:a, $$key $$ || :c, :c);' ],
	[ 10, 'UPDATE rows SET a = (a + :r) % 2000 WHERE a = :a;' ],
	[ 4, 'UPDATE rows SET c = (c + 1) % 100, b = $$moved $$ || id || random() WHERE a BETWEEN :a AND :a + 2;' ],
	[ 6, 'DELETE FROM rows WHERE a BETWEEN :a AND :a + :few;' ],
	[ 4, 'BEGIN; INSERT INTO rows (a, b, c) VALUES (:a, $$gone $$ || :r, :c); DELETE FROM rows WHERE a = :a + 1; ROLLBACK;' ],
	[ 4, 'BEGIN; INSERT INTO rows (a, b, c) VALUES (:a, $$kept $$ || :r || $$ $$ || :c, :c) ON CONFLICT DO NOTHING; SAVEPOINT s;
UPDATE rows SET a = a + 1 WHERE a = :a; DELETE FROM rows WHERE a = :a + 2; ROLLBACK TO s;
INSERT INTO rows (a, b, c) VALUES (:a, $$late $$ || random(), :c); COMMIT;' ],
	[ 8, 'BEGIN; SET LOCAL synchronous_commit = off; INSERT INTO rows (a, b, c) SELECT :a, $$async $$ || random(), g FROM generate_series(1, :few) g;
DELETE FROM rows WHERE a = :a + 5; COMMIT;' ],
	[ 4, 'INSERT INTO forgetful VALUES (:r, :a, $$f $$ || :r, :c); DELETE FROM forgetful WHERE a = :a + 1;' ],
	[ 2, 'SET enable_seqscan = off; SELECT count(b) FROM rows WHERE a BETWEEN :a AND :a + 10; SELECT b FROM rows WHERE c = :c ORDER BY a LIMIT 5; RESET enable_seqscan;' ],
	[ 3, q{COPY rows (a, c) FROM 'ROWS_FILE';} ],
	[ 1, 'VACUUM rows;' ],
	[ 1, 'VACUUM (INDEX_CLEANUP on) rows;' ]);

# start_work(NODE, SEED): clients that work until their server ends, for a minute at most; returns when they have begun.
sub start_work
{
	my ($node, $seed) = @_;
	my $output = '';
	my $rows = pgbench_script(join('', map { "$_\t" . $_ % 100 . "\n" } (51, 1234, 1999)));
	my @command = ('pgbench', '-n', '-c', 4, '-T', 60, "--random-seed=$seed", '--max-tries=0');
	my $work;

	foreach my $kind (@WORK)
	{
		push @command, '-f', pgbench_script("\\set a random(1, 2000)\n\\set c random(0, 99)\n\\set r random(1, 1000000)\n"
			. "\\set few random(1, 5)\n" . $kind->[1] =~ s/ROWS_FILE/$rows/r . "\n") . '@' . $kind->[0];
	}
	$work = IPC::Run::start([ @command, $node->connstr('postgres') . ' application_name=pgbench' ], '<', \undef, '>', \$output, '2>', \$output);
	$node->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_stat_activity WHERE application_name = 'pgbench'")
	  or die "pgbench does not run: $output";
	return $work;
}

# end_work(NODE, WORK...): all clients end, and the server has noticed.
sub end_work
{
	my ($node, @work) = @_;

	$_->kill_kill for @work;
	$node->poll_query_until('postgres', "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'pgbench')");
	return;
}

# ---- the ends ----

# False: there is none. The clients end by themselves when a memory node does not answer, perhaps just before the signal comes.
sub kill_a_backend
{
	my ($node) = @_;
	my $offset = -s $node->logfile;
	my $backends = "SELECT pid FROM pg_stat_activity WHERE application_name = 'pgbench' ORDER BY pid";

	while (my @pids = split /\n/, $node->safe_psql('postgres', $backends))
	{
		my $pid = $pids[ int(rand(@pids)) ];

		next if !kill('KILL', $pid) || !signal_came($node, $pid, $offset);
		$node->wait_for_log(qr/all server processes terminated; reinitializing/, $offset);
		return 1;
	}
	return 0;
}

sub backend_is_killed
{
	my ($node) = @_;

	ok(0, 'there was no backend to kill') if !kill_a_backend($node);
	return;
}

sub postmaster_is_killed
{
	my ($node) = @_;

	$node->kill9;
	start_again($node);
	return;
}

sub server_is_stopped
{
	my ($node) = @_;

	$node->stop('immediate');
	$node->start;
	return;
}

# Sometimes its memory goes with it, sometimes the server does.
sub memory_node_is_killed
{
	my ($node, @memory) = @_;
	my $victim = $memory[ int(rand(@memory)) ];
	my $chance = rand();

	$victim->kill9;
	$node->kill9 if $chance < 0.2;
	$victim->forget if $chance > 0.6;
	sleep(rand(0.3));
	$victim->start;
	start_again($node) if $chance < 0.2;
	node_becomes($node, $_, 'up') for @memory;
	return;
}

# Some of them at once, and some of the memory nodes with their memory.
sub several_are_killed
{
	my ($node, @memory) = @_;
	my @victims = grep { rand() < 0.6 } @memory;
	my $server = rand();

	@victims = ($memory[ int(rand(@memory)) ]) if !@victims;
	kill 'KILL', map { $_->{pid} } @victims;
	if ($server < 0.3)
	{
		postmaster_is_killed($node);
	}
	elsif ($server < 0.7)
	{
		kill_a_backend($node);
	}
	foreach my $victim (@victims)
	{
		$victim->kill9;
		$victim->forget if rand() < 0.3;
		sleep(rand(0.3));
		$victim->start;
	}
	node_becomes($node, $_, 'up') for @memory;
	return;
}

our %ENDS = (
	'a backend' => \&backend_is_killed, 'the postmaster' => \&postmaster_is_killed,
	'an immediate stop' => \&server_is_stopped, 'a memory node' => \&memory_node_is_killed,
	'memory nodes and others at once' => \&several_are_killed);

# ---- what has to be true ----

# The rows that a query gives by the index on these columns and by a sequential scan: whether the order agrees, and what either has alone.
sub compare
{
	my ($node, $table, $order, $condition) = @_;
	my $columns = $order =~ s/ DESC//r;
	my $query = "SELECT concat_ws(',', $columns), id FROM $table WHERE $condition ORDER BY $order";
	my $mark = '---';
	my @parts = split /^$mark\n/m, $node->safe_psql('postgres', "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off;
		EXPLAIN (COSTS OFF) $query; SELECT '$mark'; $query; RESET ALL; SET enable_indexscan = off; SET enable_bitmapscan = off;
		SELECT '$mark'; $query") . "\n";
	my ($plan, @by_index) = ($parts[0], split /\n/, $parts[1] // '');
	my @by_heap = split /\n/, $parts[2] // '';
	my (%only, $problem);

	$problem = "the plan has no index: $plan" if $plan !~ /Index Scan/;
	$problem //= 'the order is another one'
	  if join("\n", map { s/\|.*//r } @by_index) ne join("\n", map { s/\|.*//r } @by_heap);
	$only{$_}++ for @by_heap;
	$only{$_}-- for @by_index;
	$lost += $_ > 0 ? $_ : 0 for values %only;
	$phantom += $_ < 0 ? -$_ : 0 for values %only;
	return !defined $problem ? '' : "$table by $order: $problem; they differ in: " . join(' ', grep { $only{$_} } sort keys %only);
}

# all_is_well(NODE, NAME): every index becomes usable by itself, is sound, and gives what its table gives.
sub all_is_well
{
	my ($node, $name) = @_;
	my $start = time();
	my ($status, $out, $err);
	my @problems;

	push @problems, 'an index is not usable: ' . $node->safe_psql('postgres', 'SELECT index, state, reason, last_error FROM smart_index_state')
	  if !indexes_become($node, q{'ready', 'empty'});
	$name .= sprintf(', usable after %.1f s', time() - $start);
	($status, $out, $err) = $node->psql('postgres', 'SELECT smart_index_check(index, true) FROM smart_index_state');
	push @problems, $err if $status != 0;
	push @problems, grep { $_ ne '' } (compare($node, 'rows', 'a', 'true'), compare($node, 'rows', 'b', 'true'),
		compare($node, 'rows', 'c DESC, a', 'true'), compare($node, 'rows', 'a % 100, c', 'c > 50'), compare($node, 'forgetful', 'a, b', 'true'));
	is(join("\n", @problems), '', $name);
	return;
}

# is_loaded(NODE, NAME): all logged indexes were loaded, none was rebuilt, and they are right.  One that was loaded while the
# server was a standby, and is not up to date when that ends, is loaded once more.
sub is_loaded
{
	my ($node, $name) = @_;

	all_is_well($node, $name);
	my $log = PostgreSQL::Test::Utils::slurp_file($node->logfile);
	my %loaded = map { $_ => 1 } $log =~ /smart index "(rows\w+)" has been loaded/g;
	my @loaded = sort keys %loaded;

	is("@loaded", "@LOGGED", "$name: loaded");
	unlike($log, qr/rebuilding smart index "rows/, "$name: not rebuilt");
	return;
}

# state_of_rows(NODE): what the table has, in short.
sub state_of_rows
{
	my ($node) = @_;

	return $node->safe_psql('postgres', "SELECT count(*), sum(hashtext(concat_ws(',', id, a, b, c))::bigint) FROM rows");
}

# An index that core was told to leave out of two statements: the comparison must see both kinds of damage.
sub damage_is_seen
{
	my ($node) = @_;
	my $ready = q{UPDATE pg_index SET indisready = %s WHERE indexrelid = 'damaged_a'::regclass};

	$node->safe_psql('postgres', 'CREATE TABLE damaged AS SELECT g AS id, 2 * g AS a FROM generate_series(1, 100) g;
		CREATE INDEX damaged_a ON damaged USING smart (a)');
	is(compare($node, 'damaged', 'a', 'true'), '', 'before the damage');
	$node->safe_psql('postgres', $_) for (sprintf($ready, 'false'), 'INSERT INTO damaged VALUES (101, 7)', sprintf($ready, 'true'));
	isnt(compare($node, 'damaged', 'a', 'true'), '', 'the comparison sees a lost row');
	is("$lost $phantom", '1 0', 'and counts it');
	$node->safe_psql('postgres', $_) for (sprintf($ready, 'false'), 'DELETE FROM damaged WHERE id IN (20, 101)', 'VACUUM damaged',
		'INSERT INTO damaged VALUES (102, 9)', sprintf($ready, 'true'));
	isnt(compare($node, 'damaged', 'a', 'true'), '', 'the comparison sees that an entry leads to another row');
	my ($status) = $node->psql('postgres', "SELECT smart_index_check('damaged_a', true)");
	isnt($status, 0, 'so does smart_index_check');
	$node->safe_psql('postgres', 'DROP TABLE damaged');
	($lost, $phantom) = (0, 0);
	return;
}

# no_row_is_wrong(CYCLES, SEED): after so many cycles.
sub no_row_is_wrong
{
	my ($cycles, $seed) = @_;

	is("$lost $phantom", '0 0', 'no row is lost, none is there that should not be');
	note("$cycles cycles, $lost lost and $phantom phantom rows; seed $seed");
	return;
}

# run_cycle(NAME, NODE, END, MEMORY...): the server works, this end comes at a random moment, and all is well again.
sub run_cycle
{
	my ($name, $node, $end, @memory) = @_;
	my $work = start_work($node, int(rand(2**31)));

	sleep(0.05 + rand(0.3));
	$end->($node, @memory);
	end_work($node, $work);
	all_is_well($node, $name);
	return;
}

sub log_is_sound
{
	my ($node) = @_;
	my $log = PostgreSQL::Test::Utils::slurp_file($node->logfile);

	unlike($log, qr/PANIC|TRAP:|assertion|corrupt|terminated by signal (?!9)/, 'the server log has no crash but ours');
	return;
}

1;
