\set id random(1, :rows)
SELECT count(*), sum(value) FROM bench_:method WHERE id BETWEEN :id AND :id + 99;
