"""Memory answers what a plain reading of all its posts would, whatever was recorded, and no answer ever changes."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from callboard.runtime.attachment import Attachment
from callboard.runtime.event import Event
from callboard.runtime.memory import Memory
from callboard.runtime.post import Post
from callboard.runtime.round import Round, RoundState
from callboard.runtime.shared_memory import EntryScope, EntryType, SharedMemoryEntry
from callboard.runtime.subscription import Publisher
from callboard.runtime.text import Text, temporal

ROLES = ("User", "planner", "worker")
TYPES: tuple[EntryType, ...] = ("plan", "experience_sub_path")


@dataclass(frozen=True)
class Begins:
    """A round begins."""


@dataclass(frozen=True)
class Ends:
    """The last round ends, unless it has."""

    state: RoundState


@dataclass(frozen=True)
class Says:
    """A role says something to another, or to itself, of which a part may be temporal."""

    send_from: str
    send_to: str
    message: str | Text
    thought: str | Text


@dataclass(frozen=True)
class Shares:
    """A role shares an entry."""

    role: str
    type: EntryType
    scope: EntryScope


@dataclass(frozen=True)
class Forgets:
    """A role is started again and knows nothing of before."""

    role: str


@dataclass(frozen=True)
class Asks:
    """A role asks for its rounds."""

    role: str
    failures: bool


@dataclass(frozen=True)
class AsksForEntries:
    """Somebody asks for the entries of a type."""

    type: EntryType


Step = Begins | Ends | Says | Shares | Forgets | Asks | AsksForEntries

texts = st.sampled_from(("kept", "kept" + temporal("cut"), temporal("cut")))
roles = st.sampled_from(ROLES)
types = st.sampled_from(TYPES)
steps: st.SearchStrategy[Step] = st.one_of(
    st.builds(Begins),
    st.builds(Ends, st.sampled_from(("finished", "failed", "stopped"))),
    st.builds(Says, roles, roles, texts, texts),
    st.builds(Shares, roles, types, st.sampled_from(("round", "conversation"))),
    st.builds(Asks, roles, st.booleans()),
    st.builds(AsksForEntries, types),
    st.builds(Forgets, roles),
)


@dataclass
class Plain:
    """All that was recorded, and answers made of it from the beginning each time."""

    rounds: list[Round] = field(default_factory=list)
    views: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Where a role that has forgotten begins: the round, and how many posts of it were there."""

    def change_last(self, *posts: Post, state: RoundState | None = None) -> None:
        """The last round has more posts, or another state."""
        last = self.rounds[-1]
        self.rounds[-1] = replace(last, state=state or last.state, post_list=(*last.post_list, *posts))

    def role_rounds(self, role: str, failures: bool) -> list[Round]:
        """Every round but failed ones, with the posts from and to the role."""
        begin, left_out = self.views.get(role, (0, 0))
        answer: list[Round] = []
        for number, one in enumerate(self.rounds):
            posts = one.post_list[left_out:] if number == begin else one.post_list
            if number >= begin and (failures or one.state != "failed"):
                mine = [post for post in posts if role in (post.send_from, post.send_to)]
                is_last = number == len(self.rounds) - 1
                answer.append(replace(one, post_list=tuple(mine if is_last else map(without_temporal, mine))))
        return answer

    def entries(self, type: EntryType) -> list[SharedMemoryEntry]:
        """Of each role the last one: of the last round if it has one of the round, else of the conversation."""
        latest: dict[str, tuple[int, SharedMemoryEntry]] = {}
        for order, (is_last, post) in enumerate(self._posts_that_count()):
            for entry in (attachment.extra for attachment in post.attachment_list):
                if not isinstance(entry, SharedMemoryEntry) or entry.type != type:
                    continue
                before = latest.get(post.send_from)
                hidden = before is not None and before[1].scope == "round"
                holds = is_last if entry.scope == "round" else not hidden
                if holds:
                    latest[post.send_from] = (order, entry)
        return [entry for _, entry in sorted(latest.values(), key=lambda pair: pair[0])]

    def _posts_that_count(self) -> list[tuple[bool, Post]]:
        counting = [one for one in self.rounds if one.state in ("created", "finished")]
        return [(one is self.rounds[-1], post) for one in counting for post in one.post_list]


def without_temporal(post: Post) -> Post:
    """A post as a later round shows it: all that is temporal here says `cut`."""
    attachments = [
        replace(one, content=str(one.content).replace("cut", ""), temporal=()) for one in post.attachment_list
    ]
    return replace(post, message=post.message.replace("cut", ""), temporal=(), attachment_list=tuple(attachments))


def take(step: Step, memory: Memory, plain: Plain) -> Sequence[object]:
    """Lets both know of one step; what memory answered, if it was asked."""
    match step:
        case Begins():
            id = f"round-{len(plain.rounds)}"
            memory.begin_round(id, "q")
            plain.rounds.append(Round(id, "q", "created", ()))
        case Ends(state) if plain.rounds[-1].state == "created":
            memory.end_round(state)
            plain.change_last(state=state)
        case Says(send_from, send_to, message, thought):
            note(memory, plain, Post.create(message, send_from, send_to, [Attachment.create("thought", thought)]))
        case Shares(role, type, scope):
            entry = SharedMemoryEntry.create(type, "x", scope)
            shared = Attachment.create("shared_memory_entry", "", extra=entry)
            note(memory, plain, Post.create("", role, role, [shared]))
        case Forgets(role):
            memory.begin_view(role)
            plain.views[role] = (len(plain.rounds) - 1, len(plain.rounds[-1].post_list))
        case Asks(role, failures):
            answer = memory._rounds_of(role, failures)
            assert list(answer) == plain.role_rounds(role, failures)
            return answer
        case AsksForEntries(type):
            entries = memory.shared_entries(type)
            assert list(entries) == plain.entries(type)
            return entries
    return ()


def note(memory: Memory, plain: Plain, post: Post) -> None:
    """Both record a post."""
    memory.record(post)
    plain.change_last(post)


@settings(max_examples=150)
@given(st.lists(steps, max_size=40))
def test_memory_answers_what_a_plain_reading_of_all_posts_would(taken: list[Step]) -> None:
    events: Publisher[Event] = Publisher()
    memory, plain = Memory("conv-1", events), Plain()
    answers: list[tuple[Sequence[object], tuple[object, ...]]] = []
    for step in (Begins(), *taken, *(Asks(role, True) for role in ROLES), *(AsksForEntries(type) for type in TYPES)):
        answer = take(step, memory, plain)
        answers.append((answer, tuple(answer)))
    assert all(tuple(answer) == then for answer, then in answers)
    assert memory.transcript().rounds == tuple(plain.rounds)


@settings(max_examples=50)
@given(st.lists(steps, max_size=40))
def test_a_round_that_is_over_is_one_object_in_all_answers_to_a_role(taken: list[Step]) -> None:
    events: Publisher[Event] = Publisher()
    memory, plain = Memory("conv-1", events), Plain()
    built: dict[tuple[str, str], Round] = {}
    for step in (Begins(), *taken, Begins(), *(Asks(role, failures) for role in ROLES for failures in (True, False))):
        answer = take(step, memory, plain)
        if isinstance(step, Forgets):
            built = {key: round_ for key, round_ in built.items() if key[0] != step.role}
        if isinstance(step, Asks):
            over = [one for one in answer if isinstance(one, Round) and one.id != plain.rounds[-1].id]
            assert all(built.setdefault((step.role, one.id), one) is one for one in over)
