# While a bulk delete walks through an index it serves interrupts: those that end it, and those for which others wait.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use SmartTest;
use PostgreSQL::Test::Utils;
use Test::More;
use IPC::Run;

my $node = smart_node('main', 'autovacuum = off', 'fsync = off');

# Few pages of heap, and a leaf for every row: the values can be compressed in the table only.
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE walked (id int, word text COLLATE "C");
CREATE INDEX walked_word ON walked USING smart (word);
INSERT INTO walked SELECT i, md5(i::text) || repeat('x', 3000) FROM generate_series(1, 1500) i;
DELETE FROM walked WHERE id % 3 = 0;
SQL

# A VACUUM that has reached the index, where it sleeps 100 ms behind every leaf.
sub slow_vacuum
{
	my ($output) = @_;
	my $run = IPC::Run::start([ 'psql', '-X', '-q', '-h', $node->host, '-p', $node->port, '-d', 'postgres',
			'-c', 'SET vacuum_cost_delay = 100', '-c', 'SET vacuum_cost_limit = 1', '-c', 'SET vacuum_cost_page_miss = 0',
			'-c', 'SET vacuum_cost_page_dirty = 0', '-c', 'VACUUM walked' ], '&>', $output);

	$node->poll_query_until('postgres', q{SELECT phase = 'vacuuming indexes' FROM pg_stat_progress_vacuum})
		or die 'VACUUM does not reach the index';
	return $run;
}

sub signal_vacuum
{
	my ($function) = @_;

	is($node->safe_psql('postgres', "SELECT $function(pid) FROM pg_stat_progress_vacuum"), 't', $function);
	return;
}

my $output;
my $run = slow_vacuum(\$output);
$node->safe_psql('postgres', 'CREATE DATABASE passing');
my ($status, $out, $err) = $node->psql('postgres', "SET statement_timeout = '60s';\nDROP DATABASE passing;");
is($err, '', 'a database can be dropped meanwhile');
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_stat_progress_vacuum'), '1', 'VACUUM is still at work');
signal_vacuum('pg_cancel_backend');
$run->finish;
like($output, qr/canceling statement due to user request/, 'VACUUM is cancelled');
index_is_sound($node, 'postgres', 'walked_word', 'after a VACUUM that was cancelled');

$run = slow_vacuum(\$output);
signal_vacuum('pg_terminate_backend');
$run->finish;
like($output, qr/terminating connection/, 'VACUUM is terminated');
index_is_sound($node, 'postgres', 'walked_word', 'after a VACUUM whose backend was terminated');

$node->safe_psql('postgres', 'VACUUM walked');
index_is_sound($node, 'postgres', 'walked_word', 'after one that came to its end');
is($node->safe_psql('postgres', q{SELECT entries FROM smart_index_stats('walked_word')}), '1000', 'which removed what was dead');
log_is_quiet($node);
done_testing();
