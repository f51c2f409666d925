"""Blocking use, in a notebook or a script: no `await`, and no block that would have to reach over the cells.

    python examples/notebook.py      # or open it in an editor that runs the cells between the marks

A cell may speak while the work of an earlier one goes on. Interrupting the kernel in a cell that waits ends the round.
"""

# %% Open a conversation; it lives until the last cell.
from contextlib import ExitStack

import trio

from callboard.runtime import Actor, Post, TurnContext
from callboard.runtime.hosts import BlockingHost


class Analyst(Actor):
    """Stands for a role with a model: `model = stack.enter_context(host.enter(HttpChatModel(...)))`."""

    name = "Analyst"

    async def receive(self, post: Post, context: TurnContext) -> Post:
        words = [said.message for said in context.user_words]
        context.draft.write(f"half of {post.message}")
        await trio.sleep(0.2)
        return post.reply(" ".join([f"All about {post.message}", *words]))


stack = ExitStack()
host = stack.enter_context(BlockingHost())
conversation = stack.enter_context(host.open_conversation(Analyst()))

# %% Ask, and wait for the answer.
print(conversation.send("suppliers").message)

# %% Ask, and do not wait.
started = conversation.communicate("prices")

# %% Speak while it works: the same round goes on with these words.
receipt = conversation.intervene("in 2025")
print("interrupted:", *receipt.interrupted)
print("kept:", *(post.message for post in receipt.stopped().posts))
print(started.reply().message)

# %% What was said, and by whom.
for one in conversation.transcript().rounds:
    for post in one.post_list:
        print(f"  {post.send_from} to {post.send_to}: {post.message}")

# %% The end.
stack.close()
