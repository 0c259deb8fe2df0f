# SQLAlchemy and Alembic: tables whose constraints are smart and which have smart indexes, their reflection, and migrations.
use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use SmartTest;
use SmartTools;

needs(module('sqlalchemy'), module('psycopg2'), module('alembic'));

my $node = smart_node('main', @ITEM_SETTINGS);
my $home = PostgreSQL::Test::Utils::tempdir();

write_file("$home/models.py", <<"PY");
from sqlalchemy import *
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import declarative_base, Session
from sqlalchemy.exc import IntegrityError

engine = create_engine('postgresql+psycopg2://@{[scalar getpwuid($<)]}\@/postgres?host=@{[$node->host]}&port=@{[$node->port]}',
                       connect_args={'options': '-c smart.constraints=on'})
Base = declarative_base()


class Customer(Base):
    __tablename__ = 'customers'
    id = Column(Integer, primary_key=True)
    email = Column(Text, unique=True)
    name = Column(Text)
    __table_args__ = (UniqueConstraint('name', 'email', name='customers_both', deferrable=True),
                      Index('customers_name', 'name', postgresql_using='smart', postgresql_include=['email']),
                      Index('customers_some', 'email', postgresql_using='smart', postgresql_where=text('id > 10'), postgresql_with={'resident': 'never'}))


class Order(Base):
    __tablename__ = 'orders'
    id = Column(Integer, primary_key=True)
    customer = Column(ForeignKey('customers.id'), index=True)
    total = Column(Integer)


Index('customers_lower', func.lower(Customer.name), postgresql_using='smart')
Index('orders_total', Order.total.desc(), Order.id, unique=True, postgresql_using='smart')
PY

# python(TEXT): what it prints; an error ends the test.
sub python
{
	my ($text) = @_;
	my ($out, $err) = ('', '');
	local %ENV = (%ENV, PYTHONPATH => $home, PYTHONDONTWRITEBYTECODE => 1);

	IPC::Run::run([ 'python3', '-W', 'ignore', '-c', "from models import *\n$text" ], '<', \undef, '>', \$out, '2>', \$err) or die $err;
	return $out;
}

sub all_are_sound
{
	my ($what) = @_;
	my ($status, $count, $err) = $node->psql('postgres', 'SELECT count(smart_index_check(index, true)::text) > 5 FROM smart_index_state');

	return is($err . $count, 't', "indexes are sound: $what");
}

python('Base.metadata.create_all(engine)');
is($node->safe_psql('postgres', q{SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY indexname}) =~ s/^CREATE (UNIQUE )?INDEX (\w+) ON public\.\w+ /$2 /mgr,
	"customers_both USING smart (name, email) WITH (smart='on')
customers_email_key USING smart (email) WITH (smart='on')
customers_lower USING smart (lower(name))
customers_name USING smart (name) INCLUDE (email)
customers_pkey USING smart (id) WITH (smart='on')
customers_some USING smart (email) WITH (resident=never) WHERE (id > 10)
ix_orders_customer USING btree (customer)
orders_pkey USING smart (id) WITH (smart='on')
orders_total USING smart (total DESC, id)", 'which index each is');

is(python(q{
with Session(engine) as s:
    s.add_all([Customer(email='e%d' % i, name='N%d' % (i % 7)) for i in range(100)])
    s.flush()
    s.add_all([Order(customer=1 + i % 100, total=i) for i in range(1000)])
    s.execute(insert(Customer).values(email='e3', name='x').on_conflict_do_update(index_elements=['email'], set_={'name': 'y'}))
    s.commit()
    print(s.query(Customer).filter(Customer.email == 'e3').one().name, s.query(Order).filter(Order.total > 500).order_by(Order.total.desc()).first().total)
    for row in (Customer(email='e5'), Order(customer=4711)):
        try:
            s.add(row)
            s.commit()
        except IntegrityError as x:
            s.rollback()
            print(x.orig.pgcode, x.orig.diag.constraint_name)
    s.query(Order).filter(Order.id % 3 == 0).delete(synchronize_session=False)
    s.commit()
    print(s.query(Order).count())
}), "y 999\n23505 customers_email_key\n23503 orders_customer_fkey\n667\n", 'the tables in use');
all_are_sound('in use');

# Reflection tells the access method and the options, and makes the same indexes again elsewhere.
is(python(q{
from sqlalchemy.schema import CreateIndex
m = MetaData()
m.reflect(engine)
for t in m.sorted_tables:
    for i in sorted(t.indexes, key=lambda i: i.name):
        print(CreateIndex(i).compile(engine))
i = inspect(engine)
print(i.get_pk_constraint('customers')['constrained_columns'], sorted(u['name'] for u in i.get_unique_constraints('customers')))
print([(x['name'], x['dialect_options']['postgresql_using'], x['dialect_options']['postgresql_with']) for x in i.get_indexes('customers') if x['name'] == 'customers_both'])
}), "CREATE INDEX customers_name ON customers USING smart (name) INCLUDE (email)
CREATE INDEX customers_some ON customers USING smart (email) WITH (resident = never) WHERE (id > 10)
CREATE INDEX ix_orders_customer ON orders (customer)
CREATE UNIQUE INDEX orders_total ON orders USING smart (total DESC, id)
['id'] ['customers_both', 'customers_email_key']
[('customers_both', 'smart', {'smart': 'on'})]\n", 'reflection: but for expressions');

# Alembic finds no difference, and migrates forth and back.
is(python(q{
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.operations import Operations

with engine.begin() as c:
    context = MigrationContext.configure(c)
    print(compare_metadata(context, Base.metadata))
    op = Operations(context)
    op.drop_constraint('orders_customer_fkey', 'orders')
    op.alter_column('customers', 'id', type_=BigInteger())
    op.alter_column('orders', 'customer', type_=BigInteger())
    op.create_foreign_key('orders_customer_fkey', 'orders', 'customers', ['customer'], ['id'])
    op.drop_index('ix_orders_customer')
    op.create_index('orders_customer', 'orders', ['customer'], postgresql_using='smart', postgresql_with={'resident': 'always'})
    op.create_unique_constraint('orders_once', 'orders', ['customer', 'total'])
    op.add_column('orders', Column('note', Text, server_default=''))
    op.create_table('more', Column('id', BigInteger, primary_key=True), Column('c', BigInteger, ForeignKey('customers.id'), unique=True))
with engine.connect().execution_options(isolation_level='AUTOCOMMIT') as c:
    op = Operations(MigrationContext.configure(c))
    op.create_index('orders_note', 'orders', ['note', 'total'], postgresql_using='smart', postgresql_concurrently=True)
    op.drop_index('orders_total', postgresql_concurrently=True)
}), "[]\n", 'Alembic: no difference, and a migration');
is($node->safe_psql('postgres', q{SELECT string_agg(c.relname || ' ' || amname, ' ' ORDER BY c.relname) FROM pg_class c JOIN pg_am a ON a.oid = relam
	WHERE c.relname IN ('customers_pkey', 'orders_customer', 'orders_once', 'orders_note', 'orders_total', 'more_pkey', 'more_c_key')}),
	'customers_pkey smart more_c_key smart more_pkey smart orders_customer smart orders_note smart orders_once smart', 'what it has made');
all_are_sound('migrated');
$node->stop;
log_is_quiet($node);
done_testing();
