# An index without a tree that came with its database from a template: its journal is written anew there as anywhere else.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SmartTest;
use Test::More;

my $node = smart_node('main', 'autovacuum = off');

$node->safe_psql('postgres', 'CREATE DATABASE original');
$node->safe_psql('original', <<'SQL');
CREATE EXTENSION smart;
CREATE TABLE numbers (id int);
CREATE INDEX numbers_id ON numbers USING smart (id) WITH (resident = never);
INSERT INTO numbers SELECT generate_series(1, 1000);
SQL
$node->safe_psql('postgres', 'CREATE DATABASE copy TEMPLATE original');
my $run = $node->safe_psql('copy', q{SELECT run FROM smart_index_pages('numbers_id')});
my $offset = -s $node->logfile;
$node->safe_psql('copy', 'INSERT INTO numbers SELECT hashint4(g) FROM generate_series(1, 200000) g');
ok($node->poll_query_until('copy', "SELECT run > $run FROM smart_index_pages('numbers_id')"), 'its journal is written anew');
ok(!$node->log_contains(qr/assertion failed|terminated by signal/, $offset), 'no process has died');
index_is_sound($node, 'copy', 'numbers_id', 'the copy');
index_is_sound($node, 'original', 'numbers_id', 'the original');
$node->stop;
done_testing();
