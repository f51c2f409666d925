"""A team in three levels, and whom of it the user's words interrupt.

    python examples/research_team.py

The researchers wait for nobody: level 1 would reach them, level 2 reaches their leads too, level 3 the editor. A lead
that is interrupted asks anew, so what it had asked for is recalled first, and what that had is kept. With a model a
lead is a `Planner(model, name=..., subordinates=...)`, which decides whom it asks.
"""

import trio

from callboard.runtime import Actor, Post, TurnContext, open_conversation


class Researcher(Actor):
    def __init__(self, name: str) -> None:
        self.name = name

    async def receive(self, post: Post, context: TurnContext) -> Post:
        context.draft.write(f"half of {self.name}")
        await trio.sleep(0.3)
        words = [said.message for said in context.user_words]
        return post.reply(" ".join([f"{self.name} on {post.message}", *words]))


class Lead(Actor):
    def __init__(self, name: str, *subordinates: Actor) -> None:
        self.name = name
        self.subordinates = subordinates

    async def receive(self, post: Post, context: TurnContext) -> Post:
        task = " ".join([post.message, *(said.message for said in context.user_words)])
        findings = {role.name: "" for role in self.subordinates}

        async def ask(name: str) -> None:
            findings[name] = (await context.ask(name, task)).message

        async with trio.open_nursery() as nursery:
            for name in findings:
                nursery.start_soon(ask, name)
        return post.reply("\n".join(findings.values()))


async def main() -> None:
    markets = Lead("Markets", Researcher("Europe"), Researcher("Asia"))
    costs = Lead("Costs", Researcher("Prices"), Researcher("Wages"))
    async with open_conversation(Lead("Editor", markets, costs)) as conversation:
        started = conversation.communicate("suppliers")
        await trio.sleep(0.1)
        receipt = conversation.intervene("in 2025", broadcast_level=2)
        print("interrupted:", *sorted(receipt.interrupted), "- recalled:", *sorted(receipt.recalled))
        print("kept:", ", ".join(sorted(post.message for post in (await receipt.stopped()).posts if post.message)))
        await trio.sleep(0.1)
        print("interrupted:", *conversation.intervene("in euros", role="Prices").interrupted)
        print((await started.reply()).message)


if __name__ == "__main__":
    trio.run(main)
