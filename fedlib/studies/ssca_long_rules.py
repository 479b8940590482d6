"""The rules that judge SSCA's claims about limits; each can fail."""

from __future__ import annotations

from fedlib.claims import Numbers, Outcome, judge

__all__ = ["BATCHES", "LEVELS", "NO_SLACK", "PENALTIES", "TENTH", "c7", "c10", "c11"]

LEVELS = (0.3, 0.6)
BATCHES = (100, 10)
PENALTIES = (1.0, 30.0)  # of the first rounds, below the multipliers that the levels need
TIMES = {"early": "T = 100", "end": "T = 1000"}
TENTH = 0.1  # of the gradient at the start
NO_SLACK = 1e-3  # in units of the cost


def c7(n: Numbers) -> Outcome:
    """F at most U after 100 and after 1000 rounds, with the paper's step sizes."""
    n["whole.rows"]
    parts, said = {}, []
    for u in LEVELS:
        for key, text in TIMES.items():
            above = n[f"limit_paper_U{u:g}.violation_{key}"]
            parts[f"F <= {u:g} at {text}"] = above.high <= 0
            said.append(f"U = {u:g}, {text}: {above.text()}")
    return judge(parts, "F - U on all training pictures: " + "; ".join(said))


def c10(n: Numbers) -> Outcome:
    """A small gradient that still falls, with valid step sizes, for both batches."""
    n["whole.rows"]
    parts, said = {}, []
    for batch in BATCHES:
        share, fall = (n[f"ssca_valid_B{batch}.{k}"] for k in ("gradient_share", "fall"))
        parts[f"the gradient below a tenth of that at the start, B = {batch}"] = share.high < TENTH
        parts[f"the gradient still falling, B = {batch}"] = fall.high < 0
        said.append(f"B = {batch}: share {share.text()}, slope {fall.text()}")
    return judge(
        parts, "gradient at T = 1000 by that at the start, log-log slope: " + "; ".join(said)
    )


def c11(n: Numbers) -> Outcome:
    """No slack at the end of the runs in which the penalty grows."""
    n["whole.rows"]
    parts, said = {}, []
    for u in LEVELS:
        for c in PENALTIES:
            run, where = f"limit_c{c:g}_U{u:g}", f"U = {u:g}, c from {c:g}"
            slack = n[f"{run}.slack_end"]
            parts[f"no slack at the end, {where}"] = slack.high < NO_SLACK
            said.append(
                f"{where}: slack {slack.text()}, at first {n[f'{run}.slack_first'].text()}; "
                f"last c {n[f'{run}.penalty_end'].text()}"
            )
    return judge(parts, "; ".join(said))
