"""The tables and the figure of what was measured, in small builds."""

import importlib
import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import toy_book

MACHINE = {
    "processor": "Some CPU", "instructions": "AVX2", "cores": 2, "threads": 1,
    "torch": "2.13.0", "jax": "0.10", "numpy": "2.4", "python": "3.11.7", "commit": "0123456789ab",
    "dirty": True, "date": "2026-01-02",
}  # fmt: skip
TIMES = {"fedlib FedAvg": 0.3, "fedlib FedSGM": 0.5, "torch loop": 1240.0, "jax scan": 0.5}
START = {"title": "`import torch`", "cold": {"s": 3, "cpu_s": 2}, "warm": {"s": 1.5, "cpu_s": 1}}


def entries(goal, **more):
    times = {k: {"cpu_ms": v} for k, v in {**TIMES, **more}.items()}
    return {"title": "small", "goal": goal, "entries": times}


def case(method, axis, at, **found):
    return {"method": method, "axis": axis, "at": at, **found}


def ran(method, axis, at, ms, mib):
    return case(method, axis, at, cpu_ms=ms, peak_mib=mib)


def scaled():
    """What is stored of three methods with two numbers of clients, and of one that was left out."""
    ends = {"FedAvg": 2.2, "FedFW": 4.0, "SSCA": 4.0}
    found = [ran(m, "clients", 1_000, 2.0, 10) for m in ends]
    found += [ran(m, "clients", 100_000, ms, 10) for m, ms in ends.items()]
    found += [ran("FedAvg", "seeds", 1, 2.0, 10)]
    found += [case("FedAvg", "seeds", 10, skipped="more than 60 s")]
    return {str(i): its for i, its in enumerate(found)}


def store(folder, **parts):
    (folder / "benchmarks").mkdir()
    held = {name: {"machine": MACHINE, "results": results} for name, results in parts.items()}
    path = folder / "benchmarks" / "results.json"
    path.write_text(json.dumps(held), encoding="utf-8")


def rows(page):
    found = re.findall(r"<tr.*?</tr>", page, flags=re.S)
    return [" ".join(re.sub(r"<[^>]+>", " ", one).split()) for one in found if "<td" in one]


def test_the_tables_and_the_figure(tmp_path, monkeypatch):
    build = toy_book.prepare(tmp_path, monkeypatch)
    peers = {"W1": entries(0.6), "W2": entries(0.5, **{"torch loop, fast": 0.4})}
    store(tmp_path, peers=peers, start={"torch": START}, scale=scaled())
    names = ("peers", "start", "scale", "size")
    tables = "\n\n".join(f"```{{speed}} {name}\n```" for name in names)
    status, messages, page = build(f"{tables}\n\n```{{cost-figure}}\n:alt: lines\n\nCosts.\n```")
    (warning,) = (line for line in messages.splitlines() if "WARNING" in line)
    assert status != 0
    known = "peers, start, scale."
    assert f"there is no table 'size'; known tables: {known}" in warning
    assert rows(page) == [
        "W1: small 0.3 0.5 1,240 0.5 – 0.60 (jax scan) 0.6 met",
        "W2: small 0.3 0.5 1,240; fast: 0.4 0.5 – 0.75 (torch loop, fast) 0.5 not met",
        "import torch 3.0 2.0 1.5 1.0",
        "FedAvg 2 2.2 1.10 0.0 met",
        "FedFW 2 4 2.00 0.0 not met",
        "SSCA 2 4 2.00 0.0 all take part",
    ]
    assert "2026-01-02 at commit 0123456+: Some CPU (AVX2, 2 cores), 1 thread;" in page
    assert "FedAvg, 10 seeds: more than 60 s." in page
    for file in (
        "speed-scale-light.svg",
        "speed-scale-dark.svg",
        "speed-scale.csv",
        "results.json",
    ):
        assert file in page


def test_a_measurement_that_is_not_there_is_refused(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).resolve().parents[2] / "book" / "_ext")
    speed = importlib.import_module("fedbook_speed")
    env = SimpleNamespace(srcdir=tmp_path, note_dependency=str)
    store(tmp_path, peers={})
    with pytest.raises(speed.BookError, match=r"benchmarks/results\.json cannot be read"):
        speed.measured(env, "start")
