# Adds that a transaction stages reach the journal whatever happens in between: savepoints, errors in functions, commands
# that give files away, rows that come at the commit. Then the machine loses its power, the indexes are loaded from their
# journals, and hold what their tables do.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartTest;

# Each makes its table, of one column and one index at least, and leaves rows in it.
my %CASE = (
	savepoints => <<'SQL',
CREATE TABLE savepoints (id int);
CREATE INDEX savepoints_id ON savepoints USING smart (id);
BEGIN;
INSERT INTO savepoints SELECT generate_series(1, 10);
SAVEPOINT one;
INSERT INTO savepoints SELECT generate_series(11, 20);
SAVEPOINT two;
INSERT INTO savepoints SELECT generate_series(21, 30);
RELEASE two;
INSERT INTO savepoints SELECT generate_series(31, 40);
ROLLBACK TO one;
INSERT INTO savepoints SELECT generate_series(41, 50);
SAVEPOINT three;
INSERT INTO savepoints SELECT generate_series(51, 60);
RELEASE three;
SAVEPOINT four;
INSERT INTO savepoints SELECT generate_series(61, 70);
ROLLBACK TO four;
INSERT INTO savepoints SELECT generate_series(71, 80);
COMMIT;
-- What was rolled back is dead; its places go to other rows.
VACUUM savepoints;
INSERT INTO savepoints SELECT -g FROM generate_series(1, 40) g;
SQL
	exceptions => <<'SQL',
CREATE TABLE exceptions (id int);
CREATE INDEX exceptions_id ON exceptions USING smart (id);
DO $$
BEGIN
	FOR i IN 1 .. 1500 LOOP
		INSERT INTO exceptions VALUES (i);
		BEGIN
			INSERT INTO exceptions VALUES (-i), (-i);
			IF i % 3 > 0 THEN
				PERFORM 1 / 0;
			END IF;
		EXCEPTION WHEN division_by_zero THEN
			INSERT INTO exceptions VALUES (10000 + i);
		END;
	END LOOP;
END
$$;
VACUUM exceptions;
INSERT INTO exceptions SELECT 20000 + g FROM generate_series(1, 500) g;
SQL
	truncated => <<'SQL',
BEGIN;
CREATE TABLE truncated (id int);
CREATE INDEX truncated_id ON truncated USING smart (id);
INSERT INTO truncated SELECT generate_series(1, 30);
TRUNCATE truncated;
INSERT INTO truncated SELECT generate_series(101, 120);
TRUNCATE truncated;
INSERT INTO truncated SELECT generate_series(201, 210);
COMMIT;
BEGIN;
INSERT INTO truncated SELECT generate_series(301, 310);
TRUNCATE truncated;
INSERT INTO truncated SELECT generate_series(401, 410);
SAVEPOINT s;
TRUNCATE truncated;
INSERT INTO truncated SELECT generate_series(501, 510);
ROLLBACK TO s;
INSERT INTO truncated SELECT generate_series(601, 610);
COMMIT;
SQL
	moved => <<'SQL',
CREATE TABLE moved (id int, t varchar(20));
CREATE INDEX moved_id ON moved USING smart (id);
CREATE INDEX moved_t ON moved USING smart (t COLLATE "C");
BEGIN;
INSERT INTO moved SELECT g, 't' || g FROM generate_series(1, 20) g;
ALTER TABLE moved ALTER t TYPE text;
INSERT INTO moved SELECT g, 't' || g FROM generate_series(21, 40) g;
REINDEX INDEX moved_id;
INSERT INTO moved SELECT g, 't' || g FROM generate_series(41, 60) g;
ALTER TABLE moved ALTER id TYPE bigint;
INSERT INTO moved SELECT g, 't' || g FROM generate_series(61, 80) g;
CREATE INDEX moved_both ON moved USING smart (id, t COLLATE "C");
INSERT INTO moved SELECT g, 't' || g FROM generate_series(81, 100) g;
DROP INDEX moved_both;
INSERT INTO moved SELECT g, 't' || g FROM generate_series(101, 120) g;
CLUSTER moved USING moved_id;
INSERT INTO moved SELECT g, 't' || g FROM generate_series(121, 140) g;
COMMIT;
SQL
	many => <<'SQL',
CREATE TABLE many (id int);
SELECT format('CREATE INDEX many_%s ON many USING smart ((id * %s))', g, g) FROM generate_series(1, 40) g \gexec
BEGIN;
INSERT INTO many SELECT generate_series(1, 300);
SAVEPOINT s;
INSERT INTO many SELECT generate_series(1001, 1100);
ROLLBACK TO s;
INSERT INTO many SELECT generate_series(2001, 2100);
COMMIT;
SQL
	long => <<'SQL',
CREATE TABLE long (id int, t text);
CREATE INDEX long_t ON long USING smart (t COLLATE "C") INCLUDE (id);
CREATE INDEX long_id ON long USING smart (id);
BEGIN;
INSERT INTO long SELECT g, repeat(md5(g::text), 1 + g % 60) FROM generate_series(1, 400) g;
SAVEPOINT s;
INSERT INTO long SELECT g, repeat(md5(g::text), 1 + g % 60) FROM generate_series(401, 500) g;
ROLLBACK TO s;
INSERT INTO long SELECT g, repeat(md5(g::text), 1 + g % 60) FROM generate_series(501, 600) g;
COMMIT;
SQL
	deferred => <<'SQL',
CREATE TABLE deferred (id int);
CREATE INDEX deferred_id ON deferred USING smart (id);
CREATE FUNCTION one_more() RETURNS trigger LANGUAGE plpgsql AS
	'BEGIN IF NEW.id < 1000 THEN INSERT INTO deferred VALUES (NEW.id + 1000); END IF; RETURN NULL; END';
CREATE CONSTRAINT TRIGGER late AFTER INSERT ON deferred DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION one_more();
INSERT INTO deferred SELECT generate_series(1, 100);
SQL
	prepared => <<'SQL',
CREATE TABLE prepared (id int);
CREATE UNIQUE INDEX prepared_id ON prepared USING smart (id);
BEGIN;
INSERT INTO prepared SELECT generate_series(1, 100);
PREPARE TRANSACTION 'committed';
COMMIT PREPARED 'committed';
BEGIN;
INSERT INTO prepared SELECT generate_series(101, 200);
PREPARE TRANSACTION 'left';
SQL
	conflicts => <<'SQL',
CREATE TABLE conflicts (id int, n int DEFAULT 0);
CREATE UNIQUE INDEX conflicts_id ON conflicts USING smart (id);
BEGIN;
INSERT INTO conflicts SELECT g % 50 FROM generate_series(1, 200) g ON CONFLICT (id) DO NOTHING;
INSERT INTO conflicts SELECT g FROM generate_series(1, 100) g ON CONFLICT (id) DO UPDATE SET n = conflicts.n + 1;
UPDATE conflicts SET id = id + 1000 WHERE id % 2 = 0;
DELETE FROM conflicts WHERE id % 7 = 0;
COMMIT;
VACUUM conflicts;
INSERT INTO conflicts SELECT g FROM generate_series(1, 60) g ON CONFLICT DO NOTHING;
SQL
	concurrent => <<'SQL',
CREATE TABLE concurrent (id int);
INSERT INTO concurrent SELECT generate_series(1, 100);
CREATE INDEX CONCURRENTLY concurrent_id ON concurrent USING smart (id);
BEGIN;
INSERT INTO concurrent SELECT generate_series(101, 200);
COMMIT;
REINDEX INDEX CONCURRENTLY concurrent_id;
INSERT INTO concurrent SELECT generate_series(201, 300);
SQL
	procedures => <<'SQL',
CREATE TABLE procedures (id int);
CREATE INDEX procedures_id ON procedures USING smart (id);
CREATE PROCEDURE in_steps() LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. 20 LOOP
		INSERT INTO procedures VALUES (i);
		IF i % 5 = 0 THEN ROLLBACK; ELSIF i % 3 = 0 THEN COMMIT; END IF;
	END LOOP;
END
$$;
CALL in_steps();
SQL
	cursors => <<'SQL',
CREATE TABLE cursors (id int);
CREATE INDEX cursors_id ON cursors USING smart (id);
BEGIN;
INSERT INTO cursors SELECT generate_series(1, 100);
DECLARE c CURSOR FOR INSERT_FREE_QUERY;
COMMIT;
SQL
);
$CASE{cursors} =~ s/INSERT_FREE_QUERY/SELECT * FROM cursors WHERE id > 50/;

my $node = smart_node('main', 'autovacuum = off', 'max_prepared_transactions = 4', 'smart.auto_rebuild = off');

$node->safe_psql('postgres', $CASE{$_}) foreach (sort keys %CASE);

# Sessions that end without a word leave nothing behind, and take nothing along.
my $open = $node->background_psql('postgres');
$open->query_safe('BEGIN; INSERT INTO many SELECT generate_series(5001, 5100)');
my $gone = $node->background_psql('postgres');
my $pid = $gone->query_safe('SELECT pg_backend_pid()');
$gone->query_safe('BEGIN; INSERT INTO many SELECT generate_series(6001, 6100)');
$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
is_gone($node, $pid);

# VACUUM writes out what a transaction under way has staged, before it removes entries of its subtransactions.
$open->query_safe('SAVEPOINT s; INSERT INTO many SELECT generate_series(7001, 7010); ROLLBACK TO s');
$node->safe_psql('postgres', 'VACUUM many; INSERT INTO many SELECT generate_series(8001, 8100)');
$open->query_safe('COMMIT');

sub all_is_right
{
	my ($when) = @_;
	my @indexes = split "\n",
		$node->safe_psql('postgres', "SELECT c.relname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE amname = 'smart' AND relkind = 'i' ORDER BY 1");

	cmp_ok(scalar(@indexes), '>', 50, "$when: there are the indexes of all cases");
	my $wrong = '';
	foreach my $index (@indexes)
	{
		my ($code, undef, $message) = $node->psql('postgres', "SELECT smart_index_check('$index', true)");

		$wrong .= "$index: $message\n" if $code != 0;
	}
	is($wrong, '', "$when: every index has what its table has");
	return;
}

all_is_right('before');
my $offset = -s $node->logfile;
lose_power($node);
start_again($node);
$node->poll_query_until('postgres', q{SELECT bool_and(state IN ('ready', 'empty')) FROM smart_index_state}) or die 'an index stays lost';
all_is_right('after the power loss');
$node->safe_psql('postgres', q{COMMIT PREPARED 'left'});
is($node->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM prepared WHERE id > 0'), '200', 'the prepared transaction is there');
my ($code, undef, $message) = $node->psql('postgres', 'INSERT INTO prepared VALUES (150)');
like($message, qr/duplicate key/, 'and its keys are taken');
unlike(slurp_file($node->logfile, $offset), qr/rebuilding smart index/, 'nothing was read from a table');
all_is_right('in the end');
$node->stop;
done_testing();
