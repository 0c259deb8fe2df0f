"""The results of bench/measure.py as a table, a CSV file and a picture. A result is (name, unit, nbtree, smart); every
unit is a cost, so a ratio smart/nbtree below 1 is smart's advantage."""
import csv
import html
import sys


def note(text):
    print("... " + text, file=sys.stderr, flush=True)


def number(value):
    return "%.0f" % value if value >= 1000 else "%.1f" % value


def table(title, results, settings, rounds):
    print("\n%s" % title)
    print("medians of %d round%s, the two kinds taking turns; lower is better" % (rounds, "s" if rounds > 1 else ""))
    if settings:
        print("settings: " + settings.replace(";", ", "))
    print("\n%-56s %-7s %10s %10s %7s" % ("", "unit", "nbtree", "smart", "ratio"))
    for name, unit, nbtree, smart in sorted(results, key=group):
        print("%-56s %-7s %10s %10s %7.2f" % (name, unit, number(nbtree), number(smart), smart / nbtree))


def group(result):
    """Sizes first, then builds, writes, reads and whole workloads."""
    order = ("bytes per entry built", "bytes per entry after", "bytes on disk per entry built",
             "bytes on disk per entry after", "WAL", "CREATE", "INSERT", "COPY", "single rows", "VACUUM",
             "point lookup, index", "point lookup, heap", "nested loop", "range", "full scan, index", "full scan after",
             "min of a queue", "first of a session", "pgbench")
    return [result[0].startswith(prefix) for prefix in order].index(True)


def csv_file(path, results):
    with open(path, "w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle)
        writer.writerow(("measurement", "unit", "nbtree", "smart", "ratio"))
        for name, unit, nbtree, smart in sorted(results, key=group):
            writer.writerow((name, unit, "%.3f" % nbtree, "%.3f" % smart, "%.4f" % (smart / nbtree)))


def svg_file(path, title, results):
    """One bar for each measurement: the ratio smart/nbtree, with a line where both would be equal."""
    left, scale, step, top = 410, 400, 22, 70
    rows = sorted(results, key=group)
    longest = max(1.2, min(2.0, max(smart / nbtree for _, _, nbtree, smart in rows)))
    width, height = left + int(scale * longest) + 80, top + step * len(rows) + 30
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="13">'
           % (width, height),
           '<rect width="100%" height="100%" fill="white"/>',
           '<text x="16" y="28" font-size="17" font-weight="bold">%s</text>' % html.escape(title),
           '<text x="16" y="48" fill="#555">cost of smart relative to nbtree; shorter is better</text>']
    for place, (name, _, nbtree, smart) in enumerate(rows):
        ratio = smart / nbtree
        y = top + place * step
        bar = scale * min(ratio, longest)
        out.append('<text x="%d" y="%d" text-anchor="end">%s</text>' % (left - 8, y + 13, html.escape(name)))
        out.append('<rect x="%d" y="%d" width="%.1f" height="16" fill="%s"/>'
                   % (left, y, bar, "#2a7f9e" if ratio <= 1 else "#c8553d"))
        out.append('<text x="%.1f" y="%d" fill="#333">%.2f</text>' % (left + bar + 6, y + 13, ratio))
    one = left + scale
    out.append('<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="#333" stroke-dasharray="4 3"/>'
               % (one, top - 8, one, height - 22))
    out.append('<text x="%d" y="%d" text-anchor="middle" fill="#333">nbtree = 1</text>' % (one, height - 8))
    out.append("</svg>")
    with open(path, "w", encoding="utf-8") as handle:
        handle.write("\n".join(out) + "\n")
