"""callboard: `intervene` at level 1, with the packaged model behind HTTP and a tool that reports its progress."""

from __future__ import annotations

import json
from functools import partial

import trio

from benchmarks.peers.trial import QUESTION, SETTLE, WORDS, Report, Trial
from callboard.actors import Role
from callboard.runtime import Post, TurnContext, open_conversation
from callboard.runtime.chat_model import ChatModel
from callboard.runtime.models import HttpChatModel
from callboard.runtime.tool import Tool


class Clerk(Role):
    """Answers, and looks things up first if its model asks for that."""

    name = "Clerk"
    template = """You are {{name}} and answer {{asker}}. To look something up, reply with nothing but a JSON object
that has the members `tool` and `arguments`. There is one tool: slow_lookup(query)."""

    def __init__(self, model: ChatModel, tool: Tool) -> None:
        super().__init__(model)
        self.tool = tool

    async def receive(self, post: Post, context: TurnContext) -> Post:
        while True:
            text = await self.think(context, await self.messages(post, context))
            if not text.startswith("{"):
                return post.reply(text)
            context.record(text)
            await context.call(self.tool, json.loads(text)["arguments"])


def _tasks(root: trio.lowlevel.Task | None) -> frozenset[trio.lowlevel.Task]:
    """All tasks below one, and that one."""
    if root is None:
        return frozenset()
    below = (_tasks(child) for nursery in root.child_nurseries for child in nursery.child_tasks)
    return frozenset({root}).union(*below)


def _is_alive(task: trio.lowlevel.Task, root: trio.lowlevel.Task | None) -> bool:
    return task in _tasks(root)


async def _main() -> None:
    trial = Trial.from_arguments()

    async def slow_lookup(query: str, report: Report) -> str:
        """Looks something up; slow."""
        return await trial.slow_lookup(report, trio.sleep)

    async with (
        HttpChatModel(trial.base_url, name="scripted") as model,
        open_conversation(Clerk(model, Tool(slow_lookup))) as conversation,
    ):
        root = trio.lowlevel.current_root_task()
        standing = _tasks(root)
        trial.runs = 1
        started = conversation.communicate(QUESTION)
        await trio.to_thread.run_sync(trial.wait_to_speak)
        conversation.intervene(WORDS)
        answer = (await started.reply()).message
        left = {task.name: partial(_is_alive, task, root) for task in _tasks(root) - standing}
        trial.over("answered", conversation.transcript().to_dict(), left)
        await trio.sleep(2 * SETTLE)
    trial.report("callboard", answer)


if __name__ == "__main__":
    trio.run(_main)
