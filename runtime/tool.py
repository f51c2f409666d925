"""Tool: a function that a role may call, with the schema that a model needs to call it.

What a tool returns, raises or has reported is data; `TurnContext.call` records it, whatever becomes of the call.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, get_type_hints

import pydantic
import trio

Report = Callable[[str], None]
REPORT = "report"
"""The parameter through which a function says how far it is; no argument of the call."""


class Tool:
    """A function with a name, a description, the JSON schema of its arguments, and a time limit.

    All arguments are passed by name. An async function is cancelled where it waits. A sync one runs in a thread, which
    nothing can stop: an interruption waits for it, so it should be short. A function with a parameter `report` calls
    it with text as it goes.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        timeout: float | None = None,
        interruptible: bool = True,
        grace: float | None = None,
    ) -> None:
        self.function = function
        self.name = name or function.__name__
        self.description = description or inspect.getdoc(function) or ""
        self.timeout = timeout
        """Seconds that a call may take; None for no limit of its own."""
        self.interruptible = interruptible
        """Whether an interruption cancels it; else it is finished first."""
        self.grace = grace
        """Seconds that it may go on after an interruption; None for the conversation's."""
        parameters = inspect.signature(function).parameters
        self._reports = REPORT in parameters
        self._arguments = _model(self.name, function, parameters)

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of the arguments, an object."""
        schema: dict[str, Any] = self._arguments.model_json_schema()
        return schema

    def check(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments with the types of the signature. Raises ValueError, naming each that is wrong or missing."""
        try:
            checked = self._arguments.model_validate(dict(arguments))
        except pydantic.ValidationError as error:
            raise ValueError(_describe(error)) from None
        return {name: getattr(checked, name) for name in type(checked).model_fields}

    async def run(self, arguments: Mapping[str, Any], report: Report) -> Any:
        """What the function returns. Raises what it raises, ValueError for wrong arguments, trio.TooSlowError."""
        checked = self.check(arguments)
        with trio.fail_after(self.timeout if self.timeout is not None else float("inf")):
            if inspect.iscoroutinefunction(self.function):
                return await self.function(**checked, **({REPORT: report} if self._reports else {}))
            call = partial(self.function, **checked, **({REPORT: _from_thread(report)} if self._reports else {}))
            return await trio.to_thread.run_sync(call)

    def __repr__(self) -> str:
        return f"<Tool {self.name}>"


def _from_thread(report: Report) -> Report:
    return lambda text: trio.from_thread.run_sync(report, text)


def _model(name: str, function: Callable[..., Any], parameters: Mapping[str, inspect.Parameter]) -> Any:
    """A pydantic model with a field for each argument."""
    hints = get_type_hints(function)
    fields: dict[str, Any] = {}
    for parameter in parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"tool {name}: {parameter} cannot be passed by name")
        if parameter.name != REPORT:
            default = ... if parameter.default is parameter.empty else parameter.default
            fields[parameter.name] = (hints.get(parameter.name, Any), default)
    return pydantic.create_model(name, __config__=pydantic.ConfigDict(extra="forbid"), **fields)


def _describe(error: pydantic.ValidationError) -> str:
    faults = (f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors(include_url=False))
    return "; ".join(faults)
