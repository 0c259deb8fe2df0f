"""Runs of ycsb, each kept in a file by its command line: what has been run is not run again."""
import csv
import hashlib
import json
import os
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
YCSB = os.path.join(ROOT, "build", "bench", "ycsb")


def digest_of(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()[:16]


def index_of(line):
    return next(word.partition("=")[2] for word in line.split() if word.startswith("--index="))


class Cells:
    """The rows of runs; directory: where they are kept, None: only here. again: the indexes whose kept runs are not
    taken. strangers: how many kept runs of each index were of another ycsb than the one that is built."""

    def __init__(self, directory, again=()):
        self.directory = directory
        self.again = set(again)
        self.build = digest_of(YCSB)
        self.known = {}
        self.strangers = {}
        if directory is not None:
            os.makedirs(directory, exist_ok=True)

    def rows(self, line):
        """What --csv has of a run with these options, --index first; CalledProcessError: it failed."""
        if line not in self.known:
            cell = self.kept(line)
            self.known[line] = cell["rows"] if cell is not None else self.run(line)
        return self.known[line]

    def path(self, line):
        return os.path.join(self.directory, hashlib.sha256(line.encode()).hexdigest()[:24] + ".json")

    def kept(self, line):
        if self.directory is None or not os.path.exists(self.path(line)):
            return None
        with open(self.path(line), encoding="utf-8") as file:
            cell = json.load(file)
        if cell["ycsb"] != self.build:
            if index_of(line) in self.again:
                return None
            self.strangers[index_of(line)] = self.strangers.get(index_of(line), 0) + 1
        return cell

    def run(self, line):
        print("ycsb " + line, flush=True)
        read_end, write_end = os.pipe()
        with subprocess.Popen([YCSB, "--csv=/dev/fd/%d" % write_end] + line.split(), stdout=subprocess.DEVNULL,
                              pass_fds=(write_end,)) as process:
            os.close(write_end)
            with open(read_end, newline="", encoding="utf-8") as file:
                rows = list(csv.DictReader(file))
        if process.returncode != 0 or not rows:
            raise subprocess.CalledProcessError(process.returncode, "ycsb " + line)
        if self.directory is not None:
            self.keep(line, rows)
        return rows

    def keep(self, line, rows):
        path = self.path(line)
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump({"line": line, "ycsb": self.build, "rows": rows}, file, indent=1)
        os.replace(path + ".new", path)
