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

-- A prepared statement, and partitions of partitions.
PREPARE routed_insert AS INSERT INTO routed VALUES (5, $1), (155, $1) ON CONFLICT DO NOTHING;
EXECUTE routed_insert (5);
CREATE TABLE routed_far PARTITION OF routed FOR VALUES FROM (200) TO (400) PARTITION BY RANGE (id);
CREATE TABLE routed_farther PARTITION OF routed_far FOR VALUES FROM (200) TO (400);
SET client_min_messages = error;
CREATE UNIQUE INDEX routed_farther_id ON routed_farther USING smart (id);
RESET client_min_messages;
EXECUTE routed_insert (6);
INSERT INTO routed_far VALUES (200, 1) ON CONFLICT DO NOTHING;
ALTER TABLE routed DETACH PARTITION routed_far;
EXECUTE routed_insert (7);
SELECT * FROM routed WHERE id IN (5, 155) ORDER BY id, n;
DROP TABLE routed_far;
INSERT INTO routed VALUES (4, 4), (104, 4) ON CONFLICT DO NOTHING;
SELECT count(*) FROM routed WHERE id IN (4, 104);
DROP TABLE routed;
