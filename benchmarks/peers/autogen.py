"""AutoGen AgentChat: `CancellationToken.cancel`, cancelling the task of the run, and `ExternalTermination`; a new run.

The token is tried with a single agent; the run of a team did not return either after its token had been cancelled.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import ExternalTermination, TextMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import CancellationToken
from autogen_ext.models.openai import OpenAIChatCompletionClient

from benchmarks.peers.trial import QUESTION, WORDS, Trial

LONGEST_WAIT = 10.0
"""Seconds that a run may take to return after its token has been cancelled."""
MODEL = {"vision": False, "function_calling": True, "json_output": False, "family": "unknown"}


async def _cancel_token(trial: Trial, clerk: Any) -> str:
    trial.runs = 1
    token = CancellationToken()
    running = asyncio.create_task(clerk.run(task=QUESTION, cancellation_token=token))
    await asyncio.to_thread(trial.wait_to_speak)
    token.cancel()
    await asyncio.wait([running], timeout=LONGEST_WAIT)
    how = f"no return within {LONGEST_WAIT:g} s" if not running.done() else "CancelledError"
    trial.over_on_asyncio(how, json.dumps(await clerk.save_state()))
    if not running.done():
        return ""
    trial.runs = 2
    return str((await clerk.run(task=WORDS)).messages[-1].content)


async def _cancel_task(trial: Trial, clerk: Any) -> str:
    trial.runs = 2
    running = asyncio.create_task(clerk.run(task=QUESTION))
    await asyncio.to_thread(trial.wait_to_speak)
    running.cancel()
    await asyncio.wait([running])
    trial.over_on_asyncio("CancelledError" if running.cancelled() else "ended", json.dumps(await clerk.save_state()))
    return str((await clerk.run(task=WORDS)).messages[-1].content)


async def _terminate(trial: Trial, clerk: Any) -> str:
    trial.runs = 2
    external = ExternalTermination()
    team = RoundRobinGroupChat([clerk], termination_condition=TextMessageTermination("Clerk") | external)
    running = asyncio.create_task(team.run(task=QUESTION))
    await asyncio.to_thread(trial.wait_to_speak)
    external.set()
    trial.over_on_asyncio((await running).stop_reason, json.dumps(await team.save_state()))
    return str((await team.run(task=WORDS)).messages[-1].content)


async def _main() -> None:
    trial = Trial.from_arguments()

    async def slow_lookup(query: str) -> str:
        """Looks something up; slow."""
        return await trial.slow_lookup(lambda text: None)

    client = OpenAIChatCompletionClient(
        model="scripted",
        base_url=trial.base_url,
        api_key="none",
        model_info={**MODEL, "structured_output": False, "multiple_system_messages": True},
    )
    clerk = AssistantAgent("Clerk", model_client=client, tools=[slow_lookup], reflect_on_tool_use=True)
    ways = {"token": _cancel_token, "task": _cancel_task, "termination": _terminate}
    answer = await ways[trial.mechanism](trial, clerk)
    await trial.outlive_tool()
    trial.report("autogen-agentchat", answer)


if __name__ == "__main__":
    asyncio.run(_main())
