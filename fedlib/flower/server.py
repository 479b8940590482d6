"""The server of a federation: rounds with a quorum and a deadline, gone on from after a stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks
from fedlib.core.checkpoint import unseal, write_sealed
from fedlib.core.protocols import NEEDS_ALL
from fedlib.core.types import Draw
from fedlib.core.whole import write_whole
from fedlib.flower.draws import fewest, without
from fedlib.flower.ends import Frame, Read, ServerEnd
from fedlib.flower.job import Job, Link, Place, enclosed, opened
from fedlib.flower.packing import Garbled


class Lost(Exception):
    """Clients whose answer does not come; no error, the round is done again without them."""

    def __init__(self, clients: set[int]) -> None:
        super().__init__(f"no answer of {sorted(clients)}")
        self.clients = clients


class Past(NamedTuple):
    """A round that is over: who was left out of it, and what was sent."""

    lost: list[int]
    frames: list[Frame]


class Server:
    """Runs a job over a link.

    `quorum`: with fewer clients in a sample than this a round is not done. `deadline`: seconds from
    the start of a round until who has not answered is left out of it; the round is then done again
    without. A client that was left out is asked again after a sign of life.
    """

    def __init__(
        self, job: Job, link: Link, folder: Path, *, quorum: int = 1, deadline: float = 600.0
    ) -> None:
        checks.count("Server", "quorum", quorum)
        checks.positive("Server", "deadline", deadline)
        self.place, self.link, self.rounds = Place(job, None), link, job.rounds
        self.folder, self.quorum, self.deadline = folder, quorum, deadline
        self.past: list[Past] = []
        self.held = [(0, list[int](), 0)] * self.place.clients  # round, lost, frames of each client
        self.absent: set[int] = set()
        self.counted = {"up": 0, "down": 0}  # bits, as the wire formats say
        self.sent = {"up": 0, "down": 0}  # bytes of the messages
        self.why = dict[int, str]()  # what was wrong with a client's last answer
        self.lost: list[int] = []
        self.until = 0.0
        if (folder / "server").exists():
            self.resume(unseal(folder / "server"))

    def run(self, watch: Callable[[int, Any], None] | None = None) -> Any:
        """All rounds that are left; the last state. `watch(round, state)` is called after each.

        Raises
        ------
        RuntimeError
            one sentence, if a round has fewer clients than the quorum, or diverges.
        """
        while self.place.round < self.rounds:
            state = self.one_round()
            if not bool(torch.isfinite(state.w).all()):
                raise RuntimeError(
                    f"federation: the model must stay finite, it is not after round "
                    f"{self.place.round}; take a smaller lr."
                )
            self.place.go_on(state)
            self.save()
            if self.place.round == self.rounds:
                self.finish()
            if watch:
                watch(self.place.round, state)
        return self.place.state

    def one_round(self) -> Any:
        """The state after the next round, with those who answer."""
        place, lost = self.place, set(self.absent)
        while True:
            self.lost, self.until = sorted(lost), time.monotonic() + self.deadline
            draw = without(place.draw, lost)
            enough = fewest(draw) >= self.quorum
            if not enough or (lost and type(place.algorithm).__name__ in NEEDS_ALL):
                raise RuntimeError(self.too_few(draw))
            self.end = ServerEnd(place.problem, place.draw, lost, place.shapes, self.collect)
            try:
                state, info = place.algorithm.round(self.end, place.state, self.end.draw)
            except Lost as error:
                lost |= error.clients
                self.absent |= error.clients
                continue
            for way in self.counted:
                self.counted[way] += int(info[f"bits_{way}"])
            self.past.append(Past(self.lost, self.end.frames))
            return state

    def too_few(self, draw: Draw) -> str:
        """The sentence on a round that is not done."""
        told = "; ".join(f"{j}: {self.why.get(j, 'no answer')}" for j in self.lost)
        needs_all = type(self.place.algorithm).__name__ in NEEDS_ALL
        least = "all clients" if needs_all else f"{self.quorum} clients or more"
        return (
            f"federation: a round must have {least}, round {self.place.round} has "
            f"{fewest(draw)} ({told}); start the server again when they are back."
        )

    def collect(self, asked: list[int], read: Read) -> dict[int, Float[Tensor, "*s"]]:
        """The answers of those who are asked; raises Lost for who has none."""
        got: dict[int, Tensor] = {}
        for j in asked:
            self.request(j)
        while missing := set(asked) - set(got):
            found = self.link.receive(max(self.until - time.monotonic(), 0.0))
            if found is None:
                raise Lost(missing)
            j, data = found
            try:
                upload = self.answer(j, data, j in missing)
                if upload is not None:
                    got[j] = read(j, upload)
                    if not bool(torch.isfinite(got[j]).all()):
                        raise Garbled("an answer is not finite")
                    self.sent["up"] += len(upload)
            except Garbled as error:
                if j in missing:
                    self.why[j] = str(error)
                    raise Lost({j}) from None
        return got

    def answer(self, j: int, data: bytes | None, wanted: bool) -> bytes | None:
        """The answer in what came from client j, if it is that to what it was asked last."""
        if data is None:  # it did not arrive
            if wanted:
                self.request(j)
            return None
        head, parts = opened(data)
        if head.get("run") != self.place.run or head.get("client") != j:
            raise Garbled("an answer is of another run")
        self.absent.discard(j)
        stands = (head["round"], head["lost"], head["count"])
        if head["kind"] == "failed":
            raise Garbled(head["why"])
        if head["kind"] == "failed":
            raise Garbled(head["why"])
        if head["kind"] == "hello":  # it has restarted, or stands elsewhere than was thought
            self.held[j] = stands
            if wanted:
                self.request(j)
            return None
        if not wanted or stands != (self.place.round, self.lost, len(self.end.frames)):
            return None  # a second answer, or one to a round that was done again
        self.held[j] = stands
        return parts[0]

    def request(self, j: int, kind: str = "ask") -> None:
        """Send client j all that it has not yet, and with it what it is asked."""
        since, lost, count = self.held[j]
        now = [] if kind == "finish" else [Past(self.lost, self.end.frames)]
        entries, parts = [], list[bytes | None]()
        for t, entry in enumerate([*self.past[since:], *now], since):
            same = t == since and entry.lost == lost
            skip = min(count, len(entry.frames)) if same else 0
            new = [f.data if j in f.receivers else None for f in entry.frames[skip:]]
            over = t < len(self.past)
            named = {"round": t, "lost": entry.lost, "skip": skip, "new": len(new), "over": over}
            entries.append(named)
            parts += new
        self.sent["down"] += sum(len(part or b"") for part in parts)
        head = {"run": self.place.run, "kind": kind, "rounds": entries, "round": len(self.past)}
        here = (
            {"lost": [], "count": 0}
            if not now
            else {"lost": self.lost, "count": len(self.end.frames)}
        )
        self.link.send(j, enclosed({**head, **here}, parts))

    def finish(self) -> None:
        """Bring every client that answers up to date, so that all end with the same model."""
        self.until, left = time.monotonic() + self.deadline, set(range(self.place.clients))
        left -= self.absent
        for j in left:
            self.request(j, "finish")
        while left and (found := self.link.receive(max(self.until - time.monotonic(), 0.0))):
            j, data = found
            try:
                head: dict[str, Any] = opened(data)[0] if data is not None else {"kind": "none"}
            except Garbled:
                continue
            if head["kind"] in ("finish", "failed", "other"):
                left.discard(j)
            elif j in left:
                if head["kind"] == "hello":
                    self.held[j] = (head["round"], head["lost"], head["count"])
                self.request(j, "finish")

    def save(self) -> None:
        """Write the round that is over, then where the server stands."""
        t, last = self.place.round, self.past[-1]
        head = {"lost": last.lost, "receivers": [sorted(frame.receivers) for frame in last.frames]}
        data = enclosed(head, [frame.data for frame in last.frames])
        write_whole(self.folder / f"round-{t}", lambda file: file.write(data))
        write_sealed(
            self.folder / "server",
            {
                **self.place.saved(),
                "absent": sorted(self.absent),
                "held": self.held,
                "counted": self.counted,
                "sent": self.sent,
            },
        )

    def resume(self, held: dict[str, Any]) -> None:
        """Go on from what was saved."""
        self.place.restore(held)
        self.absent, self.held = set(held["absent"]), held["held"]
        self.counted, self.sent = held["counted"], held["sent"]
        for t in range(1, self.place.round + 1):
            head, parts = opened((self.folder / f"round-{t}").read_bytes())
            sent = zip(head["receivers"], parts, strict=True)
            frames = [Frame(frozenset(who), data or b"") for who, data in sent]
            self.past.append(Past(head["lost"], frames))
