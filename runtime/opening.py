"""Opening: how a conversation's parts are joined, and how all of it ends.

One nursery holds one conversation: when the block of `open_conversation` is left, nothing of it is alive.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from .actor import Actor
from .background import Background
from .conversation import Conversation
from .directory import Directory
from .event import Event
from .facilities import Facilities
from .ids import current_ids
from .inspection import inspection
from .intervention import Interventions
from .line import Line
from .memory import Memory
from .nursery import open_nursery, raise_failures
from .options import ConversationOptions
from .router import Router
from .spoken import Spoken
from .subscription import Publisher
from .supervisor import Supervisor


@asynccontextmanager
async def open_conversation(
    root: Actor, *others: Actor, options: ConversationOptions | None = None
) -> AsyncIterator[Conversation]:
    """A conversation whose root answers the user; `others` have no superior and are known to all by name.

    Leaving the block, or its cancellation, ends what still runs: every attempt is cancelled and waited for, every
    asker gets ConversationClosed, lifetimes are left in reverse order. A single exception leaves as itself. Raises
    DuplicateName and ValueError for names that clash or are none.
    """
    options = options or ConversationOptions()
    ids = options.ids or current_ids.get()
    events: Publisher[Event] = Publisher()
    memory = Memory(options.id or ids.create("conv"), events)
    router = Router(Directory(), memory.record, events)
    router.tell_timeout = options.tell_timeout
    router.inspect = inspection(options.on_post)
    interventions = Interventions(router, memory.accept)
    interventions.rewrite = inspection(options.on_intervention)
    line = Line(root.name, router, memory, ids)
    line.limits = options.limits
    background = Background(router, line)
    facilities = Facilities(router, interventions, background, options)
    conversation = Conversation(router, line, memory, Spoken(router, line, interventions, ids), background)
    try:
        async with open_nursery() as nursery:
            supervisor = Supervisor(nursery, router, facilities, memory)
            conversation.serve_with(supervisor)
            failures: list[BaseException] = []
            try:
                for actor in (root, *others):
                    supervisor.roster.add(actor)
                yield conversation
            except BaseException as error:
                failures.append(error)  # raised again below, when everything has ended
            conversation.begin_closing()
            with trio.CancelScope(shield=True):
                failures += await supervisor.close()
            raise_failures(failures)
    finally:
        memory.close()
        line.replies.close()
        events.close()
