"""What the rows of the study of fair classification are, where Adult's are not there."""

from papers.kit import plot
from papers.kit.study import Traces


def source(traces: Traces) -> str:
    """Where the rows come from, and how many there are."""
    config = traces["hard"].config["problem"]
    rows = f"{config['train_rows']} training and {config['test_rows']} test rows"
    if config["data"] == "adult":
        return f"UCI Adult, official files: {rows}"
    return f"generated stand-in, not Adult: {rows}"


def note(figure: "plot.Figure", traces: Traces) -> None:
    """Say on the picture itself where the rows are not Adult's."""
    if traces["hard"].config["problem"]["data"] != "adult":
        figure.suptitle("generated stand-in, not Adult", fontsize=9, style="italic")
