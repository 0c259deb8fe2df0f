# A table whose first rows lie in block 0 and whose last rows lie beyond the first gibibyte, where the TIDs in entries of
# variable length become longer. The blocks between them are a hole in the table's file: empty pages that were never
# written.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use SmartTest;
use PostgreSQL::Test::Utils;
use Test::More;

# 400 rows here and 400 rows there have the same 40 words, so that the entries of a word differ in their TIDs only; n and
# serial tell the rows apart. All words begin alike: the entries of far_same share parts of their TIDs, too.
my $ROWS = "SELECT i, 'word ' || (i % 40), 'serial ' || i FROM generate_series(%d, %d) i";
my %INDEXES = (
	far_word => '(word COLLATE "C")',
	far_backward => '(word COLLATE "C" DESC, n)',
	far_include => '(n) INCLUDE (word)',
	far_serial => '(serial COLLATE "C") INCLUDE (n)',
	far_same => '(left(word, 4) COLLATE "C")',
	far_number => '(n)');
my $node = smart_node('main', 'autovacuum = off', 'fsync = off');

sub create_indexes
{
	for my $name (sort keys %INDEXES)
	{
		my $unique = $name eq 'far_serial' ? 'UNIQUE' : '';

		$node->safe_psql('postgres', "CREATE $unique INDEX $name ON far USING smart $INDEXES{$name}");
	}
	return;
}

# Places of the rows are compared too: a TID that was misread gives another row, or none.
sub check_answers
{
	my ($when) = @_;

	index_is_sound($node, 'postgres', $_, $when) for sort keys %INDEXES;
	same_answers($node, 'postgres', "SELECT ctid, * FROM far WHERE word COLLATE \"C\" = 'word 7' ORDER BY ctid",
		"equal words, $when");
	same_answers($node, 'postgres', "SELECT ctid, * FROM far WHERE left(word, 4) COLLATE \"C\" = 'word' ORDER BY ctid",
		"all alike, $when");
	same_answers($node, 'postgres',
		"SELECT ctid, * FROM far WHERE word COLLATE \"C\" > 'word 2' ORDER BY word COLLATE \"C\" DESC, n", "a range, $when");
	same_answers($node, 'postgres', 'SELECT word, n FROM far WHERE n > 0 ORDER BY n', "with an INCLUDE column, $when");
	same_answers($node, 'postgres', "SELECT ctid, * FROM far WHERE serial COLLATE \"C\" IN ('serial 1', 'serial 801') "
		. 'ORDER BY ctid', "unique strings, $when");
	same_answers($node, 'postgres', 'SELECT ctid, * FROM far WHERE n IN (1, 400, 801, 1200) ORDER BY ctid',
		"entries of fixed length, $when");
	return;
}

$node->safe_psql('postgres', 'CREATE TABLE far (n int, word text, serial text)');
$node->safe_psql('postgres', 'INSERT INTO far ' . sprintf($ROWS, 1, 400));
create_indexes();
my $file = $node->data_dir . '/' . $node->safe_psql('postgres', "SELECT pg_relation_filepath('far')");
$node->stop;
truncate($file, 1024 * 1024 * 1024) or die "could not extend $file: $!";
$node->start;
$node->safe_psql('postgres', 'INSERT INTO far ' . sprintf($ROWS, 801, 1200));
is($node->safe_psql('postgres', "SELECT count(*) FROM far WHERE (ctid::text::point)[0] < 131072 AND n < 801"), 400,
	'rows before the first gibibyte ends');
cmp_ok($node->safe_psql('postgres', "SELECT count(*) FROM far WHERE (ctid::text::point)[0] >= 131072"), '>', 200,
	'rows behind it');
check_answers('after inserts');

# The key of a row in block 0 is found by a row beyond, and the other way round.
for my $taken ('serial 5', 'serial 1100')
{
	my ($status, $out, $err) = $node->psql('postgres', "INSERT INTO far VALUES (0, 'again', '$taken')");

	like($err, qr/duplicate key value violates unique constraint "far_serial"/, "$taken is taken");
}
$node->safe_psql('postgres', "DELETE FROM far WHERE n % 5 = 0; VACUUM far");
$node->safe_psql('postgres', "INSERT INTO far SELECT 2000 + i, 'word ' || i, 'serial ' || 5 * i FROM generate_series(1, 40) i");
check_answers('after VACUUM');

$node->safe_psql('postgres', 'DROP INDEX ' . join(', ', sort keys %INDEXES));
create_indexes();
check_answers('after CREATE INDEX');

$node->stop;
log_is_quiet($node);
done_testing();
