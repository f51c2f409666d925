"""The script that the demo plays without a model: what Planner and CodeInterpreter say, made of what they are shown.

The rule to know: each reply depends on the request alone. So it is right whenever the user's words come, before the
code has started, while it runs or after it has ended; and the figures come out of code that really runs.
"""

from __future__ import annotations

import json
import re

from callboard.runtime.chat_model import ChatRequest
from callboard.runtime.scripted_model import Reply, ScriptedModel

QUESTION = "Which supplier in orders.csv is late most often, weighted by order value?"
WORDS = "Count only 2025."
PAUSE = 0.2
"""Seconds that the code rests each time it says how far it is, so that one can watch it."""
CALLS = 20
"""More model calls than any course of the demo takes from one role."""

TASK = "Years {years}: which share of the order value came late, by supplier?"
CODE = """\
import csv, time
from collections import Counter

YEARS = {years!r}
late, total, orders = Counter(), Counter(), 0
with open("orders.csv", newline="", encoding="utf-8") as file:
    for number, row in enumerate(csv.DictReader(file), 1):
        if row["date"][:4] in YEARS:
            value = int(row["quantity"]) * round(100 * float(row["price"]))
            total[row["supplier"]] += value
            late[row["supplier"]] += value * (row["late"] == "yes")
            orders += 1
        if number % 300 == 0:
            print(f"{{number}} rows read, {{orders}} orders counted")
            time.sleep({pause})
worst = max(total, key=lambda supplier: late[supplier] / total[supplier])
share = f"{{100 * late[worst] / total[worst]:.1f}} %"
print(f"Finding for {{' and '.join(YEARS)}}: {{worst}}, {{share}} late by value, {{orders}} orders.")
"""

TASKED = re.compile(r"Years (\d{4}(?: and \d{4})?): ")
# In the code, which a prompt may hold too, a brace stands behind `for`.
FINDING = re.compile(r"Finding for (\d{4}(?: and \d{4})?): ([^\n\"\\]*\.)")


def demo_model(pause: float = PAUSE) -> ScriptedModel:
    """A model that plays the script, for one conversation."""

    def interpreter(request: ChatRequest) -> Reply:
        return interpreter_reply(request, pause)

    return ScriptedModel({"Planner": [planner_reply] * CALLS, "CodeInterpreter": [interpreter] * CALLS})


def planner_reply(request: ChatRequest) -> Reply:
    """The answer, if what was found is about the years that the user wants; else a request to find that."""
    shown = _shown(request)
    years = _years(shown)
    found = dict(FINDING.findall(shown))
    if years not in found:
        return _planned(
            "1. have code read the orders\n2. answer", "CodeInterpreter", TASK.format(years=years), "InProcess"
        )
    heard = f' (You said: "{WORDS}")' if WORDS in shown else ""
    answer = f"Late most often in {years}: {found[years]}{heard}"
    return _planned("1. have code read the orders (done)\n2. answer", "User", answer, "Completed")


def interpreter_reply(request: ChatRequest, pause: float = PAUSE) -> Reply:
    """The code for the years of the newest task."""
    shown = _shown(request)
    *_, task = TASKED.findall(shown) or [_years(shown)]
    code = CODE.format(years=task.split(" and "), pause=pause)
    return _said({"thought": f"Read the orders of {task}.", "reply_type": "python", "reply_content": code})


def _shown(request: ChatRequest) -> str:
    return "\n".join(message.content for message in request.messages if message.role != "system")


def _years(shown: str) -> str:
    return "2025" if WORDS in shown else "2024 and 2025"


def _planned(plan: str, send_to: str, message: str, stop: str) -> Reply:
    step = plan.splitlines()[send_to == "User"]
    members = {"plan_reasoning": "Figures come from code.", "init_plan": plan, "plan": plan, "current_plan_step": step}
    return _said({**members, "stop": stop, "send_to": send_to, "message": message})


def _said(members: dict[str, str]) -> Reply:
    return Reply(json.dumps({"response": members}), pieces=8, delay=0.04)
