"""An agent with tools and a sub-agent, which asks you before it sends anything.

    python examples/careful_agent.py

The model is a script here. Your words in the middle of the work withdraw the question that waits for you, and the agent
asks anew. A real model is `HttpChatModel("http://localhost:8000/v1", name="qwen3")`, opened with `async with`.
"""

import json

import trio

from callboard.actors import Agent, Questions
from callboard.runtime import open_conversation
from callboard.runtime.options import ConversationOptions
from callboard.runtime.scripted_model import ScriptedModel


def call(tool: str, **arguments: str) -> str:
    content = [{"tool": tool, "arguments": arguments}]
    return json.dumps({"response": {"reply_type": "call", "reply_content": content, "message": ""}})


def respond(message: str) -> str:
    return json.dumps({"response": {"reply_type": "respond", "reply_content": [], "message": message}})


async def price_of(article: str) -> str:
    """The price of an article."""
    return f"{article}: 3 euros"


async def send_mail(to: str, text: str) -> str:
    """Sends a mail."""
    return f"sent to {to}: {text}"


ask = call("call_subordinate", profile="clerk", message="What does tea cost?")
mail = [call("send_mail", to=to, text="Tea costs 3 euros.") for to in ("all", "Ada")]
clerk = [call("price_of", article="tea"), respond("3 euros")]
MODEL = ScriptedModel({"Agent": [ask, *mail, respond("Ada knows.")], "Agent-clerk": clerk})


async def main() -> None:
    agent = Agent(MODEL, [send_mail], profiles={"clerk": "knows prices"}, needs_approval=["send_mail"])
    profiles = {"clerk": lambda: Agent(MODEL, [price_of])}
    options = ConversationOptions(on_question=(questions := Questions()), profiles=profiles)
    async with open_conversation(agent, options=options) as conversation:
        started = conversation.communicate("Mail the price of tea.")
        print((first := await anext(questions)).post.message.partition(". Answer")[0])
        conversation.intervene("To Ada alone.")
        print((second := await anext(questions)).post.message.partition(". Answer")[0])
        print("the first question is", first.state, "- taken:", second.answer("yes"))
        print((await started.reply()).message)


if __name__ == "__main__":
    trio.run(main)
