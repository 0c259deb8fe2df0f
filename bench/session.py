"""What bench/measure.py and bench/churn.py run on the server that PGHOST names: psql and pgbench."""
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
    """Microseconds that a transaction takes in each of several clients, prepared statements; of a script or a built-in one.
    A rate becomes a cost by that, so that less is better, as in everything else: a rate ratio of 0.95 is 1.05 here."""
    if script is not None:
        arguments = ["-f", "/dev/stdin"] + arguments
    done = subprocess.run(["pgbench", "-n", "-M", "prepared", "-c", str(clients), "-j", "2"] + arguments + ["postgres"],
                          check=False, text=True, input=script, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    rate = re.search(r"^tps = ([0-9.]+)", done.stdout, re.M)
    if done.returncode != 0 or rate is None:
        sys.exit("bench: pgbench failed: %s\n%s" % (done.stderr[-1000:], script or " ".join(arguments)))
    return clients * 1e6 / float(rate.group(1))
