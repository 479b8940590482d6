"""A client of a federation: it answers requests, and keeps its memory in a file of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fedlib.core.checkpoint import unseal, write_sealed
from fedlib.flower.ends import Answered, ClientEnd
from fedlib.flower.job import Job, Place, enclosed, opened
from fedlib.flower.packing import Garbled


class Client:
    """Client number `me` of a job; its file lies in `folder`, and is gone on from."""

    def __init__(self, job: Job, me: int, folder: Path) -> None:
        self.place, self.me = Place(job, me), me
        self.file = folder / f"client-{me}"
        self.lost: list[int] = []  # of the round under way: who is left out of it
        self.frames: list[bytes | None] = []  # what has come of it
        self.answers: dict[int, Any] = {}  # what was answered in it
        if self.file.exists():
            self.place.restore(unseal(self.file))

    def handle(self, data: bytes) -> bytes:
        """The answer to a request.

        Whatever is wrong with one, the client says where it stands, and the server begins there.
        """
        head: dict[str, Any] = {"run": self.place.run, "client": self.me}
        try:
            asked, parts = opened(data)
            if asked["run"] != self.place.run:
                return enclosed({**head, "kind": "other"})
            upload = self.follow(asked, parts)
            told: dict[str, Any] = {
                k: asked[k] for k in ("kind", "round", "lost", "count") if k in asked
            }
            return enclosed({**head, **told}, [upload])
        except Garbled:
            return self.hello()
        except Exception as error:  # its own data or machine: the others go on
            why = (str(error).strip().splitlines() or [type(error).__name__])[0]
            return enclosed({**head, "kind": "failed", "why": why})

    def hello(self) -> bytes:
        """Where this client stands."""
        place = {"round": self.place.round, "lost": self.lost, "count": len(self.frames)}
        return enclosed({"run": self.place.run, "client": self.me, "kind": "hello", **place})

    def follow(self, asked: dict[str, Any], parts: list[bytes | None]) -> bytes:
        """Take what a request brings, round after round, and answer its last message."""
        for entry in asked["rounds"]:
            new, parts = parts[: entry["new"]], parts[entry["new"] :]
            if entry["round"] != self.place.round:
                raise Garbled("the request is of another round")
            same = entry["lost"] == self.lost
            if entry["skip"] and not (same and entry["skip"] <= len(self.frames)):
                raise Garbled("the request goes on from elsewhere")
            if not same:  # done again without some: no answer to the other counts
                self.answers = {}
            self.lost, self.frames = entry["lost"], self.frames[: entry["skip"]] + new
            if entry["over"]:
                self.end_round()
        return b"" if asked["kind"] == "finish" else self.answer()

    def end(self, over: bool) -> Any:
        """The round under way at this end, as far as its messages go."""
        p = self.place
        held = (self.me, self.frames, self.answers, over)
        end = ClientEnd(p.problem, p.draw, self.lost, p.shapes, *held)
        return p.algorithm.round(end, p.state, end.draw)

    def answer(self) -> bytes:
        """The answer to the last message of the round under way."""
        try:
            self.end(over=False)
        except Answered as answered:
            return answered.data
        raise Garbled("the request asks for nothing")

    def end_round(self) -> None:
        """To the next round; the file is written before anything of it is answered."""
        state, _ = self.end(over=True)
        self.place.go_on(state)
        self.lost, self.frames, self.answers = [], [], {}
        write_sealed(self.file, self.place.saved())
