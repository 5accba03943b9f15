"""Changed commands run by real shells: what a stand-in for the trainer is given is what counts."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starts import LAUNCHER, LIST, RUN, WANTED, edited, in_bash, parsed, start

from tui.miles.edit import Edited, with_options
from tui.miles.flags import launch_from_argv
from tui.model.plan import Refusal

SAFE = st.text("abc/._-=,:", min_size=1, max_size=8).map("/".__add__)
HOSTILE = st.text("ab/ =-'\"\\$`;&|<>#*?~{}()!\n\té", min_size=1, max_size=10)
BLANKS = st.sampled_from((" ", "  ", "\t", " \\\n  "))
BEFORE = st.sampled_from(("", "A='b  c' ", "cd / && ", "true; ", "# a comment\n", "exec "))
AFTER = st.sampled_from(
    ("", " 2>&1", " > /dev/null", ' | cat >"/dev/null"', "; true", " # a", "\n")
)


def backslashed(word: str) -> str:
    return re.sub(r"([^\w/.=-])", r"\\\1", word).replace("\\\n", "'\n'")


def double_quoted(word: str) -> str:
    return '"' + re.sub(r'(["\\$`])', r"\\\1", word) + '"'


def in_pieces(word: str) -> str:
    return "''".join(map(shlex.quote, word))


@st.composite
def starts(draw: st.DrawFn, values: st.SearchStrategy[str]) -> tuple[str, tuple[str, ...]]:
    """A text that starts the trainer, as somebody may type it, and what the trainer gets."""
    value = values.filter(lambda text: not text.startswith("-"))
    pair = st.tuples(st.sampled_from(("--load", "--name", "--num-rollout", "--save")), value)
    glued = pair.map(lambda words: (f"{words[0]}={words[1]}",))
    parts = draw(st.lists(pair | glued | st.just(("--colocate",)), max_size=4))
    parts.insert(draw(st.integers(0, len(parts))), ("--save", draw(value)))
    words = tuple(word for part in parts for word in part)
    typing = st.sampled_from((shlex.quote, backslashed, double_quoted, in_pieces))
    text = "python3 train.py" + "".join(draw(BLANKS) + draw(typing)(word) for word in words)
    text = draw(BEFORE) + text + draw(AFTER)
    for _ in range(draw(st.integers(0, 2))):
        text = f"sh  -c {draw(st.sampled_from((shlex.quote, double_quoted)))(text)}"
    return text, words


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a `python3` that writes down what it is given."""
    folder = tmp_path_factory.mktemp("stub")
    (folder / "python3").write_text('#!/bin/sh\nprintf "%s\\0" "$@" > "$TOLD"\n')
    (folder / "python3").chmod(0o755)
    return folder


def given_to_the_trainer(
    shell: str, text: str, stub: Path, variables: Mapping[str, str] = MappingProxyType({})
) -> tuple[str, ...]:
    told = stub / "told"
    told.write_bytes(b"")
    environment = {"PATH": f"{stub}:{os.environ['PATH']}", "TOLD": str(told), "LC_ALL": "C.UTF-8"}
    environment |= dict(variables)
    subprocess.run([shell, "-c", text], env=environment, check=True, timeout=300, cwd=stub)
    script, *words = told.read_bytes().decode().removesuffix("\0").split("\0")
    assert script == "train.py"
    return tuple(words)


def with_load(words: tuple[str, ...], value: str) -> tuple[str, ...]:
    """What the trainer should get, told from what it got before."""
    options = {"--load": -1, "--save": -1}
    options |= {word.partition("=")[0]: i for i, word in enumerate(words) if word[:6] in options}
    load, save = options["--load"], options["--save"]
    if load < 0:
        behind = save + (1 if "=" in words[save] else 2)
        return (*words[:behind], "--load", value, *words[behind:])
    if "=" in words[load]:
        return (*words[:load], f"--load={value}", *words[load + 1 :])
    return (*words[: load + 1], value, *words[load + 2 :])


@settings(max_examples=60, deadline=None)
@given(typed=starts(SAFE), value=SAFE)
def test_plain_starts_are_never_refused(
    typed: tuple[str, tuple[str, ...]], value: str, stub: Path
) -> None:
    text, words = typed
    assert given_to_the_trainer("dash", text, stub) == words
    changed = in_bash(text, {"load": value})
    for shell in ("dash", "bash"):
        assert given_to_the_trainer(shell, changed, stub) == with_load(words, value)


@settings(max_examples=60, deadline=None)
@given(typed=starts(HOSTILE), value=HOSTILE.filter(lambda text: text[0] != "-"))
def test_hostile_starts_are_refused_or_changed_as_wanted(
    typed: tuple[str, tuple[str, ...]], value: str, stub: Path
) -> None:
    text, words = typed
    found = with_options(start("bash", "-c", text), {"load": value})
    if isinstance(found, Edited):
        changed = found.command.argv[2]
        assert given_to_the_trainer("dash", changed, stub) == with_load(words, value)


@settings(max_examples=30, deadline=None)
@given(typed=starts(SAFE), value=SAFE, name=st.sampled_from((LIST, "--extra-args")))
def test_option_lists_as_a_launcher_passes_them_on(
    typed: tuple[str, tuple[str, ...]], value: str, name: str, stub: Path
) -> None:
    _, words = typed
    listed = f"{name}=--lr 1 {' '.join(map(double_quoted, words))}"
    argv = edited(start("env", *LAUNCHER, listed), {"load": value}).command.argv
    options = argv[-1].removeprefix(f"{name}=")
    given = given_to_the_trainer("bash", f"python3 train.py {options} ", stub)
    assert given == ("--lr", "1", *with_load(words, value))


FILLED_IN = st.sampled_from(
    ("$MORE", "${MORE}", '"$@"', "--num-rollout $N", '--name "$ONE"', "--colocate $MORE", "$N")
)
TYPED = (
    st.sampled_from(("--load /a", "--load=/b", "--save /a", "--load $ONE", "--lr 1")) | FILLED_IN
)
MORE = st.lists(
    st.sampled_from(("--load /x", "--load=/y", "--save /z", "--lr 2", "word")), max_size=3
)


@settings(max_examples=80, deadline=None)
@given(
    typed=st.lists(TYPED, max_size=4),
    passed=MORE.map(" ".join),
    sets=st.none() | MORE.map(" ".join).map(shlex.quote) | st.just('"$MORE --load /z"'),
    is_known=st.booleans(),
)
def test_whatever_the_shell_fills_in_the_option_counts(
    typed: list[str], passed: str, sets: str | None, is_known: bool, stub: Path
) -> None:
    text = " ".join(("python3 train.py", *typed))
    if sets is not None:
        text = f"MORE={sets}; {text}"
    variables = {"MORE": passed, "N": "3", "ONE": "/one=1"}
    command = start("bash", "-c", text, **(variables if is_known else {}))
    found = with_options(command, {"load": "/new"})
    if isinstance(found, Edited):
        variables |= dict(found.command.environment)
        told = given_to_the_trainer("bash", found.command.argv[2], stub, variables)
        assert parsed(told).load == "/new"


TRICKY = st.text(max_size=80) | st.lists(
    st.sampled_from(
        (
            *"'\"\\ \n\t$`;&|<>()#{}=*~@-",
            *("train.py", "--save", "--load", "/a", "-c", "$(", "${", "<<", "2>", "A=", "--x="),
        )
    ),
    max_size=40,
).map("".join)


@given(TRICKY, TRICKY)
def test_any_text_is_changed_or_refused(text: str, value: str) -> None:
    for command in (
        start("bash", "-c", text),
        start("sh", "-c", f"python3 train.py --save /a {text}"),
        start("python3", "train.py", "--save", text, text),
        start(*LAUNCHER, "--extra-args", f"--save /a {text}"),
        start(*RUN, "-e", text, "image", text, **{LIST: text}),
    ):
        for options in (WANTED, {"load": value}):
            found = with_options(command, options)
            if isinstance(found, Edited):
                launch = launch_from_argv(
                    (*found.command.argv, *map("=".join, found.command.environment))
                )
                assert launch.load == options["load"]


def test_a_huge_command_is_bounded() -> None:
    for word in ("'", "a b ", "$(", "x=--save ", "(", "--load /a "):
        found = with_options(start("bash", "-c", f"train.py --save /a {word * 2_000}"), WANTED)
        assert isinstance(found, Refusal | Edited)
