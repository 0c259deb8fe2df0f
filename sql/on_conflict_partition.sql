-- INSERT ... ON CONFLICT through a partitioned table one of whose partitions has a unique smart index.
-- Before version 18 (on_conflict_partition.out) that is an error before any row; later (_1.out) it works.
CREATE TABLE routed (id int, n int) PARTITION BY RANGE (id);
CREATE TABLE routed_low PARTITION OF routed FOR VALUES FROM (0) TO (100);
CREATE TABLE routed_high PARTITION OF routed FOR VALUES FROM (100) TO (200);
INSERT INTO routed VALUES (1, 1) ON CONFLICT DO NOTHING;
CREATE UNIQUE INDEX routed_high_id ON routed_high USING smart (id);
INSERT INTO routed VALUES (2, 2), (102, 2) ON CONFLICT DO NOTHING;
SELECT count(*) FROM routed;
INSERT INTO routed VALUES (3, 3), (103, 3);
INSERT INTO routed_high VALUES (103, 4) ON CONFLICT DO NOTHING;
INSERT INTO routed_high VALUES (103, 5) ON CONFLICT (id) DO UPDATE SET n = excluded.n RETURNING *;
INSERT INTO routed_low VALUES (3, 6) ON CONFLICT DO NOTHING;
DROP INDEX routed_high_id;
INSERT INTO routed VALUES (4, 4), (104, 4) ON CONFLICT DO NOTHING;
SELECT count(*) FROM routed WHERE id IN (4, 104);
DROP TABLE routed;
