"""Scripted server: a model on the loopback that speaks OpenAI's chat completions, whole and streamed, by a script.

Its first reply calls the tool, every later one is the final answer. It needs the standard library alone. The rule to
know: what a trial reports of the model's side is read off `requests`, not off what a framework says of itself.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

TOOL = "slow_lookup"
LAST_TOOL = "final_answer"
"""A tool of this name is how some agents give their answer; offered it, the script answers through it."""
ARGUMENTS = {"query": "suppliers"}
CALL_ID = f"call_{TOOL}"
TEXT_CALL = json.dumps({"tool": TOOL, "arguments": ARGUMENTS})
"""The call for clients that offer no tools and read it out of the text."""
ANSWER = "There are 42 suppliers."

_PATH = "/v1/chat/completions"


@dataclass(frozen=True, slots=True)
class Request:
    """One model call as it arrived."""

    at: float
    """Seconds since the epoch."""
    body: Mapping[str, Any]

    def says(self, text: str) -> bool:
        """Whether the text stands in any of its messages."""
        return any(text in _text(message.get("content")) for message in self.messages)

    @property
    def calls(self) -> list[str]:
        """The ids of the tool calls in its messages, in order; those that a client wrote as text too."""
        calls = [call["id"] for message in self.messages for call in message.get("tool_calls") or ()]
        return calls or [CALL_ID for text in (CALL_ID, TEXT_CALL) if self.says(text)][:1]

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages of the chat."""
        return list(self.body.get("messages", ()))

    @property
    def tools(self) -> list[str]:
        """The names of the tools that are offered."""
        return [tool["function"]["name"] for tool in self.body.get("tools") or ()]

    @property
    def told_of_tools(self) -> list[str]:
        """What the messages of role `tool` say, in order."""
        return [_text(message.get("content")) for message in self.messages if message.get("role") == "tool"]


@dataclass(slots=True)
class ScriptedServer:
    """`with ScriptedServer() as server`: serves at `base_url` from a thread of its own until the block is left."""

    requests: list[Request] = field(default_factory=list)
    _server: ThreadingHTTPServer | None = None
    _thread: threading.Thread | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def base_url(self) -> str:
        """Where clients find it, with the version in the path."""
        if self._server is None:
            raise RuntimeError("the server is used inside `with server`")
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def reply(self, request: Request) -> dict[str, Any]:
        """The message that answers this request, which is logged."""
        with self._lock:
            self.requests.append(request)
            first = len(self.requests) == 1
        if not first:
            return _call(LAST_TOOL, {"answer": ANSWER}) if LAST_TOOL in request.tools else _said(ANSWER)
        if TOOL in request.tools:
            return _call(TOOL, ARGUMENTS)
        return _said(TEXT_CALL)

    def __enter__(self) -> ScriptedServer:
        server = _Server(("127.0.0.1", 0), _Handler)
        server.script = self
        self._server = server
        self._thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()
        self._server = self._thread = None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # A client that keeps its connection alive must not keep the program.
    block_on_close = False
    script: ScriptedServer


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        at = time.time()
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        if self.path.partition("?")[0] != _PATH:
            self._send(404, "application/json", json.dumps({"error": {"message": f"no {self.path} here"}}).encode())
            return
        message = self.server.script.reply(Request(at, body))
        if body.get("stream"):
            events = b"".join(f"data: {event}\n\n".encode() for event in _stream(message))
            self._send(200, "text/event-stream", events)
        else:
            self._send(200, "application/json", json.dumps(_completion(message)).encode())

    def do_GET(self) -> None:
        self._send(404, "application/json", b'{"error": {"message": "this server only completes chats"}}')

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing: `requests` is the log."""

    def _send(self, status: int, kind: str, body: bytes) -> None:
        try:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except ConnectionError:
            self.close_connection = True


def _said(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def _call(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": f"call_{name}", "type": "function", "function": function}],
    }


def _ends(message: Mapping[str, Any]) -> str:
    return "tool_calls" if "tool_calls" in message else "stop"


def _completion(message: Mapping[str, Any]) -> dict[str, Any]:
    choice = {"index": 0, "message": message, "finish_reason": _ends(message), "logprobs": None}
    return {**_envelope("chat.completion"), "choices": [choice], "usage": _USAGE}


def _stream(message: Mapping[str, Any]) -> Iterator[str]:
    """The data of the events: the message in one piece, its end, what it used, and that all is said."""
    calls = [{"index": index, **call} for index, call in enumerate(message.get("tool_calls", ()))]
    whole = {**message, "tool_calls": calls} if calls else message
    for delta, end in ((whole, None), ({}, _ends(message))):
        choice = {"index": 0, "delta": delta, "finish_reason": end, "logprobs": None}
        yield json.dumps({**_envelope("chat.completion.chunk"), "choices": [choice]})
    yield json.dumps({**_envelope("chat.completion.chunk"), "choices": [], "usage": _USAGE})
    yield "[DONE]"


_USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def _envelope(kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-scripted", "object": kind, "created": int(time.time()), "model": "scripted"}


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content)
    return "" if content is None else str(content)
