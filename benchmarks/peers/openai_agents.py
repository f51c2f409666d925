"""OpenAI Agents SDK: `RunResultStreaming.cancel` in both modes, then a new run on the same session."""

from __future__ import annotations

import asyncio

from agents import Agent, OpenAIChatCompletionsModel, Runner, SQLiteSession, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

from benchmarks.peers.trial import QUESTION, WORDS, Trial


async def _main() -> None:
    trial = Trial.from_arguments()
    set_tracing_disabled(True)

    async def slow_lookup(query: str) -> str:
        """Looks something up; slow."""
        return await trial.slow_lookup(lambda text: None)

    client = AsyncOpenAI(base_url=trial.base_url, api_key="none")
    agent = Agent(
        name="Clerk",
        model=OpenAIChatCompletionsModel(model="scripted", openai_client=client),
        tools=[function_tool(slow_lookup)],
    )
    session = SQLiteSession("trial")

    async def speak() -> None:
        await asyncio.to_thread(trial.wait_to_speak)
        result.cancel(mode=trial.mechanism)

    trial.runs = 2
    result = Runner.run_streamed(agent, QUESTION, session=session)
    speaking = asyncio.create_task(speak())
    async for _ in result.stream_events():
        pass
    await speaking
    history = await session.get_items()
    trial.over_on_asyncio("its stream ended", history)
    again = await Runner.run(agent, WORDS, session=session)
    answer = str(again.final_output)
    await trial.outlive_tool()
    trial.report("openai-agents", answer)


if __name__ == "__main__":
    asyncio.run(_main())
