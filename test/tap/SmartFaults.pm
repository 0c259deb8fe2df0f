# Helper for the TAP tests of faults: the server, what its sessions do, and what has to be true afterwards.
#
#   my $node = faults_node('main', 'smart.memory_nodes = ' . addresses(@memory));
#   my %sessions = fault_sessions();
#   during($node, NAME, \%sessions, sub { ... });
#   all_is_back($node, NAME);
#   ends_well($node, @memory);
package SmartFaults;

use strict;
use warnings;

use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartTest;

our @EXPORT = qw(faults_node fault_sessions all_is_back ends_well);

my @INDEXES = ('numbers_id', 'numbers_word', 'keys_id');
my $STARTED = 'SELECT pg_postmaster_start_time()';
my %started;

# A server whose log has the SQLSTATE at the beginning of a line.
sub faults_node
{
	my ($name, @settings) = @_;
	my $node = smart_node($name, 'autovacuum = off', "log_line_prefix = '%m [%p] %e '", 'log_statement = none', 'smart.fabric_timeout = 2s',
		'smart.node_lost_after = 0', 'restart_after_crash = off', @settings);

	$node->safe_psql('postgres', q{
		CREATE TABLE numbers (id int, word text COLLATE "C") WITH (fillfactor = 70);
		CREATE INDEX numbers_id ON numbers USING smart (id);
		CREATE INDEX numbers_word ON numbers USING smart (word);
		INSERT INTO numbers SELECT g, md5(g::text) FROM generate_series(1, 20000) g;
		CREATE TABLE keys (id int);
		CREATE UNIQUE INDEX keys_id ON keys USING smart (id);
		INSERT INTO keys SELECT generate_series(1, 20000);
		CREATE TABLE plain (id int, word text);
		CREATE INDEX plain_id ON plain (id);
		INSERT INTO plain SELECT g, md5(g::text) FROM generate_series(1, 20000) g;
		ANALYZE});
	$started{$name} = $node->safe_psql('postgres', $STARTED);
	return $node;
}

# What works: statements that need no memory node, inserts that need to ask no index, and those that fail without the memory node
# (08006), or while an index is loaded (55000).
sub fault_sessions
{
	return (
		plain => {
			fails => '',
			statements => [
				'INSERT INTO plain VALUES (:id, md5(:id::text))', 'SELECT count(*) FROM plain WHERE id = :id',
				'UPDATE plain SET word = word || 1 WHERE id = :id % 20000', 'DELETE FROM plain WHERE id = 1 + :id % 20000' ] },
		plain_anew => { fails => '', anew => 1, statements => ['SELECT count(*) FROM plain WHERE id = :id % 20000'] },
		inserts => {
			fails => '',
			statements => ['INSERT INTO numbers SELECT :id + g, md5((:id + g)::text) FROM generate_series(1, 3) g'] },
		reads => {
			fails => '08006|55000',
			statements => [
				'SET enable_seqscan = off', 'SELECT count(*) FROM numbers WHERE id BETWEEN :id % 20000 AND :id % 20000 + 100',
				'SELECT count(*) FROM numbers WHERE word = md5((:id % 20000)::text)',
				'UPDATE numbers SET id = id + 1 WHERE id = :id % 20000', 'DELETE FROM numbers WHERE word = md5((:id % 20000)::text)' ] },
		keys => {
			fails => '08006|55000',
			statements => [ 'INSERT INTO keys VALUES (:id) ON CONFLICT DO NOTHING', 'SELECT count(*) FROM keys WHERE id = :id % 20000' ] });
}

# Every index is used again, is sound, and gives what its table gives.
sub all_is_back
{
	my ($node, $name) = @_;

	becomes($node, $_, 'ready') for @INDEXES;
	index_is_sound($node, 'postgres', $_, $name) for @INDEXES;
	same_answers($node, 'postgres', 'SELECT count(*), sum(id), sum(hashtext(word)) FROM numbers WHERE id > -1', "$name, by id");
	same_answers($node, 'postgres', q{SELECT count(*), sum(id), sum(hashtext(word)) FROM numbers WHERE word > ''}, "$name, by word");
	same_answers($node, 'postgres', 'SELECT count(*), sum(id) FROM keys WHERE id > -1', "$name, keys");
	return;
}

# The server has run all the time, has met no error but those, and all can be stopped.
sub ends_well
{
	my ($node, @memory) = @_;
	my $log;

	is($node->safe_psql('postgres', $STARTED), $started{ $node->name }, 'the server has run all the time');
	$node->stop;
	is($_->stop, 0, 'a memory node stops cleanly') for @memory;
	log_is_quiet($node);
	$log = PostgreSQL::Test::Utils::slurp_file($node->logfile);
	is(join("\n", $log =~ /^(.* \[\d+\] (?!08006|55000|53200|57P|00000)\w{5} (?:ERROR|FATAL|PANIC|WARNING):.*)$/mg), '', 'no error but those expected');
	return;
}

1;
