"""Chat: a conversation with somebody at a terminal, or with a program at the other end of a pipe.

The rule to know: the person never waits for the roles. Each line is a call of a sync verb, whatever runs.
"""

from __future__ import annotations

import signal
from collections.abc import AsyncIterable, Callable
from pathlib import Path
from typing import ClassVar, Protocol

import trio

from callboard.experience.saving import save_experience
from callboard.runtime import Actor, Conversation, Transcript, open_conversation
from callboard.runtime.event import Event
from callboard.runtime.nursery import open_nursery
from callboard.runtime.options import ConversationOptions

from .chat_commands import HELP, Blank, Command, Enqueue, Line, Say, ShowQueue, Verb, Wrong, read_line
from .chat_screen import Line as Shown
from .chat_screen import Screen
from .chat_view import ChatView, told_of, you
from .experience_folder import experience_folder
from .post_tree import tree_of
from .working_roles import WorkingRoles

WAYS = "Words interrupt, /stop ends the round, an empty line goes on. Ctrl-C again leaves."
INTERRUPTED, ENDED = 130, 128
"""Exit codes: for Ctrl-C; to which the number of a signal is added that ended the program."""


class Console(Protocol):
    """Where lines come from, and what they are answered on."""

    asks: bool
    """Whether somebody is there who can be asked what to do."""

    @property
    def screen(self) -> Screen:
        """What the person sees."""

    async def read(self, chat: Chat) -> None:
        """Hands on each line until there are no more. Cancelled: what was typed and not sent is gone."""

    def changed(self, number: int) -> None:
        """A signal says that the terminal's size is another, or that the program goes on after a stop."""


class Chat:
    """What a person has at hand in one conversation. All of it is sync but `wait_idle`."""

    def __init__(
        self, conversation: Conversation, console: Console, root: Actor, level: int, lessons: Path | None = None
    ) -> None:
        self.code = 0
        """What the program exits with."""
        self.scope = trio.CancelScope()
        """In which lines are read; cancelled to leave."""
        self._conversation = conversation
        self._console = console
        self._screen = console.screen
        self._level = level
        self._lessons = experience_folder(lessons)
        self._view = ChatView(self._screen)
        self._roles = WorkingRoles(root)
        self._asked = False
        """Whether Ctrl-C was the last that came."""

    async def follow(self, events: AsyncIterable[Event]) -> None:
        """Shows what happens until the conversation has ended."""
        async for event in events:
            self._roles.note(event)
            self._view.show(event)
            self._ask()

    async def wait_idle(self) -> None:
        """Until all work is done, a pause ended; then the exit code says whether the last round failed."""
        self._conversation.resume()
        await self._conversation.wait_idle()
        rounds = self._conversation.transcript().rounds
        self.code = int(bool(rounds) and rounds[-1].state == "failed")

    def hear(self, typed: str) -> None:
        """Does what a line asks for."""
        self._asked = False
        self._do(read_line(typed))
        self._ask()

    def interrupt(self) -> None:
        """Ctrl-C: pauses the round and asks what to do; leaves if it came twice, or nobody is there to ask."""
        if self._asked or not self._console.asks:
            return self.leave("Leaving.", INTERRUPTED)
        self._asked = True
        if self._working:
            self._conversation.pause()
            self._screen.say(Shown("Paused. A model's reply that has begun still comes.", "bold"), Shown(WAYS))
        else:
            self._screen.say(Shown("Nothing runs. Ctrl-C again leaves, as /exit and Ctrl-D do.", "dim"))
        self._ask()

    def typed(self) -> None:
        """A key was pressed: the next Ctrl-C is a first one again."""
        self._asked = False

    def leave(self, why: str, code: int) -> None:
        """No more lines are read, and the conversation ends."""
        self.code = code
        self._screen.draft(())
        self._screen.say(Shown(why, "dim"))
        self.scope.cancel(reason=why)

    def signalled(self, number: int) -> None:
        """Does what a signal asks for."""
        match number:
            case signal.SIGINT:
                self.interrupt()
            case signal.SIGTERM | signal.SIGHUP:
                self.leave("Leaving.", ENDED + number)
            case _:
                self._console.changed(number)

    @property
    def _working(self) -> bool:
        return self._conversation.statistics().turns > 0

    def _ask(self) -> None:
        paused, working = self._conversation.paused, self._working
        self._screen.ask("paused> " if paused else "interrupt> " if working else "> ")

    def _do(self, line: Line) -> None:
        match line:
            case Say(text, level):
                self._say(text, level or self._level)
            case Enqueue(text):
                self._enqueue(text)
            case ShowQueue():
                self._show_queue()
            case Command(verb):
                self._commands[verb](self)
            case Blank() if self._conversation.paused:
                self._resume()
            case Wrong(why):
                self._screen.say(Shown(why, "bad"))

    def _say(self, text: str, level: int) -> None:
        receipt = self._conversation.communicate(text, broadcast_level=level)
        if receipt.action != "started":
            self._screen.say(*you(text), *told_of(receipt))

    def _enqueue(self, text: str) -> None:
        position = self._conversation.enqueue(text).position
        if position is not None:
            self._screen.say(Shown(f"In line, {position + 1} of {position + 1}: {text}", "dim"))

    def _show_queue(self) -> None:
        waiting = self._conversation.queued()
        lines = [f"{number}. {one.message.message}" for number, one in enumerate(waiting, 1)]
        self._screen.say(Shown("\n".join(lines) or "Nothing stands in line.", "dim"))

    def _pause(self) -> None:
        self._conversation.pause()
        self._screen.say(Shown("Paused. " + WAYS.replace("Ctrl-C again", "/exit"), "dim"))

    def _resume(self) -> None:
        self._conversation.resume()
        self._screen.say(Shown("Going on.", "dim"))

    def _nudge(self) -> None:
        self._screen.say(*told_of(self._conversation.nudge()))

    def _stop(self) -> None:
        if not self._working:
            self._screen.say(Shown("Nothing runs.", "dim"))
        self._conversation.stop("the user stopped it")

    def _tree(self) -> None:
        self._screen.say(*(Shown(line) for line in self._roles.lines(self._screen.width)))
        for round_ in self._conversation.transcript().rounds[-1:]:
            self._screen.say(
                Shown(f"The posts of the last round, which is {round_.state.replace('created', 'running')}")
            )
            self._screen.say(*(Shown(line, "dim", "  ") for line in tree_of(round_, self._screen.width - 2)))

    def _save(self) -> None:
        try:
            path = save_experience(self._conversation.transcript(), self._lessons)
        except (OSError, ValueError) as error:
            return self._screen.say(Shown(f"It was not saved: {error}", "bad"))
        self._screen.say(Shown(f"Saved, for callboard experience refresh to make lessons of it: {path}", "dim"))

    def _help(self) -> None:
        self._screen.say(Shown(HELP))

    def _exit(self) -> None:
        self.leave("Leaving.", 0)

    _commands: ClassVar[dict[Verb, Callable[[Chat], None]]] = {
        "pause": _pause,
        "resume": _resume,
        "nudge": _nudge,
        "stop": _stop,
        "tree": _tree,
        "save": _save,
        "help": _help,
        "exit": _exit,
    }


async def hold_chat(
    root: Actor,
    console: Console,
    keep: Callable[[Transcript], None],
    *,
    level: int = 1,
    options: ConversationOptions | None = None,
    lessons: Path | None = None,
) -> int:
    """Holds a conversation with whoever is at the console until they leave; gives the exit code.

    However it ends, `keep` gets the transcript when all work has ended, with what was cut in it. SIGINT, SIGTERM and
    SIGHUP are taken as Ctrl-C and as leaving. `lessons` is the folder that /save keeps conversations in. Raises
    ValueError for a level that is none.
    """
    async with open_nursery() as nursery:
        conversation: Conversation | None = None
        try:
            async with open_conversation(root, options=options) as conversation:
                chat = Chat(conversation, console, root, level, lessons)
                nursery.start_soon(chat.follow, conversation.events())
                with chat.scope:
                    async with open_nursery() as listening:
                        listening.start_soon(_hear_signals, chat)
                        await console.read(chat)
                        listening.cancel_scope.cancel(reason="no more lines")
        finally:
            if conversation is not None:
                keep(conversation.transcript())
    return chat.code


async def _hear_signals(chat: Chat) -> None:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGWINCH, signal.SIGCONT)
    with trio.open_signal_receiver(*numbers) as received:
        async for number in received:
            chat.signalled(number)
