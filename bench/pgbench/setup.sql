-- The same table twice: one has a btree, the other a smart index.  psql -v rows=1000000 -f bench/pgbench/setup.sql
\if :{?rows}
\else
\set rows 1000000
\endif
CREATE EXTENSION IF NOT EXISTS smart;
DROP TABLE IF EXISTS bench_btree, bench_smart;
CREATE TABLE bench_btree AS SELECT i AS id, i % 100 AS value FROM generate_series(1, :rows) i;
CREATE TABLE bench_smart AS SELECT * FROM bench_btree;
CREATE INDEX bench_btree_id ON bench_btree USING btree (id);
CREATE INDEX bench_smart_id ON bench_smart USING smart (id);
VACUUM ANALYZE bench_btree, bench_smart;
