\set id random(1, :rows)
\set new random(1, 2000000000)
SELECT value FROM bench_:method WHERE id = :id;
SELECT value FROM bench_:method WHERE id = :id + 1;
SELECT count(*) FROM bench_:method WHERE id BETWEEN :id AND :id + 9;
INSERT INTO bench_:method VALUES (:new, 0);
UPDATE bench_:method SET value = value + 1 WHERE id = :id;
