"""The results of bench/measure.py as a table, a CSV file and pictures. A result is (name, unit, nbtree, smart); every
unit is a cost, time per transaction where others give a rate, so a ratio smart/nbtree below 1 is smart's advantage: half
of nbtree's rate is a ratio of 2."""
import csv
import html
import os
import sys

CHURN = "churn, " # what the names of these measurements begin with


def note(text):
    print("... " + text, file=sys.stderr, flush=True)


def number(value):
    return "%.0f" % value if value >= 1000 else "%.1f" % value


def table(title, results, settings, rounds):
    print("\n%s" % title)
    print("medians of %d round%s, the two kinds taking turns" % (rounds, "s" if rounds > 1 else ""))
    print("lower is better, also where a rate was measured: us/txn is time per transaction, 95 % of nbtree's rate is 1.05")
    for line in settings:
        print("settings " + line.replace(";", ", "))
    print("\n%-56s %-7s %10s %10s %7s" % ("", "unit", "nbtree", "smart", "ratio"))
    for name, unit, nbtree, smart in sorted(results, key=group):
        print("%-56s %-7s %10s %10s %7.2f" % (name, unit, number(nbtree), number(smart), smart / nbtree))


def group(result):
    """Sizes first, then builds, writes, reads and whole workloads."""
    order = ("bytes per entry built", "bytes per entry after", "bytes on disk per entry built",
             "bytes on disk per entry after", "WAL", "CREATE", "INSERT", "COPY", "single rows", CHURN, "CPU of churn",
             "VACUUM", "change and", "point lookup, index", "point lookup, heap", "nested loop", "range",
             "full scan, index", "full scan after", "full scan, 1 %", "min of a queue", "first of a session", "pgbench")
    return [result[0].startswith(prefix) for prefix in order].index(True)


def csv_file(path, results):
    with open(path, "w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle)
        writer.writerow(("measurement", "unit", "nbtree", "smart", "ratio"))
        for name, unit, nbtree, smart in sorted(results, key=group):
            writer.writerow((name, unit, "%.3f" % nbtree, "%.3f" % smart, "%.4f" % (smart / nbtree)))


# What stands in README.md: headings, and under each (measurement, what it is called there).
GLANCE = (
    ("Room", (("bytes per entry built, random", "memory, random integers"),
              ("bytes per entry built, e-mail", "memory, e-mail addresses"),
              ("bytes on disk per entry built, random", "disk, random integers"),
              ("WAL bytes per row, after a checkpoint, random order", "WAL of inserts after a checkpoint"))),
    ("Writing", (("CREATE INDEX, random", "CREATE INDEX, random integers"),
                 ("CREATE INDEX, e-mail", "CREATE INDEX, e-mail addresses"),
                 ("INSERT, random order", "INSERT … SELECT, random integers"),
                 ("single rows, 1 client", "INSERT of single rows"))),
    ("Reading", (("point lookup, index only, random", "lookup, index only"),
                 ("point lookup, heap fetch, random", "lookup with its row"),
                 ("range scan, index only, per entry, random", "range scan, index only"),
                 ("full scan after inserts, per entry, random order", "whole index, grown by inserts"))))
# Of the measurements of churn the worst is shown, whichever it is, behind this heading.
CHURN_BEHIND = "Writing"
LEFT, SCALE, STEP, TOP = 410, 400, 22, 70
STYLE = """<style>text{fill:#222}.sheet{fill:#fff}.faint{fill:#666}.less{fill:#2a7f9e}.more{fill:#c8553d}
line{stroke:#333;stroke-dasharray:4 3}@media (prefers-color-scheme:dark){text{fill:#ddd}.sheet{fill:#0d1117}.faint{fill:#999}
.less{fill:#4fb3d4}.more{fill:#e8836c}line{stroke:#bbb}}</style>"""


def bar(y, label, ratio, longest):
    length = SCALE * min(ratio, longest)
    return ['<text x="%d" y="%d" text-anchor="end">%s</text>' % (LEFT - 8, y + 13, html.escape(label)),
            '<rect class="%s" x="%d" y="%d" width="%.1f" height="16"/>'
            % ("less" if ratio <= 1 else "more", LEFT, y, length),
            '<text x="%.1f" y="%d">%.2f</text>' % (LEFT + length + 6, y + 13, ratio)]


def draw(path, title, groups):
    """One bar for each ratio smart/nbtree of groups, (heading, [(label, ratio)]), with a line where both are equal."""
    longest = max(1.2, min(2.0, max(ratio for _, bars in groups for _, ratio in bars)))
    lines = []
    y = TOP
    for heading, bars in groups:
        if heading:
            lines.append('<text x="16" y="%d" font-weight="bold">%s</text>' % (y + 13, heading))
        for label, ratio in bars:
            lines += bar(y, label, ratio, longest)
            y += STEP
        y += STEP // 2
    one = LEFT + SCALE
    height = y + 24
    head = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="13">'
            % (LEFT + int(SCALE * longest) + 80, height),
            STYLE, '<rect class="sheet" width="100%" height="100%"/>',
            '<text x="16" y="28" font-size="17" font-weight="bold">%s</text>' % html.escape(title),
            '<text class="faint" x="16" y="48">cost of smart relative to nbtree; shorter is better</text>']
    tail = ['<line x1="%d" y1="%d" x2="%d" y2="%d"/>' % (one, TOP - 8, one, height - 22),
            '<text x="%d" y="%d" text-anchor="middle">nbtree = 1</text>' % (one, height - 8), "</svg>"]
    with open(path, "w", encoding="utf-8") as handle:
        handle.write("\n".join(head + lines + tail) + "\n")


def glance(ratios):
    """What README.md shows; None if not all of it was measured."""
    churn = [name for name in ratios if name.startswith(CHURN)]
    if not churn or not all(name in ratios for _, bars in GLANCE for name, _ in bars):
        return None
    worst = max(churn, key=ratios.get)
    groups = []
    for heading, bars in GLANCE:
        groups.append((heading, [(label, ratios[name]) for name, label in bars]))
        if heading == CHURN_BEHIND:
            groups.append(("Churn", [("worst of %d: %s" % (len(churn), worst[len(CHURN):]), ratios[worst])]))
    return groups


def pictures(directory, title, results):
    """vs_nbtree.svg has everything; glance.svg what README.md shows, if that was measured."""
    ratios = {name: smart / nbtree for name, _, nbtree, smart in results}
    draw(os.path.join(directory, "vs_nbtree.svg"), title,
         [("", [(row[0], ratios[row[0]]) for row in sorted(results, key=group)])])
    shown = glance(ratios)
    if shown is not None:
        draw(os.path.join(directory, "glance.svg"), title, shown)


def read_csv(path):
    with open(path, newline="", encoding="utf-8") as handle:
        return [(row["measurement"], row["unit"], float(row["nbtree"]), float(row["smart"]))
                for row in csv.DictReader(handle)]


def main():
    """report.py CSV TITLE [OTHER CSV]...: draws the pictures beside a CSV file anew, which takes over the rows of others."""
    path, title, *others = sys.argv[1:]
    results = {result[0]: result for name in [path] + others for result in read_csv(name)}
    csv_file(path, results.values())
    pictures(os.path.dirname(path), title, list(results.values()))


if __name__ == "__main__":
    main()
