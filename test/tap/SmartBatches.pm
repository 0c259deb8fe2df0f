# Rows that come in bulk: their entries go into the tree together, later than by themselves.  Whatever looks for them before
# that finds them all the same, and rows that are withdrawn leave nothing that could lead to others.
package SmartBatches;

use strict;
use warnings;

use Exporter 'import';
use Test::More;

use SmartTest;

our @EXPORT = qw(batches_are_sound make_table holds);

my $by_index = 'SET enable_seqscan = off; SET enable_bitmapscan = off;';

# The table of one test, with its index.
sub make_table
{
	my ($node, $name, $columns) = @_;

	$node->safe_psql('postgres', "CREATE TABLE $name (" . ($columns // 'k int, v int') . "); CREATE INDEX ${name}_k ON $name USING smart (k);");
	return;
}

# The index has the rows of the table, and no others; and finds so many.
sub holds
{
	my ($node, $name, $rows, $what) = @_;

	index_is_sound($node, 'postgres', "${name}_k", $what);
	is($node->safe_psql('postgres', "$by_index SELECT count(*) FROM $name WHERE k IS NOT NULL OR k IS NULL"), $rows, "$what: rows");
	same_answers($node, 'postgres', "SELECT k, v FROM $name WHERE k > -1000000 ORDER BY k, v", $what);
	return;
}

# What a function or a trigger has counted, all in all, while a statement inserted 100 rows.
sub seen_by
{
	my ($node, $call, $settings) = @_;

	return $node->safe_psql('postgres', ($settings // '') . "TRUNCATE seen; TRUNCATE other; INSERT INTO seen SELECT g, g, $call FROM generate_series(1, 100) g; SELECT sum(n) FROM seen;");
}

# With its server, which has to have max_prepared_transactions.  Returns the tables, by name, and how many rows each has.
sub batches_are_sound
{
	my ($node) = @_;

	make_table($node, 'ways');
	$node->safe_psql('postgres', <<'SQL');
COPY ways FROM PROGRAM 'seq 1 5000 | sed "s/.*/&\t&/"';
UPDATE ways SET k = -k;
WITH moved AS (DELETE FROM ways WHERE k < -4000 RETURNING k, v) INSERT INTO ways SELECT k + 10000, v FROM moved;
WITH more AS (INSERT INTO ways SELECT g, 1 FROM generate_series(20001, 21000) g RETURNING k) SELECT count(*) FROM more;
MERGE INTO ways USING (SELECT g FROM generate_series(20501, 22000) g) x ON k = g
	WHEN MATCHED THEN UPDATE SET k = g + 5000 WHEN NOT MATCHED THEN INSERT VALUES (g, 2);
SQL
	holds($node, 'ways', 7000, 'COPY, UPDATE, WITH and MERGE');

	# Long entries, and many indexes at once.
	make_table($node, 'long', 'k text, v int');
	$node->safe_psql('postgres', "INSERT INTO long SELECT repeat(md5(g::text), 60), g FROM generate_series(1, 300) g");
	index_is_sound($node, 'postgres', 'long_k', 'long entries');
	$node->safe_psql('postgres', <<'SQL');
CREATE TABLE parts (k int, v int) PARTITION BY LIST (v);
SELECT format('CREATE TABLE part_%s PARTITION OF parts FOR VALUES IN (%s)', g, g) FROM generate_series(0, 49) g \gexec
CREATE INDEX parts_k ON parts USING smart (k);
INSERT INTO parts SELECT g, g % 50 FROM generate_series(1, 3000) g;
UPDATE parts SET v = (v + 1) % 50, k = k + 1;
SQL
	index_is_sound($node, 'postgres', "part_${_}_k_idx", 'many partitions') for (0, 7, 49);
	is($node->safe_psql('postgres', "$by_index SELECT count(*), sum(k) FROM parts WHERE k > 0"), '3000|' . (3001 * 3000 / 2 + 3000),
		'all rows of all partitions');

	# ---- what the statement itself sees ----

	# A function that asks the index about the rows that its own statement has inserted so far; it sees what a heap scan sees.
	$node->safe_psql('postgres', <<'SQL');
CREATE TABLE seen (k int, v int, n bigint);
CREATE INDEX seen_k ON seen USING smart (k);
CREATE TABLE other (k int);
CREATE FUNCTION count_seen() RETURNS bigint LANGUAGE plpgsql VOLATILE SET enable_seqscan = off AS
	'BEGIN RETURN (SELECT count(*) FROM seen WHERE k > 0); END';
CREATE FUNCTION count_after(int) RETURNS bigint LANGUAGE plpgsql VOLATILE SET enable_seqscan = off AS
	'BEGIN INSERT INTO other VALUES ($1); RETURN (SELECT count(*) FROM seen WHERE k > 0); END';
CREATE FUNCTION count_stable() RETURNS bigint LANGUAGE plpgsql STABLE SET enable_seqscan = off AS
	'BEGIN RETURN (SELECT count(*) FROM seen WHERE k > 0); END';
CREATE FUNCTION before_row() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS
	'BEGIN new.n := (SELECT count(*) FROM seen WHERE k > 0); RETURN new; END';
CREATE FUNCTION after_row() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS
	'BEGIN INSERT INTO other SELECT count(*) FROM seen WHERE k = new.k; RETURN NULL; END';
SQL

	is(seen_by($node, 'count_seen()'), 4950, 'a volatile function sees the rows of its statement');
	is(seen_by($node, 'count_after(g)'), 4950, 'so does one that has inserted others in between');
	is(seen_by($node, 'count_stable()'), 0, 'a stable function does not');
	is(seen_by($node, 'count_seen()', 'SET debug_parallel_query = on; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET min_parallel_index_scan_size = 0;'),
		4950, 'nor do parallel workers miss one') if $node->pg_version >= 16;
	is(seen_by($node, 'count_seen()', 'SET force_parallel_mode = on; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET min_parallel_index_scan_size = 0;'),
		4950, 'nor do parallel workers miss one') if $node->pg_version < 16;
	$node->safe_psql('postgres', 'CREATE TRIGGER a BEFORE INSERT ON seen FOR EACH ROW EXECUTE FUNCTION before_row()');
	is(seen_by($node, '0'), 4950, 'a trigger before each row sees those before it');
	$node->safe_psql('postgres', 'DROP TRIGGER a ON seen; CREATE TRIGGER a AFTER INSERT ON seen FOR EACH ROW EXECUTE FUNCTION after_row()');
	seen_by($node, '0');
	is($node->safe_psql('postgres', 'SELECT sum(k) FROM other'), 100, 'a trigger after each row sees that');
	index_is_sound($node, 'postgres', 'seen_k', 'after triggers');
	is($node->safe_psql('postgres', "DROP TRIGGER a ON seen; TRUNCATE seen; INSERT INTO seen SELECT g, g, length(smart_index_check('seen_k', true)::text) FROM generate_series(1, 30) g; SELECT count(*) FROM seen"),
		30, 'the index is checked under way');

	# Statements within others: their entries wait, too, and each sees what is there.
	$node->safe_psql('postgres', <<'SQL');
CREATE TABLE audit (k int, v int);
CREATE INDEX audit_k ON audit USING smart (k);
CREATE FUNCTION audited(g int) RETURNS int LANGUAGE plpgsql AS
	'BEGIN INSERT INTO audit SELECT -g, x FROM generate_series(1, 50) x; RETURN g; END';
CREATE FUNCTION count_audit() RETURNS bigint LANGUAGE plpgsql VOLATILE SET enable_seqscan = off AS
	'BEGIN RETURN (SELECT count(*) FROM audit WHERE k < 0); END';
SQL
	is($node->safe_psql('postgres', 'TRUNCATE seen; INSERT INTO seen SELECT audited(g), g, CASE WHEN g % 10 = 0 THEN count_audit() END FROM generate_series(1, 40) g; SELECT sum(n) FROM seen'),
		5000, 'a function sees the rows of other functions in its statement');
	holds($node, 'audit', 2000, 'rows of statements within a statement');

	# A cursor from before, read in between; foreign keys, checked at the end.
	is($node->safe_psql('postgres', <<'SQL'), '40', 'a cursor sees what was there when it was opened');
TRUNCATE seen;
INSERT INTO seen SELECT g, g, 0 FROM generate_series(1, 40) g;
BEGIN;
SET enable_seqscan = off;
DECLARE c CURSOR FOR SELECT k FROM seen WHERE k > 0;
INSERT INTO seen SELECT g + 40, g, 0 FROM generate_series(1, 40) g;
CREATE TEMP TABLE counted AS SELECT 0 AS n;
DO $$ DECLARE c refcursor := 'c'; k int; n int := 0; BEGIN LOOP FETCH c INTO k; EXIT WHEN NOT FOUND; n := n + 1; END LOOP; UPDATE counted SET n = counted.n + 1 WHERE false; INSERT INTO counted VALUES (n); END $$;
SELECT max(n) FROM counted;
COMMIT;
SQL
	$node->safe_psql('postgres', <<'SQL');
CREATE TABLE parent (id int PRIMARY KEY);
INSERT INTO parent SELECT generate_series(1, 100);
CREATE TABLE child (k int REFERENCES parent ON DELETE CASCADE, v int);
CREATE INDEX child_k ON child USING smart (k);
BEGIN;
INSERT INTO child SELECT g % 100 + 1, g FROM generate_series(1, 1000) g;
DELETE FROM parent WHERE id <= 50;
COMMIT;
SQL
	holds($node, 'child', 500, 'a foreign key that cascades');

	# ---- rows that go while their transaction goes on ----

	# A statement fails in an exception block, with entries that wait, in the middle of another one that has some, too.  Meanwhile
	# VACUUM takes the places of its rows, and other rows get them.
	make_table($node, 'saved');
	$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION fails_within(g int) RETURNS int LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
	IF g = 120 THEN
		BEGIN
			INSERT INTO saved SELECT 100000 + x, 1 / (50 - x) FROM generate_series(1, 100) x;
		EXCEPTION WHEN division_by_zero THEN NULL;
		END;
		PERFORM pg_advisory_lock(1);
		PERFORM pg_advisory_unlock(1);
	ELSIF g = 130 THEN
		BEGIN
			PERFORM count(*) FROM saved WHERE k > 0;
			INSERT INTO saved VALUES (200000, g);
			PERFORM count(*) FROM saved WHERE k > 0;
			RAISE 'gone';
		EXCEPTION WHEN raise_exception THEN NULL;
		END;
	END IF;
	RETURN g;
END $$;
SQL
	my $holder = $node->background_psql('postgres');
	my $writer = $node->background_psql('postgres');
	$holder->query_safe('SELECT pg_advisory_lock(1)');
	$writer->query_until(qr/begun/, "\\echo begun\nBEGIN; INSERT INTO saved SELECT g, fails_within(g) FROM generate_series(1, 200) g; COMMIT;\n");
	ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"), 'it waits under way');
	$node->safe_psql('postgres', 'VACUUM saved');
	$node->safe_psql('postgres', 'INSERT INTO saved SELECT 300000 + g, g FROM generate_series(1, 200) g');
	$holder->query_safe('SELECT pg_advisory_unlock(1)');
	$writer->query_safe('SELECT 1');
	holds($node, 'saved', 400, 'rows of an exception block');
	is($node->safe_psql('postgres', "$by_index SELECT count(*) FROM saved WHERE k BETWEEN 100000 AND 299999"), 0, 'nothing leads to rows in the place of withdrawn ones');
	$writer->quit;
	$holder->quit;

	$node->safe_psql('postgres', <<'SQL');
BEGIN;
SAVEPOINT a;
INSERT INTO saved SELECT 400000 + g, g FROM generate_series(1, 100) g;
ROLLBACK TO a;
INSERT INTO saved SELECT 500000 + g, g FROM generate_series(1, 100) g;
SAVEPOINT b;
INSERT INTO saved SELECT 600000 + g, g FROM generate_series(1, 100) g;
RELEASE b;
COMMIT;
BEGIN;
INSERT INTO saved SELECT 700000 + g, g FROM generate_series(1, 100) g;
ROLLBACK;
SQL
	holds($node, 'saved', 600, 'savepoints');

	# Rows that ON CONFLICT withdraws never wait.
	$node->safe_psql('postgres', <<'SQL');
CREATE TABLE arbiter (id int PRIMARY KEY, k int, v int);
CREATE INDEX arbiter_k ON arbiter USING smart (k);
INSERT INTO arbiter SELECT g, g, g FROM generate_series(1, 500) g ON CONFLICT DO NOTHING;
INSERT INTO arbiter SELECT g, g, g FROM generate_series(300, 900) g ON CONFLICT (id) DO UPDATE SET k = arbiter.k + 10000;
SQL
	holds($node, 'arbiter', 900, 'ON CONFLICT');

	# ---- transactions ----

	make_table($node, 'prepared');
	$node->safe_psql('postgres', <<'SQL');
BEGIN;
INSERT INTO prepared SELECT g, g FROM generate_series(1, 1000) g;
PREPARE TRANSACTION 'one';
BEGIN;
INSERT INTO prepared SELECT g + 5000, g FROM generate_series(1, 1000) g;
PREPARE TRANSACTION 'two';
COMMIT PREPARED 'one';
ROLLBACK PREPARED 'two';
SQL
	holds($node, 'prepared', 1000, 'prepared transactions');

	$node->safe_psql('postgres', <<'SQL');
BEGIN;
INSERT INTO prepared SELECT g + 10000, g FROM generate_series(1, 1000) g;
DROP INDEX prepared_k;
INSERT INTO prepared SELECT g + 20000, g FROM generate_series(1, 1000) g;
CREATE INDEX prepared_k ON prepared USING smart (k);
INSERT INTO prepared SELECT g + 30000, g FROM generate_series(1, 1000) g;
REINDEX INDEX prepared_k;
INSERT INTO prepared SELECT g + 40000, g FROM generate_series(1, 1000) g;
TRUNCATE prepared;
INSERT INTO prepared SELECT g, g FROM generate_series(1, 700) g;
ALTER TABLE prepared ALTER k TYPE bigint;
INSERT INTO prepared SELECT g, g FROM generate_series(701, 900) g;
COMMIT;
SQL
	holds($node, 'prepared', 900, 'DROP, REINDEX, TRUNCATE and ALTER in one transaction');

	# Two serializable transactions that read what the other one inserts cannot both be.
	make_table($node, 'serial');
	$node->safe_psql('postgres', 'INSERT INTO serial SELECT g, g FROM generate_series(1, 1000) g; ANALYZE serial');
	my @sessions = map { $node->background_psql('postgres', on_error_stop => 0) } (1, 2);
	for my $i (0, 1)
	{
		$sessions[$i]->query("SET enable_seqscan = off; SET enable_bitmapscan = off; BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT count(*) FROM serial WHERE k BETWEEN " . (1 + 500 * $i) . " AND " . (200 + 500 * $i));
	}
	for my $i (0, 1)
	{
		my $from = 500 * (1 - $i);
		$sessions[$i]->query("INSERT INTO serial SELECT g + $from, -1 FROM generate_series(1, 100) g");
	}
	$_->query('COMMIT') for @sessions;
	$_->quit for @sessions;
	is($node->safe_psql('postgres', 'SELECT count(*) FROM serial'), 1100, 'of two transactions that cannot be put in order one fails');
	index_is_sound($node, 'postgres', 'serial_k', 'after a serialization failure');

	# ---- errors under way ----

	make_table($node, 'broken');
	my ($status, $out, $err) = $node->psql('postgres', "SET statement_timeout = '300ms'; INSERT INTO broken SELECT abs(hashint4(g)), g FROM generate_series(1, 3000000) g");
	like($err, qr/canceling statement due to statement timeout/, 'a long statement is cancelled');
	holds($node, 'broken', 0, 'after a cancel');

	return (ways => 7000, child => 500, saved => 600, arbiter => 900, prepared => 900, audit => 2000, serial => 1100);
}

1;
