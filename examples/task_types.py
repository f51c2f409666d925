"""Two types of tasks whose lessons look alike: what is alike finds both, the type of the task finds the right one.

    python examples/task_types.py

The lessons are those of examples/task_types/lessons, a sub folder for each type. An identifier finds the type by a
table, here, and the clerk is given the lessons of that type alone. A model or a rule of one's own may find it too.
"""

import shutil
import tempfile
from pathlib import Path

import trio

from callboard.actors import Role, TaskTypeIdentifier
from callboard.experience.experience import Experience
from callboard.runtime import Post, TurnContext, open_conversation
from callboard.runtime.chat_model import ChatRequest
from callboard.runtime.scripted_model import ScriptedModel

LESSONS = Path(__file__).parent / "task_types" / "lessons"
QUESTIONS = ("Total the invoices of March.", "Total the tickets of March.", "Total the weather of March.")


class Clerk(Role):
    name = "Clerk"
    template = "You are {{name}}. You total what suppliers charge."

    async def receive(self, post: Post, context: TurnContext) -> Post:
        print(post.message, "-", (await context.ask("TaskTypeIdentifier", post.message)).message)
        return post.reply(await self.think(context, await self.messages(post, context)))


def parrot(request: ChatRequest) -> str:
    """Says the lessons that it is given."""
    return "; ".join(message.content.split("- ")[-1] for message in request.messages if "===" in message.content) or "?"


async def main(folder: Path) -> None:
    shutil.copytree(LESSONS, folder, dirs_exist_ok=True)  # refreshing writes beside them
    experience = Experience(folder, dynamic_sub_path=True, threshold=0.1)
    for type in ("invoice", "journey"):
        await experience.pool(type).refresh()
    identifier = TaskTypeIdentifier(table={"invoices": "invoice", "tickets": "journey"})
    with ScriptedModel({"Clerk": [parrot] * len(QUESTIONS)}) as model:
        clerk = Clerk(model, subordinates=[identifier], experience=experience)
        async with open_conversation(clerk) as conversation:
            for question in QUESTIONS:
                print("  lesson:", (await conversation.send(question)).message)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        trio.run(main, Path(temporary))
