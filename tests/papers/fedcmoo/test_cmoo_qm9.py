"""The QM9 study: what is compared at equal rounds and uploads, counted bits, and its rules."""

from papers.fedcmoo.common import METHODS
from papers.fedcmoo.qm9 import STUDY
from papers.fedcmoo.qm9.quantities import (
    upload_of,
)
from papers.kit import store
from tests.helpers.expect import near


def test_counted_uploads_of_a_round_on_quadratics():
    p = STUDY.resolve("quick")
    counted = {k: v for k, v in STUDY.specs(p).items() if k.endswith("_objectives2")}
    assert list(counted) == [f"{m}_objectives2" for m in METHODS]
    runs = store.compute_or_load(
        "cmoo_qm9",
        "quick",
        counted,
        recompute=True,
        progress=False,
    )
    sketch = 15 * (63 + 2 * 32)  # rank floor(sqrt(2000 / 2) / 2), folded to 63 x 64
    sent = {m: upload_of(runs[f"{m}_objectives2"]) * p["count_dim"] for m in METHODS}
    near(sent["fsmgda"], 2 * 2000)
    near(sent["fedcmoo"], 2000 + sketch + 8)
    near(sent["pref"], sent["fedcmoo"] + 2)
