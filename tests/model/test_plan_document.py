"""Plans and journal entries survive being written down; what is none is refused, never a crash."""

from __future__ import annotations

import json
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tui.model.action import ActionKind
from tui.model.journal import Entry, Mark, actions_of, entry_of, entry_text
from tui.model.plan import ActionPlan, Row, StartRun, Step
from tui.model.plan_document import plan_of, plan_text, shown_plan
from tui.model.recipe import Recipe, RecipeKind

SECRET = "hf_abcdefghijklmnopqrstuvwx"

words = st.text(max_size=8)
numbers = st.floats(allow_nan=False)
st.register_type_strategy(str, words)
st.register_type_strategy(float, numbers)
few = settings(max_examples=15, deadline=None)


def plan(steps: tuple[Step, ...]) -> ActionPlan:
    return ActionPlan(
        id="1",
        kind=ActionKind.RESUME,
        title="Resume run-a",
        run_id="run-a-1",
        run_name="run-a",
        made_at=1.5,
        rows=(Row(label="Why", text="stalled"),),
        steps=steps,
        go="resume",
    )


@pytest.mark.parametrize("kind", get_args(Step), ids=lambda kind: kind.name)
@few
@given(values=st.data())
def test_a_plan_comes_back_as_it_was(kind: type[Step], values: st.DataObject) -> None:
    step = values.draw(st.from_type(kind))
    assert plan_of(plan_text(plan((step, step)))) == plan((step, step))


def test_what_may_be_shown_of_a_plan_has_no_recipe_in_it() -> None:
    recipe = Recipe(
        kind=RecipeKind.PROCESS,
        source="process 1",
        captured_at=0.0,
        argv=("python", "train.py", "--hf-token", SECRET),
        environment=(("HF_TOKEN", SECRET),),
    )
    shown = json.dumps(shown_plan(plan((StartRun(recipe=recipe, log="/runs/a.log"),))))
    assert SECRET not in shown
    assert "stalled" in shown


@few
@given(
    st.text()
    | st.recursive(st.none() | words, lambda x: st.lists(x) | st.dictionaries(words, x)).map(
        json.dumps
    )
)
def test_what_is_no_plan_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        plan_of(text)


@few
@given(st.text())
def test_what_is_no_entry_is_skipped(text: str) -> None:
    assert entry_of(text) is None


@few
@given(st.lists(st.from_type(Entry), max_size=8))
def test_entries_come_back_and_add_up(entries: list[Entry]) -> None:
    assert [entry_of(entry_text(entry)) for entry in entries] == entries
    records = {record.id: record for record in actions_of(entries)}
    assert records.keys() == {entry.action for entry in entries}
    closed = {e.action for e in entries if e.mark in (Mark.ENDED, Mark.GIVEN_UP)}
    assert {name for name, record in records.items() if not record.is_open} == closed
