"""Keys a person chose: what is refused, and with which words."""

from __future__ import annotations

import pytest

from tui.app.commands import COMMANDS
from tui.app.keys import chosen_keys, shown
from tui.errors import ConfigError

REFUSED = {
    "an unknown command": (
        {"zom": "w"},
        "keys.zom: there is no such command; did you mean zoom?",
    ),
    "a command like none": ({"xyzzy": "w"}, "keys.xyzzy: there is no such command"),
    "a key of another": ({"zoom": "f"}, "keys.follow: f is the key of zoom already"),
    "a fixed key of another": ({"zoom": "ctrl+c"}, "keys.zoom: ctrl+c is the key of quit already"),
    "the same key under its other name": (
        {"zoom": "question_mark"},
        "keys.zoom: ? is the key of help already",
    ),
    "no such key": ({"zoom": "bigred"}, "keys.zoom: there is no key 'bigred'"),
    "no such modifier": ({"zoom": "hyper+z"}, "keys.zoom: there is no key 'hyper+z'"),
    "no key at all": ({"zoom": ""}, "keys.zoom: there is no key ''"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_is_refused(case: str) -> None:
    overrides, message = REFUSED[case]
    with pytest.raises(ConfigError) as caught:
        chosen_keys(COMMANDS, overrides)
    assert caught.value.message == message


def test_the_registry_has_no_clash_and_no_nameless_command() -> None:
    keys = chosen_keys(COMMANDS, {})
    assert len(keys) == len(COMMANDS)
    assert all(keys.values())


def test_every_command_has_a_plain_key() -> None:
    """Control keys are taken by multiplexers, flow control and job control."""
    lost = {"ctrl+a", "ctrl+b", "ctrl+q", "ctrl+s", "ctrl+\\"}
    for command in COMMANDS:
        keys = chosen_keys(COMMANDS, {})[command.name]
        assert not lost & set(keys)
        if command.name != "suspend":
            assert any("ctrl" not in key for key in keys), command.name


def test_two_keys_may_be_swapped() -> None:
    keys = chosen_keys(COMMANDS, {"zoom": "f", "follow": "z"})
    assert (keys["zoom"], keys["follow"]) == (("f",), ("z",))


def test_a_command_may_have_several_keys_and_keeps_its_fixed_one() -> None:
    assert chosen_keys(COMMANDS, {"quit": "Q, f10"})["quit"] == ("Q", "f10", "ctrl+c")


def test_keys_are_shown_as_people_know_them() -> None:
    assert [shown(key) for key in ("question_mark", "escape", "shift+tab")] == [
        "?",
        "esc",
        "shift+tab",
    ]


def test_one_key_may_have_two_meanings_where_no_screen_knows_both() -> None:
    assert chosen_keys(COMMANDS, {"leave-off": "z"})["leave-off"] == ("z",)
    for clash in ({"leave-off": "f"}, {"roll-back": "i"}, {"finish": "t"}, {"answer": "1"}):
        with pytest.raises(ConfigError, match="already"):
            chosen_keys(COMMANDS, clash)
