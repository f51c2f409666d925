"""LangGraph: cancelling the task that runs the graph, and `RunControl.request_drain`; then the same thread again.

Its server offers four strategies for a message that comes while a run goes on; the library by itself has none.
"""

from __future__ import annotations

import asyncio
from typing import Any

from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.runtime import RunControl

from benchmarks.peers.trial import QUESTION, WORDS, Trial

THREAD = {"configurable": {"thread_id": "trial"}}


def _graph(model: Any, tools: list[Any]) -> Any:
    bound = model.bind_tools(tools)

    async def think(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await bound.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("think", think)
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "think")
    graph.add_conditional_edges("think", tools_condition)
    graph.add_edge("tools", "think")
    return graph.compile(checkpointer=InMemorySaver())


def _said(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


async def _cancel(trial: Trial, graph: Any) -> str:
    """How the run ended."""
    running = asyncio.create_task(graph.ainvoke(_said(QUESTION), THREAD))
    await asyncio.to_thread(trial.wait_to_speak)
    running.cancel()
    await asyncio.wait([running])
    return "CancelledError" if running.cancelled() else "ended"


async def _drain(trial: Trial, graph: Any) -> str:
    """How the run ended."""
    control = RunControl()
    running = asyncio.create_task(graph.ainvoke(_said(QUESTION), THREAD, control=control))
    await asyncio.to_thread(trial.wait_to_speak)
    control.request_drain("the user spoke")
    await asyncio.wait([running])
    return type(running.exception()).__name__


async def _main() -> None:
    trial = Trial.from_arguments()

    async def slow_lookup(query: str) -> str:
        """Looks something up; slow."""
        return await trial.slow_lookup(get_stream_writer())

    graph = _graph(
        ChatOpenAI(model="scripted", base_url=trial.base_url, api_key="none"),
        [StructuredTool.from_function(coroutine=slow_lookup)],
    )
    way = {"cancel": _cancel, "drain": _drain}[trial.mechanism]
    trial.runs = 2
    how = await way(trial, graph)
    trial.over_on_asyncio(how, (await graph.aget_state(THREAD)).values)
    again = await graph.ainvoke(_said(WORDS), THREAD)
    answer = str(again["messages"][-1].content)
    await trial.outlive_tool()
    trial.report("langgraph", answer)


if __name__ == "__main__":
    asyncio.run(_main())
