"""The command line: exit codes, one line for what failed, and quiet when its reader goes."""

import json
import signal
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
import trio

from callboard.runtime import Transcript
from callboard.runtime.backoff import Backoff
from callboard.runtime.chat_model import ChatRequest, Message
from callboard.service import command_line, served_model
from callboard.service.command_line import main
from callboard.service.demo_script import interpreter_reply, planner_reply

from .test_demo import EXPECTED
from .test_imports import ROOT
from .test_replay import CODED, post, ways, written


def run_command(*arguments: str | Path, input: str | None = None) -> subprocess.CompletedProcess[str]:
    """`python -m callboard` as a program of its own."""
    command: list[str | Path] = [sys.executable, "-m", "callboard", *arguments]
    return subprocess.run(command, cwd=ROOT, input=input, capture_output=True, text=True, timeout=60)


WRONG_USAGE = [["nonsense"], [], ["run"], ["demo", "--model", "m"], ["demo", "--model-url", "http://localhost"]]


@pytest.mark.parametrize("arguments", WRONG_USAGE)
def test_wrong_usage_exits_with_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["demo", "--help"], ["run", "--help"]])
def test_what_only_tells_exits_with_0(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 0


def test_a_key_that_is_not_in_the_environment_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["demo", "--model-url", "http://localhost:1/v1", "--model", "m", "--api-key-env", "NO_SUCH_VARIABLE"])
    assert "NO_SUCH_VARIABLE is not set" in capsys.readouterr().err


def test_a_server_that_is_not_there_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served_model, "BACKOFF", Backoff(first=0))
    code = main(["demo", "--model-url", "http://127.0.0.1:9/v1", "--model", "m"])
    printed, error = capsys.readouterr()
    assert printed.count("asks its model again") == 3
    assert (code, error.count("\n")) == (1, 1)
    assert "127.0.0.1:9" in error


def test_a_recording_is_played_and_saved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, CODED + post("Planner>User"))
    assert main(["run", str(path), "--save", str(tmp_path / "new.yaml")]) == 0
    printed = capsys.readouterr().out
    assert "it is 4" in printed
    assert "Nobody came to play 1 of the recorded posts." in printed
    assert len(ways(Transcript.restore_yaml(tmp_path / "new.yaml"))) == 5


@pytest.mark.parametrize("text", ["enabled: true\nrounds:\n  - user_query: [\n", "enabled: true\n", "rounds: \x00"])
def test_a_broken_file_is_one_line_and_exits_with_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text(text)
    assert main(["run", str(path)]) == 2
    output = capsys.readouterr()
    assert (output.out, output.err.count("\n")) == ("", 1)
    assert output.err.startswith(f"callboard: {path}, ")
    assert "; do: " in output.err


def test_a_file_that_is_not_there_exits_with_2(tmp_path: Path) -> None:
    assert main(["run", str(tmp_path / "none.yaml")]) == 2


def test_a_transcript_that_cannot_be_saved_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, CODED)
    assert main(["run", str(path), "--save", str(tmp_path / "no" / "new.yaml")]) == 1
    assert "not saved" in capsys.readouterr().err


@pytest.mark.parametrize("error", [KeyboardInterrupt(), BaseExceptionGroup("", [KeyboardInterrupt()])])
def test_ctrl_c_exits_with_130(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def interrupted(*arguments: object, **options: object) -> None:
        raise error

    monkeypatch.setattr(trio, "run", interrupted)
    assert main(["run", str(written(tmp_path, CODED))]) == 130


def test_what_nobody_foresaw_is_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(command_line, "read_play", broken)
    with pytest.raises(ZeroDivisionError):
        main(["run", str(tmp_path)])


def test_httpx_is_not_loaded_without_a_model() -> None:
    program = "import sys, callboard.service.command_line; print('httpx' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"


@pytest.mark.slow
def test_the_demo_runs_as_a_program_and_saves_a_transcript_that_loads(tmp_path: Path) -> None:
    done = run_command("demo", "--save", tmp_path / "demo.yaml")
    assert (done.returncode, done.stderr) == (0, "")
    assert " ".join(EXPECTED.split()) in " ".join(done.stdout.split())
    assert done.stdout.splitlines()[-1].endswith(str(tmp_path / "demo.yaml"))
    assert Transcript.restore_yaml(tmp_path / "demo.yaml").rounds[-1].post_list[-1].message == EXPECTED


@pytest.mark.slow
def test_the_transcript_of_the_demo_can_be_run(tmp_path: Path) -> None:
    assert run_command("demo", "--save", tmp_path / "demo.yaml").returncode == 0
    done = run_command("run", tmp_path / "demo.yaml", "--save", tmp_path / "again.yaml")
    assert (done.returncode, done.stderr) == (0, "")
    assert Transcript.restore_yaml(tmp_path / "again.yaml").rounds[-1].post_list[-1].message == EXPECTED


@pytest.mark.slow
def test_a_reader_that_goes_is_taken_calmly() -> None:
    command = [sys.executable, "-m", "callboard", "demo"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None and started.stderr is not None
        started.stdout.readline()
        started.stdout.close()
        assert started.stderr.read() == ""


class ScriptedServer(BaseHTTPRequestHandler):
    """A server of models that replies with the script of the demo, as a stream of chat completions."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        messages = tuple(Message(one["role"], one["content"]) for one in body["messages"])
        planner = "You plan and direct" in messages[0].content
        reply = (planner_reply if planner else interpreter_reply)(ChatRequest("", messages)).text
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for choice in ({"delta": {"content": reply}}, {"delta": {}, "finish_reason": "stop"}):
            self.wfile.write(b"data: " + json.dumps({"choices": [{"index": 0, **choice}]}).encode() + b"\n\n")
        self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, format: str, *arguments: object) -> None:
        """Says nothing."""


@pytest.mark.slow
def test_the_same_roles_talk_to_a_server_of_models(tmp_path: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), ScriptedServer) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/v1"
        done = run_command("demo", "--model-url", url, "--model", "m", "--save", tmp_path / "demo.yaml")
        server.shutdown()
    assert (done.returncode, done.stderr) == (0, "")
    assert " ".join(EXPECTED.split()) in " ".join(done.stdout.split())


# A program started in the background of a shell would ignore SIGINT.
WITH_CTRL_C = """
import runpy, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
runpy.run_module("callboard", run_name="__main__")
"""


@pytest.mark.slow
def test_ctrl_c_while_code_runs_ends_the_program_quietly_with_130() -> None:
    command = [sys.executable, "-c", WITH_CTRL_C, "demo"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None and started.stderr is not None
        next(line for line in started.stdout if "rows read" in line)
        started.send_signal(signal.SIGINT)
        assert started.stderr.read() == ""
    assert started.returncode == 130
