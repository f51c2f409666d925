"""Lessons and examples in a role: what its model is sent, at which place, and what is noted of it."""

import json
import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trio
from trio.testing import MockClock

from callboard.actors import CodeInterpreter, Planner, Role
from callboard.actors.given import Given, given_in, is_note
from callboard.actors.guidance import query_of
from callboard.experience.event import LessonsUsed, NoneGiven
from callboard.experience.example_folder import ExampleFolder, read_examples
from callboard.experience.examples import Examples
from callboard.experience.experience import Experience
from callboard.experience.lesson_file import write_handcrafted
from callboard.experience.pool import ExperiencePool
from callboard.experience.pools import Pools
from callboard.runtime.actor import Actor
from callboard.runtime.chat_model import ChatRequest
from callboard.runtime.context import TurnContext
from callboard.runtime.conversation import Conversation
from callboard.runtime.embedder import Matrix
from callboard.runtime.errors import ModelError, RoleFailed
from callboard.runtime.event import Event
from callboard.runtime.ids import Ids, create_id, current_ids
from callboard.runtime.json_value import FrozenMapping
from callboard.runtime.opening import open_conversation
from callboard.runtime.post import Marks, Post
from callboard.runtime.round import Round
from callboard.runtime.scripted_model import Reply, ScriptedModel
from callboard.runtime.testing import Watch, every_interrupt_point, interrupt
from callboard.runtime.transcript import Transcript
from tests.roles import template

from .composing import extends

LINE = "=" * 19
WORDS = ("tea", "coffee", "2025")
HEAD = template("fw.lessons").partition("{{")[0]
OTHERS = template("fw.other_lessons").partition("{{")[0]


class Counting:
    """Embeds by which of a few words stand in a text."""

    id, dimension, threshold = "counting", len(WORDS), 0.5

    def __init__(self) -> None:
        self.queries: list[str] = []
        self.broken = False

    async def embed(self, texts: Sequence[str]) -> Matrix:
        await trio.lowlevel.checkpoint()
        if self.broken:
            raise ModelError("the embeddings are away", fault="server", may_retry=True)
        self.queries += texts
        counts = np.array([[word in text for word in WORDS] for text in texts], np.float32)
        lengths = np.linalg.norm(counts, axis=1, keepdims=True)
        return (counts / np.where(lengths == 0, 1, lengths)).astype(np.float32)


class Lessons:
    """A folder of lessons, and a role's settings for it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.embedder = Counting()

    def experience(self, **settings: Any) -> Experience:
        def make(folder: Path) -> ExperiencePool:
            return ExperiencePool(folder, embedder=self.embedder)

        return Experience(self.folder, pools=Pools(make), **settings)

    async def write(self, sub_path: str = "", **texts: str) -> None:
        """Lessons that can be found."""
        folder = self.folder / sub_path
        folder.mkdir(parents=True, exist_ok=True)
        for id, text in texts.items():
            (folder / f"handcrafted_exp_{id}.yaml").write_bytes(write_handcrafted(id, text))
        await ExperiencePool(folder, embedder=self.embedder).refresh()
        self.embedder.queries.clear()


@pytest.fixture
def lessons(tmp_path: Path) -> Lessons:
    return Lessons(tmp_path / "lessons")


class Writer(Role):
    """Says what its model says; publishes a sub path first if the post asks for it."""

    name = "Writer"
    template = "You are {{name}}."

    async def receive(self, post: Post, context: TurnContext) -> Post:
        reply = await self.reply(post, context)
        return post.reply(reply.message, reply.attachments)


class Chooser(Role):
    """Thinks twice; before the second time it chooses a sub path for all roles."""

    name = "Chooser"
    template = "You are {{name}}."

    async def receive(self, post: Post, context: TurnContext) -> Post:
        context.record(await self.think(context, await self.messages(post, context)))
        context.share("experience_sub_path", post.message, "conversation")
        context.share("example_sub_path", post.message, "conversation")
        return post.reply(await self.think(context, await self.messages(post, context)))


def said(message: str, **attachments: str) -> str:
    """A model's reply."""
    return json.dumps({"response": {**attachments, "message": message}})


def texts(request: ChatRequest) -> list[str]:
    return [message.content for message in request.messages]


def given(*lessons: str, head: str = HEAD) -> str:
    """The lessons as a model is told them."""
    return head + "\n".join(f"{LINE}\n{lesson}" for lesson in lessons)


async def seen(role: Actor, *messages: str) -> list[Event]:
    """What is told of lessons and examples while these are sent."""
    async with open_conversation(role) as conversation:
        events = conversation.events()
        for message in messages:
            await conversation.send(message)
    return [event async for event in events if isinstance(event, LessonsUsed | NoneGiven)]


async def test_a_role_is_given_the_lessons_that_are_like_the_users_query(lessons: Lessons) -> None:
    await lessons.write(a="tea: name the year", b="coffee: name the price", c="tea and coffee: be short")
    model = ScriptedModel({"Writer": [said("ok")]})
    async with open_conversation(Writer(model, experience=lessons.experience())) as conversation:
        await conversation.send("How does tea sell?")
    assert texts(model.requests[0]) == [
        "You are Writer.",
        given("tea: name the year", "tea and coffee: be short"),
        '{"user_message": "How does tea sell?"}',
    ]


async def test_a_limit_and_a_threshold_are_those_of_the_settings(lessons: Lessons) -> None:
    await lessons.write(a="tea: name the year", b="coffee", c="tea and coffee: be short")
    for settings, expected in (
        ({"limit": 1}, 1),
        ({"threshold": 0.9}, 1),
        ({"threshold": 0.0}, 3),
        ({"use": False}, 0),
    ):
        model = ScriptedModel({"Writer": [said("ok")]})
        async with open_conversation(Writer(model, experience=lessons.experience(**settings))) as conversation:
            await conversation.send("tea")
        assert "\n".join(texts(model.requests[0])).count(LINE) == expected


async def test_each_round_has_lessons_of_its_own_for_its_own_query(lessons: Lessons) -> None:
    await lessons.write(a="tea: name the year", b="coffee: name the price")
    model = ScriptedModel({"Writer": [said("ok"), said("ok")]})
    async with open_conversation(Writer(model, experience=lessons.experience())) as conversation:
        await conversation.send("tea")
        await conversation.send("coffee")
    told = [[text for text in texts(request) if LINE in text] for request in model.requests]
    assert told == [[given("tea: name the year")], [given("coffee: name the price")]]


async def test_the_query_of_a_role_that_another_asks_is_the_post(lessons: Lessons) -> None:
    plan = {"plan": "1", "send_to": "Writer", "message": "Write of coffee."}
    answer = {"plan": "1", "send_to": "User", "message": "Done."}
    model = ScriptedModel(
        {"Planner": [json.dumps({"response": one}) for one in (plan, answer)], "Writer": [said("ok")]}
    )
    await lessons.write(a="tea")
    experience = lessons.experience()
    root = Planner(model, subordinates=[Writer(model, experience=experience)], experience=experience)
    async with open_conversation(root) as conversation:
        await conversation.send("Write of tea.")
    assert lessons.embedder.queries == ["Write of tea.", "Write of coffee."]


async def test_after_an_intervention_new_lessons_stand_behind_what_was_sent(
    lessons: Lessons, autojump_clock: MockClock
) -> None:
    await lessons.write(a="tea: name the year", b="2025: in euros", c="tea in 2025: it fell")

    def slow(request: ChatRequest) -> Reply:
        called.set()
        return Reply(said("slow"), delay=1)

    called = trio.Event()
    model = ScriptedModel({"Writer": [slow, said("ok", thought="so")]})
    async with open_conversation(Writer(model, experience=lessons.experience())) as conversation:
        events = conversation.events()
        started = conversation.communicate("tea")
        await called.wait()
        conversation.intervene("In 2025.")
        reply = await started.reply()
    first, second = (request.messages for request in model.requests)
    assert extends(second, first)
    assert [message.content for message in second[len(first) :]] == [
        '{"user_intervention": "In 2025."}',
        given("2025: in euros"),
    ]
    assert lessons.embedder.queries == ["tea", "tea\nIn 2025."]
    scores = {"a": 0.7071, "b": 0.7071, "c": 1.0}
    extra: Any = reply.attachment_list[0].extra
    assert {one["id"]: round(one["score"], 4) for one in extra["lessons"]} == scores
    used = [event async for event in events if isinstance(event, LessonsUsed)]
    assert [[id for id, _ in event.lessons] for event in used] == [["a", "c"], ["c", "a", "b"]]


async def test_the_calls_of_one_query_look_once_and_a_change_on_disk_moves_nothing(lessons: Lessons) -> None:
    await lessons.write(a="tea: name the year")

    class Twice(Writer):
        async def receive(self, post: Post, context: TurnContext) -> Post:
            context.record(await self.think(context, await self.messages(post, context)))
            await lessons.write(a="tea: something else", b="tea: new")
            return await super().receive(post, context)

    model = ScriptedModel({"Writer": ["one", said("two")]})
    async with open_conversation(Twice(model, experience=lessons.experience())) as conversation:
        await conversation.send("tea")
    first, second = (request.messages for request in model.requests)
    assert extends(second, first)
    assert lessons.embedder.queries == []
    assert given("tea: name the year") in texts(model.requests[1])


async def test_what_a_refresh_brings_is_found_by_the_next_query(lessons: Lessons) -> None:
    await lessons.write(a="tea: name the year")
    model = ScriptedModel({"Writer": [said("one"), said("two")]})
    async with open_conversation(Writer(model, experience=lessons.experience())) as conversation:
        await conversation.send("tea")
        await lessons.write(b="tea: new")
        await conversation.send("tea again")
    assert given("tea: name the year", "tea: new") in texts(model.requests[1])


async def test_a_lesson_does_not_stay_in_the_rounds_that_follow(lessons: Lessons) -> None:
    await lessons.write(a="tea: name the year")
    model = ScriptedModel({"Writer": [said("one"), said("two")]})
    async with open_conversation(Writer(model, experience=lessons.experience())) as conversation:
        await conversation.send("tea")
        await conversation.send("water")
    assert not [text for text in texts(model.requests[1]) if LINE in text]


async def test_in_the_originals_order_lessons_end_the_system_message(lessons: Lessons) -> None:
    class Ordered(Writer):
        layout = "taskweaver"

    await lessons.write(a="tea: name the year", b="tea: be short")
    model = ScriptedModel({"Writer": [said("ok")]})
    async with open_conversation(Ordered(model, experience=lessons.experience())) as conversation:
        await conversation.send("tea")
    system = texts(model.requests[0])[0]
    assert system == "You are Writer.\n" + given("tea: name the year", "tea: be short")
    assert system.endswith(f"{LINE}\ntea: name the year\n{LINE}\ntea: be short")


async def test_without_an_entry_in_shared_memory_nothing_is_loaded_and_an_event_says_so(lessons: Lessons) -> None:
    await lessons.write(a="tea")
    model = ScriptedModel({"Writer": [said("ok")]})
    role = Writer(model, experience=lessons.experience(dynamic_sub_path=True))
    (event,) = await seen(role, "tea")
    assert isinstance(event, NoneGiven)
    assert (event.role, event.what) == ("Writer", "lessons")
    assert event.reason == "no role has put an experience_sub_path into shared memory"
    assert len(model.requests[0].messages) == 2
    assert lessons.embedder.queries == []


async def test_the_newest_entry_chooses_the_folder_of_the_reply(lessons: Lessons) -> None:
    await lessons.write("drinks", a="tea: name the year")
    await lessons.write("tea", a="tea: leaves")
    model = ScriptedModel({"Chooser": ["1", "2", "3", "4"]})
    role = Chooser(model, experience=lessons.experience(dynamic_sub_path=True, threshold=-1))
    events = await seen(role, "drinks", "tea")
    told = [[text for text in texts(request) if LINE in text] for request in model.requests]
    assert told == [
        [],
        [given("tea: name the year")],
        [given("tea: name the year")],
        [given("tea: name the year"), given("tea: leaves", head=OTHERS)],
    ]
    assert all(extends(after.messages, one.messages) for one, after in (model.requests[:2], model.requests[2:]))
    assert [event.folder for event in events if isinstance(event, LessonsUsed)] == ["drinks", "drinks", "tea"]


@pytest.mark.parametrize("sub_path", ["..", "../other", "/etc", "a/../../b", "link", "nowhere", "C:\\x"])
async def test_a_sub_path_out_of_the_folder_or_to_nowhere_is_refused_and_told(lessons: Lessons, sub_path: str) -> None:
    await lessons.write(a="tea")
    (lessons.folder.parent / "other").mkdir()
    (lessons.folder / "link").symlink_to(lessons.folder.parent / "other")
    model = ScriptedModel({"Chooser": ["1", "2"]})
    settings = lessons.experience(dynamic_sub_path=True)
    role = Chooser(model, experience=settings, examples=Examples(lessons.folder, dynamic_sub_path=True))
    events = await seen(role, sub_path)
    assert [(type(event), getattr(event, "what", "")) for event in events[2:]] == [
        (NoneGiven, "examples"),
        (NoneGiven, "lessons"),
    ]
    assert lessons.embedder.queries == []
    assert len(settings.pools) == 0


async def test_a_folder_of_the_settings_that_is_not_there_fails_the_role(tmp_path: Path) -> None:
    for settings in ({"experience": Experience(tmp_path / "no")}, {"examples": Examples(tmp_path / "no")}):
        async with open_conversation(Writer(ScriptedModel({}), **settings)) as conversation:
            with pytest.raises(RoleFailed, match="there is no such folder"):
                await conversation.send("tea")


async def test_embeddings_that_fail_cost_the_lessons_and_not_the_reply(lessons: Lessons) -> None:
    await lessons.write(a="tea")
    lessons.embedder.broken = True
    model = ScriptedModel({"Writer": [said("ok")]})
    (event,) = await seen(Writer(model, experience=lessons.experience()), "tea")
    assert isinstance(event, NoneGiven)
    assert "the embeddings are away" in event.reason


async def test_a_model_cannot_say_that_it_was_given_lessons(lessons: Lessons) -> None:
    await lessons.write(a="coffee")
    forged = {"lessons": [{"id": "x", "score": 1.0}], "given": {"text": "x"}, "extra": {"given": {"text": "x"}}}
    model = ScriptedModel({"Writer": [json.dumps({"response": {**forged, "thought": "x", "message": "m"}})] * 2})
    async with open_conversation(Writer(model, experience=lessons.experience())) as conversation:
        reply = await conversation.send("tea")
        await conversation.send("tea")
    assert [one.extra for one in reply.attachment_list] == [None]
    assert "x" not in "".join(text for request in model.requests for text in texts(request) if LINE in text)


async def test_provenance_is_kept_by_a_transcript_that_is_saved_and_read(lessons: Lessons, tmp_path: Path) -> None:
    await lessons.write(a="tea: name the year")
    model = ScriptedModel({"Writer": [said("ok", thought="so")]})
    async with open_conversation(Writer(model, experience=lessons.experience())) as conversation:
        await conversation.send("tea")
        transcript = conversation.transcript()
    transcript.save(tmp_path / "t.yaml")
    _, note, reply = Transcript.restore_yaml(tmp_path / "t.yaml").rounds[0].post_list
    noted: Any = note.marks.extra["given"]
    assert noted["text"] == given("tea: name the year")
    assert reply.attachment_list[0].extra == {"lessons": ({"id": "a", "score": 1.0},)}


def example(*names: str, said: str = "shown") -> Transcript:
    """A conversation in which each of these speaks to the next."""
    posts = [Post.create(said, one, other) for one, other in pairwise(names)]
    return Transcript(said, (Round.create(said, post_list=posts),))


async def test_examples_are_those_in_which_nobody_else_takes_part(tmp_path: Path) -> None:
    examples = {
        "own": example("User", "Planner", "Writer", said="own"),
        "other": example("User", "Planner", "Painter", said="other"),
        "alone": example("User", "Planner", said="alone"),
    }
    for name, transcript in examples.items():
        transcript.save(tmp_path / f"{name}.yaml")
    model = ScriptedModel({"Planner": [json.dumps({"response": {"send_to": "User", "message": "Done."}})]})
    root = Planner(model, subordinates=[Writer(model)], examples=Examples(tmp_path))
    async with open_conversation(root) as conversation:
        await conversation.send("now")
    begins, ends = template("fw.example_begins"), template("fw.example_ends")
    assert texts(model.requests[0])[1:] == [
        begins,
        '{"user_message": "alone"}',
        ends,
        begins,
        '{"user_message": "own"}',
        '{"response": {"send_to": "Writer", "message": "own"}}',
        ends,
        '{"user_message": "now"}',
    ]


async def test_a_bad_example_is_skipped_and_named_and_a_disabled_one_is_not_shown(tmp_path: Path) -> None:
    example("User", "Writer", said="good").save(tmp_path / "b.yaml")
    (tmp_path / "a.yaml").write_text("rounds: 3")
    off = example("User", "Writer", said="off").to_dict() | {"enabled": False}
    Transcript.restore(off).save(tmp_path / "c.yaml")
    model = ScriptedModel({"Writer": [said("ok")]})
    (event,) = await seen(Writer(model, examples=Examples(tmp_path)), "now")
    assert isinstance(event, NoneGiven)
    assert (event.what, "a.yaml" in event.reason) == ("examples", True)
    assert [text for text in texts(model.requests[0]) if "user_message" in text] == [
        '{"user_message": "good"}',
        '{"user_message": "now"}',
    ]


async def test_examples_of_a_sub_folder_that_is_chosen_on_the_way_stand_behind_what_was_sent(tmp_path: Path) -> None:
    for folder in ("drinks", "meals"):
        (tmp_path / folder).mkdir()
        example("User", "Chooser", said=f"of {folder}").save(tmp_path / folder / "one.yaml")
    model = ScriptedModel({"Chooser": ["1", "2", "3", "4"]})
    role = Chooser(model, examples=Examples(tmp_path, dynamic_sub_path=True))
    async with open_conversation(role) as conversation:
        await conversation.send("drinks")
        await conversation.send("meals")
    shown = [[text for text in texts(request) if "of " in text and "{" in text] for request in model.requests]
    drinks, meals = '{"user_message": "of drinks"}', '{"user_message": "of meals"}'
    assert shown == [[], [drinks], [drinks], [drinks, meals]]
    assert all(extends(after.messages, one.messages) for one, after in (model.requests[:2], model.requests[2:]))


async def test_a_code_interpreter_under_a_planner_is_shown_examples_of_the_two(tmp_path: Path) -> None:
    example("Planner", "CodeInterpreter", said="count").save(tmp_path / "a.yaml")
    reply = json.dumps({"response": {"reply_type": "text", "reply_content": "7"}})
    to = [{"send_to": "CodeInterpreter", "message": "q"}, {"send_to": "User", "message": "7"}]
    model = ScriptedModel({"Planner": [json.dumps({"response": one}) for one in to], "CodeInterpreter": [reply]})
    coder = CodeInterpreter(model, examples=Examples(tmp_path))
    async with open_conversation(Planner(model, subordinates=[coder])) as conversation:
        await conversation.send("How many?")
    assert "From: Planner\ncount" in texts(model.requests[1])


async def test_examples_are_read_once_and_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def load() -> None:
        found.append(await examples.load())

    found: list[ExampleFolder] = []
    example("User", "Writer").save(tmp_path / "a.yaml")
    examples = Examples(tmp_path)
    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(load)
    first = found[0]
    example("User", "Writer").save(tmp_path / "b.yaml")
    with monkeypatch.context() as patched:
        patched.setattr("callboard.experience.examples.read_examples", None)
        assert await examples.load() is found[1] is first
    assert len((await Examples(tmp_path).load()).transcripts) == 2
    assert isinstance(first, ExampleFolder)


def test_a_role_is_called_by_its_file_in_settings_unless_it_says_otherwise() -> None:
    class Named(Writer):
        settings_name = "scribe"

    class Below(Named):
        """Stands in this file."""

    names = [one.settings_name for one in (Role, Planner, CodeInterpreter, Writer, Named, Below)]
    assert names == ["role", "planner", "code_generator", "test_guidance", "scribe", "test_guidance"]


@pytest.mark.parametrize("settings", [{"limit": 0}, {"threshold": 1.5}])
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="or None, not"):
        Experience("x", **settings)


def test_roles_that_are_given_the_same_pools_share_them(tmp_path: Path) -> None:
    pools = Pools()
    one, other = Experience(tmp_path, pools=pools), Experience(tmp_path / "." / "", limit=3, pools=pools)
    assert one.pool() is other.pool()
    assert Experience(tmp_path).pool() is not one.pool()


async def converse(
    settings: tuple[Experience, Examples], watch: Watch | None = None, said_when: Sequence[float] = ()
) -> None:
    """Two rounds in which the sub folder changes on the way, held to the prefix rule."""
    model = ScriptedModel({"Chooser": [Reply("found", pieces=3, delay=1)] * 60})
    role = Chooser(model, experience=settings[0], examples=settings[1])
    ends = [0]
    async with open_conversation(role) as conversation, trio.open_nursery() as nursery:
        held = watch(conversation) if watch else conversation
        for seconds in said_when:
            nursery.start_soon(speak, conversation, seconds)
        for folder in ("drinks", "tea"):
            await held.send(folder)
            ends.append(len(model.requests))
        nursery.cancel_scope.cancel()
    for start, end in pairwise(ends):
        calls = [request.messages for request in model.requests[start:end]]
        assert all(extends(later, earlier) for earlier, later in pairwise(calls))
    assert any(OTHERS in text for text in texts(model.requests[-1]))
    assert '{"user_message": "of tea"}' in texts(model.requests[-1])


async def speak(conversation: Conversation, seconds: float) -> None:
    """Says something in the middle."""
    await trio.sleep(seconds)
    conversation.intervene(f"coffee {seconds}")


async def two_folders(lessons: Lessons) -> tuple[Experience, Examples]:
    """Settings for lessons and an example in each of two sub folders, all of which is in memory already."""
    experience = lessons.experience(dynamic_sub_path=True, threshold=-1.0)
    examples = Examples(lessons.folder, dynamic_sub_path=True)
    for folder in ("drinks", "tea"):
        await lessons.write(folder, a=f"tea of {folder}", b=f"coffee of {folder}")
        example("User", "Chooser", said=f"of {folder}").save(lessons.folder / folder / "example.yaml")
        os.utime(lessons.folder / folder, (1e9, 1e9))  # a folder that has just changed is looked at again, in a thread
        await experience.pool(folder).load()
        await examples.load(folder)
    return experience, examples


@pytest.mark.parametrize("said_when", [(), (0.5, 1.5, 2.5), (1.0, 2.0, 3.0, 4.5, 5.5)])
async def test_each_call_of_a_round_extends_the_one_before_whatever_is_found_on_the_way(
    lessons: Lessons, autojump_clock: MockClock, said_when: tuple[float, ...]
) -> None:
    await converse(await two_folders(lessons), said_when=said_when)


@pytest.mark.slow
def test_the_prefix_rule_holds_with_lessons_at_every_moment_of_an_interruption(lessons: Lessons) -> None:
    settings = trio.run(two_folders, lessons)

    async def scenario(watch: Watch) -> None:
        await converse(settings, watch)

    assert every_interrupt_point(scenario, interrupt(1), seeds=range(2)).outcomes["seen"]


def test_examples_take_no_ids_of_the_conversation_that_needs_them(tmp_path: Path) -> None:
    example("User", "Writer").save(tmp_path / "a.yaml")
    before = current_ids.set(Ids(lambda: 0))
    try:
        assert len(read_examples(tmp_path, lambda: None).transcripts) == 1
        assert create_id("post") == "post-19700101-000000-00000000"
    finally:
        current_ids.reset(before)


async def test_of_the_entries_of_several_roles_the_newest_counts(lessons: Lessons) -> None:
    await lessons.write("drinks", a="tea: name the year")
    await lessons.write("tea", a="tea: leaves")
    model = ScriptedModel({"Writer": [said("ok"), said("ok")]})
    writer = Writer(model, experience=lessons.experience(dynamic_sub_path=True, threshold=-1))
    async with open_conversation(Director("Top", "tea", Director("Low", "drinks", writer))) as conversation:
        await conversation.send("first low, then top")
    told = [[text for text in texts(request) if LINE in text] for request in model.requests]
    assert told == [[given("tea: leaves")], [given("tea: leaves"), given("tea: name the year", head=OTHERS)]]


class Director(Actor):
    """Chooses a sub folder, has it used, and lets the next one do so."""

    def __init__(self, name: str, folder: str, below: Actor) -> None:
        self.name = name
        self.subordinates = (below,)
        self._folder = folder

    async def receive(self, post: Post, context: TurnContext) -> Post:
        context.share("experience_sub_path", self._folder, "conversation")
        await context.ask("Writer", "Write.")
        return post.reply((await context.ask("Low", "Go.")).message if self.name == "Top" else "done")


def test_a_user_who_says_what_was_given_has_given_nothing() -> None:
    extra = FrozenMapping(Given(text="forged").to_extra())
    said_by_user = Post.create("m", "User", "Writer", marks=Marks(extra=extra))
    told_by_other = Post.create("m", "Other", "Writer", marks=Marks(kind="note", extra=extra))
    assert not is_note(said_by_user)
    assert not is_note(told_by_other)
    assert given_in((Round.create("q", post_list=[said_by_user, told_by_other]),), "Writer") == ()


def test_the_words_of_a_query_are_those_since_the_request_in_whatever_round() -> None:
    def told(message: str, to: str = "Writer") -> Post:
        return Post.create(message, "User", to, marks=Marks(kind="intervention"))

    asked = Post.create("Write.", "Planner", "Writer")
    earlier = Round.create("q", post_list=[told("before"), asked, told("one"), told("for another", "Other")])
    present = Round.create("r", post_list=[told("two"), told("three")])
    assert query_of(asked, (earlier, present), "Writer") == "Write.\none\ntwo\nthree"
    assert query_of(asked, (present,), "Writer") == "Write."
