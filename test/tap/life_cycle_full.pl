# Memory that has room for an index once: a session that drops it can make it again at once, before any collection of orphans.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartMemnode;
use SmartTest;

my $memory = SmartMemnode->new('one', '--size=32M');
my %place = (embedded => 'smart.embedded_max_size = 32MB', 'memory node' => 'smart.memory_nodes = ' . addresses($memory));

foreach my $name (sort keys %place)
{
	my $node = smart_node($name =~ s/ .*//r, 'autovacuum = off', $place{$name});
	my $again = 'DROP INDEX rows_b; CREATE INDEX rows_b ON rows USING smart (b) WITH (resident = always)';

	$node->safe_psql('postgres', 'CREATE TABLE rows AS SELECT g AS a, md5(g::text) || md5((g + 1)::text) AS b FROM generate_series(1, 250000) g;
		CREATE INDEX rows_b ON rows USING smart (b) WITH (resident = always)');
	is($node->safe_psql('postgres', "SELECT bytes > 16 << 20 FROM smart_index_state WHERE index = 'rows_b'::regclass"), 't', "$name: it takes more than half");
	foreach my $time (1 .. 3)
	{
		my ($status, undef, $err) = $node->psql('postgres', $again, on_error_stop => 1);

		ok($status == 0, "$name: dropped and made again at once, $time") or diag($err);
	}
	index_is_sound($node, 'postgres', 'rows_b', $name);
	# A transaction that rolls back has both until then.
	my ($status, undef, $err) = $node->psql('postgres', "BEGIN; $again; ROLLBACK", on_error_stop => 1, extra_params => [ '-v', 'VERBOSITY=sqlstate' ]);
	like($err, qr/ERROR:  53200/, "$name: what could still be rolled back is not freed");
	index_is_sound($node, 'postgres', 'rows_b', "$name, rolled back");
	$node->stop;
	log_is_quiet($node);
}
done_testing();
