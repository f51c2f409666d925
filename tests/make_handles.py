"""Writes the handles of `callboard.runtime.hosts` from the classes that they stand for: `python -m tests.make_handles`.

Each verb and reading of Conversation, Receipt, Queued and Board is there under its name, with its parameters and
docstring.
A test holds the files to what this makes.
"""

from __future__ import annotations

import ast
import inspect
import math
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast, get_overloads

from callboard.runtime.board import Board
from callboard.runtime.conversation import Conversation
from callboard.runtime.hosts.shared_board import drain_within
from callboard.runtime.queued import Queued
from callboard.runtime.receipt import Receipt
from tests.test_imports import ROOT

LEFT_OUT = {
    "from_thread": "every verb of a handle crosses threads",
    "serve_with": "joins the parts of a conversation when trio opens it",
    "refuse_inside": "no code of a host runs in a role's turn",
    "begin_draining": "what `drain` does with each conversation; alone, it would leave one that refuses for ever",
}
"""What a host on another loop has no use for, and why."""

READ_IN_PLACE = {
    "Conversation": {"id", "paused"},
    "Receipt": {"id", "author", "action", "reached", "interrupted", "recalled", "told", "spared"},
    "Queued": {"id", "message", "position", "state"},
    "Board": set(),
}
"""Readings that stay properties: each is one step of the interpreter, or true of some moment within it."""

STOPS = {"send"}
"""What Ctrl-C ends by stopping the round."""

INSTEAD = {"drain": drain_within}
"""What is called in place of a verb: trio's clock is not the caller's."""

HANDLES = {"Conversation": Conversation, "Receipt": Receipt, "Queued": Queued, "Board": Board}
FILES = {"conversation": ("Conversation",), "receipt": ("Receipt", "Queued"), "board": ("Board",)}
MODULES = {
    "math": "",
    **dict.fromkeys(("AsyncIterator", "Awaitable", "Iterator"), "collections.abc"),
    **dict.fromkeys(("asynccontextmanager", "contextmanager"), "contextlib"),
    "partial": "functools",
    **dict.fromkeys(("Any", "overload"), "typing"),
    "{}Bridge": ".{}_bridge",
    "{}Conversation": ".{}_conversation",
    "{}Held": ".{}_held",
    **dict.fromkeys(("{}Queued", "{}Receipt"), ".{}_receipt"),
    "{}StreamedReply": ".{}_streamed_reply",
    "{}Subscription": ".{}_subscription",
    "Handle": ".handle",
    "made_there": ".held",
    **dict.fromkeys(("drain_within", "started"), ".shared_board"),
}
"""Where the names of a file come from, with {} for the host."""
BLOCK = re.compile(r"(?:AsyncIterator|AbstractAsyncContextManager)\[(\w+)\]")
"""What a member gives that is entered."""


@dataclass(frozen=True, slots=True)
class Member:
    """A verb or a reading of a class."""

    name: str
    function: object
    is_property: bool

    @property
    def signature(self) -> inspect.Signature:
        """With annotations as they are written."""
        assert callable(self.function)
        return inspect.signature(self.function)

    @property
    def returns(self) -> str:
        """The annotation of what it gives."""
        return str(self.signature.return_annotation)


def members(cls: type) -> Iterator[Member]:
    """The public ones, those of its base first, in the order of the source."""
    for base in reversed(cls.__mro__):
        for name, member in vars(base).items():
            if name.startswith("_") or name in LEFT_OUT:
                continue
            if isinstance(member, property):
                yield Member(name, member.fget, True)
            elif inspect.isfunction(member):
                yield Member(name, INSTEAD.get(name, member), False)


def method(style: str, owner: str, member: Member) -> str:
    """The source of one member of a handle."""
    is_async = inspect.iscoroutinefunction(member.function)
    call = "run" if is_async else "call"
    if block := BLOCK.fullmatch(member.returns):
        return opening(style, member, block[1])
    if member.is_property:
        head, body = reading(style, owner, member)
    elif member.returns.startswith("Subscription"):
        head = f"def {member.name}{parameters(member, handle_type(style, member.returns))}:"
        body = f"return {style}Subscription(self._bridge, partial({target(member)}))"
    else:
        wait = "await " if style == "Asyncio" else ""
        stop = style == "Blocking" and member.name in STOPS
        begin = "self._bridge.stopping(self._handled)" if stop else "self._bridge"
        head = f"{'async ' if wait else ''}def {member.name}{parameters(member, handle_type(style, member.returns))}:"
        asked = f"{begin}.{call}({target(member)})"
        if is_async and member.returns == "Conversation":
            begun = f"started(self._handled, partial({target(member)}))"
            asked = f"{style}Held(self._bridge, {begun}).hand_over()"
        body = given(style, member.returns, wait + asked)
    return f"{overloads(style, member)}{head}\n{documentation(member.function)}\n    {body}\n"


def opening(style: str, member: Member, gives: str) -> str:
    """The source of a member that opens a block; a conversation that is held in one ends with the host's first."""
    wait, manager = ("async ", "asynccontextmanager") if style == "Asyncio" else ("", "contextmanager")
    head = f"@{manager}\n{wait}def {member.name}"
    returns = f"{'AsyncIterator' if wait else 'Iterator'}[{style}{gives}]"
    keeps = ", keeps=True" if gives == "Conversation" else ""
    return (
        f"{head}{parameters(member, returns)}:\n{documentation(member.function)}\n"
        f"    manager = made_there(partial({target(member)}))\n"
        f"    {wait}with {style}Held(self._bridge, manager{keeps}) as one:\n"
        f"        yield {style}{gives}(self._bridge, one)\n"
    )


def overloads(style: str, member: Member) -> str:
    """The ways to call it that type checkers tell apart."""
    text = ""
    for function in [] if member.is_property else get_overloads(cast(Callable[..., object], member.function)):
        way = Member(member.name, function, False)
        wait = "async " if style == "Asyncio" else ""
        text += f"@overload\n{wait}def {member.name}{parameters(way, handle_type(style, way.returns))}: ...\n\n"
    return text


def documentation(documented: object) -> str:
    """The docstring of the original, as it is written there."""
    text = inspect.getdoc(documented) or ""
    return textwrap.indent(f'"""{text}\n"""' if "\n" in text else f'"""{text}"""', "    ")


def reworded(style: str, text: str) -> str:
    """The docstring of a class, with the call that gives a handle."""
    block = "async with" if style == "Asyncio" else "with"
    return text.replace("async with Board(", f"{block} host.open_board(")


def reading(style: str, owner: str, member: Member) -> tuple[str, str]:
    """The head and the body of a property."""
    direct = f"self._handled.{member.name}"
    if member.name in READ_IN_PLACE[owner]:
        return f"@property\ndef {member.name}(self) -> {member.returns}:", f"return {direct}"
    call = f"return self._bridge.call(lambda: {direct})"
    if style == "Asyncio":
        return f"@property\ndef {member.name}(self) -> Awaitable[{member.returns}]:", call
    return f"@property\ndef {member.name}(self) -> {member.returns}:", call


def parameters(member: Member, returns: str) -> str:
    """The parameters as they are written, with another result."""
    text = ["self"]
    star = False
    for one in list(member.signature.parameters.values())[1:]:
        if one.kind is one.KEYWORD_ONLY and not star:
            star = True
            text.append("*")
        note = f": {one.annotation}" if one.annotation is not one.empty else ""
        default = "math.inf" if one.default == math.inf else repr(one.default)
        text.append(f"{one.name}{note}" + (f" = {default}" if one.default is not one.empty else ""))
    return f"({', '.join(text)}) -> {returns}".replace("'", '"')


def target(member: Member) -> str:
    """The member of the trio class, and the arguments for it."""
    instead = INSTEAD.get(member.name)
    parts = [f"self._handled.{member.name}" if instead is None else f"{instead.__name__}, self._handled"]
    for one in list(member.signature.parameters.values())[1:]:
        parts.append(f"{one.name}={one.name}" if one.kind is one.KEYWORD_ONLY else one.name)
    return ", ".join(parts)


def handle_type(style: str, returns: str) -> str:
    """What a handle gives where the trio class gives this."""
    return re.sub(r"\b(Receipt|Queued|Subscription|Conversation)\b", rf"{style}\1", returns)


def given(style: str, returns: str, call: str) -> str:
    """The statement that returns what the call gives, as a handle where it is one."""
    match re.fullmatch(r"(tuple\[)?(Receipt|Queued|Conversation)(?:, \.\.\.\]| \| (None))?", returns):
        case None:
            return call if returns == "None" else f"return {call}"
        case found if found[1]:
            return f"return tuple({style}{found[2]}(self._bridge, one) for one in {call})"
        case found if found[3]:
            return f"one = {call}\n    return None if one is None else {style}{found[2]}(self._bridge, one)"
        case found:
            return f"return {style}{found[2]}(self._bridge, {call})"


def imports(text: str, classes: tuple[str, ...], style: str) -> str:
    """The imports that a file's names need."""
    used = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    lines = set()
    here = {name: module.format(style.lower()) for name, module in MODULES.items()}
    for name, module in here.items():
        if (written := name.format(style)) in used and f"class {written}(" not in text:
            lines.add(f"import {written}" if not module else f"from {module} import {written}")
    for name, module in origins(classes).items():
        if name in used and name not in here:
            lines.add(f"from ..{module} import {name}")
    return "\n".join(sorted(lines)) + "\n"


def origins(classes: tuple[str, ...]) -> dict[str, str]:
    """Where names of the runtime come from, by the imports of the modules in which the classes stand."""
    found: dict[str, str] = {}
    for base in {base for name in classes for base in HANDLES[name].__mro__ if base is not object}:
        module = base.__module__.rpartition(".")[2]
        tree = ast.parse(inspect.getsource(sys.modules[base.__module__]))
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module:
                found.update({alias.name: node.module for alias in node.names})
            elif isinstance(node, ast.ClassDef):
                found[node.name] = module
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                found[node.targets[0].id] = module
    return found


def handle(style: str, name: str) -> str:
    """The source of one class."""
    cls = HANDLES[name]
    head = f"class {style}{name}(Handle[{name}]):\n{reworded(style, documentation(cls))}\n\n"
    init = (
        f"def __init__(self, bridge: {style}Bridge, handled: {name}) -> None:\n"
        "    super().__init__(handled)\n    self._bridge = bridge\n"
    )
    parts = [init, *(method(style, name, member) for member in members(cls))]
    if hasattr(cls, "__len__"):
        parts.append("def __len__(self) -> int:\n    return len(self._handled)\n")
    return head + textwrap.indent("\n".join(parts), "    ")


def source(style: str, file: str) -> str:
    """The text of one file, in the project's format."""
    classes = FILES[file]
    body = "\n\n".join(handle(style, name) for name in classes)
    where = "tasks of an asyncio loop" if style == "Asyncio" else "code that blocks"
    doc = f'"""{" and ".join(classes)} for {where}: written by tests/make_handles.py from the classes of that name."""'
    text = f"{doc}\n\nfrom __future__ import annotations\n\n{imports(body, classes, style)}\n\n{body}"
    for command in (["check", "--select", "I", "--fix", "-q"], ["format"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--stdin-filename", f"runtime/hosts/{file}.py", "-"]
        text = subprocess.run(ruff, input=text, cwd=ROOT, check=True, capture_output=True, encoding="utf-8").stdout
    return text


def targets() -> Iterator[tuple[Path, str]]:
    """Each file and what is to stand in it."""
    for style in ("Asyncio", "Blocking"):
        for file in FILES:
            yield ROOT / "runtime" / "hosts" / f"{style.lower()}_{file}.py", source(style, file)


if __name__ == "__main__":
    for path, text in targets():
        path.write_text(text, encoding="utf-8")
