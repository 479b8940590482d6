"""The FedCMOO paper's claims about QM9 and about uploads, and the rules that judge them."""

from __future__ import annotations

from papers.kit.claims import Claim, Numbers, Outcome, PaperValue, judge

__all__ = ["CLAIMS", "PAPER_VALUES", "c8", "c9"]

FAR = 0.8  # far below: at most this share of the other's loss
CLOSE = 0.05  # of uploads and their ratios, relative
OBJECTIVES = (2, 5, 11, 40)
COUNTED = tuple(f"count_{m}_{k}" for k in OBJECTIVES for m in ("fsmgda", "fedcmoo", "pref"))


def c8(n: Numbers) -> Outcome:
    """Three parts, as the claim's rule says."""
    n["judged.molecules"]  # a handful of molecules cannot judge the paper
    rounds = n["rounds.fedcmoo_vs_fsmgda.loss"]
    far = [
        n[f"upload.{m}.loss"].value <= FAR * n["upload.fsmgda.loss"].value
        for m in ("fedcmoo", "pref")
    ]
    parts = {
        "FedCMOO below FSMGDA per round": rounds.high < 0 and n["rounds.mean_gap"].high < 0,
        "FedCMOO and Pref far below FSMGDA per uploaded number": all(far),
        "FedCMOO below FSMGDA on every task": n["rounds.fedcmoo_vs_fsmgda.lower"].value == 11,
    }
    names = {"fedcmoo": "FedCMOO", "pref": "Pref", "fsmgda": "FSMGDA"}
    at = {
        f"after {n['rounds.at'].value:g} rounds each": "rounds",
        f"after {n['upload.at'].value:.3g} d uploaded": "upload",
    }
    pieces = [
        f"{text}: "
        + ", ".join(f"{name} {n[f'{kind}.{m}.loss'].value:.3g}" for m, name in names.items())
        for text, kind in at.items()
    ]
    lower = n["rounds.fedcmoo_vs_fsmgda.lower"].value
    pieces.append(f"FedCMOO lower on {lower:g} of 11 tasks at equal rounds")
    return judge(parts, "; ".join(pieces))


def c9(n: Numbers) -> Outcome:
    """Four parts, as the claim's rule says."""
    n["judged.molecules"]

    def twice(tasks: int, method: str) -> bool:
        rest = n[f"count_{tasks}.{method}"].value - n[f"count_{tasks}.small"].value
        return abs(rest - 2) <= 2 * CLOSE

    def near(key: str, expected: float) -> bool:
        return abs(n[key].value - expected) <= CLOSE * expected

    parts = {
        "FedCMOO and Pref upload 2 d and a few M^2": all(
            twice(k, m) for k in OBJECTIVES for m in ("fedcmoo", "pref")
        )
        and near("fedcmoo.upload", 2)
        and near("pref.upload", 2),
        "FSMGDA uploads M d": all(abs(n[f"count_{k}.fsmgda"].value - k) < 1e-9 for k in OBJECTIVES)
        and abs(n["fsmgda.upload"].value - 11) < 1e-9,
        "equal for two objectives": near("count_2.ratio", 1),
        "5.5 times less on QM9": near("qm9.ratio", 5.5),
    }
    ratios = ", ".join(f"{n[f'count_{k}.ratio'].value:.3g} for M = {k}" for k in OBJECTIVES)
    text = (
        f"QM9: FSMGDA {n['fsmgda.upload'].value:.3g} d, FedCMOO {n['fedcmoo.upload'].value:.3g} d, "
        f"Pref {n['pref.upload'].value:.3g} d a client and round; FSMGDA over FedCMOO {ratios}"
    )
    return judge(parts, text)


CLAIMS = (
    Claim(
        "fedcmoo/C8",
        "C",
        "Figures 3, 12",
        "On QM9 the mean test loss of FedCMOO is below that of FSMGDA in every round, FedCMOO and "
        "FedCMOO-Pref are far below it at equal upload, and FedCMOO is lower on every target.",
        "Test loss (mean of 11 normalized squared errors, and each of them), one seed, after as "
        "many rounds as all methods have, and at the largest upload that all have reached.",
        "(1) After the common rounds, and in the mean over them, FedCMOO's mean loss minus "
        "FSMGDA's is below 0, the whole interval over seeds (one seed: the value). (2) At equal "
        "upload the mean losses of FedCMOO and of Pref are each at most 0.8 times FSMGDA's. (3) "
        "After the common rounds FedCMOO's loss is lower on all 11 targets.",
        ("qm9_fsmgda", "qm9_fedcmoo", "qm9_pref"),
        c8,
        figure="figure_3",
    ),
    Claim(
        "fedcmoo/C9",
        "C",
        "Proposition 1, section 6",
        "A client uploads 2 d + O(M^2) numbers a round with FedCMOO and FedCMOO-Pref, and M d with "
        "FSMGDA: as much for two objectives, M / 2 times as much in general.",
        "Counted bits of actual runs over 32 d, a client and round: QM9 (M = 11), and one round on "
        "quadratics with M = 2, 5, 11, 40.",
        "(1) FedCMOO's and Pref's uploads less 2 M^2 + M numbers within 5 % of 2 d in every run. "
        "(2) FSMGDA's is M d. (3) FSMGDA over FedCMOO within 5 % of 1 for M = 2. (4) Within 5 % "
        "of 5.5 on QM9. One seed: no draw changes the lengths.",
        ("qm9_fsmgda", "qm9_fedcmoo", "qm9_pref", *COUNTED),
        c9,
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
