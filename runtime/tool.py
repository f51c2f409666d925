"""Tool: a function that a role may call, with the schema that a model needs to call it.

What a tool returns, raises or has reported is data; `TurnContext.call` records it, whatever becomes of the call.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, get_type_hints

import pydantic
import trio

from .straggler import StragglerWatch
from .thread_call import ThreadCall
from .worker_process import WorkerCall, check_portable

Report = Callable[[str], None]
REPORT = "report"
"""The parameter through which a function says how far it is; no argument of the call."""


class Tool:
    """A function with a name, a description, the JSON schema of its arguments, and how a call of it is ended.

    All arguments are passed by name. A function with a parameter `report` calls it with text as it goes.

    - An async function is cancelled where it waits.
    - A sync one runs in a thread, which nothing can stop: it has some seconds and is left behind then. It may ask
      `trio.from_thread.check_cancelled()`; what it runs by `trio.from_thread.run` is not cancelled with the call. What
      it reports once it was left behind reaches nothing; what it still does is done.
    - A sync one with `in_process=True` runs in a process of its own, with all that it starts, and is killed at once.
      It and its arguments must be picklable, and in a module that can be imported; else the constructor raises
      TypeError. A call costs the start of a Python interpreter. What it prints goes to stderr.
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
        in_process: bool = False,
    ) -> None:
        self.function = function
        self.name = name or function.__name__
        self.description = description or inspect.getdoc(function) or ""
        self.timeout = timeout
        """Seconds that a call may take; None for no limit of its own."""
        self.interruptible = interruptible
        """Whether an interruption cuts a call; if not, the call is finished first, within `grace`."""
        self.grace = grace
        """Seconds that a call which is not interruptible has from the interruption on; None for the conversation's."""
        self.in_process = in_process
        """Whether a call runs in a process of its own."""
        self._is_async = inspect.iscoroutinefunction(function)
        if in_process and self._is_async:
            raise TypeError(f"tool {self.name}: an async function cannot run in a process of its own")
        if in_process:
            check_portable(function)
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

    async def run(
        self,
        arguments: Mapping[str, Any],
        report: Report,
        *,
        ladder: float = 2.0,
        on_abandoned: Callable[[str], None] | None = None,
        on_late: Callable[[object], None] | None = None,
    ) -> Any:
        """What the function returns. Raises what it raises, ValueError for wrong arguments, trio.TooSlowError.

        Cancelled, or after `timeout` seconds, the call ends as the class says; what has finished by then stands. A
        thread that does not end within `ladder` seconds is left behind: `on_abandoned` is told what, and Cancelled goes
        on. Whenever it ends, `on_late` gets what it returns or raises, if the trio run still lives. An async function
        that does not end within `ladder` seconds is told to `on_abandoned` too, and waited for. Neither may raise.
        """
        checked = self.check(arguments)
        call = self._call(checked, report, _End(self.name, ladder, on_abandoned, on_late))
        if self.timeout is None:
            return await call
        with trio.fail_after(self.timeout):
            return await call

    async def _call(self, arguments: dict[str, Any], report: Report, end: _End) -> Any:
        if self.in_process:
            return await WorkerCall(self.function, arguments, REPORT if self._reports else None).run(report)
        if not self._is_async:
            thread = ThreadCall(end.on_late)
            if self._reports:
                arguments[REPORT] = partial(thread.report, report)
            return await thread.run(
                partial(self.function, **arguments), ladder=end.ladder, on_abandoned=end.left_behind
            )
        if self._reports:
            arguments[REPORT] = report
        with StragglerWatch(end.ladder, end.goes_on):
            return await self.function(**arguments)

    def __repr__(self) -> str:
        return f"<Tool {self.name}>"


@dataclass(frozen=True, slots=True)
class _End:
    """How a call ends that is cancelled."""

    tool: str
    ladder: float
    on_abandoned: Callable[[str], None] | None
    on_late: Callable[[object], None] | None

    def left_behind(self) -> None:
        self._tell("a thread that did not end within {} s: it is left behind")

    def goes_on(self) -> None:
        self._tell(
            "an async function that swallows its cancellation, or cleans up for more than {} s: it is waited for"
        )

    def _tell(self, what: str) -> None:
        if self.on_abandoned is not None:
            self.on_abandoned(f"{self.tool}: {what.format(format(self.ladder, 'g'))}")


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
