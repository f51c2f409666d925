"""An answer that is a value: `send(question, returns=Report)` asks again until the model's answer is a Report.

    python examples/typed_answer.py

The model is a script here, which leaves a field out the first time. A real one is
`async with HttpChatModel("http://localhost:8000/v1", name="qwen3") as model`, from `callboard.runtime.models`.
"""

import pydantic
import trio

from callboard.actors import Role
from callboard.runtime import Post, TurnContext, open_conversation
from callboard.runtime.scripted_model import ScriptedModel


class Delay(pydantic.BaseModel):
    supplier: str
    days: int = pydantic.Field(ge=1, description="working days behind the date that was agreed")


class Report(pydantic.BaseModel):
    title: str
    delays: list[Delay]


class Analyst(Role):
    """Says what its model says. The schema of the answer stands in what the model is sent."""

    name = "Analyst"
    template = "You are {{name}}. Answer {{asker}} from these notes: Arco came two days late, Bolt a week."

    async def receive(self, post: Post, context: TurnContext) -> Post:
        return post.reply(await self.think(context, await self.messages(post, context)))


SCRIPT = [
    '{"title": "Late", "delays": [{"supplier": "Arco"}]}',
    '{"title": "Late", "delays": [{"supplier": "Arco", "days": 2}, {"supplier": "Bolt", "days": 5}]}',
]


async def main() -> None:
    with ScriptedModel({"Analyst": SCRIPT}) as model:
        async with open_conversation(Analyst(model)) as conversation:
            report = await conversation.send("Who delivers late?", returns=Report)
            for delay in report.delays:
                print(f"{report.title}: {delay.supplier}, {delay.days} days")
            for post in conversation.transcript().rounds[-1].post_list:
                print(f"  {post.send_from}: {post.message.splitlines()[0]}")


if __name__ == "__main__":
    trio.run(main)
