-- An index whose concurrent build has failed has no metapage, and is no reason to fail for others.
CREATE TABLE index_invalid (a int);
INSERT INTO index_invalid VALUES (1), (1);
CREATE UNIQUE INDEX CONCURRENTLY index_invalid_a ON index_invalid USING smart (a);
SELECT index, state, bytes FROM smart_index_state WHERE index = 'index_invalid_a'::regclass;
SELECT smart_index_check('index_invalid_a', true);
SELECT smart_index_stats('index_invalid_a');
DELETE FROM index_invalid WHERE ctid = '(0,2)';
VACUUM index_invalid;
INSERT INTO index_invalid VALUES (2);
SELECT a FROM index_invalid WHERE a > 0 ORDER BY a;
REINDEX INDEX index_invalid_a;
SELECT index, state FROM smart_index_state WHERE index = 'index_invalid_a'::regclass;
SELECT smart_index_check('index_invalid_a', true);
DROP TABLE index_invalid;
