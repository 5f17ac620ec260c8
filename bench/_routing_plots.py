"""The pictures of bench/routing.py."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # there may be no screen
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "bench/plots"
ORDER = ["round-robin", "least-loaded", "prefix-hash", "text", "approximate", "kv", "oracle"]
COLORS = {"round-robin": "#8c8c8c", "least-loaded": "#b89b72", "prefix-hash": "#c77b58",
          "text": "#9d8ec7", "approximate": "#7aa6c2", "kv": "#1f6f5c", "oracle": "#2f2f2f", "published": "#b0413e"}
PERCENTILES = ["p50", "p90", "p99"]


def milliseconds(value, _):
    return f"{value / 1000:g} s" if value >= 1000 else f"{value:g} ms"


def save(figure, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, bbox_inches="tight")
    plt.close(figure)
    return path.relative_to(ROOT)


def draw_ttft(runs, path, title):
    """A panel per setting, a group of bars per percentile, a bar per policy."""
    columns = min(3, len(runs))
    lines = -(-len(runs) // columns)
    figure, axes = plt.subplots(lines, columns, figsize=(5.2 * columns, 3.9 * lines), squeeze=False)
    for axis, run in zip(axes.flat, runs):
        bars = {policy: run["results"][policy]["ttft_ms"] for policy in ORDER}
        tuned = run["published"].get("tuned")
        if tuned:
            bars["published"] = dict(zip(PERCENTILES, tuned))
        width = 0.84 / len(bars)
        for at, (policy, times) in enumerate(bars.items()):
            places = [group - 0.42 + (at + 0.5) * width for group in range(len(PERCENTILES))]
            label = "published tuned router" if policy == "published" else policy
            axis.bar(places, [times[p] for p in PERCENTILES], width * 0.92, color=COLORS[policy],
                     label=label)
            if policy in ("kv", "published"):
                for place, p in zip(places, PERCENTILES):
                    axis.text(place, times[p] * 1.06, f"{times[p]:,.0f}", rotation=90, ha="center",
                              va="bottom", fontsize=7.5, color=COLORS[policy])
        axis.set_yscale("log")
        values = [times[p] for times in bars.values() for p in PERCENTILES]
        axis.set_ylim(min(values) * 0.6, max(values) * 1.9)
        axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.yaxis.set_major_formatter(FuncFormatter(milliseconds))
        axis.yaxis.set_minor_formatter(NullFormatter())
        axis.set_xticks(range(len(PERCENTILES)), PERCENTILES)
        axis.set_title(run["label"], fontsize=10)
        axis.grid(axis="y", alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
        axis.set_axisbelow(True)
    for axis in axes.flat[len(runs):]:
        axis.set_visible(False)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.suptitle(title, fontsize=12)
    figure.tight_layout(rect=(0, 0.06, 1, 0.98))
    figure.legend(handles, labels, loc="lower center", ncol=len(labels), frameon=False, fontsize=9)
    return save(figure, path)


def draw_reuse(runs, path):
    """What share of the prompt tokens was reused, and what an endless shared cache would reuse."""
    figure, axis = plt.subplots(figsize=(13, 4.6))
    width = 0.84 / len(ORDER)
    for at, policy in enumerate(ORDER):
        places = [group - 0.42 + (at + 0.5) * width for group in range(len(runs))]
        axis.bar(places, [run["results"][policy]["reuse"] for run in runs], width * 0.92,
                 color=COLORS[policy], label=policy)
    for group, run in enumerate(runs):
        ideal = run["results"]["kv"]["ideal_reuse"]
        axis.plot([group - 0.45, group + 0.45], [ideal, ideal], color="#b0413e", linewidth=2,
                  label="ideal: one endless shared cache" if group == 0 else None)
    axis.set_xticks(range(len(runs)), [run["label"] for run in runs], fontsize=8.5)
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))
    axis.set_ylabel("prompt tokens reused")
    axis.set_title("Reuse against the ideal, Mooncake conversation trace")
    axis.grid(axis="y", alpha=0.3)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(ncol=7, fontsize=9, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.2))
    return save(figure, path)


def draw(runs, folder):
    """Paths of the pictures."""
    comparable = [run for run in runs if run["published"]]
    others = [run for run in runs if not run["published"]]
    return [
        draw_ttft(comparable, folder / "routing_ttft.png",
                  "Time to first token by policy, beside a published simulator's tuned router"),
        draw_ttft(others, folder / "routing_ttft_others.png",
                  "Time to first token by policy: overload, and engines measured on an H200"),
        draw_reuse(runs, folder / "routing_reuse.png"),
    ]
