"""Facilities: what a role's context needs from the conversation's parts above it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from .above import Startable
from .background import Background
from .errors import InsideTurn, NobodyToAsk, RoleFailed, UnknownRole
from .ids import create_id
from .intervention import Interventions
from .options import ConversationOptions
from .post import USER, Post
from .reach import above, find_reach
from .receipt import Delivery, Receipt, Words
from .roster import Roster
from .router import Router
from .summaries import Summaries
from .turn import Turn
from .user_message import UserMessage


class Facilities:
    """The `Above` of all contexts of one conversation."""

    def __init__(
        self, router: Router, interventions: Interventions, background: Background, options: ConversationOptions
    ) -> None:
        self._router = router
        self.interventions = interventions
        self._background = background
        self.options = options
        self.summaries = Summaries(router, options)
        self.roster: Roster

    def saw(self, role: str, words_ids: Iterable[str]) -> None:
        """The role has read these words."""
        self.interventions.saw(role, words_ids)

    async def start_subordinate(self, superior: str, actor: Startable | str, *, name: str, reset: bool) -> str:
        """See `TurnContext.start_subordinate`."""
        return await self.roster.start_subordinate(superior, actor, name=name, reset=reset)

    async def end_subordinate(self, superior: str, name: str) -> None:
        """See `TurnContext.end_subordinate`."""
        await self.roster.end_subordinate(superior, name)

    async def ask_user(self, post: Post, turn: Turn, answering: Turn) -> Post:
        """The host's answer. Deadlines stand still meanwhile: it waits for a person.

        Cancelled: so is the host's handler. Raises NobodyToAsk, RoleFailed for what the handler raises.
        """
        on_question = self.options.on_question
        if on_question is None or not answering.foreground:
            raise NobodyToAsk(turn.role)
        router = self._router
        post = router.inspect(post)
        router.record(post)
        answer = post.reply("", state="not_started")
        try:
            with router.time.standing_still():
                said = await on_question(post)
            if isinstance(said, str):
                answer = router.inspect(post.reply(said))
            elif isinstance(said, Post):
                answer = router.inspect(post.reply(said.text, said.attachment_list))
            else:
                raise TypeError(f"on_question returned {type(said).__name__}, not a Post or str")
        except Exception as error:
            failure = RoleFailed(USER, post.id, error)
            answer = post.reply(str(failure), kind="error")
            raise failure from error
        finally:
            router.record(answer)
        return answer

    def start_background(self, post: Post, starter: Turn) -> Post:
        """See `TurnContext.start_background`."""
        return self._background.start(post, starter)

    def intervene(
        self, turn: Turn, role: str, message: str | UserMessage, broadcast_level: int, delivery: Delivery
    ) -> Receipt:
        """See `TurnContext.intervene`."""
        self._refuse_stranger(turn.role, role)
        message = UserMessage(message) if isinstance(message, str) else message
        message = message if message.id else replace(message, id=create_id("words"))
        words = Words(message, broadcast_level, role, delivery)
        words.author = turn.role
        own = set(above(turn))
        if any(reached in own for _, reached in find_reach(self._router, broadcast_level, role).steps):
            raise InsideTurn("intervene", turn.role)
        self.interventions.submit(words, turn)
        return words.receipt

    def _refuse_stranger(self, superior: str, role: str) -> None:
        directory = self._router.directory
        directory.find(role)
        if superior not in directory.superiors(role):
            raise UnknownRole(role, f"{role!r} is not under {superior}")
