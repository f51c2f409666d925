"""Pydantic AI: `AgentRun.enqueue`, and `AgentRun.cancel` with a new run on the messages of the cancelled one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from pydantic_ai import Agent, RunContext
from pydantic_ai.exceptions import RunCancelled
from pydantic_ai.messages import CustomEvent, ModelMessagesTypeAdapter
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from benchmarks.peers.trial import QUESTION, WORDS, Trial


@dataclass
class LookupProgress(CustomEvent):
    """How its documentation has tools report progress."""

    text: str


def _text(messages: Any) -> str:
    return str(ModelMessagesTypeAdapter.dump_json(messages), "utf-8")


async def _enqueue(trial: Trial, agent: Any) -> str:
    async def speak() -> None:
        await asyncio.to_thread(trial.wait_to_speak)
        run.enqueue(WORDS)

    trial.runs = 1
    async with agent.iter(QUESTION) as run:
        speaking = asyncio.create_task(speak())
        async for _ in run:
            pass
        await speaking
    trial.over_on_asyncio("answered", _text(run.all_messages()))
    return str(run.result.output)


async def _cancel(trial: Trial, agent: Any) -> str:
    async def speak() -> None:
        await asyncio.to_thread(trial.wait_to_speak)
        run.cancel()

    trial.runs = 2
    history: list[Any] = []
    try:
        async with agent.iter(QUESTION) as run:
            speaking = asyncio.create_task(speak())
            async for _ in run:
                pass
    except RunCancelled as cancelled:
        history = cancelled.all_messages()
    await speaking
    trial.over_on_asyncio("RunCancelled", _text(history))
    return str((await agent.run(WORDS, message_history=history)).output)


async def _main() -> None:
    trial = Trial.from_arguments()

    async def slow_lookup(ctx: RunContext[None], query: str) -> str:
        """Looks something up; slow."""
        return await trial.slow_lookup(lambda text: ctx.emit(LookupProgress(text)))

    provider = OpenAIProvider(base_url=trial.base_url, api_key="none")
    agent = Agent(OpenAIChatModel("scripted", provider=provider), tools=[slow_lookup])
    way = {"enqueue": _enqueue, "cancel": _cancel}[trial.mechanism]
    answer = await way(trial, agent)
    await trial.outlive_tool()
    trial.report("pydantic-ai-slim", answer)


if __name__ == "__main__":
    asyncio.run(_main())
