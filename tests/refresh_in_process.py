"""A refresh as a program, to be killed and to be run beside another: its model notes each call in a file.

`python -m tests.refresh_in_process FOLDER NOTES SECONDS`: each reply takes so many seconds.
"""

import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from callboard.experience import ExperiencePool
from callboard.runtime.chat_model import ChatRequest, Delta, EndDelta, TextDelta

from .lessons import WordEmbedder


class NotingModel:
    """Replies with the user's query in other words."""

    name = "noting"

    def __init__(self, notes: Path, seconds: float) -> None:
        self._notes = notes
        self._seconds = seconds

    @asynccontextmanager
    async def stream(self, request: ChatRequest) -> AsyncIterator[AsyncIterator[Delta]]:
        """Notes when it was asked, and what."""
        query = request.messages[1].content.split('"user_query": "')[1].split('"')[0]
        with self._notes.open("a") as file:
            file.write(f"{query} {time.monotonic()}\n")
        yield self._deltas(query)

    async def _deltas(self, query: str) -> AsyncIterator[Delta]:
        await trio.sleep(self._seconds)
        yield TextDelta(f"lesson of {query}")
        yield EndDelta("stop")


async def main(*arguments: str) -> None:
    """Refreshes the folder, and prints what was made."""
    folder, notes, seconds = arguments
    pool = ExperiencePool(folder, embedder=WordEmbedder(), model=NotingModel(Path(notes), float(seconds)))
    report = await pool.refresh()
    print(*report.summarized)


if __name__ == "__main__":
    trio.run(main, *sys.argv[1:])
