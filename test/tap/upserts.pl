# INSERT ... ON CONFLICT of many sessions where pages answer: each looks for the key first, in what others have staged, too, by the
# hash of its columns (src/README, J2). Values that are equal and do not look alike are one key.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SmartTest;
use Test::More;

my $CLIENTS = 6;
my $EACH = 150;
my $node = smart_node('main', 'autovacuum = off', 'synchronous_commit = off');

# Name: columns, index, and as many values as there are keys, some of them in two ways.
my %table = (
	number => [ 'k int', '(k)', '(:i % 40)' ],
	words => [ 'k text COLLATE alike', '(k)', q{((CASE WHEN :c % 2 = 0 THEN 'key ' ELSE 'KEY ' END) || :i % 40)} ],
	exact => [ 'k numeric', '(k)', '(:i % 40 + CASE WHEN :c % 2 = 0 THEN 0.5 ELSE 0.500 END)' ],
	floating => [ 'k float8', '(k)', q{((CASE WHEN :i % 40 = 0 AND :c % 2 = 0 THEN '-0' ELSE (:i % 40)::text END)::float8)} ],
	padded => [ 'k char(8)', '(k)', q{((:i % 40) || CASE WHEN :c % 2 = 0 THEN ' ' ELSE '' END)} ],
	two => [ 'k int, l text', '(k DESC, l)', q{(:i % 8), ('l' || :i % 5)} ],
	lacking => [ 'k int, l int', '(k NULLS FIRST, l) NULLS NOT DISTINCT', '(nullif(:i % 8, 0)), (nullif(:i % 5, 0))' ],
	lower => [ 'k text', '(lower(k))', q{((CASE WHEN :c % 2 = 0 THEN 'key ' ELSE 'KEY ' END) || :i % 40)} ],
	covering => [ 'k int, l int', '(k) INCLUDE (l)', '(:i % 40), :c' ]);

# ICU needs an encoding that it knows, which SQL_ASCII is not.
$node->safe_psql('postgres', q{CREATE DATABASE unicode TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C'});
$node->safe_psql('unicode', q{CREATE EXTENSION smart; CREATE COLLATION alike (provider = icu, locale = 'und-u-ks-level2', deterministic = false)});
foreach my $name (sort keys %table)
{
	my ($columns, $index, $values) = @{ $table{$name} };
	my $names = join(', ', map { (split ' ')[0] } split(/, /, $columns));
	my $expected = $CLIENTS * $EACH;
	my $script = pgbench_script("\\set i random(1, 1000000)\n\\set c :client_id\n"
		. "INSERT INTO $name AS t ($names, n) VALUES ($values, 1) ON CONFLICT "
		. ($name eq 'lower' ? '(lower(k))' : $name eq 'two' || $name eq 'lacking' ? '(k, l)' : '(k)') . " DO UPDATE SET n = t.n + 1;\n");

	$node->safe_psql('unicode', "CREATE TABLE $name ($columns, n int) WITH (fillfactor = 50); CREATE UNIQUE INDEX ${name}_key ON $name USING smart $index WITH (resident = never)");
	$node->command_ok([ 'pgbench', '-n', '-c', $CLIENTS, '-j', 2, '-t', $EACH, '-f', $script, '-h', $node->host, '-p', $node->port, 'unicode' ], "$name: nothing fails");
	is($node->safe_psql('unicode', "SELECT sum(n) FROM $name"), $expected, "$name: every one counts once");
	is($node->safe_psql('unicode', "SELECT count(*) <= 40, (SELECT state FROM smart_index_state WHERE index = '${name}_key'::regclass) FROM $name"), 't|paged', "$name: no key is there twice");
	index_is_sound($node, 'unicode', "${name}_key", $name);
}

# What has not been committed is waited for, staged by another session or not.
my $first = $node->background_psql('unicode');
my $second = $node->background_psql('unicode', on_error_stop => 0);
$first->query_safe('BEGIN; INSERT INTO number VALUES (1001, 1)');
$second->query_until(qr/begins/, "\\echo begins\nINSERT INTO number VALUES (1001, 1) ON CONFLICT (k) DO NOTHING;\n\\echo ends\n");
ok($node->poll_query_until('unicode', "SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'INSERT INTO number%DO NOTHING%' AND wait_event_type = 'Lock'"), 'it waits for the first one');
$first->query_safe('ROLLBACK');
$second->query_until(qr/ends/, '');
$_->quit foreach ($first, $second);
is($second->{stderr}, '', 'no error');
is($node->safe_psql('unicode', 'SELECT count(*) FROM number WHERE k = 1001'), '1', 'the first one was rolled back: the second one inserts');

# It is found before a row is put into the table in vain: the new version has the next place.
$node->safe_psql('unicode', 'CREATE TABLE once (k int, n int); CREATE UNIQUE INDEX once_k ON once USING smart (k) WITH (resident = never); INSERT INTO once VALUES (1, 1)');
$first = $node->background_psql('unicode');
$second = $node->background_psql('unicode');
$first->query_safe('BEGIN; INSERT INTO once VALUES (2, 1)');
$second->query_until(qr/begins/, "\\echo begins\nINSERT INTO once AS t VALUES (2, 1) ON CONFLICT (k) DO UPDATE SET n = t.n + 1 RETURNING ctid;\n\\echo ends\n");
ok($node->poll_query_until('unicode', "SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'INSERT INTO once%RETURNING%' AND wait_event_type = 'Lock'"), 'it waits again');
$first->query_safe('COMMIT');
like($second->query_until(qr/ends/, ''), qr/^\(0,3\)$/m, 'no place was used in vain');
$_->quit foreach ($first, $second);
log_is_quiet($node);
done_testing();
