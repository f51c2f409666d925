"""Google ADK: `Runner.run_async` with an `abort_signal`, then a new invocation in the same session."""

from __future__ import annotations

import asyncio
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.adk.tools import ToolContext
from google.genai import types

from benchmarks.peers.trial import QUESTION, WORDS, Trial

APP = "trial"


def _said(text: str) -> Any:
    return types.Content(role="user", parts=[types.Part(text=text)])


async def _main() -> None:
    trial = Trial.from_arguments()

    async def slow_lookup(query: str, tool_context: ToolContext) -> str:
        """Looks something up; slow."""
        return await trial.slow_lookup(lambda text: tool_context.state.update({"lookup": text}))

    model = LiteLlm(model="openai/scripted", api_base=trial.base_url, api_key="none")
    runner = InMemoryRunner(agent=LlmAgent(name="Clerk", model=model, tools=[slow_lookup]), app_name=APP)
    session = await runner.session_service.create_session(app_name=APP, user_id=APP)
    where = {"user_id": APP, "session_id": session.id}
    aborted = asyncio.Event()

    async def speak() -> None:
        await asyncio.to_thread(trial.wait_to_speak)
        aborted.set()

    trial.runs = 2
    speaking = asyncio.create_task(speak())
    how = "ended"
    async for event in runner.run_async(**where, new_message=_said(QUESTION), abort_signal=aborted):
        how = event.error_code or how
    await speaking
    kept = await runner.session_service.get_session(app_name=APP, **where)
    trial.over_on_asyncio(how, kept.model_dump_json())
    answer = ""
    async for event in runner.run_async(**where, new_message=_said(WORDS)):
        for part in event.content.parts if event.content else ():
            answer = part.text or answer
    await trial.outlive_tool()
    trial.report("google-adk", answer)


if __name__ == "__main__":
    asyncio.run(_main())
