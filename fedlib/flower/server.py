"""The server of a federation: rounds with a quorum and a deadline, gone on from after a stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch

from fedlib import checks
from fedlib.core.client import Reply
from fedlib.core.files import atomic_write
from fedlib.core.problem import Info
from fedlib.engine.checkpoint import unseal, write_sealed
from fedlib.flower.draws import fewest, without
from fedlib.flower.ends import Frame, Read, ServerEnd
from fedlib.flower.job import Job, Link, Place, Stand, enclosed, opened
from fedlib.flower.packing import Garbled


class Lost(Exception):
    """Clients whose answer does not come; no error, the round is done again without them."""

    def __init__(self, clients: set[int]) -> None:
        super().__init__(f"no answer of {sorted(clients)}")
        self.clients = clients


class Past(NamedTuple):
    """A round: who is left out of it, and what was sent."""

    lost: list[int]
    frames: list[Frame]


class Server:
    """Runs a job over a link.

    `quorum`: with fewer clients in a sample than this a round is not done. `deadline`: seconds from
    the start of a round until who has not answered is left out of it; the round is then done again
    without. A client that was silent is asked again after a sign of life, one whose answer was none
    in the next round.
    """

    def __init__(
        self, job: Job, link: Link, folder: Path, *, quorum: int = 1, deadline: float = 600.0
    ) -> None:
        checks.count("Server", "quorum", quorum)
        checks.positive("Server", "deadline", deadline)
        self.place, self.link, self.rounds = Place(job, None), link, job.rounds
        self.folder, self.quorum, self.deadline = folder, quorum, deadline
        self.past: list[Past] = []
        self.now: Past | None = None  # the round under way
        self.held: list[Stand] = [(0, [], 0)] * self.place.clients  # where each client stands
        self.absent: set[int] = set()  # who is not asked until it says something
        self.counted = {"up": 0, "down": 0}  # bits, as the wire formats say
        self.sent = {"up": 0, "down": 0}  # bytes of the messages
        self.info: Info = {}  # what the last round reported
        self.why = dict[int, str]()  # what was wrong with a client's last answer
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
        lost = set(self.absent)
        while True:
            self.until = time.monotonic() + self.deadline
            self.check_enough(lost)
            end = ServerEnd(self.place, lost, self.collect)
            self.now = Past(sorted(lost), end.frames)
            try:
                state, self.info = end.round()
            except Lost as error:
                lost |= error.clients
                continue
            for way in self.counted:
                self.counted[way] += int(self.info[f"bits_{way}"])
            self.past.append(self.now)
            self.now = None
            return state

    def check_enough(self, lost: set[int]) -> None:
        """Raises RuntimeError, one sentence, where the next round has too few clients."""
        needs_all = getattr(self.place.algorithm, "needs_all_clients", False)
        has = fewest(without(self.place.draw, lost))
        if has >= self.quorum and not (lost and needs_all):
            return
        told = "; ".join(f"{j}: {self.why.get(j, 'no answer')}" for j in sorted(lost))
        least = "all clients" if needs_all else f"{self.quorum} clients or more"
        raise RuntimeError(
            f"federation: a round must have {least}, round {self.place.round} has {has} ({told}); "
            "start the server again when they are back."
        )

    def collect(self, asked: list[int], read: Read) -> dict[int, Reply]:
        """The answers of those who are asked; raises Lost for who has none."""
        got = dict[int, Reply]()
        for j in asked:
            self.request(j)
        while missing := set(asked) - set(got):
            found = self.link.receive(max(self.until - time.monotonic(), 0.0))
            if found is None:
                self.absent |= missing
                raise Lost(missing)
            j, data = found
            try:
                answer = self.answer(j, data, j in missing)
                if answer is not None:
                    got[j] = read(j, *answer)
                    if not bool(torch.isfinite(got[j].upload).all()):
                        raise Garbled("an answer is not finite")
                    self.sent["up"] += len(answer[0])
            except Garbled as error:
                if j in missing:
                    self.why[j] = str(error)
                    raise Lost({j}) from None
        return got

    def answer(self, j: int, data: bytes | None, wanted: bool) -> tuple[bytes, Any] | None:
        """Answer and report in what came from client j, if it is that to what was asked last."""
        if data is None:  # it did not arrive
            if wanted:
                self.request(j)
            return None
        head, parts = opened(data)
        if head.get("run") != self.place.run or head.get("client") != j:
            raise Garbled("an answer is of another run")
        self.absent.discard(j)
        if head["kind"] == "failed":
            raise Garbled(head["why"])
        if head["kind"] == "hello":  # it has restarted, or stands elsewhere than was thought
            self.held[j] = tuple(head["at"])
            if wanted:
                self.request(j)
            return None
        if not wanted or tuple(head["at"]) != self.stands():
            return None  # a second answer, or one to a round that was done again
        self.held[j] = self.stands()
        return parts[0] or b"", head["report"]

    def stands(self) -> Stand:
        """Where a client stands that has got everything."""
        lost, frames = self.now or ([], [])
        return len(self.past), lost, len(frames)

    def request(self, j: int) -> None:
        """Send client j all that it has not yet, and with it what it is asked."""
        since, lost, count = self.held[j]
        entries, parts = [], list[bytes | None]()
        under_way = [] if self.now is None else [self.now]
        for t, entry in enumerate([*self.past[since:], *under_way], since):
            same = t == since and entry.lost == lost
            skip = min(count, len(entry.frames)) if same else 0
            new = [f.data if j in f.receivers else None for f in entry.frames[skip:]]
            over = t < len(self.past)
            named = {"round": t, "lost": entry.lost, "skip": skip, "new": len(new), "over": over}
            entries.append(named)
            parts += new
        self.sent["down"] += sum(len(part or b"") for part in parts)
        head = {"run": self.place.run, "rounds": entries, "at": self.stands()}
        self.link.send(j, enclosed(head, parts))

    def finish(self) -> None:
        """Bring every client that answers up to date, so that all end with the same model."""
        self.until, left = time.monotonic() + self.deadline, set(range(self.place.clients))
        left -= self.absent
        while left:
            try:
                self.collect(sorted(left), lambda *_: Reply(torch.zeros(()), ()))
                return
            except Lost as error:
                left -= error.clients

    def save(self) -> None:
        """Write the round that is over, then where the server stands."""
        t, last = self.place.round, self.past[-1]
        head = {"lost": last.lost, "receivers": [sorted(frame.receivers) for frame in last.frames]}
        data = enclosed(head, [frame.data for frame in last.frames])
        atomic_write(self.folder / f"round-{t}", lambda file: file.write(data))
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
