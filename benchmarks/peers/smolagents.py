"""smolagents: `interrupt`, which the agent reads before its next step, then `run` with `reset=False`."""

from __future__ import annotations

import json
import threading

from smolagents import OpenAIModel, ToolCallingAgent, tool
from smolagents.utils import AgentError

from benchmarks.peers.trial import QUESTION, WORDS, Trial


def _main() -> None:
    trial = Trial.from_arguments()

    def slow_lookup(query: str) -> str:
        """Looks something up; slow.

        Args:
            query: What to look up.
        """
        return trial.slow_lookup_sync(lambda text: None)

    model = OpenAIModel("scripted", api_base=trial.base_url, api_key="none")
    agent = ToolCallingAgent(tools=[tool(slow_lookup)], model=model, verbosity_level=0)

    def speak() -> None:
        trial.wait_to_speak()
        agent.interrupt()

    speaking = threading.Thread(target=speak)
    speaking.start()
    trial.runs = 2
    how = "ended"
    try:
        agent.run(QUESTION)
    except AgentError as error:
        how = f"{type(error).__name__}: {error}"
    speaking.join()
    trial.over(how, json.dumps(agent.memory.get_full_steps(), default=repr))
    trial.report("smolagents", str(agent.run(WORDS, reset=False)))


if __name__ == "__main__":
    _main()
