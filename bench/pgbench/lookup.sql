\set id random(1, :rows)
SELECT value FROM bench_:method WHERE id = :id;
