-- The indexed column changes, so that both indexes get an entry.
\set id random(1, :rows)
\set new random(1, :rows)
UPDATE bench_:method SET id = :new WHERE ctid = ANY (ARRAY(SELECT ctid FROM bench_:method WHERE id = :id LIMIT 1));
