#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes one page of plots and tables from the records of `penstock bench --json`. The page loads no other files.

    page.py [--gpu-figures FILE] [RECORDS [PAGE]]
    page.py --check [--gpu-figures FILE]      only checks that a page can be made, and reports why not

RECORDS and PAGE default to -, which means standard input and output. RECORDS may end with lines of gpu_bench.
Needs matplotlib and Jinja2.
"""
import argparse
import importlib.util
import io
import json
import math
import pathlib
import sys
import xml.etree.ElementTree as xml

SVG = "http://www.w3.org/2000/svg"
xml.register_namespace("", SVG)
xml.register_namespace("xlink", "http://www.w3.org/1999/xlink")
# Colours that colour-blind people can distinguish (Okabe and Ito). Further curves differ by their markers.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#444444")
MARKERS = "os^Dv"
WIDTH, HEIGHT = 5.9, 3.2  # inches of 96 pixels
STYLE = {"svg.fonttype": "none", "svg.hashsalt": "penstock", "font.size": 8, "axes.titlesize": 9.5,
         "axes.titleweight": "semibold", "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": "#888888",
         "axes.grid": True, "axes.grid.axis": "y", "grid.color": "#e4e4e4", "lines.linewidth": 1.4}


# --- Records ----------------------------------------------------------------

def read_lines(text, name):
    """Returns the objects of JSON lines, each with its line's number."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError:
            record = None
        yield number, record if isinstance(record, dict) else sys.exit(f"in {name}: line {number} is not a JSON object")


def read_records(text, name):
    """Returns the machines, the summaries, and the lines of gpu_bench."""
    machines, rows, figures = [], [], []
    for number, record in read_lines(text, name):
        if "workload" not in record:
            figures.append(check_figure(number, record, name))
        elif record["workload"] == "machine":
            machines.append(record)
        elif record.get("summary"):
            rows.append(record)
    return machines, rows, figures


def check_figure(number, record, name):
    numbers = [record.get(field) for field in ("gb_per_second", "least", "most")]
    good = isinstance(record.get("what"), str) and all(isinstance(value, (int, float)) and value >= 0 for value in numbers)
    if not good and "not_measured" not in record:
        sys.exit(f"in {name}: line {number} is not a figure of gpu_bench; give its unchanged output")
    return record


def read_figures(file):
    try:
        text = pathlib.Path(file).read_text()
    except OSError as error:
        sys.exit(f"cannot read {file}: {error.strerror}")
    return [check_figure(number, record, file) for number, record in read_lines(text, file)]


# --- Texts ------------------------------------------------------------------

def digits(value):
    """Returns three significant digits; "-" if the value was not measured."""
    if value is None or value < 0:
        return "-"
    if value >= 1e6:
        return digits(value / 1e6) + "M"
    if value >= 1e5:
        return f"{value / 1e3:.0f}k"
    before = max(0, math.floor(math.log10(value)) + 1) if value > 0 else 3
    return f"{value:.{max(0, 3 - before)}f}"


def size_text(count):
    for shift, unit in ((20, "MiB"), (10, "KiB")):
        if count >= 1 << shift and count % (1 << shift) == 0 and (unit == "MiB" or count < 1 << 20):
            return f"{count >> shift} {unit}"
    return f"{count:,} B"


def subject(row):
    """Returns what moves the row's elements: our protocol, or another system and its protocol."""
    words = (row["system"] if row["system"] != "penstock" else "", row["protocol"],
             "coordinated" if row["coordinated"] else "", row["last"], row["variant"])
    return " ".join(word for word in words if word)


def shape(row):
    return f"{row['workers']}:{row['consumers']}"


def sender(row):
    """Returns the sending host, and the reading host if that is not the first one."""
    here, there = row.get("hosts", ("", ""))
    return f"{there} to {here}" if row["workload"] == "pair" else there


def figure(field):
    return lambda row: digits(row.get(field))


COLUMNS = (
    ("case", lambda row: row["workload"]), ("sender", sender), ("system", subject), ("limit", lambda row: row["limit"]),
    ("element", lambda row: size_text(row["element_bytes"]) if row["element_bytes"] else ""),
    ("from:to", lambda row: shape(row) if row["element_bytes"] else ""),
    ("elements/s", figure("elements_per_s")), ("GB/s", figure("gb_per_s")), ("of line", figure("line_share")),
    ("limit GB/s", figure("limit_gb_per_s")), ("ratio", figure("ratio")), ("worst", figure("worst_ratio")),
    ("AU", figure("utilization")), ("pairs", lambda row: f"{row['clean_pairs']}/{row['pairs']}"),
    ("p50 us", figure("p50_us")), ("p99 us", figure("p99_us")), ("skew p99 us", figure("skew_p99_us")),
    ("spread p99", figure("spread_p99")), ("CPU s/GB", figure("cpu_s_per_gb")), ("limit CPU", figure("limit_cpu_s_per_gb")),
    ("CPU ratio", figure("cpu_ratio")), ("trainer CPU", figure("trainer_cpu_s_per_gb")), ("copied", figure("copied")),
    ("max/min share", figure("max_min_share")), ("", lambda row: row.get("note", "")))
WORDS = {"case", "sender", "system", "limit", "what", "of", ""}  # columns that are text


def table(rows):
    """Returns the head and the lines, without columns that are empty in all rows."""
    columns = [(head, [cell(row) for row in rows]) for head, cell in COLUMNS]
    told = [(head, cells) for head, cells in columns if any(cell not in ("", "-") for cell in cells)]
    return [head for head, _ in told], list(zip(*(cells for _, cells in told)))


def gpu_table(figures):
    rates = {line["what"]: line["gb_per_second"] for line in figures if "what" in line}
    lines = []
    for line in figures:
        if "what" in line:
            limit = rates.get(line.get("beside"))
            lines.append((line["what"], *(f"{line[field]:.2f}" for field in ("gb_per_second", "least", "most")),
                          f"{line['gb_per_second'] / limit:.3f}" if limit else "", line.get("beside", "")))
    return lines


# --- Plots ------------------------------------------------------------------

class Plot:
    """A plot as SVG. Its points have tooltips."""

    def __init__(self, title, y_title):
        from matplotlib.figure import Figure  # here, so that --check works without it
        self.figure = Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
        self.axes = self.figure.subplots()
        self.axes.set_title(title, loc="left")
        self.axes.set_ylabel(y_title)
        self.tips = {}

    def curve(self, name, number, points, **style):
        """Draws the points (x, y, lower end of the whisker, tooltip); `number` selects the colour."""
        xs, ys, lows, tips = zip(*sorted(points))
        style = {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number // len(COLOURS) % len(MARKERS)],
                 "markersize": 5, **style}
        self.axes.plot(xs, ys, label=name, **style)
        self.axes.vlines(xs, lows, ys, colors=style["color"], linewidth=1)
        for x, y, tip in zip(xs, ys, tips):
            group = f"point-{len(self.tips)}"
            self.axes.plot([x], [y], gid=group, **style)
            self.tips[group] = tip

    def ticks(self, ticks, title, sizes):
        """Sets the x axis. `ticks` maps texts to their places."""
        if sizes:
            self.axes.set_xscale("log")
            self.axes.minorticks_off()
            self.axes.set_xlim(min(ticks.values()) / 1.5, max(ticks.values()) * 1.5)
        else:
            self.axes.set_xlim(-0.5, len(ticks) - 0.5)
        long = sum(map(len, ticks)) > 70
        self.axes.set_xticks(list(ticks.values()), list(ticks), rotation=30 if long else 0, ha="right" if long else "center")
        self.axes.set_xlabel(title)

    def svg(self):
        if columns := math.ceil(len(self.axes.get_legend_handles_labels()[0]) / 16):
            self.axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False, ncols=columns)
            self.figure.set_figwidth(WIDTH + 1.5 * (columns - 1))
        text = io.StringIO()
        self.figure.savefig(text, format="svg", transparent=True)
        root = xml.fromstring(text.getvalue())
        root.remove(root.find(f"{{{SVG}}}metadata"))
        root.set("role", "img")
        for group in root.iter(f"{{{SVG}}}g"):
            if group.get("id") in self.tips:
                title = xml.Element(f"{{{SVG}}}title")
                title.text = self.tips[group.get("id")]
                group.insert(0, title)
        return xml.tostring(root, encoding="unicode")


# Candidates for the x axis: the first one that differs between rows is used. The others are part of a curve's name.
AXES = (("bytes of an element", lambda row: size_text(row["element_bytes"])), ("sender", sender), ("workers : trainers", shape))


def plots(rows):
    """Returns both plots of a workload: the rates with dashed limits, and the ratios with whiskers to the worst pair.

    If a curve has several limits, those after the first are other systems, which have their own curves.
    """
    rows = [row for row in rows if row["pairs"] and row["gb_per_s"] and (row["limit_gb_per_s"] or not row["limit"])]
    if not rows:
        return []
    if rows[0]["workload"] == "pair":
        return [matrix(rows)]
    (title, place_of), *others = [axis for axis in AXES if len(set(map(axis[1], rows))) > 1] or [("", subject)]
    sizes = place_of is AXES[0][1]
    ticks, limits, rates, of_limits, ratios = {}, {}, {}, {}, {}
    for row in rows:
        place, curve = place_of(row), " ".join([subject(row), *(text_of(row) for _, text_of in others)])
        x = ticks.setdefault(place, row["element_bytes"] if sizes else len(ticks))
        rate, limit, name = row["gb_per_s"], row["limit_gb_per_s"], row["limit"]
        tip = f"{curve} {place}: {rate:.3g} GB/s" + (f", {name} {limit:.3g}, ratio {row['ratio']:.2f}" if name else "")
        first = limits.setdefault(curve, name) == name
        if first:
            rates.setdefault(curve, []).append((x, rate, rate, tip))
        if first and name:
            of_limits.setdefault(curve, []).append((x, limit, limit, tip))
        if name:
            ratios.setdefault(curve if first else f"{curve} by {name}", []).append((x, row["ratio"], row["worst_ratio"], tip))

    rate = Plot("GB/s at the reader, the limit dashed", "GB/s")
    for number, (curve, points) in enumerate(rates.items()):
        rate.curve(curve, number, points)
        if curve in of_limits:
            rate.curve(limits[curve], number, of_limits[curve], linestyle="--", markersize=3)
    values = [y for points in (*rates.values(), *of_limits.values()) for _, y, _, _ in points]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    rate.axes.set_yscale("log")
    rate.axes.set_ylim(10.0 ** low, 10.0 ** max(high, low + 1))
    rate.axes.yaxis.set_major_formatter("{x:g}")
    rate.axes.yaxis.set_minor_formatter("")
    rate.ticks(ticks, title, sizes)
    if not ratios:
        return [rate.svg()]

    ratio = Plot("share of the limit: median, with a whisker to the worst pair", "ratio")
    for number, (curve, points) in enumerate(ratios.items()):
        ratio.curve(curve, number, points)
    ratio.axes.axhline(1, color="#888888", linestyle=":", linewidth=1)
    ratio.axes.set_ylim(0, 1.08 * max(1, *(y for points in ratios.values() for _, y, _, _ in points)))
    ratio.ticks(ticks, title, sizes)
    return [rate.svg(), ratio.svg()]


def matrix(rows):
    """Returns a plot of the fastest row of each pair of hosts."""
    fastest = {}
    for row in rows:
        fastest[tuple(row["hosts"])] = max(fastest.get(tuple(row["hosts"]), 0), row["gb_per_s"])
    hosts = list(dict.fromkeys(reader for reader, _ in fastest))
    plot = Plot("GB/s of the fastest row of each pair", "reader")
    plot.axes.grid(False)
    plot.axes.pcolormesh([[fastest.get((reader, sender), math.nan) for sender in hosts] for reader in hosts],
                         cmap="Blues", vmin=0, vmax=1.5 * max(fastest.values()))  # pale, for the figures on it
    for (reader, sender), rate in fastest.items():
        plot.axes.text(hosts.index(sender) + 0.5, hosts.index(reader) + 0.5, digits(rate), ha="center", va="center")
    plot.axes.invert_yaxis()
    plot.axes.set_yticks([place + 0.5 for place in range(len(hosts))], hosts)
    plot.ticks({host: place + 0.5 for place, host in enumerate(hosts)}, "sender", sizes=False)
    plot.axes.set_xlim(0, len(hosts))
    return plot.svg()


# --- The page ---------------------------------------------------------------

def page(machines, rows, figures):
    import jinja2
    import matplotlib
    sections = []
    with matplotlib.rc_context(STYLE):
        for name in dict.fromkeys(row["workload"] for row in rows):
            own = [row for row in rows if row["workload"] == name]
            sections.append({"title": ": ".join(filter(None, (name, own[0].get("question")))),
                             "plots": [jinja2.utils.markupsafe.Markup(svg) for svg in plots(own)]})
    texts = [f"{host}: {machine['description']}" if (host := machine.get("host")) else machine["description"]
             for machine in machines]
    head, lines = table(rows)
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(pathlib.Path(__file__).resolve().parent),
                                     autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.get_template("template.html").render(
        machines=[f"{text}; penstock {machine['version']}" for text, machine in zip(texts, machines)], sections=sections,
        head=head, lines=lines, words=WORDS, gpu_lines=gpu_table(figures),
        not_measured=[line["not_measured"] for line in figures if "not_measured" in line])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only report why no page can be made")
    parser.add_argument("--gpu-figures", metavar="FILE", help="the output of gpu_bench")
    parser.add_argument("records", nargs="?", default="-", metavar="RECORDS")
    parser.add_argument("page", nargs="?", default="-", metavar="PAGE")
    options = parser.parse_args()
    more = read_figures(options.gpu_figures) if options.gpu_figures else []
    missing = [name for name in ("matplotlib", "jinja2") if importlib.util.find_spec(name) is None]
    if missing:
        sys.exit(f"{sys.executable} has no {' and no '.join(missing)} (Debian: python3-matplotlib, python3-jinja2)")
    if options.check:
        return
    text = sys.stdin.read() if options.records == "-" else pathlib.Path(options.records).read_text()
    machines, rows, figures = read_records(text, options.records)
    html = page(machines, rows, figures + more)
    if options.page == "-":
        sys.stdout.write(html)
    else:
        pathlib.Path(options.page).write_text(html)


if __name__ == "__main__":
    main()
