"""What bench/measure.py and bench/churn.py run on the server that PGHOST names: psql and pgbench."""
import glob
import os
import re
import subprocess
import sys

KINDS = ("nbtree", "smart")
METHOD = {"nbtree": "btree", "smart": "smart"}


def psql(*statements):
    """Runs statements in one session; returns all lines that it prints."""
    script = "".join(s if s.startswith("\\") else s.rstrip(";") + ";\n" for s in statements)
    done = subprocess.run(["psql", "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1"], input=script, text=True,
                          stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        sys.exit("bench: failed: " + script[:300])
    return done.stdout.splitlines()


def timed(statement, before=(), runs=1):
    """Milliseconds of each of several runs of a statement in one session, as psql measures them."""
    lines = psql(*before, "\\timing on\n", *[statement] * runs)
    return [float(m.group(1)) for m in (re.match(r"Time: ([0-9.]+) ms", line) for line in lines) if m][-runs:]


def wal_of(statement):
    """Bytes of WAL that a statement writes, on a server that does nothing else."""
    position = "SELECT pg_current_wal_insert_lsn() - '0/0'"
    lines = psql(position, statement, position)
    return int(lines[-1]) - int(lines[0])


def pgbench(clients, arguments, script=None):
    """Runs transactions in several clients, prepared statements; of a script or a built-in one. Returns the microseconds
    that one takes in its client, and how many there were. A rate becomes a cost by that, so that less is better, as in
    everything else: a rate ratio of 0.95 is 1.05 here."""
    if script is not None:
        arguments = ["-f", "/dev/stdin"] + arguments
    done = subprocess.run(["pgbench", "-n", "-M", "prepared", "-c", str(clients), "-j", "2"] + arguments + ["postgres"],
                          check=False, text=True, input=script, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    rate = re.search(r"^tps = ([0-9.]+)", done.stdout, re.M)
    count = re.search(r"^number of transactions actually processed: ([0-9]+)", done.stdout, re.M)
    if done.returncode != 0 or rate is None or count is None:
        sys.exit("bench: pgbench failed: %s\n%s" % (done.stderr[-1000:], script or " ".join(arguments)))
    return clients * 1e6 / float(rate.group(1)), int(count.group(1))


def server_cpu():
    """Microseconds of processor time that the server's processes have taken so far. Those that have ended are the
    postmaster's, which waits for them."""
    with open(psql("SHOW data_directory")[0] + "/postmaster.pid", encoding="utf-8") as handle:
        postmaster = handle.readline().strip()
    ticks = 0
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path, encoding="utf-8", errors="replace") as handle:
                fields = handle.read().rpartition(")")[2].split()
        except OSError:
            continue
        # Behind the name: state, parent, …, utime, stime, and those of children that were waited for.
        if path.split("/")[2] == postmaster:
            ticks += sum(int(field) for field in fields[11:15])
        elif fields[1] == postmaster:
            ticks += sum(int(field) for field in fields[11:13])
    return ticks * 1e6 / os.sysconf("SC_CLK_TCK")
