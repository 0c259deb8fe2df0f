#!/usr/bin/env python3
"""Measures smart and nbtree on the same tables in turn, on the server that PGHOST names (bench/vs_nbtree starts it)."""
import argparse
import os
import re
import statistics
import subprocess
import sys

import churn
import report
from session import KINDS, METHOD, pgbench, psql, timed, wal_of

# Expressions over g = 1 … rows; the hashes make the data the same in every run.
E_MAIL = """(ARRAY['anna','ben','carla','david','elena','farid','grace','hugo','ines','jan','katja','liam','maria',
'noah','olga','paul'])[1 + (h & 15)] || (h >> 4 & 16777215) || '@' || (ARRAY['mail.com','post.org','web.net','uni.edu'])
[1 + (h >> 30 & 3)]"""
TABLES = {
    "sequential": ("bigint", "g"),
    "random": ("bigint", "h"),
    "500 distinct": ("bigint", "(h & 9223372036854775807) % 500"),
    "e-mail": ('text COLLATE "C"', E_MAIL),
    "e-mail, ICU": ('text COLLATE "en-x-icu"', E_MAIL),
}
NAMES = {"sequential": "t_sequential", "random": "t_random", "500 distinct": "t_distinct", "e-mail": "t_email",
         "e-mail, ICU": "t_email_icu"}

# A table with five indexes, for what costs by the index.
WIDE = "(a bigint, b bigint, c text COLLATE \"C\", d int, e bigint)"
WIDE_ROWS = "SELECT g, hashint8extended(g, 42), md5(g::text), (g %% 1000)::int, g / 10 FROM generate_series(1, %d) AS g"
WIDE_INDEXES = {1: ("b",), 5: ("a", "b", "c", "d", "e, b")}
CHANGES = {"1 % deleted": "DELETE FROM target WHERE a % 100 = 0", "10 % deleted": "DELETE FROM target WHERE a % 10 = 0",
           "50 % deleted": "DELETE FROM target WHERE a % 2 = 0", "all updated": "UPDATE target SET b = b + 1"}


class Bench:
    def __init__(self, options):
        self.options = options
        self.rows = options.rows
        self.probes = min(options.rows // 4, 500000)
        self.wide_rows = options.rows // 4
        self.loaded = False
        self.samples = {}
        self.units = {}

    def record(self, name, unit, kind, value):
        self.units[name] = unit
        self.samples.setdefault(name, {}).setdefault(kind, []).append(value)

    def results(self):
        """(name, unit, nbtree, smart) by the median of each."""
        return [(name, self.units[name]) + tuple(statistics.median(by_kind[kind]) for kind in KINDS)
                for name, by_kind in self.samples.items()]

    def wanted(self, name):
        return self.options.only is None or self.options.only in name

    def alternate(self):
        """Each round measures both kinds; which of them begins changes, so that neither always finds the warmer machine."""
        for turn in range(self.options.rounds):
            for kind in KINDS if turn % 2 == 0 else KINDS[::-1]:
                yield turn, kind

    # ---- the data ------------------------------------------------------------------------------------------------

    def load(self):
        """Fills the tables of TABLES, unless they are there."""
        if self.loaded:
            return
        self.loaded = True
        report.note("loading %d rows into each of %d tables" % (self.rows, len(TABLES)))
        for name, (column, expression) in TABLES.items():
            table = NAMES[name]
            psql("CREATE TABLE %s (k %s, v bigint)" % (table, column),
                 "INSERT INTO %s SELECT %s, g FROM (SELECT g, hashint8extended(g, 42) AS h "
                 "FROM generate_series(1, %d) AS g) AS s" % (table, expression, self.rows),
                 "CREATE TABLE %s_probe AS SELECT k FROM (SELECT k FROM %s WHERE v %% 4 = 1) AS s "
                 "ORDER BY hashtext(k::text) LIMIT %d" % (table, table, self.probes))
        # A commit whose WAL is not flushed yet leaves pages that VACUUM cannot mark as all-visible.
        psql("CHECKPOINT", "VACUUM (FREEZE, ANALYZE)", "CHECKPOINT")
        for name, table in NAMES.items():
            psql("CREATE TABLE %s_range AS SELECT lo, lead(lo) OVER (ORDER BY lo) AS hi FROM "
                 "(SELECT k AS lo FROM (SELECT k, row_number() OVER (ORDER BY k) AS n FROM %s) AS s "
                 "WHERE n %% %d = 1) AS bounds" % (table, table, self.rows // 20 if name == "500 distinct" else 1000),
                 "DELETE FROM %s_range WHERE hi IS NULL OR hi = lo" % table, "VACUUM ANALYZE %s_range" % table)

    # ---- one index -----------------------------------------------------------------------------------------------

    def size(self, name, kind, index):
        """Bytes per entry where the index is searched (in memory, for smart), and in its file."""
        on_disk = "SELECT pg_relation_size('%s')"
        source = {"nbtree": on_disk, "smart": "SELECT bytes_allocated FROM smart_index_stats('%s')"}
        self.record("bytes per entry " + name, "B", kind, int(psql(source[kind] % index)[-1]) / self.rows)
        self.record("bytes on disk per entry " + name, "B", kind, int(psql(on_disk % index)[-1]) / self.rows)

    def expect_plan(self, statement, before, scan, index):
        """Ends the run unless the statement is executed as intended, index-only scans without a look at the heap."""
        plan = "\n".join(psql(*before, "EXPLAIN (ANALYZE, TIMING OFF, COSTS OFF) " + statement))
        if "%s using %s on" % (scan, index) not in plan or re.search("Heap Fetches: [1-9]", plan):
            sys.exit("bench: not the plan that was to be measured:\n%s\n%s" % (statement, plan))

    def query(self, name, kind, statement, scan, index, divisor=None):
        """Nanoseconds for each of divisor lookups, or for each row counted."""
        before = ["SET enable_seqscan = off", "SET enable_bitmapscan = off", "SET enable_hashjoin = off",
                  "SET enable_mergejoin = off", "SET enable_memoize = off", "SET enable_material = off",
                  "SET enable_sort = off"]
        self.expect_plan(statement, before, scan, index)
        divisor = divisor or int(psql(*before, statement)[-1])
        # The first run warms the backend: it maps and touches what it needs.
        for ms in timed(statement, before, 3)[1:]:
            self.record(name, "ns", kind, ms * 1e6 / divisor)

    def built(self, name):
        """CREATE INDEX, its size, lookups and scans of the fresh index."""
        table = NAMES[name]
        self.load()
        for _, kind in self.alternate():
            index = "%s_%s" % (table, kind)
            ms = timed("CREATE INDEX %s ON %s USING %s (k)" % (index, table, METHOD[kind]))[0]
            self.record("CREATE INDEX, " + name, "ms", kind, ms)
            self.size("built, " + name, kind, index)
            if name != "500 distinct":
                self.query("point lookup, index only, " + name, kind,
                           "SELECT count(*) FROM %s_probe AS p JOIN %s AS t USING (k)" % (table, table),
                           "Index Only Scan", index, self.probes)
                self.query("point lookup, heap fetch, " + name, kind,
                           "SELECT sum(t.v) FROM %s_probe AS p JOIN %s AS t USING (k)" % (table, table),
                           "Index Scan", index, self.probes)
            self.query("range scan, index only, per entry, " + name, kind,
                       "SELECT count(*) FROM %s_range AS r JOIN %s AS t ON t.k >= r.lo AND t.k < r.hi" % (table, table),
                       "Index Only Scan", index)
            self.query("full scan, index only, per entry, " + name, kind, "SELECT count(k) FROM %s" % table,
                       "Index Only Scan", index)
            psql("DROP INDEX " + index)

    def joined(self, name):
        """A nested loop over keys that were not looked up before; nbtree's pages are in shared buffers."""
        table = NAMES[name]
        self.load()
        before = ["SET enable_seqscan = off", "SET enable_bitmapscan = off", "SET enable_hashjoin = off",
                  "SET enable_mergejoin = off", "SET enable_memoize = off", "SET enable_material = off"]
        statements = {"index only": "SELECT count(*) FROM %s_probe AS p JOIN %s AS t USING (k)",
                      "heap fetch": "SELECT sum(t.v) FROM %s_probe AS p JOIN %s AS t USING (k)"}
        for _, kind in self.alternate():
            for what, statement in statements.items():
                statement %= (table, table)
                # What an index that is made anew finds is not cached.
                psql("CREATE INDEX joined ON %s USING %s (k)" % (table, METHOD[kind]))
                if kind == "nbtree":
                    psql(*before, statement)
                lines = psql(*before, "SELECT count(*) FROM %s_range" % table, "SELECT session_round_trips FROM smart_stat_fabric",
                             "\\timing on\n", statement, "\\timing off\n", "SELECT session_round_trips FROM smart_stat_fabric")
                ms = float(re.search(r"Time: ([0-9.]+) ms", "\n".join(lines)).group(1))
                self.record("nested loop, first time, %s, %s" % (what, name), "ns/row", kind, ms * 1e6 / self.probes)
                if kind == "smart":
                    report.note("%s: %.4f round trips a row" % (what, (int(lines[-1]) - int(lines[1])) / self.probes))
                psql("DROP INDEX joined")

    def inserted(self, name, title):
        """INSERT … SELECT into an indexed empty table, in the source's order, and what the grown index takes."""
        source = NAMES[name]
        self.load()
        for turn, kind in self.alternate():
            index = "target_" + kind
            psql("CREATE TABLE target (k %s, v bigint)" % TABLES[name][0],
                 "CREATE INDEX %s ON target USING %s (k)" % (index, METHOD[kind]))
            lines = psql("SELECT session_round_trips FROM smart_stat_fabric", "\\timing on\n",
                         "INSERT INTO target SELECT k, v FROM %s" % source, "\\timing off\n",
                         "SELECT session_round_trips FROM smart_stat_fabric")
            ms = float(re.search(r"Time: ([0-9.]+) ms", "\n".join(lines)).group(1))
            self.record("INSERT, " + title, "ns/row", kind, ms * 1e6 / self.rows)
            if kind == "smart":
                report.note("INSERT, %s: %.4f round trips a row" % (title, (int(lines[-1]) - int(lines[0])) / self.rows))
            self.size("after inserts, " + title, kind, index)
            if turn == 0 and not self.options.remote:
                psql("CHECKPOINT", "VACUUM (FREEZE, ANALYZE) target")
                self.query("full scan after inserts, per entry, " + title, kind, "SELECT count(k) FROM target",
                           "Index Only Scan", index)
                self.query("full scan after inserts, backward, per entry, " + title, kind,
                           "SELECT count(k) FROM (SELECT k FROM target ORDER BY k DESC OFFSET 0) AS s",
                           "Index Only Scan Backward", index)
            psql("DROP TABLE target", "CHECKPOINT")

    # ---- a table with several indexes, a queue, a session ----------------------------------------------------------

    def wide(self, kind, indexes):
        psql("CREATE TABLE target " + WIDE,
             *["CREATE INDEX ON target USING %s (%s)" % (METHOD[kind], columns) for columns in WIDE_INDEXES[indexes]])

    def vacuumed(self):
        for indexes in WIDE_INDEXES:
            for what, change in CHANGES.items():
                for _, kind in self.alternate():
                    self.wide(kind, indexes)
                    name = "%d index%s, %s" % (indexes, "es" if indexes > 1 else "", what)
                    psql("INSERT INTO target " + WIDE_ROWS % self.wide_rows, "CHECKPOINT", "VACUUM target")
                    changed = timed(change)[0]
                    psql("CHECKPOINT")
                    ms = timed("VACUUM target")[0]
                    self.record("VACUUM, " + name, "ms", kind, ms)
                    self.record("change and VACUUM, " + name, "ms", kind, changed + ms)
                    psql("DROP TABLE target")

    def copied(self):
        path = psql("SHOW data_directory")[0] + "/bench.copy"
        psql("COPY (%s) TO '%s'" % (WIDE_ROWS % self.wide_rows, path))
        for _, kind in self.alternate():
            self.wide(kind, 5)
            ms = timed("COPY target FROM '%s'" % path)[0]
            self.record("COPY, 5 indexes", "ns/row", kind, ms * 1e6 / self.wide_rows)
            psql("DROP TABLE target", "CHECKPOINT")

    def queued(self):
        """The first entry of a queue, the first half of which has been deleted, and no VACUUM has come by."""
        for _, kind in self.alternate():
            psql("CREATE TABLE target (k bigint, v bigint)",
                 "INSERT INTO target SELECT g, g FROM generate_series(1, %d) AS g" % self.wide_rows,
                 "CREATE INDEX ON target USING %s (k)" % METHOD[kind], "CHECKPOINT", "VACUUM ANALYZE target",
                 "DELETE FROM target WHERE k <= %d" % (self.wide_rows // 2))
            times = timed("SELECT min(k) FROM target", ["SET enable_seqscan = off"], 6)
            self.record("min of a queue, first time", "ms", kind, times[0])
            for ms in times[1:]:
                self.record("min of a queue, afterwards", "ms", kind, ms)
            psql("DROP TABLE target")

    def few_dead(self):
        """Full scans of a table of which one row in a hundred has been deleted, and no VACUUM has come by."""
        for _, kind in self.alternate():
            psql("CREATE TABLE target (k bigint, v bigint)",
                 "INSERT INTO target SELECT g, g FROM generate_series(1, %d) AS g" % self.wide_rows,
                 "CREATE INDEX ON target USING %s (k)" % METHOD[kind], "CHECKPOINT", "VACUUM ANALYZE target",
                 "DELETE FROM target WHERE k % 100 = 0")
            times = timed("SELECT count(k) FROM target", ["SET enable_seqscan = off", "SET enable_bitmapscan = off"], 6)
            for which, some in ("first time", times[:1]), ("afterwards", times[1:]):
                for ms in some:
                    self.record("full scan, 1 % deleted, per entry, " + which, "ns", kind, ms * 1e6 / self.wide_rows)
            psql("DROP TABLE target")

    def first(self):
        """What a session that has just begun takes for its first statement."""
        for kind in KINDS:
            psql("CREATE TABLE target_%s AS SELECT g AS k FROM generate_series(1, 100000) AS g" % kind,
                 "CREATE INDEX ON target_%s USING %s (k)" % (kind, METHOD[kind]), "VACUUM ANALYZE target_" + kind)
        for _, kind in self.alternate():
            for _ in range(20):
                self.record("first of a session, query", "ms", kind,
                            timed("SELECT k FROM target_%s WHERE k = 5" % kind)[0])
                self.record("first of a session, insert", "ms", kind,
                            timed("INSERT INTO target_%s VALUES (0)" % kind)[0])
        psql("DROP TABLE target_nbtree, target_smart")

    # ---- WAL -----------------------------------------------------------------------------------------------------

    def logged(self, name, title):
        """WAL of the index alone, that is, less what the same statement writes without an index: all rows into an empty
        table, and some into one with many entries just after a checkpoint, when pages are logged as a whole."""
        empty = "INSERT INTO target SELECT k, v FROM %s" % NAMES[name]
        many = max(self.rows // 2, 10000)
        some = many // 10
        table_alone = {}
        self.load()
        for kind in (None,) + KINDS:
            def target(kind=kind):
                psql("CREATE TABLE target (k %s, v bigint)" % TABLES[name][0])
                if kind is not None:
                    psql("CREATE INDEX target_k ON target USING %s (k)" % METHOD[kind])

            def measure(what, rows, statement, kind=kind):
                wal = wal_of(statement) / rows
                if kind is None:
                    table_alone[what] = wal
                else:
                    self.record("WAL bytes per row, %s, %s" % (what, title), "B", kind, wal - table_alone[what])
                psql("DROP TABLE target", "CHECKPOINT")

            target()
            measure("empty table", self.rows, empty)
            target()
            psql("%s WHERE v <= %d" % (empty, many), "CHECKPOINT")
            measure("after a checkpoint", some, "%s WHERE v > %d AND v <= %d" % (empty, many, many + some))

    def insert_rows(self, clients, duration):
        """Runs transactions of one row each, in random order; returns the microseconds of each."""
        script = "\\set k random(1, 9000000000000000000)\nINSERT INTO target VALUES (:k, 0);\n"
        return pgbench(clients, duration, script)[0]

    def single_rows(self):
        """Transactions of one row each into a table with many entries: their rate, and the WAL of the index alone,
        without images of whole pages."""
        transactions = max(1000, self.rows // 100)
        table_alone = 0
        self.load()
        for kind in (None,) + KINDS:
            psql("CREATE TABLE target (k bigint, v bigint)")
            if kind is not None:
                psql("CREATE INDEX target_k ON target USING %s (k)" % METHOD[kind])
            psql("INSERT INTO target SELECT k, v FROM %s WHERE v <= %d" % (NAMES["random"], self.rows // 2))
            for clients in (1, 4, 8) if kind is not None else ():
                psql("CHECKPOINT")
                self.record("single rows, %d client%s" % (clients, "s" if clients > 1 else ""), "us/txn", kind,
                            self.insert_rows(clients, ["-T", str(self.options.seconds)]))
            psql("ALTER SYSTEM SET full_page_writes = off", "SELECT pg_reload_conf()", "CHECKPOINT")
            before = int(psql("SELECT pg_current_wal_insert_lsn() - '0/0'")[-1])
            self.insert_rows(1, ["-t", str(transactions)])
            wal = (int(psql("SELECT pg_current_wal_insert_lsn() - '0/0'")[-1]) - before) / transactions
            if kind is None:
                table_alone = wal
            else:
                self.record("WAL bytes per transaction, single rows", "B", kind, wal - table_alone)
            psql("ALTER SYSTEM RESET full_page_writes", "SELECT pg_reload_conf()", "DROP TABLE target", "CHECKPOINT")

    # ---- pgbench -------------------------------------------------------------------------------------------------

    def accounts(self, name, flag):
        """Microseconds per transaction, prepared statements, the primary key replaced by a unique index of either kind."""
        scale = max(1, self.rows // 100000)
        subprocess.run(["pgbench", "-i", "-q", "-s", str(scale), "postgres"], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        psql("ALTER TABLE pgbench_accounts DROP CONSTRAINT pgbench_accounts_pkey")
        for _, kind in self.alternate():
            psql("CREATE UNIQUE INDEX accounts_%s ON pgbench_accounts USING %s (aid)" % (kind, METHOD[kind]),
                 "VACUUM ANALYZE pgbench_accounts", "CHECKPOINT")
            self.record(name, "us/txn", kind, pgbench(2, [flag, "-T", str(self.options.seconds)])[0])
            psql("DROP INDEX accounts_" + kind)

    def steps(self):
        for name in TABLES:
            yield name, lambda name=name: self.built(name)
        yield "INSERT random", lambda: self.inserted("random", "random order")
        yield "INSERT ascending", lambda: self.inserted("sequential", "ascending order")
        yield "INSERT e-mail", lambda: self.inserted("e-mail", "e-mail")
        yield "INSERT e-mail, ICU", lambda: self.inserted("e-mail, ICU", "e-mail, ICU")
        yield "VACUUM", self.vacuumed
        yield "COPY", self.copied
        yield "queue", self.queued
        yield "few dead", self.few_dead
        for name, step in churn.Churn(self).steps():
            yield "churn " + name, step
        yield "session", self.first
        if self.options.remote:
            for name in ("random", "e-mail"):
                yield "nested loop " + name, lambda name=name: self.joined(name)
        yield "WAL random", lambda: self.logged("random", "random order")
        yield "WAL ascending", lambda: self.logged("sequential", "ascending order")
        yield "WAL e-mail", lambda: self.logged("e-mail", "e-mail")
        yield "single rows", self.single_rows
        yield "pgbench -S", lambda: self.accounts("pgbench -S, 2 clients", "-S")
        yield "pgbench -N", lambda: self.accounts("pgbench -N, 2 clients", "-N")


def parse_arguments():
    parser = argparse.ArgumentParser(prog="bench/vs_nbtree", description="smart beside nbtree on the same tables",
                                     epilog="Less is better everywhere: a rate is shown as time per transaction. "
                                     "--only churn measures what dead entries cost, --only 'churn hot' one row of it.")
    parser.add_argument("--rows", type=int, help="rows of each table (2000000)")
    parser.add_argument("--rounds", type=int, help="rounds; figures are medians over them (3)")
    parser.add_argument("--seconds", type=int, help="seconds of each pgbench run (10)")
    parser.add_argument("--out", default="bench/out", help="directory for vs_nbtree.csv, vs_nbtree.svg and glance.svg")
    parser.add_argument("--only", help="only the steps whose name contains this: the table names, INSERT, VACUUM, "
                        "COPY, queue, few dead, churn, session, nested loop, WAL, single rows, pgbench")
    parser.add_argument("--remote", action="store_true", help="smart on two memory nodes on this machine, over TCP")
    parser.add_argument("--cpu", action="store_true", help="churn: the server's processor time per transaction, too, which "
                        "depends less on what else the machine does")
    parser.add_argument("--quick", action="store_true", help="100000 rows, one round, 2 s: to try the script")
    options = parser.parse_args()
    small = options.quick
    options.rows = options.rows or (100000 if small else 2000000)
    options.rounds = options.rounds or (1 if small else 3)
    options.seconds = options.seconds or (2 if small else 10)
    if options.rows < 10000:
        parser.error("--rows must be at least 10000")
    return options


def main():
    options = parse_arguments()
    bench = Bench(options)
    wanted = [(name, step) for name, step in bench.steps() if bench.wanted(name)]
    if not wanted:
        sys.exit("bench/measure.py: --only %r names none of: %s"
                 % (options.only, ", ".join(name for name, _ in bench.steps())))
    psql("CREATE EXTENSION smart")
    for name, step in wanted:
        report.note(name)
        step()
    title = "smart and nbtree, %s rows, PostgreSQL %s" % (
        format(options.rows, ","), psql("SHOW server_version")[0].split()[0])
    results = bench.results()
    settings = [line for line in (os.environ.get("BENCH_SETTINGS", ""),) if line]
    if any(name.startswith("churn ") for name, _ in wanted):
        settings.append("of churn: " + ";".join("%s = %s" % setting for setting in churn.SETTINGS.items()))
    report.table(title, results, settings, options.rounds)
    os.makedirs(options.out, exist_ok=True)
    report.csv_file(os.path.join(options.out, "vs_nbtree.csv"), results)
    report.pictures(options.out, title, results)


if __name__ == "__main__":
    main()
