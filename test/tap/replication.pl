# Logical replication: rows are found by smart indexes on both sides, as the replica identity or primary key of the publisher
# and of the subscriber. Version 17 cannot do the latter, which is known by its messages.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use SmartTest;
use PostgreSQL::Test::Utils;
use Test::More;

my @settings = ('wal_level = logical', 'max_wal_senders = 4', 'max_replication_slots = 4', 'autovacuum = off', 'wal_retrieve_retry_interval = 100ms');
my $publisher = smart_node('publisher', @settings);
my $subscriber = smart_node('subscriber', @settings);
my $version = $subscriber->safe_psql('postgres', "SELECT current_setting('server_version_num')::int / 10000");

for my $node ($publisher, $subscriber)
{
	$node->safe_psql('postgres', <<'SQL');
CREATE TABLE sent (id int NOT NULL, word text COLLATE "C" NOT NULL, n int);
CREATE UNIQUE INDEX sent_id ON sent USING smart (id, word);
CREATE INDEX sent_n ON sent USING smart (n);
CREATE TABLE sent_whole (id int, n int);
CREATE INDEX sent_whole_id ON sent_whole USING smart (id);
ALTER TABLE sent_whole REPLICA IDENTITY FULL;
CREATE TABLE sent_keyed (id int PRIMARY KEY, n int);
CREATE INDEX sent_keyed_n ON sent_keyed USING smart (n);
CREATE TABLE sent_smart (id int PRIMARY KEY WITH (smart = on), n int);
CREATE TABLE sent_refers (id int REFERENCES sent_smart, n int, UNIQUE (id, n) WITH (smart = on) DEFERRABLE);
ALTER TABLE sent_refers REPLICA IDENTITY FULL;
SQL
}
$publisher->safe_psql('postgres', <<'SQL');
ALTER TABLE sent REPLICA IDENTITY USING INDEX sent_id;
INSERT INTO sent SELECT i, 'w' || i, i FROM generate_series(1, 1000) i;
INSERT INTO sent_whole SELECT i, i FROM generate_series(1, 10) i;
INSERT INTO sent_keyed SELECT i, i FROM generate_series(1, 1000) i;
INSERT INTO sent_smart SELECT i, i FROM generate_series(1, 1000) i;
INSERT INTO sent_refers SELECT i, i FROM generate_series(1, 100) i;
CREATE PUBLICATION all_sent FOR ALL TABLES;
SQL
$subscriber->safe_psql('postgres', 'CREATE UNIQUE INDEX sent_btree ON sent (id, word)') if $version == 17;
$subscriber->safe_psql('postgres', 'ALTER TABLE sent REPLICA IDENTITY USING INDEX ' . ($version == 17 ? 'sent_btree' : 'sent_id'));
my (undef, undef, $told) = $subscriber->psql('postgres', sprintf(q{CREATE SUBSCRIPTION takes CONNECTION '%s dbname=postgres' PUBLICATION all_sent},
	$publisher->connstr));
my $warning = qr/WARNING:  a subscriber cannot find rows by replica identity "sent_smart_pkey"/;
if ($version == 17)
{
	# Its row is found by another index.
	like($told, $warning, 'who subscribes is told');
	$subscriber->safe_psql('postgres', 'CREATE UNIQUE INDEX sent_smart_btree ON sent_smart (id); ALTER TABLE sent_smart REPLICA IDENTITY USING INDEX sent_smart_btree');
}
else
{
	unlike($told, qr/WARNING/, 'nothing to tell who subscribes');
}
$subscriber->wait_for_subscription_sync($publisher, 'takes');
is($subscriber->safe_psql('postgres', 'SELECT count(*) FROM sent'), '1000', 'the first copy');

# caught_up(NAME): the subscriber has what the publisher has, and its indexes, too.
sub caught_up
{
	my ($name) = @_;

	$publisher->wait_for_catchup('takes');
	for my $table ('sent', 'sent_whole', 'sent_keyed', 'sent_smart', 'sent_refers')
	{
		my $query = "SELECT string_agg(t::text, ',' ORDER BY id) FROM $table t";

		is($subscriber->safe_psql('postgres', $query), $publisher->safe_psql('postgres', $query), "$table: $name");
	}
	index_is_sound($subscriber, 'postgres', $_, $name) for ('sent_id', 'sent_n', 'sent_whole_id', 'sent_keyed_n', 'sent_smart_pkey', 'sent_refers_id_n_key');
	return;
}

$publisher->safe_psql('postgres', <<'SQL');
UPDATE sent SET n = -n WHERE id <= 100;
UPDATE sent SET id = id + 5000, word = 'moved' WHERE id BETWEEN 101 AND 200;
DELETE FROM sent WHERE id BETWEEN 201 AND 300;
UPDATE sent_whole SET id = id + 100 WHERE id <= 3;
DELETE FROM sent_whole WHERE id = 4;
UPDATE sent_keyed SET n = n + 1 WHERE id <= 500;
UPDATE sent_smart SET n = n + 1 WHERE id <= 500;
UPDATE sent_smart SET id = id + 5000 WHERE id BETWEEN 501 AND 600;
DELETE FROM sent_smart WHERE id BETWEEN 601 AND 700;
UPDATE sent_refers SET n = n + 1, id = id + 10 WHERE id > 50;
DELETE FROM sent_refers WHERE id < 10;
DELETE FROM sent_keyed WHERE id > 900;
BEGIN;
INSERT INTO sent VALUES (7000, 'undone', 0);
ROLLBACK;
INSERT INTO sent VALUES (7001, 'late', NULL);
SQL
caught_up('updates and deletes');
$publisher->safe_psql('postgres', 'TRUNCATE sent; INSERT INTO sent SELECT i, repeat(chr(65 + i % 26), i % 90), i % 3 FROM generate_series(1, 500) i');
caught_up('after TRUNCATE');

# A row that is in the way stops the apply worker; without it, it goes on.
my $log_end = -s $subscriber->logfile;
$subscriber->safe_psql('postgres', q{INSERT INTO sent VALUES (8000, 'in the way', 0)});
$publisher->safe_psql('postgres', q{INSERT INTO sent VALUES (8000, 'in the way', 1)});
ok($subscriber->poll_query_until('postgres', q{SELECT apply_error_count > 0 FROM pg_stat_subscription_stats}), 'a duplicate stops the subscriber');
ok($subscriber->wait_for_log(qr/unique (?:constraint|index) "sent_id"/, $log_end), 'which says why');
$subscriber->safe_psql('postgres', 'DELETE FROM sent WHERE id = 8000');
caught_up('after a conflict');

if ($version == 17)
{
	my (undef, undef, $err) = $subscriber->psql('postgres', 'ALTER TABLE sent REPLICA IDENTITY USING INDEX sent_id');

	like($err, qr/WARNING:  a subscriber cannot find rows by replica identity "sent_id"/, 'a warning comes before');
	my $offset = -s $subscriber->logfile;
	$publisher->safe_psql('postgres', 'DELETE FROM sent WHERE id = 1');
	ok($subscriber->wait_for_log(qr/ERROR: .*missing operator/, $offset), 'what the warning is about');
	(undef, undef, $err) = $subscriber->psql('postgres', 'ALTER TABLE sent_smart REPLICA IDENTITY DEFAULT, DROP CONSTRAINT sent_smart_pkey CASCADE, ADD PRIMARY KEY (id) WITH (smart = on)');
	like($err, $warning, 'or of a primary key');
	(undef, undef, $err) = $subscriber->psql('postgres', 'ALTER SUBSCRIPTION takes REFRESH PUBLICATION');
	like($err, $warning, 'once more');
}
log_is_quiet($_) for ($publisher, $subscriber);
done_testing();
