"""Microsoft Agent Framework: `enqueue_messages`, and cancelling the task that runs the agent with a new run."""

from __future__ import annotations

import asyncio
from typing import Any

from agent_framework import Agent, MessageInjectionMiddleware, enqueue_messages
from agent_framework.openai import OpenAIChatCompletionClient

from benchmarks.peers.trial import QUESTION, WORDS, Trial


def _text(session: Any) -> str:
    return repr(session.to_dict())


async def _enqueue(trial: Trial, agent: Any, session: Any) -> str:
    async def speak() -> None:
        await asyncio.to_thread(trial.wait_to_speak)
        enqueue_messages(session, WORDS)

    trial.runs = 1
    speaking = asyncio.create_task(speak())
    answer = await agent.run(QUESTION, session=session)
    await speaking
    trial.over_on_asyncio("answered", _text(session))
    return str(answer.text)


async def _cancel(trial: Trial, agent: Any, session: Any) -> str:
    trial.runs = 2
    running = asyncio.create_task(agent.run(QUESTION, session=session))
    await asyncio.to_thread(trial.wait_to_speak)
    running.cancel()
    await asyncio.wait([running])
    trial.over_on_asyncio("CancelledError" if running.cancelled() else "ended", _text(session))
    return str((await agent.run(WORDS, session=session)).text)


async def _main() -> None:
    trial = Trial.from_arguments()

    async def slow_lookup(query: str) -> str:
        """Looks something up; slow."""
        return await trial.slow_lookup(lambda text: None)

    client = OpenAIChatCompletionClient(model="scripted", base_url=trial.base_url, api_key="none")
    agent = Agent(
        client,
        tools=[slow_lookup],
        middleware=[MessageInjectionMiddleware()],
        require_per_service_call_history_persistence=True,
    )
    way = {"enqueue": _enqueue, "cancel": _cancel}[trial.mechanism]
    answer = await way(trial, agent, agent.create_session())
    await trial.outlive_tool()
    trial.report("agent-framework-core", answer)


if __name__ == "__main__":
    asyncio.run(_main())
