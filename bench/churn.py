"""Workloads whose rows get new versions all the time, for bench/measure.py: what dead entries cost.

Every index and constraint of a table is of one kind. The server runs with autovacuum, which looks once a second, and as
fast commits as there are (fsync = off), so that what an index costs is not hidden behind a disk. Plans use indexes, as
they would with more rows. A row of the results is time per transaction: less is better.
"""
import os
import subprocess
import sys

from session import METHOD, pgbench, psql, server_cpu, timed

CLIENTS = 4
SETTINGS = {"fsync": "off", "synchronous_commit": "on", "autovacuum": "on", "autovacuum_naptime": "1s",
            "enable_seqscan": "off", "enable_bitmapscan": "off"}

# One row that gets a new version with each commit, in both of its indexes.
ONE_CALL = 100
ONE_BATCH = 1000
ONE = ["CREATE TABLE target (id int PRIMARY KEY, v int)%s", "CREATE INDEX ON target USING {method} (v)",
       "INSERT INTO target VALUES (1, 0)",
       "CREATE OR REPLACE PROCEDURE update_one(times int) LANGUAGE plpgsql AS 'BEGIN FOR i IN 1 .. times LOOP "
       "UPDATE target SET v = v + 1 WHERE id = 1; COMMIT; END LOOP; END'"]

# For each workload the name of its row, what makes the table, and what each of the clients does. sysbench's statements are
# those of its oltp_update_index and oltp_delete, and so are the rows that they take: three of four in the middle hundredth.
SYSBENCH = ["CREATE TABLE target (id serial PRIMARY KEY, k int NOT NULL DEFAULT 0, c char(120) NOT NULL DEFAULT '', "
            "pad char(60) NOT NULL DEFAULT '')",
            "INSERT INTO target (k, c, pad) SELECT 1 + (hashint8(g) & 2147483647) %% %(rows)d, repeat(md5(g::text), 3), "
            "md5(g::text) FROM generate_series(1, %(rows)d) AS g",
            "CREATE INDEX ON target USING {method} (k)"]
SYSBENCH_ID = """\\set any random(1, :rows)
\\set special random(:rows / 2 - :rows / 200, :rows / 2 + :rows / 200)
\\set id case when random(1, 4) = 1 then :any else :special end
"""
WORKLOADS = {
    "hot": ("1,000 hot rows", [
        "CREATE TABLE target (id int PRIMARY KEY, v int) WITH (fillfactor = 70)",
        "CREATE INDEX ON target USING {method} (v)",
        "INSERT INTO target SELECT g, g FROM generate_series(1, 1000) AS g"],
        "\\set id random(1, 1000)\n\\set v random(1, 1000000)\nUPDATE target SET v = :v WHERE id = :id;\n"),
    "wide": ("an indexed column of many rows", [
        "CREATE TABLE target (id int PRIMARY KEY, a int, b int, c text)",
        "INSERT INTO target SELECT g, hashint8(g), g / 10, md5(g::text) FROM generate_series(1, %(rows)d) AS g",
        "CREATE INDEX ON target USING {method} (a)", "CREATE INDEX ON target USING {method} (b)"],
        "\\set id random(1, :rows)\n\\set a random(1, 1000000000)\nUPDATE target SET a = :a WHERE id = :id;\n"),
    # Each client has rows of its own, for who waits for a row and finds it deleted would insert its key twice.
    "again": ("delete a key and insert it again", [
        "CREATE TABLE target (id int PRIMARY KEY, v int)", "CREATE INDEX ON target USING {method} (v)",
        "INSERT INTO target SELECT g, g FROM generate_series(0, 1003) AS g"],
        "\\set id 4 * random(0, 250) + :client_id\n\\set v random(1, 1000000)\nBEGIN;\nDELETE FROM target WHERE id = :id;\n"
        "INSERT INTO target VALUES (:id, :v);\nEND;\n"),
    "FIFO": ("FIFO queue", [
        "CREATE TABLE target (id bigserial PRIMARY KEY, v text)",
        "INSERT INTO target (v) SELECT md5(g::text) FROM generate_series(1, 1000) AS g"],
        "INSERT INTO target (v) VALUES ('a message');\nDELETE FROM target WHERE id = (SELECT id FROM target ORDER BY id "
        "LIMIT 1 FOR UPDATE SKIP LOCKED);\n"),
    "update_index": ("sysbench oltp_update_index", SYSBENCH,
                     SYSBENCH_ID + "UPDATE target SET k = k + 1 WHERE id = :id;\n"),
    "delete": ("sysbench oltp_delete", SYSBENCH, SYSBENCH_ID + "DELETE FROM target WHERE id = :id;\n"),
}


def constraints(kind):
    return "smart.constraints=" + ("on" if kind == "smart" else "off")


def expect_kind(kind):
    """Ends the run unless all indexes of the tables that it made are of this kind."""
    others = psql("SELECT i.indexrelid::regclass FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
                  "JOIN pg_am a ON a.oid = c.relam WHERE a.amname <> '%s' AND (i.indrelid = to_regclass('target') OR "
                  "i.indrelid::regclass::text ~ '^pgbench_')" % METHOD[kind])
    if others:
        sys.exit("bench: %s is not of %s" % (", ".join(others), kind))


def make(kind, statements):
    psql("SET " + constraints(kind), *[statement.format(method=METHOD[kind]) for statement in statements])
    expect_kind(kind)
    psql("VACUUM ANALYZE target", "CHECKPOINT")


class Churn:
    def __init__(self, bench):
        self.bench = bench
        self.duration = ["-T", str(bench.options.seconds)]
        self.rows = {"wide": bench.rows // 10, "update_index": bench.rows // 4, "delete": bench.rows // 4}
        self.batches = 3 if bench.options.quick else 20

    def steps(self):
        """(name, what to do): one for each kind of table."""
        yield "one", self.one
        yield "one without VACUUM", self.one_without_vacuum
        for name in WORKLOADS:
            yield name, lambda name=name: self.clients(name)
        yield "tpcb", self.tpcb

    def alternate(self):
        """As that of the bench, with the server set up for it."""
        psql(*["ALTER SYSTEM SET %s = '%s'" % setting for setting in SETTINGS.items()], "SELECT pg_reload_conf()")
        yield from self.bench.alternate()
        psql(*["ALTER SYSTEM RESET " + name for name in SETTINGS], "SELECT pg_reload_conf()")

    def record(self, name, kind, microseconds):
        self.bench.record("churn, " + name, "us/txn", kind, microseconds)

    def run(self, name, kind, clients, arguments=(), script=None, per_transaction=1):
        """Records what pgbench's transactions take, or each of so many parts of one."""
        before = server_cpu()
        microseconds, count = pgbench(clients, self.duration + list(arguments), script)
        self.record(name, kind, microseconds / per_transaction)
        if self.bench.options.cpu:
            self.bench.record("CPU of churn, " + name, "us/txn", kind,
                              (server_cpu() - before) / count / per_transaction)

    def one(self):
        """One session that updates one row, a commit each; so many in one call that the client costs nothing."""
        for _, kind in self.alternate():
            make(kind, [ONE[0] % ""] + ONE[1:])
            self.run("one row", kind, 1, script="CALL update_one(%d);\n" % ONE_CALL, per_transaction=ONE_CALL)
            psql("DROP TABLE target")

    def one_without_vacuum(self):
        """The same, where only what meets dead entries removes them: an update must not cost more and more."""
        for _, kind in self.alternate():
            make(kind, [ONE[0] % " WITH (autovacuum_enabled = off)"] + ONE[1:])
            times = timed("CALL update_one(%d)" % ONE_BATCH, runs=self.batches)
            for which, ms in ("first", times[0]), ("last", times[-1]):
                self.record("one row, no VACUUM, %s 1,000 of %d,000" % (which, self.batches), kind, ms * 1e3 / ONE_BATCH)
            psql("DROP TABLE target")

    def clients(self, name):
        title, statements, script = WORKLOADS[name]
        rows = self.rows.get(name, 0)
        for _, kind in self.alternate():
            make(kind, [s % {"rows": rows} for s in statements] if rows else statements)
            self.run(title, kind, CLIENTS, ["-D", "rows=%d" % rows], script)
            psql("DROP TABLE target")

    def tpcb(self):
        """pgbench's own tables, with its primary keys."""
        scale = str(max(1, self.bench.rows // 100000))
        for _, kind in self.alternate():
            subprocess.run(["pgbench", "-i", "-q", "-s", scale, "postgres"], check=True, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, env={**os.environ, "PGOPTIONS": "-c " + constraints(kind)})
            expect_kind(kind)
            for script in "simple-update", "tpcb-like":
                psql("CHECKPOINT")
                self.run("pgbench " + script, kind, CLIENTS, ["-b", script])
        psql("DROP TABLE pgbench_accounts, pgbench_branches, pgbench_tellers, pgbench_history")
