# pgbench with foreign keys, whose keys are smart by the setting.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartTest;
use SmartTools;

my $node = smart_node('main', @ITEM_SETTINGS);

# keys(): which access methods the keys have that foreign keys refer to, and how many foreign keys there are.
sub keys_of
{
	my ($database) = @_;

	return $node->safe_psql($database, q{SELECT amname, count(*) FROM pg_constraint k JOIN pg_class c ON c.oid = conindid JOIN pg_am a ON a.oid = relam
		WHERE contype = 'f' AND conparentid = 0 GROUP BY 1 ORDER BY 1});
}

sub is_consistent
{
	my ($database, $what) = @_;
	my ($status, $out, $err) = $node->psql($database, 'SELECT smart_index_check(index, true) FROM smart_index_state');

	is($err, '', "indexes are sound: $what");
	is($node->safe_psql($database, q{SELECT count(DISTINCT s), bool_and(s <> 0) FROM (SELECT sum(abalance) s FROM pgbench_accounts UNION ALL SELECT sum(tbalance) FROM pgbench_tellers
		UNION ALL SELECT sum(bbalance) FROM pgbench_branches UNION ALL SELECT sum(delta) FROM pgbench_history) s}), '1|t', "sums agree: $what");
	is($node->safe_psql($database, q{SET enable_seqscan = off; SELECT count(*) FROM pgbench_history WHERE aid NOT IN (SELECT aid FROM pgbench_accounts WHERE aid > 0)}), '0',
		"each account is there: $what");
	return;
}

foreach my $database ('plain', 'partitioned')
{
	my @options = $database eq 'plain' ? () : ('--partitions=3', '--partition-method=hash');

	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, "CREATE EXTENSION smart; ALTER DATABASE $database SET smart.constraints = on");
	$node->command_ok([ 'pgbench', '-i', '-q', '-s', 2, '--foreign-keys', @options, $database ], "$database: tables");
	is(keys_of($database), $database eq 'plain' ? 'smart|5' : "btree|1\nsmart|4", "$database: keys");
	foreach my $protocol ('simple', 'extended', 'prepared')
	{
		$node->command_ok([ 'pgbench', '-n', '-c', 4, '-t', 200, '-M', $protocol, '--random-seed=1', $database ], "$database: $protocol");
	}
	is_consistent($database, $database);
	my ($status, $out, $err) = $node->psql($database, 'INSERT INTO pgbench_history VALUES (1, 1, 9999999, 1, now())');
	like($err, qr/violates foreign key constraint "pgbench_history_aid_fkey"/, "$database: an account that is not there");
	($status, $out, $err) = $node->psql($database, 'DELETE FROM pgbench_branches');
	like($err, qr/violates foreign key constraint "pgbench_(tellers|accounts|history)_bid_fkey"/, "$database: a branch that is referred to");
}

# Keys that come and go while others refer to them.
$node->safe_psql('plain', q{ALTER TABLE pgbench_history DROP CONSTRAINT pgbench_history_aid_fkey, ADD FOREIGN KEY (aid) REFERENCES pgbench_accounts ON UPDATE CASCADE ON DELETE CASCADE;
	CREATE INDEX history_aid ON pgbench_history USING smart (aid)});
my @scripts = map { ('-f', pgbench_script("\\set a random(1, 50)\n\\set b random(51, 100)\n$_\n")) } ('DELETE FROM pgbench_accounts WHERE aid = :a;',
	'INSERT INTO pgbench_accounts VALUES (:a, 1, 0) ON CONFLICT DO NOTHING;', 'UPDATE pgbench_accounts SET aid = aid + 1000000 WHERE aid = :b;',
	'UPDATE pgbench_accounts SET aid = aid - 1000000 WHERE aid = :b + 1000000;',
	'INSERT INTO pgbench_history SELECT 1, 1, aid, 0, now() FROM pgbench_accounts WHERE aid IN (:a, :b) ORDER BY aid FOR KEY SHARE;');
$node->command_ok([ 'pgbench', '-n', '-c', 4, '-t', 300, '--max-tries=0', '--random-seed=1', '-L', 100000, @scripts, 'plain' ], 'keys that come and go');
is($node->safe_psql('plain', 'SELECT count(*) FROM pgbench_history h LEFT JOIN pgbench_accounts a USING (aid) WHERE a.aid IS NULL'), '0', 'no reference without its key');
lose_power($node);
start_again($node);
indexes_become($node, q{'ready'}, undef, 'plain') or die 'the indexes are not loaded';
my ($status, $out, $err) = $node->psql('plain', 'SELECT smart_index_check(index, true) FROM smart_index_state');
is($err, '', 'indexes are sound: after a power loss');
$node->stop;
done_testing();
