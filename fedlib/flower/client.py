"""A client of a federation: it answers requests, and keeps its memory in a file of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fedlib.engine.checkpoint import unseal, write_sealed
from fedlib.flower.ends import Answered, ClientEnd
from fedlib.flower.job import Job, Place, Stand, enclosed, opened
from fedlib.flower.packing import Garbled


class Client:
    """Client number `me` of a job; its file lies in `folder`, and is gone on from."""

    def __init__(self, job: Job, me: int, folder: Path) -> None:
        self.place, self.file = Place(job, me), folder / f"client-{me}"
        self.lost: list[int] = []  # of the round under way: who is left out of it
        self.frames: list[bytes | None] = []  # what has come of it
        self.answers: dict[int, Any] = {}  # what was answered in it
        if self.file.exists():
            self.place.restore(unseal(self.file))

    def handle(self, data: bytes) -> bytes:
        """The answer to a request.

        Whatever is wrong with one, the client says where it stands, and the server begins there.
        """
        try:
            asked, parts = opened(data)
            if asked["run"] != self.place.run:
                return self.says("failed", why=f"it is of run {self.place.run}, another one")
            upload, report = self.follow(asked["rounds"], parts)
            return self.says("answer", [upload], at=asked["at"], report=report)
        except Garbled:
            return self.hello()
        except Exception as error:  # its own data or machine: the others go on
            why = str(error).strip().splitlines() or [type(error).__name__]
            return self.says("failed", why=why[0])

    def says(self, kind: str, parts: list[bytes | None] | None = None, **more: Any) -> bytes:
        """An envelope from this client."""
        head = {"run": self.place.run, "client": self.place.me, "kind": kind}
        return enclosed({**head, **more}, parts or [])

    def hello(self) -> bytes:
        """Where this client stands."""
        at: Stand = (self.place.round, self.lost, len(self.frames))
        return self.says("hello", at=at)

    def follow(self, rounds: list[dict[str, Any]], parts: list[bytes | None]) -> tuple[bytes, Any]:
        """Take what a request brings, round after round, and answer its last message."""
        for entry in rounds:
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
        return self.answer() if self.frames else (b"", ())

    def end(self, over: bool) -> ClientEnd:
        """The round under way at this end."""
        return ClientEnd(self.place, self.lost, self.frames, self.answers, over)

    def answer(self) -> tuple[bytes, Any]:
        """The answer to the last message of the round under way, and what is reported with it."""
        try:
            self.end(over=False).round()
        except Answered as answered:
            return answered.data, answered.report
        raise Garbled("the request asks for nothing")

    def end_round(self) -> None:
        """To the next round; the file is written before anything of it is answered."""
        state, _ = self.end(over=True).round()
        self.place.go_on(state)
        self.lost, self.frames, self.answers = [], [], {}
        write_sealed(self.file, self.place.saved())
