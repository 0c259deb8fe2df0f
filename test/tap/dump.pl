# pg_dump and restore bring smart indexes back, with what they were made of: as a script, as an archive with several
# jobs, and all databases at once.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use SmartTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = smart_node('main', 'autovacuum = off');
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE kept (id int NOT NULL, word text, at timestamptz, EXCLUDE USING smart (id WITH =) DEFERRABLE INITIALLY DEFERRED);
INSERT INTO kept SELECT i, md5(i::text), timestamptz '2020-01-01 00:00+00' + i * interval '1 minute' FROM generate_series(1, 5000) i;
CREATE UNIQUE INDEX kept_unique ON kept USING smart (id) INCLUDE (at) WITH (leaf_size = 1024, fillfactor = 70);
CREATE INDEX kept_word ON kept USING smart (lower(word) COLLATE "C" DESC NULLS LAST, at) WHERE id > 10;
CREATE INDEX kept_pattern ON kept USING smart (word text_pattern_ops);
COMMENT ON INDEX kept_word IS 'described';
ALTER TABLE kept REPLICA IDENTITY USING INDEX kept_unique;
ALTER TABLE kept CLUSTER ON kept_unique;
CREATE MATERIALIZED VIEW kept_view AS SELECT id % 10 AS digit, count(*) AS rows FROM kept GROUP BY 1;
CREATE UNIQUE INDEX kept_view_digit ON kept_view USING smart (digit);
CREATE TABLE kept_parts (id int, n int) PARTITION BY RANGE (id);
CREATE TABLE kept_low PARTITION OF kept_parts FOR VALUES FROM (0) TO (100);
CREATE TABLE kept_high PARTITION OF kept_parts FOR VALUES FROM (100) TO (200);
INSERT INTO kept_parts SELECT i, -i FROM generate_series(0, 199) i;
CREATE INDEX kept_parts_n ON kept_parts USING smart (n, id);
CREATE EXTENSION smart_citext CASCADE;
CREATE TABLE kept_names AS SELECT ('Name ' || i)::citext AS name FROM generate_series(1, 100) i;
CREATE UNIQUE INDEX kept_names_name ON kept_names USING smart (name);
CREATE TABLE kept_keyed (id int, word text COLLATE "C", at int, CONSTRAINT kept_keyed_pkey PRIMARY KEY (id) INCLUDE (at) WITH (smart = on, fillfactor = 80),
	CONSTRAINT kept_keyed_late UNIQUE NULLS NOT DISTINCT (word) WITH (smart = on) DEFERRABLE INITIALLY DEFERRED, CONSTRAINT kept_keyed_btree UNIQUE (at));
INSERT INTO kept_keyed SELECT i, 'w' || i, i FROM generate_series(1, 1000) i;
ALTER TABLE kept_keyed CLUSTER ON kept_keyed_pkey;
COMMENT ON CONSTRAINT kept_keyed_pkey ON kept_keyed IS 'described as a constraint';
CREATE UNIQUE INDEX kept_keyed_taken ON kept_keyed USING smart (at, id);
ALTER TABLE kept_keyed ADD CONSTRAINT kept_keyed_own UNIQUE USING INDEX kept_keyed_taken;
CREATE TABLE kept_refers (keyed int REFERENCES kept_keyed ON DELETE CASCADE);
INSERT INTO kept_refers SELECT generate_series(1, 1000);
CREATE UNLOGGED TABLE kept_unlogged AS SELECT generate_series(1, 10) AS id;
CREATE INDEX kept_unlogged_id ON kept_unlogged USING smart (id);
SQL

# What a catalog says about all smart indexes, and how many rows each holds.
my $DEFINITIONS = <<'SQL';
SELECT pg_get_indexdef(i.indexrelid), i.indisvalid, i.indisreplident, i.indisclustered, obj_description(i.indexrelid, 'pg_class'),
	(SELECT concat(pg_get_constraintdef(o.oid), obj_description(o.oid, 'pg_constraint')) FROM pg_constraint o WHERE o.conindid = i.indexrelid AND o.contype IN ('p', 'u', 'x')),
	CASE WHEN c.relkind = 'i' THEN (smart_index_stats(c.oid)).entries END
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
WHERE a.amname = 'smart' ORDER BY 1
SQL
my $definitions = $node->safe_psql('postgres', $DEFINITIONS);
like($definitions, qr/kept_parts_n.*kept_unlogged_id/s, 'there are indexes to keep');
like($definitions, qr/UNIQUE INDEX $_ /, "$_ is among them") for ('kept_keyed_late', 'kept_keyed_own', 'kept_keyed_pkey');

# is_restored(DATABASE, NAME)
sub is_restored
{
	my ($database, $name) = @_;

	is($node->safe_psql($database, $DEFINITIONS), $definitions, "$name: the same indexes");
	index_is_sound($node, $database, $_, $name)
		for ('kept_keyed_pkey', 'kept_keyed_late', 'kept_keyed_own', 'kept_unique', 'kept_word', 'kept_pattern', 'kept_id_excl', 'kept_view_digit', 'kept_low_n_id_idx', 'kept_high_n_id_idx', 'kept_unlogged_id', 'kept_names_name');
	same_answers($node, $database, 'SELECT id, at FROM kept WHERE id BETWEEN 100 AND 120 ORDER BY id', $name);
	my (undef, undef, $err) = $node->psql($database, 'INSERT INTO kept_refers VALUES (5000)');
	like($err, qr/violates foreign key constraint "kept_refers_keyed_fkey"/, "$name: the foreign key is there");
	return;
}

my $directory = PostgreSQL::Test::Utils::tempdir();
$node->command_ok(['pg_dump', '-f', "$directory/script.sql", 'postgres'], 'pg_dump as a script');
$node->safe_psql('postgres', 'CREATE DATABASE by_script');
$node->command_ok(['psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', "$directory/script.sql", 'by_script'], 'psql runs it');
is_restored('by_script', 'script');

$node->command_ok(['pg_dump', '-F', 'd', '-j', '2', '-f', "$directory/archive", 'postgres'], 'pg_dump as an archive');
$node->safe_psql('postgres', 'CREATE DATABASE by_archive');
$node->command_ok(['pg_restore', '-e', '-j', '3', '-d', 'by_archive', "$directory/archive"], 'pg_restore with several jobs');
is_restored('by_archive', 'archive');
$node->command_ok(['pg_restore', '-e', '--clean', '-d', 'by_archive', "$directory/archive"], 'pg_restore over what is there');
is_restored('by_archive', 'archive once more');

# A dump of what was restored is the same script.
$node->command_ok(['pg_dump', '-f', "$directory/again.sql", 'by_script'], 'pg_dump of the copy');
my ($first, $again) = map { my $text = slurp_file("$directory/$_"); $text =~ s/^\\(?:un)?restrict .*\n//mg; $text } ('script.sql', 'again.sql');
is($again, $first, 'a copy of the copy is the same script');

# With the setting turned on, the constraints of a dump that have no option become smart, too, and no other index does.
{
	local $ENV{PGOPTIONS} = '-c smart.constraints=on';

	$node->safe_psql('postgres', 'CREATE DATABASE by_setting');
	$node->command_ok(['pg_restore', '-e', '-j', '2', '-d', 'by_setting', "$directory/archive"], 'pg_restore with smart.constraints');
}
is($node->safe_psql('by_setting', "SELECT string_agg(c.relname, ' ' ORDER BY c.relname) FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE amname = 'btree' AND relnamespace = 'public'::regnamespace"),
	'', 'no constraint has a btree');
index_is_sound($node, 'by_setting', 'kept_keyed_btree', 'made smart by the setting');

# A server that has not loaded the library refuses what it cannot do, and nothing is a btree in silence.
my $plain = PostgreSQL::Test::Cluster->new('plain');
$plain->init;
$plain->start;
$plain->safe_psql('postgres', 'CREATE TABLE kept_keyed (id int NOT NULL)');
my (undef, undef, $refused) = $plain->psql('postgres', q{ALTER TABLE ONLY kept_keyed ADD CONSTRAINT kept_keyed_pkey PRIMARY KEY (id) WITH (smart='on')});
like($refused, qr/ERROR:  unrecognized parameter "smart"/, 'a server without the library');
is($plain->safe_psql('postgres', 'SELECT count(*) FROM pg_constraint WHERE conindid <> 0 AND connamespace = 2200'), '0', 'and there is no constraint');
$plain->stop;

# Smart's own objects come with CREATE EXTENSION alone.
unlike($first, qr/CREATE (?:ACCESS METHOD|OPERATOR|FUNCTION|VIEW)/, 'nothing of the extension is in the dump');
log_is_quiet($node);
done_testing();
