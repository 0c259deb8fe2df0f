"""The table of all indexes: YCSB's workloads by key set, cache and number of clients, each cell a run of its own."""
import csv
import math
import os
import subprocess

# SMART's setting, with memory nodes on machines of their own.
CLUSTER = "--rdwc=on --compute-nodes=16 --memory-nodes=2"

# Of this tree: small entries are best off in small leaves. Leaves that are cached as a whole may be longer, and are as
# full as those of DEX's model.
PARTITIONS = " --partitions=256 --fill=70 --values=on"
LOGS = PARTITIONS + " --leaf-size=512 --log-flights=8"
OWN = {"tree": {"randint": " --leaf-size=256 --values=on", "email": " --values=on"},
       "partitions": {"randint": PARTITIONS, "email": PARTITIONS},
       "logs": {"randint": LOGS, "email": LOGS}}

NAMES = {"tree": "this tree", "partitions": "this tree, partitions", "logs": "this tree, partitions with logs",
         "smart": "SMART", "sherman": "Sherman", "art": "ART", "dart": "DART", "dex": "DEX",
         "canrt": "CANRT", "wort": "WORT", "chime": "CHIME"}
INTEGERS_ONLY = {"sherman", "dex", "canrt", "wort", "chime"}
WORKLOADS = ("load", "a", "b", "c", "d", "e", "f")
KEY_SETS = {"randint": "integers", "email": "e-mail addresses"}
RECORD_BYTES = {"randint": 16, "email": 28}
WHOLE = 10 ** 9  # bytes of a cache that has room for any index
CACHES = {"1": "1 %", "10": "10 %", "whole": "all"}
CLIENTS = (16, 128, 512, 1024)
COMPUTE_NODES = 16

# Keys; operations and warm-up of workloads, by what they cost to simulate: a run takes a second or two.
FULL = {"keys": 200000, "c": (50000, 100000), "a": (50000, 50000), "e": (3000, 3000)}
QUICK = {"keys": 3000, "c": (2000, 1000), "a": (2000, 1000), "e": (50, 50)}

KINDS = {"load": "c", "a": "a", "b": "c", "c": "c", "d": "c", "e": "e", "f": "a"}


def cache_bytes(keys, key_type, cache):
    """Of a compute node: a share of the records' bytes, or room for any index."""
    return WHOLE if cache == "whole" else max(keys * RECORD_BYTES[key_type] * int(cache) // 100, 16384)


LOG_WHOLE = 16 << 20  # room for all changes of a run
LOG_MIN = 16 << 10


def log_bytes(memory):
    """Of a compute node with so much memory: it keeps a copy of the log, and as much again at most to find what is in
    it. The other half of the memory is for the cache. 0: there is no room for the least log."""
    if memory == WHOLE:
        return LOG_WHOLE
    log = memory // 4 // 64 * 64
    return log if log >= LOG_MIN else 0


def memory_options(index, memory):
    """The cache of a compute node, and its log if it has one."""
    if index != "logs":
        return " --cache=%d" % memory
    return " --cache=%d --log=%d" % (memory if memory == WHOLE else memory // 2, log_bytes(memory))


class Cell:
    """One index at one workload in one setting."""

    def __init__(self, index, key_type, workload, cache, clients):
        self.index, self.key_type, self.workload, self.cache, self.clients = index, key_type, workload, cache, clients

    def line(self, sizes):
        operations, warmup = (1, 0) if self.workload == "load" else sizes[KINDS[self.workload]]
        own = OWN.get(self.index, {}).get(self.key_type, "")
        return "--index=%s %s%s --clients=%d --key-type=%s%s --workload=%s%s --keys=%d --operations=%d " \
            "--warmup=%d" % ("tree" if self.index in OWN else self.index, CLUSTER, own,
                             self.clients // COMPUTE_NODES, self.key_type,
                             memory_options(self.index, cache_bytes(sizes["keys"], self.key_type, self.cache)),
                             self.workload, "" if self.workload == "load" else " --load=sorted", sizes["keys"],
                             operations, warmup)


def caches_of(index, key_type, quick):
    """Those in which there is room for what the index needs."""
    keys = (QUICK if quick else FULL)["keys"]
    if index == "logs":
        return [cache for cache in CACHES if log_bytes(cache_bytes(keys, key_type, cache)) > 0]
    return ["10"] if quick else list(CACHES)


def cells_of_all(indexes, quick):
    """In the order in which they are run."""
    clients = (128,) if quick else CLIENTS
    return [Cell(index, key_type, workload, cache, number)
            for index in indexes for key_type in KEY_SETS if key_type == "randint" or index not in INTEGERS_ONLY
            for workload in WORKLOADS for cache in caches_of(index, key_type, quick) for number in clients]


def measure(cells, indexes, quick):
    """(cell, row) of all; a run that fails has None for its row."""
    results = []
    for cell in cells_of_all(indexes, quick):
        try:
            row = cells.rows(cell.line(QUICK if quick else FULL))[0]
        except subprocess.CalledProcessError as error:
            print("failed: %s" % error.cmd, flush=True)
            row = None
        results.append((cell, row))
    return results


# What an operation of an index costs in trees of all sizes, with any cache and any clients.
COSTS = (("sherman", "c", "read_bytes", 1024, 2048), ("dex", "c", "atomics", 0, 0), ("dex", "a", "atomics", 0, 0),
         ("tree", "c", "atomics", 0, 0), ("tree", "c", "writes", 0, 0), ("partitions", "c", "atomics", 0, 0),
         ("partitions", "c", "writes", 0, 0), ("logs", "c", "atomics", 0, 0), ("logs", "c", "writes", 0, 0),
         ("smart", "c", "writes", 0, 0),
         ("art", "c", "writes", 0, 0), ("dart", "c", "writes", 0, 0), ("dart", "c", "reads", 1, 30),
         ("canrt", "c", "round_trips", 1, 1), ("wort", "c", "messages", 1, 1), ("wort", "c", "reads", 0, 0),
         ("chime", "c", "writes", 0, 0), ("chime", "c", "atomics", 0, 0))


def problems(results):
    """Runs that failed, and costs that are not what they have to be."""
    out = ["failed: %s, %s, %s, cache %s, %d clients" % (
        cell.index, cell.key_type, cell.workload, cell.cache, cell.clients) for cell, row in results if row is None]
    for cell, row in results:
        out += ["%s, %s: %s is %s" % (cell.index, cell.workload, column, row[column])
                for index, workload, column, low, high in COSTS
                if row and (cell.index, cell.workload) == (index, workload) and not low <= float(row[column]) <= high]
    return out


def mops(row):
    return float(row["throughput"]) / 1e6


def three_digits(value):
    return "%.3g" % value if value < 999.5 else "%.0f" % value


# ---- the table ----

COLUMNS = ("throughput", "p50_us", "p99_us", "round_trips", "reads", "writes", "atomics", "messages", "read_bytes",
           "write_bytes", "hit_ratio", "memory_bytes")


def write_csv(results, path):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("index", "key_type", "workload", "cache", "clients") + COLUMNS)
        for cell, row in results:
            writer.writerow((cell.index, cell.key_type, cell.workload, cell.cache, cell.clients) + tuple(
                "" if row is None else row[column] for column in COLUMNS))


def write_block(file, of, indexes, workloads, place):
    """The rows of one key set, number of clients and cache; the best of a column in bold letters."""
    key_type, clients, cache = place
    rows = [(index, [of.get((index, key_type, workload, cache, clients)) for workload in workloads])
            for index in indexes]
    best = [max((mops(row[column]) for _, row in rows if row[column]), default=0) for column in range(len(workloads))]
    for index, row in rows:
        if any(row):
            file.write("| %s | %s | %s |\n" % (CACHES[cache], NAMES[index], " | ".join(
                "" if cell is None else ("**%s**" if mops(cell) == best[column] else "%s") % three_digits(mops(cell))
                for column, cell in enumerate(row))))


def write_markdown(results, path):
    """Millions of operations a second, a table for each key set and number of clients."""
    of = {(cell.index, cell.key_type, cell.workload, cell.cache, cell.clients): row for cell, row in results}
    indexes, key_types, workloads, caches, clients = (list(dict.fromkeys(key[i] for key in of)) for i in range(5))
    with open(path, "w", encoding="utf-8") as file:
        for key_type in key_types:
            for number in clients:
                file.write("\n**%s, %d clients** (Mops)\n\n" % (KEY_SETS[key_type].capitalize(), number))
                file.write("| cache | | %s |\n|---|---|%s\n" % (
                    " | ".join(workload.upper() for workload in workloads), "---|" * len(workloads)))
                for cache in caches:
                    write_block(file, of, indexes, workloads, (key_type, number, cache))


def over_the_best(results, own, without):
    """Of each setting: the ratio of this tree, the best of these ways to run it, to the best of the others without
    these, and which that is."""
    best, mine = {}, {}
    for cell, row in results:
        if row is not None:
            place = (cell.key_type, cell.workload, cell.cache, cell.clients)
            if cell.index in own:
                mine[place] = max(mops(row), mine.get(place, 0))
            elif cell.index not in OWN and cell.index not in without and mops(row) > best.get(place, (0, ""))[0]:
                best[place] = (mops(row), cell.index)
    return {place: (mine[place] / best[place][0], best[place][1]) for place in mine if place in best}


def write_places(file, name, ratios):
    """In how many of the settings this tree is the first, and where it is furthest behind and ahead."""
    low, high = min(ratios, key=ratios.get), max(ratios, key=ratios.get)
    file.write("| %s | %d of %d | %s |\n" % (
        name, sum(ratio[0] >= 1 for ratio in ratios.values()), len(ratios),
        " | ".join("%s | %s, %s cache, %d clients" % (three_digits(ratios[place][0]), NAMES[ratios[place][1]],
                                                     CACHES[place[2]], place[3]) for place in (low, high))))


def write_summary(results, path):
    with open(path, "w", encoding="utf-8") as file:
        for title, own, without in (("Without partitions, and without DEX, which has some", {"tree"}, {"dex"}),
                                    ("Without partitions", {"tree"}, ()),
                                    ("With partitions or without", {"tree", "partitions"}, ()),
                                    ("With partitions, with logs or without", set(OWN), ())):
            ratios = over_the_best(results, own, without)
            file.write("\n%s\n\n| keys | workload | first in | lowest | | highest | |\n|---|---|---|---|---|---|---|\n"
                       % title)
            for key_type in dict.fromkeys(place[0] for place in ratios):
                of_keys = {place: ratio for place, ratio in ratios.items() if place[0] == key_type}
                for workload in dict.fromkeys(place[1] for place in of_keys):
                    write_places(file, "%s | %s" % (KEY_SETS[key_type], workload.upper()),
                                 {place: ratio for place, ratio in of_keys.items() if place[1] == workload})
                write_places(file, "%s | all" % KEY_SETS[key_type], of_keys)


# ---- the picture: a row of panels for each cache, a panel for each workload ----

COLOURS = {"tree": ("#d1242f", "#ff6b6b"), "partitions": ("#c2449a", "#ff8fd6"), "logs": ("#6b1530", "#ffc2c9"),
           "smart": ("#1f77b4", "#6cb6ff"), "sherman": ("#2e8b57", "#57d38c"),
           "art": ("#8a6d3b", "#d2b48c"), "dart": ("#7a4fa3", "#c297ff"), "dex": ("#d9822b", "#ffb454"),
           "canrt": ("#0f8b8d", "#56d4d6"), "wort": ("#777777", "#aaaaaa"), "chime": ("#b8860b", "#f0d060")}
PANEL, GAP, LEFT, TOP = 132, 20, 74, 78


def style():
    rule = "text{fill:%s}.sheet{fill:%s}.grid{stroke:%s;fill:none}"
    colours = lambda side: "".join(".%s{stroke:%s}text.%s{stroke:none;fill:%s}" % (
        index, colour[side], index, colour[side]) for index, colour in COLOURS.items())
    return "<style>%spolyline{fill:none;stroke-width:1.6}.tree{stroke-width:2.8}%s" \
        "@media (prefers-color-scheme:dark){%s%s}</style>\n" % (
            rule % ("#222", "#fff", "#ccc"), colours(0), rule % ("#ddd", "#0d1117", "#444"), colours(1))


def panel(curves, clients, x, y, powers):
    """Throughput, on a scale from one power of ten to another, over the numbers of clients, side by side."""
    low, high = powers
    out = ['<rect class="grid" x="%d" y="%d" width="%d" height="%d"/>' % (x, y, PANEL, PANEL)]
    for power in range(low, high + 1):
        height = y + PANEL * (high - power) / (high - low)
        out.append('<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/><text x="%d" y="%.1f" text-anchor="end">%g'
                   '</text>' % (x, x + PANEL, height, height, x - 3, height + 4, 10 ** power))
    step = (PANEL - 16) / max(len(clients) - 1, 1)
    for index, points in curves:
        out.append('<polyline class="%s" points="%s"/>' % (index, " ".join(
            "%.1f,%.1f" % (x + 8 + step * clients.index(number),
                           y + PANEL * (high - math.log10(value)) / (high - low)) for number, value in points)))
    return out


def powers_around(values):
    low = math.floor(math.log10(min(values)))
    return low, max(math.ceil(math.log10(max(values))), low + 1)


def write_picture(results, key_type, path):
    done = [(cell, mops(row)) for cell, row in results if row is not None and cell.key_type == key_type]
    present = lambda name: list(dict.fromkeys(getattr(cell, name) for cell, _ in done))
    workloads, caches, clients, indexes = (present(name) for name in ("workload", "cache", "clients", "index"))
    clients.sort()
    width, height = LEFT + len(workloads) * (PANEL + GAP + 16), TOP + len(caches) * (PANEL + GAP) + 26
    out = ['<text x="12" y="24" font-size="16">%s: million operations a second over clients, by workload and cache'
           '</text>' % KEY_SETS[key_type].capitalize()]
    x = 12
    for index in indexes:
        out.append('<text class="%s" x="%d" y="46" font-weight="bold">%s</text>' % (index, x, NAMES[index]))
        x += 30 + 7 * len(NAMES[index])
    for column, workload in enumerate(workloads):
        x = LEFT + column * (PANEL + GAP + 16)
        powers = powers_around([value for cell, value in done if cell.workload == workload])
        out.append('<text x="%d" y="%d" font-weight="bold">%s</text>' % (x, TOP - 8, workload.upper()))
        out.append('<text x="%d" y="%d">%d</text><text x="%d" y="%d" text-anchor="end">%d clients</text>' % (
            x, height - 14, clients[0], x + PANEL, height - 14, clients[-1]))
        for line, cache in enumerate(caches):
            curves = [(index, [(cell.clients, value) for cell, value in done if (cell.index, cell.workload,
                                                                                cell.cache) == (index, workload, cache)])
                      for index in reversed(indexes)]
            out += panel(curves, clients, x, TOP + line * (PANEL + GAP), powers)
    for line, cache in enumerate(caches):
        out.append('<text x="12" y="%d">cache</text><text x="12" y="%d">%s</text>' % (
            TOP + line * (PANEL + GAP) + 60, TOP + line * (PANEL + GAP) + 76, CACHES[cache]))
    with open(path, "w", encoding="utf-8") as file:
        file.write('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" '
                   'font-size="11">\n%s<rect class="sheet" width="100%%" height="100%%"/>\n%s\n</svg>\n' % (
                       width, height, style(), "\n".join(out)))


def write(results, directory):
    write_csv(results, os.path.join(directory, "table.csv"))
    write_markdown(results, os.path.join(directory, "table.md"))
    write_summary(results, os.path.join(directory, "table_summary.md"))
    for key_type in KEY_SETS:
        write_picture(results, key_type, os.path.join(directory, "table_%s.svg" % KEY_SETS[key_type].split()[0]))
