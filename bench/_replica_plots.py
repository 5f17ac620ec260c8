"""The picture of bench/replicas.py."""

from _routing_plots import FOLDER, PERCENTILES, milliseconds, plt, save  # noqa: F401
from matplotlib.ticker import FuncFormatter

COLORS = {0: "#1f6f5c", 1: "#7aa6c2", 10: "#c77b58"}


def draw_panel(axis, runs, replicas, percentile):
    """TTFT by the delay of messages, a line per share of them that is lost."""
    one = next(run for run in runs if run["replicas"] == 1)["result"]["ttft_ms"][percentile]
    mine = [run for run in runs if run["replicas"] == replicas]
    told = [run for run in mine if run["exchange"]]
    delays = sorted({run["delay_ms"] for run in told})
    for loss in sorted({run["loss_percent"] for run in told}):
        times = [next(run["result"]["ttft_ms"][percentile] for run in told
                      if run["delay_ms"] == delay and run["loss_percent"] == loss) for delay in delays]
        axis.plot(range(len(delays)), times, marker="o", color=COLORS.get(round(loss), "#9d8ec7"),
                  label=f"{loss:.0f} % of the messages lost")
    axis.axhline(one, color="#2f2f2f", linewidth=1.5, label="one router")
    for run in mine:
        if not run["exchange"]:
            axis.axhline(run["result"]["ttft_ms"][percentile], color="#b0413e", linestyle="--",
                         label="replicas that tell each other nothing")
    axis.set_xticks(range(len(delays)), [f"{milliseconds(delay, None)}" for delay in delays])
    axis.set_ylim(bottom=0)
    axis.yaxis.set_major_formatter(FuncFormatter(milliseconds))
    axis.grid(alpha=0.3)
    axis.spines[["top", "right"]].set_visible(False)


def draw_trace(report, path):
    runs = report["runs"]
    counts = sorted({run["replicas"] for run in runs if run["exchange"]})
    figure, axes = plt.subplots(len(PERCENTILES), len(counts), figsize=(4.4 * len(counts), 8.4), squeeze=False)
    for line, percentile in zip(axes, PERCENTILES):
        for axis, replicas in zip(line, counts):
            draw_panel(axis, runs, replicas, percentile)
            axis.set_title(f"{replicas} replicas, TTFT {percentile}", fontsize=10)
    for axis in axes[-1]:
        axis.set_xlabel("delay of messages")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.suptitle(f"Several routers behind a random balancer, arrivals x{report['arrivals']}", fontsize=12)
    figure.tight_layout(rect=(0, 0.05, 1, 0.98))
    figure.legend(handles, labels, loc="lower center", ncol=len(labels), frameon=False, fontsize=9)
    return save(figure, path)


def draw(traces, folder):
    """Paths of the pictures, one for each rate of arrivals."""
    return [draw_trace(report, folder / f"replicas_x{report['arrivals']}.png") for report in traces]
