# Pages of a journal that are not what they were: appending goes on behind a tail that is lost, and a tree is never loaded
# from damaged pages, but made from its table; and what a search in the run would meet is found by the check.  The server's own
# checksums are off, so that ours are asked.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use SmartTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use constant {BLOCK => 8192, NONE => 0xffffffff, LOWER => 12, META => 24, NEXT => 28, NUMBER => 40, CONTENT => 56};

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
run_command(['pg_checksums', '--disable', '--pgdata', $node->data_dir]);
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'smart'\nautovacuum = off\nmax_prepared_transactions = 1");
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION smart;
CREATE TABLE items (n bigint);
INSERT INTO items SELECT i * 7 FROM generate_series(1, 2000) i;
CREATE INDEX items_n ON items USING smart (n);
SQL

# ---- the file ----

# pages(): the blocks of the index, of a server that does not run, and what the metapage tells.
sub pages
{
	my ($path) = @_;
	my $bytes = PostgreSQL::Test::Utils::slurp_file($path);
	my @pages = unpack('(a' . BLOCK . ')*', $bytes);
	my ($run_pages, $root, $fences) = unpack('L3', substr($pages[0], META + 116, 12));
	my ($serial, $tail) = unpack('QL', substr($pages[0], META + 176, 12));

	return {page => \@pages, run => [1 .. $run_pages], root => $root, log => [$run_pages + $fences + 1 .. $#pages], serial => $serial, tail => $tail};
}

sub put
{
	my ($file, $block, $offset, $bytes) = @_;

	substr($file->{page}[$block], $offset, length $bytes) = $bytes;
	return;
}

# damaged(CHANGE, LOSE): stops the server, changes the index's file, loses the region if told so, and starts the server.
sub damaged
{
	my ($change, $lose) = @_;
	my $path = $node->data_dir . '/' . $node->safe_psql('postgres', q{SELECT pg_relation_filepath('items_n')});

	$node->stop('fast');
	my $file = pages($path);
	$change->($file);
	open my $handle, '>:raw', $path or die "$path: $!";
	print $handle join('', @{$file->{page}}) or die $!;
	close $handle or die $!;
	die "no region: $!" if $lose && !unlink region_of($node);
	$node->start;
	return;
}

# fresh(): a whole journal with a run and a chain of several pages.
sub fresh
{
	$node->safe_psql('postgres', 'TRUNCATE items; INSERT INTO items SELECT i * 7 FROM generate_series(1, 8000) i; REINDEX INDEX items_n;
		INSERT INTO items SELECT i * 11 FROM generate_series(1, 12000) i');
	return;
}

# ---- appending ----

my %tails = (
	'zeros' => sub { $_[0]{page}[$_[0]{tail}] = "\0" x BLOCK },
	'of another chain' => sub { put($_[0], $_[0]{tail}, NUMBER, pack('Q', $_[0]{serial} + 1)) },
	'followed by itself' => sub { put($_[0], $_[0]{tail}, NEXT, pack('L', $_[0]{tail})) },
	'followed by the first page' => sub { put($_[0], $_[0]{tail}, NEXT, pack('L', $_[0]{log}[0])) },
	'followed by what does not exist' => sub { put($_[0], $_[0]{tail}, NEXT, pack('L', 1_000_000)) },
	'full of noise' => sub { $_[0]{page}[$_[0]{tail}] = join '', map { chr int rand 256 } 1 .. BLOCK },
	'not there' => sub { pop @{$_[0]{page}} });
for my $name (sort keys %tails)
{
	my $offset = -s $node->logfile;
	my $break = sub { cmp_ok($_[0]{tail}, '==', $#{$_[0]{page}}, "$name: the tail is the last page"); $tails{$name}->(@_) };

	fresh();
	damaged($break, 0);
	# No compaction comes in between.
	$node->safe_psql('postgres', q{BEGIN; LOCK TABLE items IN SHARE ROW EXCLUSIVE MODE;
		INSERT INTO items SELECT i * 13 FROM generate_series(1, 1000) i; PREPARE TRANSACTION 'open'});
	ok($node->log_contains(qr/the last page of the journal of index "items_n" is damaged/, $offset), "a tail that is $name: it is noticed");
	damaged(sub { }, 1);
	$node->safe_psql('postgres', q{COMMIT PREPARED 'open'});
	becomes($node, 'items_n', 'ready');
	ok($node->log_contains(qr/smart index "items_n" has been rebuilt/, $offset), "a tail that is $name: the journal is not used any more");
	index_is_sound($node, 'postgres', 'items_n', "a tail that is $name, rebuilt");

	# VACUUM makes it whole.
	fresh();
	damaged($break, 0);
	$offset = -s $node->logfile;
	$node->safe_psql('postgres', 'INSERT INTO items SELECT i * 13 FROM generate_series(1, 1000) i; DELETE FROM items WHERE n % 5 = 0');
	$node->safe_psql('postgres', 'VACUUM items');
	index_is_sound($node, 'postgres', 'items_n', "a tail that is $name, in VACUUM");
	damaged(sub { }, 1);
	becomes($node, 'items_n', 'ready');
	ok($node->log_contains(qr/smart index "items_n" has been loaded/, $offset), "a tail that is $name: after VACUUM it is loaded");
	index_is_sound($node, 'postgres', 'items_n', "a tail that is $name, loaded");
}

# ---- reading ----

my @crcs = map { my $crc = $_; $crc = $crc & 1 ? $crc >> 1 ^ 0x82f63b78 : $crc >> 1 for 1 .. 8; $crc } 0 .. 255;

# mend(FILE, BLOCK): gives a page of the run the checksum of what it holds.
sub mend
{
	my ($file, $block) = @_;
	my $page = $file->{page}[$block];
	my ($lower, $upper) = unpack('S2', substr($page, LOWER, 4));
	my $crc = 0xffffffff;

	$crc = $crc >> 8 ^ $crcs[($crc ^ $_) & 255] foreach unpack('C*', substr($page, CONTENT, $lower - CONTENT) . substr($page, $upper));
	put($file, $block, CONTENT - 4, pack('L', $crc ^ 0xffffffff));
	return;
}

# lead(FILE, BLOCK): the first fence leads to this block. Its head and a number take two bytes, and the block the last four of it.
sub lead
{
	my ($file, $block) = @_;
	my $length = 15 + ord(substr($file->{page}[$file->{root}], CONTENT + 1, 1));

	put($file, $file->{root}, CONTENT + 2 + $length - 4, pack('N', $block));
	mend($file, $file->{root});
	return;
}

my %damages = (
	'a log page of zeros' => sub { $_[0]{page}[$_[0]{log}[1]] = "\0" x BLOCK },
	'log pages in a circle' => sub { put($_[0], $_[0]{log}[2], NEXT, pack('L', $_[0]{log}[0])) },
	'a log page without a next one' => sub { put($_[0], $_[0]{log}[1], NEXT, pack('L', NONE)) },
	'a log page that ends early' => sub {
		my ($file) = @_;
		my $block = $file->{log}[1];
		my ($first) = unpack('S', substr($file->{page}[$block], CONTENT, 2));
		put($file, $block, LOWER, pack('S', CONTENT + $first));
	},
	'a byte of a batch' => sub { put($_[0], $_[0]{log}[1], CONTENT + 300, chr(1 + ord(substr($_[0]{page}[$_[0]{log}[1]], CONTENT + 300, 1)) & 255)) },
	'pages in the wrong order' => sub { @{$_[0]{page}}[1, 2] = @{$_[0]{page}}[2, 1] },
	'a byte of the run' => sub { put($_[0], 2, CONTENT + 100, chr(1 + ord(substr($_[0]{page}[2], CONTENT + 100, 1)) & 255)) },
	'a fence page of zeros' => sub { $_[0]{page}[$_[0]{root}] = "\0" x BLOCK },
	'a byte of a fence page' => sub { put($_[0], $_[0]{root}, CONTENT + 5, 'x') },
	'no root' => sub { put($_[0], $_[0]{root}, CONTENT - 8, pack('L', 0)) },
	'a root that is too high' => sub { put($_[0], $_[0]{root}, CONTENT - 8, pack('L', 2)) },
	'a fence that leads to the second page instead of the first one' => sub { lead($_[0], 2) },
	'a fence that leads to the metapage' => sub { lead($_[0], 0) },
	'a fence that leads to the fence page' => sub { lead($_[0], $_[0]{root}) },
	'a fence that leads beyond the file' => sub { lead($_[0], 1_000_000) },
	'a run page without content' => sub { put($_[0], 1, LOWER, pack('S', CONTENT)); put($_[0], 1, CONTENT - 4, pack('L', 0)) },
	'noise' => sub { $_[0]{page}[$_] = join '', map { chr int rand 256 } 1 .. BLOCK for @{$_[0]{log}} },
	'a short file' => sub { splice @{$_[0]{page}}, $_[0]{log}[2] });
fresh();
my $offset = -s $node->logfile;
damaged(sub { cmp_ok(@{$_[0]{log}}, '>', 4, 'several log pages'); cmp_ok(@{$_[0]{run}}, '>', 2, 'several run pages') }, 1);
becomes($node, 'items_n', 'ready');
ok($node->log_contains(qr/smart index "items_n" has been loaded/, $offset), 'without damage it is loaded');
for my $name (sort keys %damages)
{
	$offset = -s $node->logfile;
	fresh();
	damaged($damages{$name}, 1);
	becomes($node, 'items_n', 'ready');
	ok($node->log_contains(qr/smart index "items_n" is going to be rebuilt from its table/, $offset), "$name: it is noticed");
	ok(!$node->log_contains(qr/smart index "items_n" has been loaded/, $offset), "$name: and not loaded");
	index_is_sound($node, 'postgres', 'items_n', $name);
}

# ---- searching ----

# What a search in the run meets, and a loading does not: the check alone tells of it.
my %astray = (
	'undamaged, but for the checksum of a run page that is computed here' => [sub { mend($_[0], 2) }, undef],
	'and of a fence page' => [sub { mend($_[0], $_[0]{root}) }, undef],
	'a group that seems to begin with less than it does' => [sub {
		my ($file) = @_;
		my ($upper) = unpack('S', substr($file->{page}[2], LOWER + 2, 2));
		put($file, 2, $upper, pack('L', 0));
		mend($file, 2);
	}, qr/Block 2 has entries that a search does not find/]);
for my $name (sort keys %astray)
{
	my ($change, $error) = @{$astray{$name}};
	my ($status, $out, $complaint);

	fresh();
	damaged($change, 1);
	becomes($node, 'items_n', 'ready');
	($status, $out, $complaint) = $node->psql('postgres', q{SELECT smart_index_check('items_n', true)});
	defined $error ? like($complaint, $error, "$name: it is noticed") : is($complaint, '', $name);
	same_answers($node, 'postgres', 'SELECT n FROM items WHERE n BETWEEN 5000 AND 5500 ORDER BY n', $name);
}
$node->safe_psql('postgres', 'REINDEX INDEX items_n');
index_is_sound($node, 'postgres', 'items_n', 'another run');
log_is_quiet($node);
done_testing();
