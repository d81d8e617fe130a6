#!/usr/bin/env python3
"""Figures of a run into docs/PERFORMANCE.md and its plots.

  ./bazelw run --config=opt //bench -- --all --out=/tmp/figures.json
  bench/report.py /tmp/figures.json

The words of PERFORMANCE.md are written by hand. What stands between `<!-- figures: NAME -->` and
`<!-- end -->` is made here from the file, and so are the plots in docs/performance/.
"""
import argparse
import html
import json
import math
import pathlib
import re
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
SYSTEMS = {
    "holdback": "Holdback",
    "floor": "the floor",
    "redis-always": "Redis Streams, appendfsync always",
    "redis-everysec": "Redis Streams, appendfsync everysec",
    "nats": "NATS JetStream",
}
COLOURS = {"holdback": "#1f6f8b", "floor": "#8d99a6", "redis-always": "#b5523b",
           "redis-everysec": "#d99a7c", "nats": "#7a6ba8"}


# ---- numbers as words

def count(value, digits=0):
    return "–" if value is None else f"{value:,.{digits}f}"


def short(value):
    """Three significant digits, with a unit of thousands."""
    if value is None:
        return "–"
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{value / limit:.3g} {unit}"
    return f"{value:.3g}"


def spread(point, metric, scale=1.0, digits=0):
    """median (lowest .. highest); the brackets only where there were several runs."""
    median = point["median"].get(metric)
    if median is None:
        return "–"
    text = count(median * scale, digits)
    if len(point["runs"]) > 1:
        lowest, highest = (point[end][metric] * scale for end in ("min", "max"))
        text += f" ({count(lowest, digits)} .. {count(highest, digits)})"
    return text


def table(head, rows, right_from=1):
    lines = ["| " + " | ".join(head) + " |",
             "|" + "|".join("---" if i < right_from else "---:" for i in range(len(head))) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


# ---- plots

def bars(title, unit, rows):
    """Horizontal bars with a whisker from the lowest to the highest run."""
    left, width, step, top = 250, 420, 26, 44
    largest = max(row["high"] for row in rows) or 1
    height = top + step * len(rows) + 16
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 780 {height}" font-family="'
           'system-ui, sans-serif" font-size="12" role="img">',
           f"<title>{html.escape(title)}</title>",
           f'<rect width="780" height="{height}" fill="#ffffff"/>',
           f'<text x="16" y="24" font-size="14" font-weight="600" fill="#222">{html.escape(title)}'
           f' <tspan font-weight="400" fill="#777">({html.escape(unit)})</tspan></text>']
    for i, row in enumerate(rows):
        y = top + i * step
        length, low, high = (width * row[key] / largest for key in ("value", "low", "high"))
        middle = y + 8
        out.append(f'<text x="{left - 8}" y="{middle + 4}" text-anchor="end" fill="#222">'
                   f'{html.escape(row["label"])}</text>')
        out.append(f'<rect x="{left}" y="{y}" width="{max(length, 1):.1f}" height="16" rx="2" '
                   f'fill="{row["colour"]}"/>')
        if high > low:
            out.append(f'<path d="M{left + low:.1f} {middle}H{left + high:.1f}M{left + low:.1f} '
                       f'{middle - 4}v8M{left + high:.1f} {middle - 4}v8" stroke="#222" '
                       'fill="none"/>')
        end = left + max(length, high) + 8
        out.append(f'<text x="{end:.1f}" y="{middle + 4}" fill="#444">{short(row["value"])}</text>')
    return "\n".join(out + ["</svg>", ""])


def plot(points, metric, scale=1.0):
    rows = []
    for point in points:
        if point["median"].get(metric) is None:
            continue
        value, low, high = (point[key][metric] * scale for key in ("median", "min", "max"))
        label = point["name"]
        if len({p["system"] for p in points}) > 1:
            label = SYSTEMS[point["system"]]
            if sum(p["system"] == point["system"] for p in points) > 1:
                label += ", " + point["name"]
        rows.append({"label": label, "value": value, "low": low, "high": high,
                     "colour": COLOURS[point["system"]]})
    return rows


# ---- the figures

class Figures:
    def __init__(self, data):
        self.data = data
        self.plots = {}

    def points(self, *rows):
        return [p for p in self.data["points"] if p["row"] in rows and p["runs"]]

    def draw(self, name, title, unit, rows):
        if not rows:
            return ""
        self.plots[name + ".svg"] = bars(title, unit, rows)
        return f"\n\n![{title}](performance/{name}.svg)"

    def machine(self):
        machine = self.data["machine"]
        rows = [[key, str(machine[key])] for key in
                ("date", "cpu", "cores", "memory", "filesystem", "system", "kernel")
                if key in machine]
        rows += [[name, version] for name, version in machine["versions"].items()]
        rows.append(["load before the end of the run, 15 minutes",
                     f'{machine.get("load_15_minutes", math.nan):.2f}'])
        rows.append(["commit", commit()])
        for point in self.points("device"):
            rows.append(["append 512 B and fdatasync, p50", spread(point, "device_sync_p50_us", 1e-3, 2) + " ms"])
            rows.append(["the same, p99", spread(point, "device_sync_p99_us", 1e-3, 2) + " ms"])
            rows.append(["one file from start to end, synced", spread(point, "device_bytes_per_second", 1e-6) + " MB/s"])
        return self.warning() + table(["", ""], rows, right_from=2)

    def warning(self):
        return "**Small sizes (`--quick`): not to be quoted.**\n\n" if self.data["quick"] else ""

    def goals(self):
        rows = []
        for goal in self.data["goals"]:
            sign = "≤" if goal["at_most"] else "≥"
            unit = " " + goal["unit"] if goal["unit"] else ""
            limit = "" if goal["limit"] is None else f'{sign} {short(goal["limit"])}{unit}'
            aim = "" if goal["aim"] is None else f'{sign} {short(goal["aim"])}{unit}'
            verdict = goal["verdict"] if goal["limit"] is not None else ""
            if goal["aim"] is not None and goal["aim_verdict"] == "met":
                verdict = "met, and the aim"
            rows.append([f'`{goal["row"]}`', goal["what"], limit, aim,
                         short(goal["value"]) + (unit if goal["value"] is not None else ""),
                         f"**{verdict}**" if verdict == "NOT MET" else verdict])
        return self.warning() + table(["row", "what", "asked for", "aim", "measured", ""], rows, right_from=2)

    def missed(self):
        lines = []
        for goal in self.data["goals"]:
            if goal["verdict"] == "NOT MET":
                lines.append(f'- `{goal["row"]}`: {goal["what"]}: {short(goal["value"])} '
                             f'{goal["unit"]}, asked for {short(goal["limit"])}.')
            elif goal["verdict"] == "not measured":
                lines.append(f'- `{goal["row"]}`: {goal["what"]}: not measured.')
        return "\n".join(lines) or "Every number that was asked for was reached in this run."

    def costs(self, *rows):
        lines = []
        for point in self.points(*rows):
            rate = "events_per_second"
            if rate not in point["median"]:
                rate = "acks_per_second"
            lines.append([SYSTEMS[point["system"]], point["name"], spread(point, rate),
                          count(point["median"].get("server_cpu_us"), 2),
                          count(point["median"].get("client_cpu_us"), 2),
                          count(point["median"].get("written_bytes")),
                          short(point["median"].get("syncs_per_event")),
                          count(point["median"].get("rss_peak", 0) / 1e6)])
        return table(["system", "", "events/s", "server CPU µs", "clients CPU µs", "written B",
                      "syncs", "RSS MB"], lines, right_from=2)

    def throughput(self):
        points = self.points("disordered")
        return self.costs("disordered") + self.draw(
            "throughput", "First send to last ordered receive, 100 B", "events/s",
            plot(points, "events_per_second"))

    def sweep(self, row, title):
        points = self.points(row)
        metric = "events_per_second"
        if any(metric not in p["median"] for p in points):
            metric = "acks_per_second"
        return self.costs(row) + self.draw(row, title, "events/s", plot(points, metric))

    def latency(self):
        lines = []
        for point in self.points("single", "latency"):
            for what, prefix in (("answered", "ack"), ("received", "receive")):
                values = [point["median"].get(f"{prefix}_{q}_us") for q in ("p50", "p99", "p999", "max")]
                if values[0] is not None:
                    lines.append([point["name"], what] + [count(v / 1e3, 2) for v in values])
        drawn = [p for p in self.points("latency")]
        return table(["rate", "", "p50 ms", "p99 ms", "p99.9 ms", "max ms"], lines, 2) + self.draw(
            "latency", "Intended send to ordered receive, p99", "ms",
            plot(drawn, "receive_p99_us", 1e-3))

    def held(self):
        lines = [[f'`{p["row"]}`', count(p["median"].get("events")),
                  count(p["median"].get("rss_peak", 0) / 1e6),
                  short(p["median"].get("released_per_second")),
                  count(p["median"]["probe_p50_us"] / 1e3, 2) if "probe_p50_us" in p["median"] else "–",
                  count(p["median"]["probe_p99_us"] / 1e3, 2) if "probe_p99_us" in p["median"] else "–",
                  count(p["median"]["probe_max_us"] / 1e3, 2) if "probe_max_us" in p["median"] else "–"]
                 for p in self.points("reversed", "gap", "alternating")]
        return table(["row", "events", "RSS MB", "released/s", "probe p50 ms", "p99 ms", "max ms"],
                     lines)

    def rest(self):
        lines = []
        for point in self.points("fan-out", "many", "catch-up", "cold-keys", "restart",
                                 "disk-size", "index"):
            seen = []
            for metric, word, scale, digits in (
                    ("events_per_second", "events/s", 1, 0), ("acks_per_second", "answers/s", 1, 0),
                    ("out_bytes_per_second", "MB/s out", 1e-6, 0),
                    ("files_events_per_second", "events/s by reading the files", 1, 0),
                    ("first_ms", "ms to the first entry", 1, 2), ("all_ms", "ms to the last", 1, 2),
                    ("spread_first_ms", "ms to the first of 1,000", 1, 2),
                    ("spread_all_ms", "ms to all 1,000", 1, 2),
                    ("ready_seconds", "s until ready", 1, 3), ("disk_ratio", "of the least", 1, 3),
                    ("compact_seconds", "s to compact", 1, 1), ("index_seconds", "s until indexed", 1, 2),
                    ("probe_p99_us", "ms probe p99", 1e-3, 1), ("probe_max_us", "ms probe max", 1e-3, 1)):
                if metric in point["median"]:
                    seen.append(f"{spread(point, metric, scale, digits)} {word}")
            lines.append([f'`{point["row"]}`', SYSTEMS[point["system"]], point["name"],
                          "; ".join(seen)])
        return table(["row", "system", "", "median (lowest .. highest)"], lines, 4)

    SWEEPS = {"payload": "Size of the payload", "keys": "Number of keys",
              "disorder": "Displaced by up to", "producers": "Producers",
              "subscribers": "Subscribers (events in)", "batch": "Events per batch",
              "ack": "Acknowledged when"}

    def section(self, name):
        if name in self.SWEEPS:
            return self.sweep(name, self.SWEEPS[name])
        return getattr(self, name)()


def commit():
    out = subprocess.run(["git", "-C", str(ROOT), "describe", "--always", "--dirty"],
                         capture_output=True, text=True, check=False)
    return out.stdout.strip() or "unknown"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("figures", type=pathlib.Path, help="what --out wrote")
    parser.add_argument("--page", type=pathlib.Path, default=ROOT / "docs/PERFORMANCE.md")
    options = parser.parse_args()
    figures = Figures(json.loads(options.figures.read_text()))
    page = options.page.read_text()
    found = re.findall(r"<!-- figures: (\w+) -->", page)
    page = re.sub(r"(<!-- figures: (\w+) -->\n).*?(<!-- end -->)",
                  lambda m: f"{m[1]}\n{figures.section(m[2])}\n\n{m[3]}", page, flags=re.S)
    options.page.write_text(page)
    folder = options.page.parent / "performance"
    folder.mkdir(exist_ok=True)
    for name, text in figures.plots.items():
        (folder / name).write_text(text)
    shutil.copyfile(options.figures, folder / "figures.json")
    print(f"{options.page}: {len(found)} sections, {len(figures.plots)} plots")


if __name__ == "__main__":
    main()
