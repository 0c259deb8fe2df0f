# pg_upgrade: the new cluster's smart indexes are loaded from their journals by themselves; the old one is as it was. Both are of
# the version at hand.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use SmartTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $old = smart_node('old', 'autovacuum = off');
$old->safe_psql('postgres', <<'SQL');
CREATE TABLE kept (id int, word text);
INSERT INTO kept SELECT i, md5(i::text) FROM generate_series(1, 4000) i;
CREATE UNIQUE INDEX kept_id ON kept USING smart (id);
CREATE TABLE keyed (id int, CONSTRAINT keyed_id PRIMARY KEY (id) WITH (smart = on));
INSERT INTO keyed SELECT generate_series(1, 1000);
CREATE TABLE refers (id int REFERENCES keyed);
INSERT INTO refers SELECT generate_series(1, 1000);
CREATE TABLE keyed_btree (id int PRIMARY KEY);
INSERT INTO keyed_btree SELECT generate_series(1, 1000);
CREATE INDEX kept_word ON kept USING smart (word COLLATE "C") WITH (leaf_size = 1024);
INSERT INTO kept SELECT i, md5(i::text) FROM generate_series(4001, 5000) i;
CREATE TABLE empty (id int);
CREATE INDEX empty_id ON empty USING smart (id);
SQL
my $definitions = 'SELECT pg_get_indexdef(c.oid) FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE amname = \'smart\' ORDER BY 1';
my $before = $old->safe_psql('postgres', $definitions);
$old->stop;

my $bin = $old->config_data('--bindir');
chdir $PostgreSQL::Test::Utils::tmp_check;

# upgrade NAME OPTION...: a new cluster that has what the old one had; its indexes are its own.
sub upgrade
{
	my ($name, @options) = @_;
	my $new = PostgreSQL::Test::Cluster->new($name);
	$new->init;
	$new->append_conf('postgresql.conf', "shared_preload_libraries = 'smart'\nautovacuum = off\nsmart.constraints = on\n");
	$new->command_ok(['pg_upgrade', '--no-sync', @options, '--old-datadir', $old->data_dir, '--new-datadir', $new->data_dir,
			'--old-bindir', $bin, '--new-bindir', $bin, '--socketdir', $new->host, '--old-port', $old->port, '--new-port', $new->port],
		"pg_upgrade, $name");
	$new->start;
	is($new->safe_psql('postgres', $definitions), $before, "$name: the same indexes");
	ok(indexes_become($new, q{'ready', 'empty'}), 'which can be used');
	my $log = slurp_file($new->logfile);
	like($log, qr/smart index "$_" has been loaded/, "$_ is loaded, $name") for ('kept_id', 'kept_word', 'keyed_id');
	unlike($log, qr/rebuilding smart index/, "none is rebuilt, $name");
	index_is_sound($new, 'postgres', $_, "after pg_upgrade, $name") for ('kept_id', 'kept_word', 'empty_id', 'keyed_id');
	same_answers($new, 'postgres', 'SELECT id FROM kept WHERE id < 10 ORDER BY id', "after pg_upgrade, $name");
	my (undef, undef, $err) = $new->psql('postgres', 'INSERT INTO kept VALUES (5)');
	like($err, qr/duplicate key value violates unique constraint "kept_id"/, 'uniqueness is enforced');
	(undef, undef, $err) = $new->psql('postgres', 'INSERT INTO refers VALUES (5000)');
	like($err, qr/violates foreign key constraint/, 'and the foreign key');
	(undef, undef, $err) = $new->psql('postgres', 'INSERT INTO keyed VALUES (5)');
	like($err, qr/duplicate key value violates unique constraint "keyed_id"/, 'and the primary key');
	is($new->safe_psql('postgres', q{SELECT a.amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE c.relname = 'keyed_btree_pkey'}),
		'btree', 'a btree stays one, whatever smart.constraints says');
	is($new->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM keyed_btree WHERE id = 7'), '1', 'and can be used');
	log_is_quiet($new);
	$new->stop;
}

upgrade('copied');
$old->start;
is($old->safe_psql('postgres', q{SELECT string_agg(state, ' ') FROM smart_index_state}), 'ready ready ready empty', 'the old cluster has its own');
index_is_sound($old, 'postgres', $_, 'in the old cluster') for ('kept_id', 'kept_word');
$old->stop;

# The files are the old cluster's own, which is not started any more.
upgrade('linked', '--link');
done_testing();
