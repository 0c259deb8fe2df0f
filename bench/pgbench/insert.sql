\set id random(1, 2000000000)
INSERT INTO bench_:method VALUES (:id, 0);
