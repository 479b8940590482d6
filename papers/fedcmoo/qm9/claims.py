"""The FedCMOO paper's claims about QM9 and about uploads, and the rules that judge them."""

from __future__ import annotations

from papers.fedcmoo.common import cmoo
from papers.kit.claims import PaperValue
from papers.kit.rules import Condition, Rule, all_of, of, told_value, value, within

FAR = 0.8  # far below: at most this share of the other's loss
CLOSE = 0.05  # of uploads and their ratios, relative
EXACT = 1e-9
OBJECTIVES = (2, 5, 11, 40)
NAMES = {"fedcmoo": "FedCMOO", "pref": "Pref", "fsmgda": "FSMGDA"}
MAIN = ("qm9_fsmgda", "qm9_fedcmoo", "qm9_pref")
COUNTED = tuple(f"count_{m}_{k}" for k in OBJECTIVES for m in ("fsmgda", "fedcmoo", "pref"))
LOWER = "rounds.fedcmoo_vs_fsmgda.lower"


def losses(kind: str) -> str:
    return ", ".join(f"{name} {told_value(f'{kind}.{m}.loss')}" for m, name in NAMES.items())


def twice(tasks: int, method: str) -> Condition:
    rest = value(f"count_{tasks}.{method}") - value(f"count_{tasks}.small")
    return (rest >= 2 * (1 - CLOSE)) & (rest <= 2 * (1 + CLOSE))


C8 = Rule(
    {
        "FedCMOO below FSMGDA per round": (of("rounds.fedcmoo_vs_fsmgda.loss") < 0)
        & (of("rounds.mean_gap") < 0),
        "FedCMOO and Pref far below FSMGDA per uploaded number": all_of(
            *(
                value(f"upload.{m}.loss") <= FAR * value("upload.fsmgda.loss")
                for m in ("fedcmoo", "pref")
            )
        ),
        "FedCMOO below FSMGDA on every task": value(LOWER) >= 11,
    },
    f"after {told_value('rounds.at', 'g')} rounds each: {losses('rounds')}; "
    f"after {told_value('upload.at')} d uploaded: {losses('upload')}; "
    f"FedCMOO lower on {told_value(LOWER, 'g')} of 11 tasks at equal rounds",
    note="One seed, so that an interval is a single value.",
)
C9 = Rule(
    {
        "FedCMOO and Pref upload 2 d and a few M^2": all_of(
            *(twice(k, m) for k in OBJECTIVES for m in ("fedcmoo", "pref")),
            *(within(f"{m}.upload", 2, CLOSE) for m in ("fedcmoo", "pref")),
        ),
        "FSMGDA uploads M d": all_of(
            *(within(f"count_{k}.fsmgda", k, EXACT) for k in OBJECTIVES),
            within("fsmgda.upload", 11, EXACT),
        ),
        "equal for two objectives": within("count_2.ratio", 1, CLOSE),
        "5.5 times less on QM9": within("qm9.ratio", 5.5, CLOSE),
    },
    f"QM9: FSMGDA {told_value('fsmgda.upload')} d, FedCMOO {told_value('fedcmoo.upload')} d, "
    f"Pref {told_value('pref.upload')} d a client and round; FSMGDA over FedCMOO "
    + ", ".join(f"{told_value(f'count_{k}.ratio')} for M = {k}" for k in OBJECTIVES),
    note="One seed: no draw changes the lengths.",
)

CLAIMS = (
    cmoo(
        id="fedcmoo/C8",
        place="Figures 3, 12",
        wording="On QM9 the mean test loss of FedCMOO is below that of FSMGDA in every round, "
        "FedCMOO and FedCMOO-Pref are far below it at equal upload, and FedCMOO is lower on every "
        "target.",
        measure="Test loss (mean of 11 normalized squared errors, and each of them), one seed, "
        "after as many rounds as all methods have (rounds; mean_gap: FedCMOO minus FSMGDA in the "
        "mean over them; lower: on how many targets), and at the largest upload that all have "
        "reached (upload).",
        rule=C8,
        runs=MAIN,
        figure="figure_3",
    ),
    cmoo(
        id="fedcmoo/C9",
        place="Proposition 1, section 6",
        wording="A client uploads 2 d + O(M^2) numbers a round with FedCMOO and FedCMOO-Pref, and "
        "M d with FSMGDA: as much for two objectives, M / 2 times as much in general.",
        measure="Counted bits of actual runs over 32 d, a client and round: QM9 (M = 11), and one "
        "round on quadratics with M = 2, 5, 11, 40 (count; small: 2 M^2 + M numbers); FSMGDA over "
        "FedCMOO (ratio).",
        rule=C9,
        runs=(*MAIN, *COUNTED),
        figure="uploads",
    ),
)

PAPER_VALUES = (
    PaperValue(
        "upload on QM9, FedCMOO (in d)", "fedcmoo.upload", 2.0, "2", "C, Proposition 1", rtol=0.05
    ),
    PaperValue(
        "upload on QM9, FSMGDA (in d)", "fsmgda.upload", 11.0, "11", "C, Proposition 1", rtol=0.001
    ),
    *(
        PaperValue(
            f"test loss after the run, {text}", f"{m}.loss", None, "curve only", "C, Figure 3"
        )
        for m, text in (("fsmgda", "FSMGDA"), ("fedcmoo", "FedCMOO"), ("pref", "Pref"))
    ),
)
