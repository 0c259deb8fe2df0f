# Builds that fail give their memory back; after a crash of the server VACUUM goes on and unlogged tables are usable.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use SmartTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = smart_node('main', 'autovacuum = off', 'smart.auto_rebuild = off', 'smart.embedded_max_size = 64MB');

# One row breaks uniqueness, in the middle of the order: by then half of the tree has been loaded. A build holds about
# 5 MB, so that a dozen that kept their memory would fill the region.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE failing (id bigint, word text);
INSERT INTO failing SELECT (i * 7919::bigint) % 200003, 'w' || i FROM generate_series(1, 200000) i;
INSERT INTO failing SELECT * FROM failing WHERE id = 190000;
SQL

my %wrong;
for my $attempt (1 .. 30)
{
	my ($status, $out, $err) = $node->psql('postgres', 'CREATE UNIQUE INDEX failing_id ON failing USING smart (id)');

	$wrong{$err}++ if $status == 0 || $err !~ /Key \(id\)=\(190000\) is duplicated/;
}
is(join("\n", %wrong), '', 'thirty builds found the duplicate, none ran out of memory');

%wrong = ();
for my $attempt (1 .. 30)
{
	my $timeout = 20 + $attempt * 5;
	my ($status, $out, $err) = $node->psql('postgres',
		"SET statement_timeout = '${timeout}ms'; BEGIN; CREATE INDEX failing_word ON failing USING smart (word COLLATE \"C\"); ROLLBACK");

	$wrong{$err}++ if $status != 0 && $err !~ /canceling statement due to statement timeout/;
}
is(join("\n", %wrong), '', 'nor did thirty builds that were cancelled or rolled back');

# A build that is too large says so, and what there is goes on.
$node->safe_psql('postgres', 'CREATE TABLE small AS SELECT generate_series(1, 1000) AS id; CREATE INDEX small_id ON small USING smart (id) WITH (logged = off)');
my ($status, $out, $err) = $node->psql('postgres', <<'SQL');
\set VERBOSITY verbose
CREATE TABLE large AS SELECT md5(i::text) || md5((-i)::text) || md5((i + 0.5)::text) AS word FROM generate_series(1, 1000000) i;
CREATE INDEX large_word ON large USING smart (word COLLATE "C") WITH (resident = always);
SQL
like($err, qr/53[12]00/, 'a build that is larger than the region fails with its code');
$node->safe_psql('postgres', 'INSERT INTO small SELECT generate_series(1001, 2000); DROP TABLE large');
index_is_sound($node, 'postgres', 'small_id', 'after a build that failed');

# A crash, and nothing shows whose the region is: it is empty afterwards.
$node->safe_psql('postgres', <<'SQL');
CREATE UNLOGGED TABLE forgetful (id int);
CREATE INDEX forgetful_id ON forgetful USING smart (id);
INSERT INTO forgetful SELECT generate_series(1, 1000);
DELETE FROM small WHERE id % 2 = 0;
SQL
$node->stop('immediate');
unlink $node->data_dir . '/smart/pgsql_tmp_run' or die $!;
$node->start;
($status, $out, $err) = $node->psql('postgres', 'VACUUM (INDEX_CLEANUP on) small');
is($status, 0, 'VACUUM of a table with an unusable index');
like($err, qr/WARNING:  skipping index "small_id".*HINT:  .*REINDEX/s, 'warns of it');
is($node->safe_psql('postgres', 'SELECT count(*) FROM small'), '1000', 'and leaves the rows that are alive');
$node->safe_psql('postgres', 'INSERT INTO small VALUES (1); REINDEX INDEX small_id; INSERT INTO small VALUES (1)');
index_is_sound($node, 'postgres', 'small_id', 'rebuilt');

is($node->safe_psql('postgres', 'SELECT count(*) FROM forgetful'), '0', 'an unlogged table is empty');
$node->safe_psql('postgres', 'INSERT INTO forgetful SELECT generate_series(1, 500)');
same_answers($node, 'postgres', 'SELECT id FROM forgetful WHERE id BETWEEN 100 AND 110 ORDER BY id', 'and its index works');
index_is_sound($node, 'postgres', 'forgetful_id', 'after the crash');
log_is_quiet($node);
done_testing();
