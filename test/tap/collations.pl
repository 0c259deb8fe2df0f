# Collations of the C library: its sort keys are in an index where the class text_libc_ops asks for them, and nothing that the
# library says is relied on before it was tried out. Locales are made for this test, and what the library says is changed
# while the server runs, by functions that are loaded before its own.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartTest;

my $directory = PostgreSQL::Test::Utils::tempdir();
my %LOCALES = (english => 'en_US', czech => 'cs_CZ', danish => 'da_DK');

foreach my $locale (values %LOCALES)
{
	plan skip_all => "the package locales is needed to make $locale"
		if system("localedef -i $locale -f UTF-8 $directory/$locale.utf8 >$directory/log 2>&1") != 0;
}

# ---- a C library that may lie: where a file of the function's name is ----

my $SHIM = <<'C';
#define _GNU_SOURCE
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define REAL(name, type) ((type) dlsym(RTLD_NEXT, name))

static int
lies(const char *name)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/lie.%s", DIRECTORY, name);
	return access(path, F_OK) == 0;
}

int
strcoll(const char *a, const char *b)
{
	int sign = REAL("strcoll", int (*)(const char *, const char *))(a, b);

	return lies("strcoll") ? -sign : sign;
}

int
strcoll_l(const char *a, const char *b, locale_t locale)
{
	int sign = REAL("strcoll_l", int (*)(const char *, const char *, locale_t))(a, b, locale);

	return lies("strcoll") ? -sign : sign;
}

static size_t
itself(char *out, const char *string, size_t room)
{
	if (strlen(string) < room)
		strcpy(out, string);
	return strlen(string);
}

size_t
strxfrm(char *out, const char *string, size_t room)
{
	if (lies("strxfrm"))
		return itself(out, string, room);
	return REAL("strxfrm", size_t (*)(char *, const char *, size_t))(out, string, room);
}

size_t
strxfrm_l(char *out, const char *string, size_t room, locale_t locale)
{
	if (lies("strxfrm"))
		return itself(out, string, room);
	return REAL("strxfrm_l", size_t (*)(char *, const char *, size_t, locale_t))(out, string, room, locale);
}

const char *
gnu_get_libc_version(void)
{
	return lies("version") ? "2.99" : REAL("gnu_get_libc_version", const char *(*)(void))();
}
C
PostgreSQL::Test::Utils::append_to_file("$directory/shim.c", $SHIM);
system_or_bail('gcc', '-shared', '-fPIC', '-O1', "-DDIRECTORY=\"$directory\"", '-o', "$directory/shim.so", "$directory/shim.c", '-ldl');

sub lie_begins
{
	my ($name) = @_;

	PostgreSQL::Test::Utils::append_to_file("$directory/lie.$name", '');
	return;
}

sub lie_ends
{
	my ($name) = @_;

	unlink "$directory/lie.$name" or die $!;
	return;
}

# ---- the server ----

$ENV{LOCPATH} = $directory;
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(extra => [ '--encoding=UTF8', '--locale=C' ]);
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'smart'\nautovacuum = off\nsmart.auto_rebuild = off\nlog_error_verbosity = verbose\n");
{
	local $ENV{LD_PRELOAD} = "$directory/shim.so";
	$node->start;
}
$node->safe_psql('postgres', 'CREATE EXTENSION smart');

sub error_of
{
	my ($statement) = @_;
	my ($status, undef, $err) = $node->psql('postgres', $statement, extra_params => [ '-v', 'VERBOSITY=verbose' ]);

	isnt($status, 0, "fails: $statement");
	return $err;
}

# The plan, and what the statement gives
sub plan_of
{
	my ($query, $database) = @_;

	return $node->safe_psql($database // 'postgres', "SET enable_seqscan = off; EXPLAIN (COSTS OFF) $query");
}

# ---- keys, conditions and orders are those of the strings ----

my $strings = <<'SQL';
CREATE FUNCTION strings() RETURNS SETOF text LANGUAGE sql IMMUTABLE AS
$$
	SELECT unnest(ARRAY['', ' ', 'a', 'A', 'á', 'a' || U&'\0301', 'a ', 'ab', 'aB', 'AB', 'a-b', 'a b', 'ch', 'cz', 'c', 'h', 'hb', 'aa', 'å',
		'Åa', 'ø', 'z', 'ž', 'ß', 'ss', 'ﬁ', chr(1), 'a' || chr(1), chr(127), chr(1114111), '中', U&'\00AD', 'a' || U&'\00AD', repeat('a', 130),
		repeat('á', 130), repeat('ab', 200), 'co-op', 'coop', 'CO-OP'])
	UNION ALL SELECT substr(translate(md5(i::text), '0123456789', ' aÁbBchc-é'), 1, i % 6) FROM generate_series(1, 20) i
$$;
SQL
my $check_type = slurp_file("$ENV{TESTDIR}/test/regress/check_type.sql");
my $all_right = '^(\d\d\|0\|0\|0\|0\|0\n?)+$';

$node->safe_psql('postgres', join ';', map { "CREATE COLLATION $_ (provider = libc, locale = '$LOCALES{$_}.UTF-8')" } sort keys %LOCALES);
foreach my $collation (sort keys %LOCALES)
{
	foreach my $type ([ 'text', 'text_libc_ops', 'bttextcmp' ], [ 'varchar', 'varchar_libc_ops', 'bttextcmp' ], [ 'char(405)', 'bpchar_libc_ops', 'bpcharcmp' ])
	{
		next if $type->[0] ne 'text' && $collation ne 'english';
		like($node->safe_psql('postgres', "BEGIN; $check_type; $strings; SELECT * FROM check_type('$type->[0] COLLATE $collation', 'SELECT strings()', class => '$type->[1]', compare => '$type->[2]'); ROLLBACK"),
			qr/$all_right/, "$type->[0], $collation");
	}
}

# A database whose own collation it is
$node->safe_psql('postgres', "CREATE DATABASE english TEMPLATE template0 LOCALE 'en_US.UTF-8' ENCODING 'UTF8'");
$node->safe_psql('english', 'CREATE EXTENSION smart');
like($node->safe_psql('english', "$check_type; $strings; SELECT * FROM check_type('text', 'SELECT strings()', class => 'text_libc_ops', compare => 'bttextcmp')"),
	qr/$all_right/, 'a database of English');
is($node->safe_psql('english', "CREATE TABLE lists (l text[]); CREATE INDEX lists_l ON lists USING smart (l); SELECT pg_index_column_has_property('lists_l', 1, 'orderable')"),
	'f', 'arrays of its strings have no order, since that class is no default');

# ---- what the order is used for ----

$node->safe_psql('postgres', <<'SQL');
CREATE TABLE words (id int, word text COLLATE english, code text COLLATE "C.utf8");
INSERT INTO words SELECT i, (ARRAY['apple', 'Apple', 'co-op', 'coop', 'Éclair', 'éclair', 'zebra', 'Åre'])[1 + i % 8] || ' ' || i, md5(i::text) FROM generate_series(1, 5000) i;
CREATE INDEX words_word ON words USING smart (word text_libc_ops DESC, id);
CREATE INDEX words_code ON words USING smart (code);
CREATE TABLE plain AS SELECT id, word FROM words;
CREATE INDEX plain_word ON plain USING smart (word);
VACUUM ANALYZE words, plain;
SQL
is($node->safe_psql('postgres', "SELECT pg_index_column_has_property(i::regclass, 1, 'orderable') FROM unnest('{words_word,plain_word,words_code}'::text[]) i"),
	"t\nf\nt", 'by default there is no order');
is($node->safe_psql('postgres', "SELECT bool_and(amvalidate(c.oid)), count(*) FROM pg_opclass c WHERE opcname LIKE '%libc_ops'"), 't|3', 'the classes are whole');
my @queries = ("SELECT word, id FROM words WHERE word > 'co-op' AND word < 'eclair 3' ORDER BY word, id", 'SELECT word, id FROM words ORDER BY word DESC, id LIMIT 10',
	'SELECT min(word), max(word) FROM words', "SELECT word FROM words WHERE word = 'coop 3' ORDER BY word", "SELECT id FROM words WHERE code > 'ff' ORDER BY code");
foreach my $query (@queries)
{
	unlike(plan_of($query), qr/Seq Scan/, "an index serves: $query") or next;
	same_answers($node, 'postgres', $query, $query);
}
unlike(plan_of('SELECT word FROM words ORDER BY word DESC LIMIT 10'), qr/Sort/, 'no sort');
unlike($node->safe_psql('postgres', 'SET enable_hashjoin = off; SET enable_nestloop = off; EXPLAIN (COSTS off) SELECT count(*) FROM words a JOIN words b USING (word)'),
	qr/Sort/, 'nor for a merge join');
index_is_sound($node, 'postgres', 'words_word', 'as built');
$node->safe_psql('postgres', 'CREATE UNIQUE INDEX words_unique ON words USING smart (word text_libc_ops)');
like(error_of("INSERT INTO words VALUES (0, 'coop 3')"), qr/23505/, 'equal strings are found');
$node->safe_psql('postgres', "INSERT INTO words VALUES (0, 'COOP 3'), (0, 'co-op 3')");
like(error_of("INSERT INTO words SELECT -1, string_agg(md5(i::text) || 'é', '') FROM generate_series(1, 400) i"), qr/54000: key of index.*would be longer.*HINT/s, 'a string that is too long is refused');
is($node->safe_psql('postgres', 'SELECT count(*) FROM words WHERE id = -1'), '0', 'with its row');
is($node->safe_psql('postgres', "SET enable_seqscan = off; SELECT count(*) FROM words WHERE word < repeat('zz', 9000)"), '5002', 'but may be compared with');

# ---- strings that compare otherwise than before ----

my $refused = qr/0A000: index .* cannot be built with the operator class of its column 1.*strxfrm.*strcoll.*HINT/s;

my (undef, undef, $err) = $node->psql('postgres', "SELECT smart_index_check('words_word');\n\\! touch $directory/lie.strcoll\nSELECT smart_index_check('words_word');",
	extra_params => [ '-v', 'VERBOSITY=verbose' ]);
like($err, qr/^[^\n]*XX002: index "words_word" is not in the order of its values.*HINT/s, 'a check finds what compares otherwise');

# In new sessions C.UTF-8 has no order while that is so, and the other one cannot be used.
my $offset = -s $node->logfile;
is($node->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM words WHERE code IN (SELECT md5(i::text) FROM generate_series(1, 10) i)',
	), '10', 'C.UTF-8 with another order: equality');
like($node->safe_psql('postgres', "CREATE INDEX words_now ON words USING smart (code); SELECT pg_index_column_has_property('words_now', 1, 'orderable')"), qr/f/, 'and no order');
ok($node->log_contains(qr/collation "C.utf8" does not have the order of code points/, $offset), 'the log says so');
is(state_of($node, 'words_word'), 'lost', 'sort keys that do not fit the order are not used');
unlike(plan_of($queries[1]), qr/words_word/, 'the planner does not see the index');
like(error_of('REINDEX INDEX words_word'), $refused, 'and it is not built again');
lie_ends('strcoll');
$node->safe_psql('postgres', 'DROP INDEX words_now');
index_is_sound($node, 'postgres', 'words_word', 'all is as before');
index_is_sound($node, 'postgres', 'words_code', 'C.UTF-8, too');
same_answers($node, 'postgres', $_, "afterwards: $_") foreach @queries;

# ---- sort keys that are wrong ----

lie_begins('strxfrm');
like(error_of('CREATE INDEX ON words USING smart (word text_libc_ops)'), $refused, 'an index with wrong sort keys is not built');
like(error_of('CREATE UNLOGGED TABLE unlogged (word text COLLATE english); CREATE INDEX ON unlogged USING smart (word text_libc_ops)'), $refused, 'nor an empty one');
is(state_of($node, 'words_word'), 'lost', 'and one that is there not used');
$node->safe_psql('postgres', 'DROP INDEX words_unique; CREATE INDEX ON plain USING smart (word)');
lie_ends('strxfrm');
same_answers($node, 'postgres', $_, "right again: $_") foreach @queries;

# ---- another version of the C library ----

lie_begins('version');
is(state_of($node, 'words_word'), 'lost', 'another version: the index is not used');
is(state_of($node, 'words_code'), 'ready', 'C.UTF-8 is the same in all versions');
like($node->safe_psql('postgres', "SELECT reason FROM smart_index_state WHERE index = 'words_word'::regclass"), qr/collations/, 'the view tells why');
unlike(plan_of($queries[1]), qr/words_word/, 'the planner does not see it');
$node->safe_psql('postgres', 'REINDEX INDEX words_word');
index_is_sound($node, 'postgres', 'words_word', 'REINDEX mends it');
like(plan_of($queries[1]), qr/words_word/, 'and it is used');
lie_ends('version');
is(state_of($node, 'words_word'), 'lost', 'the old version: not used either');
$node->adjust_conf('postgresql.conf', 'smart.auto_rebuild', 'on');
$node->reload;
becomes($node, 'words_word', 'ready');
index_is_sound($node, 'postgres', 'words_word', 'rebuilt by itself');
same_answers($node, 'postgres', $_, "at the end: $_") foreach @queries;

$node->stop;
done_testing();
