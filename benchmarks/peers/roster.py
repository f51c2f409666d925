"""Roster: which peers are tried, at which versions, and by which of the ways that their documentation offers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Peer:
    """A library that is tried."""

    key: str
    """The name of its driver in this folder, and of its environment."""
    name: str
    mechanisms: dict[str, str]
    """By the word that the driver takes: what is called, in the terms of the peer's documentation."""
    requirements: tuple[str, ...] = ()
    """What pip installs; empty for callboard, which runs in the environment of this program."""
    standing: tuple[str, ...] = ()
    """How the names of tasks and threads begin that serve the library as a whole and no run."""
    remark: str = ""
    """What a reader must know of how it was tried."""


PEERS = (
    Peer(
        "callboard",
        "callboard",
        {"intervene": "`Conversation.intervene`, level 1"},
        standing=("callboard:",),
        remark="The tool reports through the parameter `report` of `Tool`. The tasks that stay are those of the open "
        "conversation: its memory and its watch, and the role's, which waits for the next post.",
    ),
    Peer(
        "agent_framework",
        "Microsoft Agent Framework",
        {
            "enqueue": "`enqueue_messages` with `MessageInjectionMiddleware`",
            "cancel": "cancelling the task of `Agent.run`, then `run` in the same session",
        },
        ("agent-framework-core==1.23.0", "agent-framework-openai==1.17.0"),
        remark="With `require_per_service_call_history_persistence=True`; without it, the session holds nothing of a "
        "cancelled run.",
    ),
    Peer(
        "autogen",
        "AutoGen AgentChat",
        {
            "token": "`CancellationToken.cancel`",
            "task": "cancelling the task of `AssistantAgent.run`, then `run` with a new task",
            "termination": "`ExternalTermination.set` in a team, then `run` with a new task",
        },
        ("autogen-agentchat==0.7.5", "autogen-ext[openai]==0.7.5"),
        remark="A run whose token is cancelled during a tool call does not return: "
        "[issue 7956](https://github.com/microsoft/autogen/issues/7956). It was waited for for 10 s. "
        "`ExternalTermination` is read when the agent has answered.",
    ),
    Peer(
        "crewai",
        "CrewAI",
        {"close": "leaving `async with` of a streaming `akickoff`, then a new kickoff"},
        ("crewai==1.15.30",),
        standing=("CrewAIEventsLoop",),
        remark="A crew keeps no conversation by itself, so the new kickoff is given the question and the words in its "
        "task. Its async tools run in a thread. The thread that stays is that of its event bus.",
    ),
    Peer(
        "google_adk",
        "Google ADK",
        {"abort": "`Runner.run_async(abort_signal=)`, then `run_async` in the same session"},
        ("google-adk==2.13.0", "litellm==1.110.2"),
        standing=("LoggingWorker.",),
        remark="The tool reports through `ToolContext.state`. The task that stays is LiteLLM's, through which ADK "
        "reaches the server.",
    ),
    Peer(
        "langgraph",
        "LangGraph",
        {
            "cancel": "cancelling the task of `ainvoke`, then `ainvoke` on the same thread",
            "drain": "`RunControl.request_drain`, then `ainvoke` on the same thread",
        },
        ("langgraph==1.2.24", "langchain-openai==1.7.4"),
        remark="With `InMemorySaver`; the tool reports through `get_stream_writer`. `request_drain` is documented for "
        "shutting down. Strategies for messages during a "
        "run ([double texting](https://docs.langchain.com/langsmith/double-texting)) belong to its server, which was "
        "not tried.",
    ),
    Peer(
        "openai_agents",
        "OpenAI Agents SDK",
        {
            "immediate": '`RunResultStreaming.cancel(mode="immediate")`, then `Runner.run` with the same session',
            "after_turn": '`RunResultStreaming.cancel(mode="after_turn")`, then `Runner.run` with the same session',
        },
        ("openai-agents==0.24.0",),
        remark="With `SQLiteSession` and `OpenAIChatCompletionsModel`.",
    ),
    Peer(
        "pydantic_ai",
        "Pydantic AI",
        {
            "enqueue": "`AgentRun.enqueue`",
            "cancel": "`AgentRun.cancel`, then `run` with `message_history`",
        },
        ("pydantic-ai-slim[openai]==2.68.0",),
        remark="The tool reports through `RunContext.emit` with a `CustomEvent`.",
    ),
    Peer(
        "smolagents",
        "smolagents",
        {"interrupt": "`MultiStepAgent.interrupt`, then `run(reset=False)`"},
        ("smolagents[openai]==1.26.0",),
        remark="Tools are sync. `interrupt` is read before the next step.",
    ),
)
