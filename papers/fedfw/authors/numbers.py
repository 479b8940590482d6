"""The derived numbers of the study of the authors' rows and loop."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.fedfw.authors.loop import NORMS
from papers.fedfw.authors.rows import NETS
from papers.fedfw.cells import PRINTED, TABLES, Printed, as_coded, traced
from papers.fedfw.tables.numbers import MEASURES, difference, late, percent
from papers.kit.numbers import Number, exact, mean, measured
from papers.kit.study import Params, Traces, after

#: Classes of the generator by column; both have one labelling rule for all users.
SPLITS = {"iid": 10, "classes": 3}
SAME, NEAR = 1.0, 3.0  # points, fixed before the runs


def run_of(x: Printed) -> str:
    """The run of a printed value; empty where there is none."""
    net, source, split = as_coded(x.column).split("_")
    if source != "synthetic":
        return ""
    if not x.norm:
        return f"many_{split}_{x.method}"
    setting = "" if x.method == "feddr" else f"_{traced(x.column, x.norm, x.method)[0]:g}"
    return f"{net}_{split}_{x.norm}_{'feddr' if x.method == 'feddr' else 'fw'}{setting}"


def lambdas(net: str, split: str, norm: str) -> tuple[float, ...]:
    """lambda_0 of FedFW's and of FedFW+'s files, which are runs of one code; each once."""
    cells = (traced(f"{net}_synthetic_{split}", norm, m) for m in ("fedfw", "plus"))
    return tuple(dict.fromkeys(lam for lam, _ in cells))


#: The steps from the text's protocol to the authors', each a change of one thing, in words.
STEPS = {
    "text": "as the text, our rows",
    "rows": "the authors' rows",
    "feddr": "their FedDR: a minibatch a round",
    "reset": "clients start from the server's model",
    "epoch": "an epoch of minibatches a round",
    "tensors": "a ball for every tensor",
    "rounds": "all rounds",
    "best": "best round, not the last",
    "chosen": "λ₀ with the best test accuracy",
}


def derive(traces: Traces, p: Params) -> dict[str, Number]:
    """Cells, differences by split, how far printed values are, and the waterfall."""
    cells = {n: t for n, t in traces.items() if not n.startswith("step_")}
    found = measured(cells, MEASURES)
    for pair, (one, other) in pairs(traces).items():
        gaps = {key: difference(traces[one], traces[other], key) for key in MEASURES}
        found |= {f"{pair}.{key}": gap for key, gap in gaps.items()}
    found |= counted(found)
    for step, gap in waterfall(traces, p["text_rounds"]).items():
        found[f"waterfall_{step}.gap"] = mean(gap, "points")
    return found


def pairs(traces: Traces) -> dict[str, tuple[str, str]]:
    """A pair's name -> FedFW's run, with the lambda_0 of its file, and FedDR's."""
    found = {}
    for net in NETS:
        for split in SPLITS:
            for norm in NORMS:
                cell = f"{net}_{split}_{norm}"
                lam = lambdas(net, split, norm)[0]
                found[f"{cell}_fw_vs_feddr"] = f"{cell}_fw_{lam:g}", f"{cell}_feddr"
    found |= {f"many_{s}_sto_vs_feddr": (f"many_{s}_sto", f"many_{s}_feddr") for s in SPLITS}
    return {pair: runs for pair, runs in found.items() if all(run in traces for run in runs)}


def counted(found: Mapping[str, Number]) -> dict[str, Number]:
    """How many printed values are the same, near and apart, and how many have no run."""
    ours = [(x, found.get(f"{run_of(x)}.best")) for x in PRINTED]
    far = np.array([abs(own.value - x.value) for x, own in ours if own is not None])
    counts = {
        "same": (far <= SAME).sum(),
        "near": ((far > SAME) & (far <= NEAR)).sum(),
        "apart": (far > NEAR).sum(),
        "compared": len(far),
        "without": len(ours) - len(far),
        "printed": len(ours),
    }
    return {f"count.{k}": exact(float(x), "values") for k, x in counts.items()} | {
        "count.distance": exact(float(far.mean()) if len(far) else np.nan, "points")
    }


def waterfall(traces: Traces, rounds: int) -> dict[str, Array]:
    """FedFW minus FedDR by split, after each change; the last models but where it says best."""
    theirs, fw = traces["mclr_iid_l2_feddr"], traces["mclr_iid_l2_fw_0.001"]
    tried = after(traces, "mclr_iid_l2_fw_").values()
    coded = at(theirs, rounds)
    best = MEASURES["best"][0]
    found = {
        step: last(chosen(traces, f"step_{kind}_fw_")) - last(chosen(traces, f"step_{kind}_feddr_"))
        for step, kind in (("text", "ours"), ("rows", "rows"))
    }
    found["feddr"] = last(chosen(traces, "step_rows_fw_")) - coded
    found["reset"] = last(traces["step_reset_fw"]) - coded
    found["epoch"] = last(traces["step_epoch_fw"]) - coded
    found["tensors"] = at(fw, rounds) - coded
    found["rounds"] = last(fw) - last(theirs)
    found["best"] = best(fw) - best(theirs)
    found["chosen"] = max((best(t) for t in tried), key=np.mean) - best(theirs)
    return found


def chosen(traces: Traces, start: str) -> Trace:
    """The run of a grid with the lowest mean training loss at the end."""
    return min(after(traces, start).values(), key=lambda t: late(t).mean())


def last(trace: Trace) -> Array:
    return MEASURES["accuracy"][0](trace)


def at(trace: Trace, rounds: int) -> Array:
    """Test accuracy in % after some rounds, or the last of fewer."""
    place = min(int(np.searchsorted(trace.rounds, rounds)), len(trace.rounds) - 1)
    return np.asarray(percent(trace)[:, place])


TEXT_ROUNDS = 100
FEDDR, FEDFW, _ = TABLES["mclr_synthetic_iid", "l2"]
PRINTED_GAP = FEDFW - FEDDR
