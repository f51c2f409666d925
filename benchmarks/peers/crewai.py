"""CrewAI: leaving the block of a streaming `akickoff`, which cancels it, then a kickoff of a task with all words."""

from __future__ import annotations

import asyncio
from typing import Any

from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool

from benchmarks.peers.trial import QUESTION, WORDS, Trial


def _crew(clerk: Any, description: str) -> Any:
    task = Task(description=description, expected_output="A number.", agent=clerk)
    return Crew(agents=[clerk], tasks=[task], stream=True)


async def _read(crew: Any, chunks: list[Any]) -> str:
    async with await crew.akickoff() as streaming:
        async for chunk in streaming:
            chunks.append(chunk)
    return str(streaming.result.raw)


async def _main() -> None:
    trial = Trial.from_arguments()

    async def slow_lookup(query: str) -> str:
        """Looks something up; slow."""
        return await trial.slow_lookup(lambda text: None)

    llm = LLM(model="openai/scripted", base_url=trial.base_url, api_key="none")
    clerk = Agent(role="Clerk", goal="Answer.", backstory="A clerk.", llm=llm, tools=[tool("slow_lookup")(slow_lookup)])
    trial.runs = 2
    chunks: list[Any] = []
    reading = asyncio.create_task(_read(_crew(clerk, QUESTION), chunks))
    await asyncio.to_thread(trial.wait_to_speak)
    reading.cancel()
    await asyncio.wait([reading])
    trial.over_on_asyncio("CancelledError" if reading.cancelled() else "ended", repr(chunks))
    answer = await _read(_crew(clerk, f"{QUESTION}\n\n{WORDS}"), [])
    await trial.outlive_tool()
    trial.report("crewai", answer)


if __name__ == "__main__":
    asyncio.run(_main())
