"""The chat as a program: in a terminal of its own, in a pipe, and with a server of models that streams slowly."""

import codecs
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from callboard.runtime import Transcript
from callboard.service.command_line import main

from .test_chat_screen import Grid
from .test_imports import ROOT

PATIENCE = 20.0
"""Seconds in which anything must have happened."""
LONG = " ".join(f"wave{number}" for number in range(2000))
MODEL = {"CALLBOARD_MODEL": "m", "TERM": "xterm"}
SEQUENCE_BEGUN = re.compile(r"\x1b(\[\??\d*)?$")
slow = pytest.mark.slow


class Storyteller(BaseHTTPRequestHandler):
    """Tells the user an endless story, or a short one to who asks for that; and answers each test of one word."""

    def do_POST(self) -> None:
        messages = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"]
        said = "\n".join(message["content"] for message in messages[1:])
        told = "The end. \x1b[2J" if "short" in said else LONG
        reply = json.dumps({"response": {"send_to": "User", "message": told}})
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        try:
            for start in range(0, len(reply), 8):
                self._event({"delta": {"content": reply[start : start + 8]}})
                time.sleep(0.01)
            self._event({"delta": {}, "finish_reason": "stop"})
            self.wfile.write(b"data: [DONE]\n\n")
        except OSError:
            assert isinstance(self.server, Server)
            self.server.cut += 1

    def _event(self, choice: dict[str, Any]) -> None:
        self.wfile.write(b"data: " + json.dumps({"choices": [{"index": 0, **choice}]}).encode() + b"\n\n")

    def log_message(self, format: str, *arguments: object) -> None:
        """Says nothing."""


class Server(ThreadingHTTPServer):
    cut = 0
    """How many replies were not taken to their end."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Storyteller) as serving:
        Thread(target=serving.serve_forever, daemon=True).start()
        yield serving
        serving.shutdown()


class Seat:
    """A terminal with a chat in it, and who sits before it."""

    def __init__(self, server: Server, saved: Path, *command: str) -> None:
        self.master, self.slave = pty.openpty()
        self.grid = Grid(200, 24)
        self._resize(200)
        self.before = termios.tcgetattr(self.slave)
        self._data = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        command = command or ("-m", "callboard")
        self.process = subprocess.Popen(
            [sys.executable, *command, "chat", "--model-url", server.url, "--save", str(saved)],
            cwd=ROOT,
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            env={**os.environ, **MODEL},
            start_new_session=True,
        )

    def type(self, text: str | bytes) -> None:
        os.write(self.master, text.encode() if isinstance(text, str) else text)

    def see(self, text: str) -> list[str]:
        """The rows of the screen, once the text is on it."""
        end = time.monotonic() + PATIENCE
        while text not in "\n".join(self.grid.shown()):
            assert time.monotonic() < end, f"no {text!r} in {self.grid.shown()}"
            self._read(0.1)
        return self.grid.shown()

    def lowest(self, text: str) -> None:
        """Waits until the lowest row is that text."""
        end = time.monotonic() + PATIENCE
        while self.grid.shown()[-1] != text:
            assert time.monotonic() < end, f"the lowest row is {self.grid.shown()[-1]!r}"
            self._read(0.1)

    def ended(self) -> int:
        """The exit code; all that was written is on the screen, and the terminal is as it was."""
        end = time.monotonic() + PATIENCE
        while self.process.poll() is None:
            assert time.monotonic() < end, "it does not end"
            self._read(0.05)
        self._read(0)
        assert termios.tcgetattr(self.slave) == self.before
        return self.process.returncode

    def resize(self, columns: int) -> None:
        """Gives the terminal another width, while no row is as wide as that."""
        self._resize(columns)
        self.process.send_signal(signal.SIGWINCH)

    def _resize(self, columns: int) -> None:
        termios.tcsetwinsize(self.slave, (24, columns))
        self.grid.size = os.terminal_size((columns, 24))

    def _read(self, seconds: float) -> None:
        while select.select([self.master], [], [], seconds)[0]:
            seconds = 0
            self._data += self._decoder.decode(os.read(self.master, 65536))
            whole = SEQUENCE_BEGUN.search(self._data)
            length = whole.start() if whole else len(self._data)
            self.grid.write(self._data[:length])
            self._data = self._data[length:]


@contextmanager
def seat(server: Server, saved: Path, *command: str) -> Iterator[Seat]:
    """A terminal in which a chat has begun."""
    sitting = Seat(server, saved, *command)
    try:
        sitting.lowest(">")
        yield sitting
    finally:
        sitting.process.kill()
        sitting.process.wait()
        os.close(sitting.slave)
        os.close(sitting.master)


@slow
def test_words_in_the_middle_of_a_stream_interrupt_it_and_the_line_stays_whole(server: Server, tmp_path: Path) -> None:
    with seat(server, tmp_path / "chat.yaml") as here:
        here.type("a story\r")
        here.see("wave3")
        for key in "Make it shrt":
            here.type(key)
        here.type("\x1b[D\x1b[Do")
        here.lowest("interrupt> Make it short")
        here.see("wave9")
        here.type("\r")
        rows = here.see("The end. \\x1b[2J")
        assert rows[3:6] == ["You", "  Make it short", "reached Planner; interrupted Planner"]
        assert any("wave3" in row for row in rows[6:]) and "Planner begins again: attempt 2" in rows
        here.lowest(">")
        here.type("/exit\r")
        assert here.ended() == 0 and "chat.yaml" in here.grid.shown()[-2]
        assert here.grid.shown()[-4:-2] == ["Leaving.", ""]
    assert server.cut == 1
    assert Transcript.restore_yaml(tmp_path / "chat.yaml").rounds[0].state == "finished"


@slow
def test_ctrl_c_asks_once_and_leaves_the_second_time(server: Server, tmp_path: Path) -> None:
    with seat(server, tmp_path / "chat.yaml") as here:
        here.type("a story\r")
        here.see("wave3")
        here.type("\x03")
        here.lowest("paused>")
        here.see("Ctrl-C again leaves.")
        here.type("\r")
        here.lowest("interrupt>")
        here.type("\x03")
        here.lowest("paused>")
        here.type("\x03")
        assert here.ended() == 130
    (round_,) = Transcript.restore_yaml(tmp_path / "chat.yaml").rounds
    assert round_.state == "stopped" and "wave3" in str(round_.post_list)


@slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_leaves_with_the_transcript(server: Server, tmp_path: Path, number: signal.Signals, code: int) -> None:
    with seat(server, tmp_path / "chat.yaml") as here:
        here.type("a story\r")
        here.see("wave3")
        here.process.send_signal(number)
        assert here.ended() == code
    assert "wave3" in (tmp_path / "chat.yaml").read_text()


@slow
def test_what_is_typed_comes_in_pieces_and_is_pasted_and_seen_in_a_narrower_terminal(
    server: Server, tmp_path: Path
) -> None:
    with seat(server, tmp_path / "chat.yaml") as here:
        for byte in "日本".encode():
            here.type(bytes([byte]))
            time.sleep(0.01)
        here.type("\x1b[200~ a\nb\x1b[201~")
        here.lowest("> 日本 a↵b")
        here.resize(72)
        here.type("\x1b")
        time.sleep(0.2)
        here.type("[" * 80)
        here.lowest("> " + "[" * 68)
        here.resize(200)
        here.lowest("> 日本 a↵b" + "[" * 80)
        here.type("\x04\x15\x04")
        assert here.ended() == 0


BROKEN = """
import runpy
from callboard.service.chat import Chat
Chat.hear = lambda self, line: 1 / 0
runpy.run_module("callboard", run_name="__main__")
"""


@slow
def test_an_error_gives_the_terminal_back_and_keeps_the_transcript(server: Server, tmp_path: Path) -> None:
    with seat(server, tmp_path / "chat.yaml", "-c", BROKEN) as here:
        here.type("a\r")
        here.see("ZeroDivisionError")
        assert here.ended() == 1
    assert (tmp_path / "chat.yaml").exists()


@slow
def test_a_terminal_that_goes_ends_the_chat(server: Server, tmp_path: Path) -> None:
    with seat(server, tmp_path / "chat.yaml") as here:
        here.type("a story\r")
        here.see("wave3")
        os.close(here.master)
        here.process.wait(PATIENCE)
        here.master = os.open(os.devnull, os.O_RDONLY)
    assert "wave3" in (tmp_path / "chat.yaml").read_text()


def piped(url: str, lines: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """The chat with its lines from a pipe."""
    command = [sys.executable, "-m", "callboard", "chat", "--model-url", url]
    environment = {**os.environ, **MODEL}
    given = options or {"input": lines}
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, env=environment, **given)


@slow
def test_lines_from_a_pipe_are_answered_in_plain_lines(server: Server, tmp_path: Path) -> None:
    done = piped(server.url, "a short story\n/queue another short one\n")
    assert (done.returncode, done.stderr) == (0, "") and "\x1b" not in done.stdout
    assert done.stdout.count("\n  The end. \\x1b[2J\n") == 2
    saved = done.stdout.splitlines()[-1].split(": ")[1]
    assert len(Transcript.restore_yaml(Path(saved)).rounds) == 2


@slow
def test_lines_may_come_from_a_file_without_a_last_newline(server: Server, tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("a short story")
    with (tmp_path / "lines").open() as lines:
        assert "The end." in piped(server.url, "", stdin=lines).stdout
    assert piped(server.url, "", stdin=subprocess.DEVNULL).returncode == 0


@slow
def test_a_server_that_is_not_there_fails_the_round_and_the_pipe() -> None:
    done = piped("http://127.0.0.1:9/v1", "a story\n")
    assert done.returncode == 1 and "Planner asks m again" in done.stdout and "127.0.0.1:9" in done.stdout


@pytest.mark.parametrize("options", [[], ["--model-url", "http://localhost:1/v1"], ["--model", "m"]])
def test_without_a_model_one_line_says_how_to_name_one(
    options: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("CALLBOARD_MODEL_URL", "CALLBOARD_MODEL"):
        monkeypatch.delenv(name, raising=False)
    assert main(["chat", *options]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "--model-url URL and --model NAME" in error


@pytest.mark.parametrize("level", ["0", "two", "1.5"])
def test_a_level_that_is_none_is_wrong_usage(level: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["chat", "--level", level])
    assert ended.value.code == 2
