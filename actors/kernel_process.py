"""Kernel process: the program of a kernel. It runs pieces of code one after another in one namespace, which stays.

It is run as a file, so that it starts fast: it imports nothing but the standard library, and nothing of callboard. It
has no threads, so that code may fork. Requests come on what was its stdin and replies go to the descriptor that its
setup names, a line of JSON each; what code, what it starts and C print goes to the descriptors 1 and 2, which are one
pipe. After each run stands a marker in that pipe. The rule to know: SIGINT is a KeyboardInterrupt while code runs, and
nothing at all otherwise.
"""

from __future__ import annotations

import ast
import ctypes
import json
import linecache
import os
import resource
import signal
import sys
import traceback
from contextlib import suppress
from types import CodeType, FrameType, ModuleType
from typing import Any

SESSION = "callboard_session"
"""The module in which code and plugins find the session's variables, as the dict `variables`."""


class Kernel:
    """What runs the code: its namespace, and the private descriptors."""

    def __init__(self, setup: dict[str, Any]) -> None:
        self._pid = os.getpid()
        # What os.dup gives is not inherited by programs that code starts.
        self._requests = os.fdopen(os.dup(0), "rb")
        self._replies = os.dup(setup["replies"])
        self._output = os.dup(1)
        os.close(setup["replies"])
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        self._streams = (sys.stdout, sys.stderr)
        self._main = ModuleType("__main__")
        self._variables: dict[str, Any] = {}
        self._count = 0
        self._interruptible = False

    def serve(self) -> None:
        """Runs what is asked for until the host has gone."""
        sys.modules["__main__"] = self._main
        session = ModuleType(SESSION)
        session.__dict__["variables"] = self._variables
        sys.modules[SESSION] = session
        self._take_signals()
        first = True
        while first or (line := self._requests.readline()):
            if first:
                os.write(self._output, b"\0")
            answer = {"pid": self._pid} if first else self._answer(json.loads(line))
            first = False
            self._reply(answer)

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        self._variables.clear()
        self._variables.update(request["variables"])
        self._restore_output()
        error = ""
        try:
            error = self._guarded(request)
        except KeyboardInterrupt:  # it came in the last moment of the run
            error = "KeyboardInterrupt"
        self._interruptible = False
        self._take_signals()
        if os.getpid() != self._pid:  # a copy that the code has forked
            os._exit(0)
        self._restore_output()
        os.write(self._output, request["marker"].encode())
        return {"error": error}

    def _guarded(self, request: dict[str, Any]) -> str:
        """The name of what the run raised, whose traceback has been printed; empty if it raised nothing."""
        try:
            try:
                self._interruptible = True
                self._load(request.get("plugins", ()))
                self._run(request["code"])
                _save_figures()
            finally:
                self._interruptible = False
        except SystemExit as error:
            if error.code in (None, 0):
                return ""
            return self._show(error)
        except BaseException as error:
            return self._show(error)
        return ""

    def _load(self, plugins: list[dict[str, str]]) -> None:
        """Makes the functions of plugins known; a module is run once."""
        for plugin in plugins:
            module = sys.modules.get(plugin["module"])
            if module is None and plugin["source"]:
                module = ModuleType(plugin["module"])
                sys.modules[plugin["module"]] = module
                exec(self._compiled(plugin["source"], f"<plugin {plugin['module']}>"), module.__dict__)
            elif module is None:
                module = __import__(plugin["module"], fromlist=["*"])
            for name in plugin["functions"]:
                setattr(self._main, name, getattr(module, name))

    def _run(self, code: str) -> None:
        self._count += 1
        name = f"<code {self._count}>"
        tree = ast.parse(self._remembered(code, name), name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, "exec", dont_inherit=True), self._main.__dict__)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), name, "eval", dont_inherit=True), self._main.__dict__)
            if value is not None:
                print(repr(value))
        with suppress(OSError, ValueError):
            sys.stdout.flush()

    def _compiled(self, source: str, name: str) -> CodeType:
        return compile(self._remembered(source, name), name, "exec", dont_inherit=True)

    def _remembered(self, source: str, name: str) -> str:
        """The source, whose lines tracebacks will show."""
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        return source

    def _show(self, error: BaseException) -> str:
        self._interruptible = False
        told = traceback.TracebackException.from_exception(error)
        _hide_kernel(told)
        said = "".join(told.format())
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        rest = memoryview(said.encode(errors="replace"))
        while rest:
            rest = rest[os.write(self._output, rest) :]
        return type(error).__name__

    def _reply(self, answer: dict[str, Any]) -> None:
        os.write(self._replies, json.dumps(answer).encode() + b"\n")

    def _restore_output(self) -> None:
        """Code may have closed or replaced what it prints to."""
        for number, stream in enumerate(self._streams, 1):
            with suppress(OSError, ValueError):
                stream.flush()
            os.dup2(self._output, number)
            if stream.closed:
                stream = os.fdopen(number, "w", 1, "utf-8", "replace", closefd=False)
            self._streams = (stream, self._streams[1]) if number == 1 else (self._streams[0], stream)
        sys.stdout, sys.stderr = self._streams

    def _take_signals(self) -> None:
        """Code may have changed what signals do."""
        signal.signal(signal.SIGINT, self._on_interrupt)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})

    def _on_interrupt(self, number: int, frame: FrameType | None) -> None:
        if self._interruptible:
            raise KeyboardInterrupt


def _hide_kernel(told: traceback.TracebackException | None) -> None:
    """Takes the kernel's own frames out of what is told of an error and of those that led to it."""
    while told is not None:
        told.stack[:] = [frame for frame in told.stack if frame.filename != __file__]
        told = told.__cause__ or told.__context__


def _save_figures() -> None:
    """Saves what was drawn with pyplot and is still open, and closes it."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return
    number = 0
    for figure in pyplot.get_fignums():
        while os.path.exists(name := f"figure-{(number := number + 1)}.png"):
            pass
        pyplot.figure(figure).savefig(name)
    pyplot.close("all")


def _go_with_host() -> None:
    """Has the system kill this process with the host's thread that started it. Linux alone can."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _set_limits(limits: dict[str, int]) -> None:
    for name, most in limits.items():
        number = getattr(resource, name)
        hard = resource.getrlimit(number)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(number, (most, most))


def main() -> None:
    """Serves, once it has become what its setup, the one argument, says."""
    setup = json.loads(sys.argv[1])
    sys.argv[:] = [""]
    sys.path.insert(0, "")
    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)
    if setup["user"]:
        os.setgroups([])
        os.setgid(setup["user"])
        os.setuid(setup["user"])
    else:
        _go_with_host()
    # Not before: in a sandbox the folder is that user's alone.
    os.chdir(setup["folder"])
    _set_limits(setup["limits"])
    Kernel(setup).serve()


if __name__ == "__main__":
    main()
