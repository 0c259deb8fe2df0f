# Memory that is full: VACUUM makes room in it, whatever was deleted, as often as it is filled.
use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartMemnode;
use SmartTest;

my $FILL = <<'SQL';
CREATE FUNCTION fill(kind text, portion int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	failed int := 0;
	n int := 0;
BEGIN
	WHILE failed < 40 AND n < 5000000 LOOP
		BEGIN
			IF failed > 0 THEN
				portion := 20;
			END IF;
			IF kind = 'numbers' THEN
				INSERT INTO numbers SELECT g, (random() * 2000000000)::int FROM generate_series(n + 1, n + portion) g;
			ELSE
				INSERT INTO strings SELECT g, left(md5(random()::text) || md5(g::text), 10 + (random() * 50)::int) FROM generate_series(n + 1, n + portion) g;
			END IF;
			n := n + portion;
		EXCEPTION WHEN insufficient_resources THEN
			failed := failed + 1;
		END;
	END LOOP;
	RETURN n;
END
$$;
CREATE TABLE numbers (n int, k int);
CREATE INDEX numbers_k ON numbers USING smart (k) WITH (resident = always);
CREATE TABLE strings (n int, k text COLLATE "C");
CREATE INDEX strings_k ON strings USING smart (k) WITH (resident = always);
SQL

# Each pattern ends with everything deleted.
my %patterns = (
	'four fifths' => [ 'random() < 0.8', 'true' ],
	'every second row' => [ 'n % 2 = 0', 'n % 4 = 1', 'n % 8 = 3', 'true' ],
	'one of ten' => [ 'n % 10 = 0', 'n % 10 = 5', 'random() < 0.3', 'random() < 0.6', 'true' ],
	'ranges' => [ 'k BETWEEN (SELECT k FROM %1$s ORDER BY k OFFSET (SELECT count(*) / 4 FROM %1$s) LIMIT 1) AND (SELECT k FROM %1$s ORDER BY k OFFSET (SELECT count(*) / 2 FROM %1$s) LIMIT 1)', 'n % 3 = 0', 'true' ],
);

# vacuum_makes_room(NODE, TABLE, PATTERNS, NAME): for each of the patterns it is filled and emptied again.
sub vacuum_makes_room
{
	my ($node, $table, $some, $name) = @_;

	foreach my $pattern (@$some)
	{
		my $rows = $node->safe_psql('postgres', "SELECT fill('$table', 8000)");

		cmp_ok($rows, '>', 10000, "$name, $table, $pattern: it is full after $rows rows");
		foreach my $condition (@{ $patterns{$pattern} })
		{
			my $where = sprintf $condition, $table;

			$node->safe_psql('postgres', "DELETE FROM $table WHERE $where");
			foreach my $time (1 .. 2)
			{
				my ($status, undef, $err) = $node->psql('postgres', "VACUUM $table");

				ok($status == 0 && $err eq '', "$name, $table, $pattern: VACUUM $time where $where") or diag($err);
			}
		}
		index_is_sound($node, 'postgres', "${table}_k", "$name, $pattern, all removed");
		is($node->safe_psql('postgres', "SELECT count(*) FROM $table"), 0, "$name, $table, $pattern: nothing is left");
	}
	return;
}

# vacuum_beside_inserts(NODE, TABLE, VALUE, NAME): others take what room there is.
sub vacuum_beside_inserts
{
	my ($node, $table, $value, $name) = @_;
	my $script = pgbench_script(<<"SQL");
DO 'BEGIN
	INSERT INTO $table SELECT g, $value FROM generate_series(1, 20) g;
EXCEPTION WHEN insufficient_resources THEN
	NULL;
END';
SQL
	my $failed = 0;
	my $rounds = 0;
	my $bench;

	$node->safe_psql('postgres', "SELECT fill('$table', 8000)");
	$bench = IPC::Run::start([ 'pgbench', '-n', '-c', 3, '-T', 8, '-f', $script, '-d', $node->connstr('postgres') ], '<', \undef, '>', '/dev/null', '2>', \my $errors);
	while ($bench->pumpable && $rounds < 100)
	{
		my ($status, undef, $err) = $node->psql('postgres', "DELETE FROM $table WHERE random() < 0.1; VACUUM $table");

		$failed++ if $status != 0 || $err ne '';
		diag($err) if $err ne '';
		$rounds++;
		$bench->pump_nb;
	}
	ok($bench->finish, "$name, $table: inserts go on") or diag($errors);
	is($failed, 0, "$name, $table: none of $rounds VACUUMs beside inserts failed");
	index_is_sound($node, 'postgres', "${table}_k", "$name, beside inserts");
	$node->safe_psql('postgres', "DELETE FROM $table; VACUUM $table");
	return;
}

# A region's greatest size, and a memory node's; which patterns.  LONG=1: more of them, and a larger region.
my $memory = SmartMemnode->new('one', '--size=32M');
my @some = $ENV{LONG} ? sort keys %patterns : ('four fifths', 'one of ten');

foreach my $place (
	[ '16 MB', "smart.embedded_max_size = '16MB'", numbers => \@some, strings => [ $some[0] ] ],
	$ENV{LONG} ? [ '64 MB', "smart.embedded_max_size = '64MB'", numbers => ['four fifths'] ] : (),
	[ 'memory node', 'smart.memory_nodes = ' . addresses($memory), numbers => ['four fifths'] ])
{
	my ($name, $setting, %tables) = @$place;
	my $node = smart_node($name =~ tr/ //dr, $setting, 'autovacuum = off', 'fsync = off', 'smart.auto_rebuild = off');

	$node->safe_psql('postgres', $FILL);
	vacuum_makes_room($node, $_, $tables{$_}, $name) foreach (sort keys %tables);
	vacuum_beside_inserts($node, 'numbers', '(random() * 2000000000)::int', $name) if $name eq '16 MB';
	is($node->safe_psql('postgres', q{SELECT count(*) FROM smart_index_state WHERE state NOT IN ('ready', 'empty')}), 0, "$name: the indexes can be used");
	$node->stop;
	log_is_quiet($node);
}
done_testing();
