# Django: a project whose constraints are smart and which has smart indexes; its migrations forth and back, and what it sees of them.
use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartTest;
use SmartTools;

needs(module('django'), module('psycopg2'));

my $node = smart_node('main', @ITEM_SETTINGS);
my $home = PostgreSQL::Test::Utils::tempdir();

mkdir $_ or die "$_: $!" for ("$home/shop", "$home/shop/migrations");
write_file("$home/$_/__init__.py", '') for ('shop', 'shop/migrations');
write_file("$home/settings.py", <<"PY");
SECRET_KEY = 'a test'
INSTALLED_APPS = ['django.contrib.contenttypes', 'django.contrib.auth', 'django.contrib.postgres', 'shop']
DATABASES = {'default': {'ENGINE': 'django.db.backends.postgresql', 'NAME': 'postgres', 'HOST': '@{[$node->host]}', 'PORT': '@{[$node->port]}',
                         'USER': '@{[scalar getpwuid($<)]}', 'OPTIONS': {'options': '-c smart.constraints=on'}}}
DEFAULT_AUTO_FIELD = 'django.db.models.AutoField'
USE_TZ = True
PY

# As doc/tools.md has it.
my ($index) = slurp_file("$ENV{TESTDIR}/doc/tools.md") =~ /^```python\n(from django\.contrib\.postgres\.indexes.*?)^```$/ms;
my $models = <<'PY';
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower
from shop.indexes import SmartIndex


class Customer(models.Model):
    email = models.EmailField(unique=True)
    name = models.CharField(max_length=100)
    joined = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [SmartIndex(fields=['-joined', 'name'], name='customer_joined'), SmartIndex(Lower('name'), name='customer_lower')]


class Order(models.Model):
    customer = models.ForeignKey(Customer, on_delete=models.CASCADE, db_index=False)
    number = models.IntegerField()
    total = models.DecimalField(max_digits=10, decimal_places=2)
    state = models.CharField(max_length=10, db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=['customer', 'number'], name='order_number'),
                       models.UniqueConstraint(fields=['number'], condition=Q(state='open'), name='order_open'),
                       models.UniqueConstraint(fields=['total', 'number'], name='order_later', deferrable=models.Deferrable.DEFERRED)]
        indexes = [SmartIndex(fields=['total'], name='order_total', condition=Q(total__gt=10), include=['number'], with_parameters=['resident = never']),
                   SmartIndex(fields=['customer'], name='order_customer')]
PY
write_file("$home/shop/indexes.py", $index);
write_file("$home/shop/models.py", $models);

# django(ARGUMENT...): what it prints; an error ends the test.
sub django
{
	my ($out, $err) = ('', '');
	local %ENV = (%ENV, PYTHONPATH => $home, DJANGO_SETTINGS_MODULE => 'settings', PYTHONDONTWRITEBYTECODE => 1);

	IPC::Run::run([ 'python3', '-W', 'ignore', '-m', 'django', @_ ], '<', \undef, '>', \$out, '2>', \$err) or die "django @_: $out$err";
	return $out;
}

# python(TEXT): likewise, within the project.
sub python
{
	my ($text) = @_;

	return django('shell', '-c', "from shop.models import *\nfrom django.db import connection, models, transaction, IntegrityError\n$text");
}

sub methods
{
	my $methods = $node->safe_psql('postgres', q{SELECT c.relname || ' ' || amname FROM pg_index JOIN pg_class c ON c.oid = indexrelid
		JOIN pg_am a ON a.oid = relam WHERE indrelid IN ('shop_customer'::regclass, 'shop_order'::regclass)});

	# Names have hashes of what they were made from.
	return join("\n", sort map { s/_[0-9a-f]{8}(?=[_ ])//r } split /\n/, $methods);
}

sub all_are_sound
{
	my ($what) = @_;
	my ($status, $count, $err) = $node->psql('postgres', 'SELECT count(smart_index_check(index, true)::text) > 10 FROM smart_index_state');

	return is($err . $count, 't', "indexes are sound: $what");
}

django('makemigrations', 'shop');
django('migrate', '--verbosity=0');
is(methods(), 'customer_joined smart
customer_lower smart
order_customer smart
order_later smart
order_number smart
order_open btree
order_total smart
shop_customer_email_key smart
shop_customer_email_like btree
shop_customer_pkey smart
shop_order_pkey smart
shop_order_state btree
shop_order_state_like btree', 'which access method each index has');
is(django('makemigrations', '--check', '--dry-run', 'shop'), "No changes detected in app 'shop'\n", 'the models are what the migrations make');

is(python(q{
a, b = Customer.objects.bulk_create([Customer(email='ann@example.org', name='Ann'), Customer(email='bob@example.org', name='Bob')])
Order.objects.bulk_create([Order(customer=(a, b)[i % 2], number=i, total=i, state='paid') for i in range(1000)])
try:
    with transaction.atomic():
        Customer.objects.create(email='ann@example.org')
except IntegrityError as e:
    print(e.__cause__.diag.constraint_name)
try:
    with transaction.atomic():
        Order.objects.create(customer_id=4711, number=1, total=1)
except IntegrityError as e:
    print('foreign key')
with transaction.atomic():
    Order.objects.filter(number__lt=10).update(total=5)
    Order.objects.filter(number__lt=10).update(total=models.F('number'))
print(Customer.objects.get_or_create(email='bob@example.org')[1], Customer.objects.update_or_create(email='cyd@example.org', defaults={'name': 'Cyd'})[1])
print(Order.objects.bulk_create([Order(pk=1, customer=a, number=1, total=1)], ignore_conflicts=True) and Order.objects.count())
print(Customer.objects.select_for_update().annotate(n=models.Count('order')).values_list('n').order_by('email') is not None, Order.objects.filter(customer=a, total__gt=10).count())
b.delete()
print(Order.objects.count())
}), "shop_customer_email_key\nforeign key\nFalse True\n1000\nTrue 494\n500\n", 'the project at work');
all_are_sound('the project at work');

# Introspection: as a btree's, but for the type, and the order of columns, which it knows of btree alone.
is(python(q{
with connection.cursor() as cursor:
    for name, c in sorted(connection.introspection.get_constraints(cursor, 'shop_customer').items()):
        if 'like' not in name:
            print(name, c['columns'], c['primary_key'], c['unique'], c['index'], c.get('type'), c.get('orders'))
}), "customer_joined ['joined', 'name'] False False True smart [None, None]
customer_lower [] False False True smart []
shop_customer_email_key ['email'] False True False None None
shop_customer_pkey ['id'] True True False None None\n", 'introspection');
like(django('inspectdb', 'shop_customer'), qr/email = models.CharField\(unique=True, max_length=254\)/, 'inspectdb');

# Columns of constraints get other types, the primary key among them that a foreign key refers to; an index is renamed, one goes.
write_file("$home/shop/models.py", $models =~ s/unique=True/unique=True, max_length=300/r =~ s/class Customer.*\n/$&    id = models.BigAutoField(primary_key=True)\n/r
	=~ s/number = models.IntegerField/number = models.BigIntegerField/r =~ s/customer_lower/customer_small/r =~ s/,\n +SmartIndex\(fields=\['customer'\].*\)/]/r =~ s/\]\]$/]/mr);
django('makemigrations', 'shop', '--name', 'second');
django('migrate', '--verbosity=0');
is($node->safe_psql('postgres', q{SELECT string_agg(format_type(atttypid, atttypmod), ', ' ORDER BY attrelid, attname) FROM pg_attribute
	WHERE (attrelid, attname) IN (('shop_customer'::regclass, 'id'), ('shop_customer'::regclass, 'email'), ('shop_order'::regclass, 'number'), ('shop_order'::regclass, 'customer_id'))}),
	'character varying(300), bigint, bigint, bigint', 'other types');
my %methods = map { split / / } split /\n/, methods();
is(join(' ', map { $methods{$_} } ('shop_customer_pkey', 'shop_customer_email_key', 'order_number', 'order_later')), 'smart smart smart smart', 'the constraints are smart');
is(join(' ', grep { /customer_(lower|small)|order_customer/ } sort keys %methods), 'customer_small', 'indexes were renamed and removed');
all_are_sound('after the second migration');
django('migrate', '--verbosity=0', 'shop', '0001');
like(methods(), qr/^customer_lower smart\norder_customer smart$/m, 'and back');
all_are_sound('and back');
django('migrate', '--verbosity=0', 'shop', 'zero');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_class WHERE relname ~ '^shop'}), '0', 'to nothing');
$node->stop;
log_is_quiet($node);
done_testing();
