# pg_partman: partitions get the smart indexes of their parent and of its template, and rows are moved into them and back out.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartTest;
use SmartTools;

needs(extension('pg_partman'));

my $node = smart_node('main', @ITEM_SETTINGS);

sub sql
{
	my ($statements) = @_;

	return $node->safe_psql('postgres', "SET client_min_messages = error; $statements");
}

# methods(TABLE, COLUMNS): the access methods of the indexes on these columns, of all its partitions but the default one.
sub methods
{
	my ($table, $columns) = @_;

	return sql("SELECT string_agg(DISTINCT amname, ' ') FROM pg_inherits JOIN pg_index ON indrelid = inhrelid JOIN pg_class c ON c.oid = indexrelid JOIN pg_am a ON a.oid = relam
		WHERE inhparent = '$table'::regclass AND inhrelid <> '${table}_default'::regclass AND pg_get_indexdef(indexrelid) LIKE '%($columns)%'");
}

# all_are_sound(COUNT, WHAT): so many smart indexes, each of which has what its table has.
sub all_are_sound
{
	my ($least, $what) = @_;
	my ($status, $count, $err) = $node->psql('postgres', 'SELECT count(smart_index_check(index, true)::text) FROM smart_index_state');

	is($err, '', "indexes are sound: $what");
	return cmp_ok($count || 0, '>=', $least, "there are $least indexes or more: $what");
}

sql('CREATE SCHEMA partman; CREATE EXTENSION pg_partman SCHEMA partman');
sql(q{CREATE TABLE readings (id bigint NOT NULL, sensor int, v text) PARTITION BY RANGE (id);
	CREATE INDEX readings_sensor ON readings USING smart (sensor, id DESC) INCLUDE (v);
	CREATE TABLE readings_template (LIKE readings);
	ALTER TABLE readings_template ADD PRIMARY KEY (id) WITH (smart = on);
	CREATE UNIQUE INDEX ON readings_template USING smart (v);
	CREATE INDEX ON readings_template USING smart (sensor) WITH (resident = never);
	SELECT partman.create_parent('public.readings', 'id', 'native', '1000', p_template_table := 'public.readings_template', p_premake := 2)});
is(methods('readings', 'sensor, id DESC'), 'smart', 'the index of the parent');
is(methods('readings', 'v'), 'smart', 'a unique index of the template');
is(methods('readings', 'sensor'), 'smart', 'another index of the template');
is(methods('readings', 'id'), 'btree', 'the primary key of the template: pg_partman does not hand on its option');

# The primary key, too, where the setting is on.
sql(q{ALTER DATABASE postgres SET smart.constraints = on});
sql(q{CREATE TABLE keyed (id bigint NOT NULL, v int) PARTITION BY RANGE (id);
	CREATE TABLE keyed_template (LIKE keyed);
	ALTER TABLE keyed_template ADD PRIMARY KEY (id);
	SELECT partman.create_parent('public.keyed', 'id', 'native', '1000', p_template_table := 'public.keyed_template', p_premake := 2)});
is(methods('keyed', 'id'), 'smart', 'primary keys, by the setting');
sql(q{CREATE TABLE whole (id bigint NOT NULL, v int, PRIMARY KEY (id)) PARTITION BY RANGE (id);
	SELECT partman.create_parent('public.whole', 'id', 'native', '1000', p_premake := 2)});
is(methods('whole', 'id'), 'btree', 'not a primary key of the parent');

# Maintenance, rows in the default partition that are moved to their own, and an old partition that goes.
sql(q{INSERT INTO readings SELECT g, g % 10, 'v' || g FROM generate_series(0, 2500) g; SELECT partman.run_maintenance('public.readings');
	INSERT INTO readings SELECT g, g % 10, 'v' || g FROM generate_series(8000, 8500) g});
is(sql('SELECT count(*) FROM readings_default'), '501', 'rows without a partition');
sql('CALL partman.partition_data_proc($$public.readings$$)');
is(sql('SELECT count(*) FROM readings_default'), '0', 'they have one now');
is(sql('SET enable_seqscan = off; SELECT count(*), sum(id) FROM readings WHERE sensor = 3'), sql('SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off;
	SELECT count(*), sum(id) FROM readings WHERE sensor = 3'), 'queries of the parent');
all_are_sound(20, 'partitioned');
sql(q{UPDATE partman.part_config SET retention = '2000', retention_keep_table = false WHERE parent_table = 'public.readings'; SELECT partman.run_maintenance('public.readings')});
is(sql('SELECT min(id) >= 6000 FROM readings'), 't', 'old partitions go');
is(methods('readings', 'v'), 'smart', 'the new ones');

is(sql(q{INSERT INTO keyed VALUES (2, 1), (1002, 1) ON CONFLICT DO NOTHING; WITH again AS (
	INSERT INTO keyed VALUES (2, 2), (1002, 2), (3, 2) ON CONFLICT DO NOTHING RETURNING id) SELECT string_agg(id::text, ' ') FROM again}), '3', 'ON CONFLICT');
my ($status, $out, $err) = $node->psql('postgres', q{INSERT INTO keyed VALUES (1, 1), (1, 2)});
like($err, qr/duplicate key value violates unique constraint "keyed_p0_pkey"/, 'a partition has each key once');

sql(q{CREATE TABLE target (LIKE readings); CREATE INDEX target_sensor ON target USING smart (sensor);
	SELECT partman.undo_partition('public.readings', p_target_table := 'public.target', p_batch_count := 100, p_keep_table := false)});
is(sql('SET enable_seqscan = off; SELECT count(*) FROM target WHERE sensor >= 0'), '501', 'partitions are put together again');
all_are_sound(5, 'put together again');
$node->stop;
log_is_quiet($node);
done_testing();
