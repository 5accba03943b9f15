from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tui.miles.edit import Edited, entrypoint_with_options, with_options
from tui.miles.flags import launch_from_argv
from tui.miles.outline import Command
from tui.model.plan import Refusal

FOLDER, TRIGGER = "/ckpt/run-a", "/ckpt/run-a.save-now"
WANTED = {"load": FOLDER, "save-trigger-sentinel": TRIGGER}
ADDED = f"--load {FOLDER} --save-trigger-sentinel {TRIGGER}"
LIST = "MILES_SCRIPT_EXTRA_ARGS"
RUN = ("docker", "run", "--rm")
LAUNCHER = ("python3", "scripts/run_qwen3_4b.py")


def start(*argv: str, **environment: str) -> Command:
    return Command(argv=argv, environment=tuple(environment.items()))


def edited(command: Command, options: dict[str, str] = WANTED) -> Edited[Command]:
    found = with_options(command, options)
    assert isinstance(found, Edited), found
    again = with_options(found.command, options)
    assert isinstance(again, Edited)
    assert again == Edited(command=found.command, changes=())
    assert again.command == found.command
    return found


def shown(found: Edited[Command]) -> list[str]:
    return [f"{change.where}: {change}" for change in found.changes]


def in_bash(text: str, options: dict[str, str] = WANTED) -> str:
    """What becomes of a text for `bash -c`."""
    return edited(start("bash", "-c", text), options).command.argv[2]


# Where the arguments may stand


def test_arguments_of_the_script() -> None:
    found = edited(start("python3", "train.py", "--save", FOLDER, "--colocate"))
    assert found.command.argv == (
        *("python3", "train.py", "--save", FOLDER, *ADDED.split(), "--colocate"),
    )
    assert shown(found) == [
        f"argument: + --load {FOLDER}",
        f"argument: + --save-trigger-sentinel {TRIGGER}",
    ]


def test_a_start_that_says_it_all_already_is_not_changed() -> None:
    command = start("python3", "train.py", "--save", FOLDER, f"--load={FOLDER}")
    assert edited(command, {"load": FOLDER}) == Edited(command=command, changes=())


def test_the_last_of_a_repeated_option_is_the_one_that_is_replaced() -> None:
    found = edited(
        start("python3", "train.py", "--load=/a", "--save=/x", "--load", "/b", "--save", FOLDER)
    )
    assert found.command.argv == (
        *("python3", "train.py", "--load=/a", "--save=/x", "--load", FOLDER, "--save", FOLDER),
        *("--save-trigger-sentinel", TRIGGER),
    )
    assert shown(found)[0] == f"argument: --load /b → {FOLDER}"


def test_the_form_with_an_equals_sign_keeps_it() -> None:
    found = edited(start("python3", "train.py", "--save", FOLDER, "--load=/b"), {"load": "/c=d e"})
    assert found.command.argv[-1] == "--load=/c=d e"


@pytest.mark.parametrize(
    ("before", "where"),
    [
        (("-e", f"{LIST}="), f"-e {LIST}"),
        (("--env", f"{LIST}="), f"--env {LIST}"),
        ((f"--env={LIST}=",), f"--env {LIST}"),
        ((f"-e{LIST}=",), f"-e {LIST}"),
    ],
)
def test_an_option_list_in_a_containers_environment(before: tuple[str, ...], where: str) -> None:
    def command(options: str) -> Command:
        *flags, name = before
        return start(*RUN, *flags, f"{name}{options}", "-v", "/a b:/ckpt", "image", *LAUNCHER)

    found = edited(command(f"--save {FOLDER} --load '/old one'  --lr 1e-6 "))
    assert found.command == command(
        f"--save {FOLDER} --save-trigger-sentinel {TRIGGER} --load {FOLDER}  --lr 1e-6 "
    )
    assert shown(found) == [
        f"{where}: --load /old one → {FOLDER}",
        f"{where}: + --save-trigger-sentinel {TRIGGER}",
    ]


def test_an_option_list_in_the_environment() -> None:
    found = edited(start(*LAUNCHER, HOME="/root", **{LIST: f"\n--save={FOLDER}"}, Z="--x"))
    assert found.command == start(
        *LAUNCHER, HOME="/root", **{LIST: f"\n--save={FOLDER} {ADDED}"}, Z="--x"
    )
    assert shown(found)[0] == f"environment {LIST}: + --load {FOLDER}"


def test_a_client_passes_only_named_variables_on() -> None:
    environment = {LIST: f"--save {FOLDER}", "OTHER": "--save /b --load /c"}
    found = edited(start(*RUN, "-e", LIST, "image", *LAUNCHER, **environment))
    assert found.command.environment == (
        (LIST, f"--save {FOLDER} {ADDED}"),
        ("OTHER", "--save /b --load /c"),
    )
    assert isinstance(with_options(start(*RUN, "image", *LAUNCHER, **environment), WANTED), Refusal)


def test_a_launchers_own_option_wins_over_its_variable() -> None:
    command = start(*RUN, "-e", f"{LIST}=--lr 1", "image", *LAUNCHER, "--extra-args", "--lr 2")
    assert edited(command, {"load": FOLDER}).command.argv[-1] == f"--lr 2 --load {FOLDER}"


def test_a_launchers_list_without_a_folder_is_added_to() -> None:
    found = edited(start(*LAUNCHER, "--extra-args=--num-rollout 3"), {"load": FOLDER})
    assert found.command.argv[-1] == f"--extra-args=--num-rollout 3 --load {FOLDER}"


def test_what_is_around_the_change_stays_as_it_is_typed() -> None:
    text = (
        "#!/bin/bash\n"
        "cd /root/miles  &&\texport A='x  y' # a comment\n"
        "MODE=\"$M\" ray job submit --runtime-env-json='{\"env_vars\": {\"B\": \"c d\"}}' \\\n"
        f"  -- python3 train.py --save \"{FOLDER}\"@ \\\n"
        "  --name 'it'\\''s' > \"log-$(date +%F).log\" 2>&1 | tee ~/b"
    )  # fmt: skip
    assert in_bash(text.replace("@", "")) == text.replace("@", f" {ADDED}")


def test_each_level_of_shells_gets_the_quotes_that_it_needs() -> None:
    text = 'bash -c "python3 train.py --save \'/a\' --load \\"$OLD\\" | tee log"'
    assert in_bash(text, {"load": "/it's $x"}) == (
        "bash -c \"python3 train.py --save '/a' --load '/it'\\\"'\\\"'s \"'$'\"x' | tee log\""
    )
    text = "sh -c 'python3 train.py --save /a'"
    assert in_bash(text, {"load": "/a b"}) == (
        "sh -c 'python3 train.py --save /a --load '\\''/a b'\\'''"
    )
    text = "eval python3\\ train.py\\ --save\\ /a --lr 1"
    assert in_bash(text, {"load": "/a"}) == (
        "eval python3\\ train.py\\ --save\\ /a' --load /a' --lr 1"
    )


def test_what_the_shell_fills_in_may_hide_an_option_so_that_a_new_one_goes_behind_it() -> None:
    assert in_bash(f"python3 train.py --save {FOLDER} --load /a --colocate $MORE --lr 1") == (
        f"python3 train.py --save {FOLDER} --load /a --colocate $MORE {ADDED} --lr 1"
    )
    assert in_bash(f'python3 train.py "$@" --save {FOLDER} --num-rollout $N --x "$Y"') == (
        f'python3 train.py "$@" --save {FOLDER} {ADDED} --num-rollout $N --x "$Y"'
    )


def test_a_variable_with_the_arguments_is_changed_where_it_is_set() -> None:
    inner = ("image", "bash", "-c", "python3 train.py --save /b $MORE --lr 1")
    found = edited(start(*RUN, "-e", "MORE=--load /a", *inner), {"load": "/b"})
    assert found.command == start(*RUN, "-e", "MORE=--load /b", *inner)
    assert in_bash("A='--save /a' && python3 train.py $A") == (
        f"A='--save /a {ADDED}' && python3 train.py $A"
    )


@pytest.mark.parametrize("value", ["$OLD", '"${OLD}"/x', "~/a", "$(newest)", "`newest`"])
def test_a_value_that_the_shell_fills_in_is_replaced(value: str) -> None:
    text = "python3 train.py --save /a --load {} --colocate"
    assert in_bash(text.format(value), {"load": "/a"}) == text.format("/a")


def test_a_driver_that_inherited_its_launchers_variables() -> None:
    argv = ("python3", "train.py", "--save", "/a", "--load", "/a")
    command = start(*argv, **{LIST: "--save /a --load /b"})
    assert edited(command, {"load": "/a"}).changes == ()


def test_a_jobs_entrypoint() -> None:
    text = "python3 /root/miles/train.py --save '/a b' --load /a\\ b --colocate"
    found = entrypoint_with_options(text, {"load": "/a b", "save-trigger-sentinel": "/a b.now"})
    assert isinstance(found, Edited)
    assert found.command == text.replace("'/a b'", "'/a b' --save-trigger-sentinel '/a b.now'")
    assert [change.where for change in found.changes] == ["entrypoint"]
    assert isinstance(entrypoint_with_options("python3 serve.py", WANTED), Refusal)


@pytest.mark.parametrize(
    "value", ["-a", "a=b", "=", "a b\n", "'", '"', "$a`b`", "\\", "*?~{a,b}", "é", "\udcff"]
)
@pytest.mark.parametrize("before", [("--save", "/a"), ("--load", "/b"), ("--load=/b",)])
def test_values_of_every_kind(value: str, before: tuple[str, ...]) -> None:
    argv = edited(start("python3", "train.py", *before), {"load": value}).command.argv
    assert parsed(argv[2:]).load == value
    text = in_bash(shlex.join(("python3", "train.py", *before)) + "  # end", {"load": value})
    assert parsed(shlex.split(text, comments=True)[2:]).load == value


def parsed(words: Sequence[str]) -> argparse.Namespace:
    """As the trainer takes its arguments."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--save")
    parser.add_argument("--load")
    return parser.parse_args(list(words))


# What is refused


def refused(command: Command, reason: str, options: dict[str, str] = WANTED) -> None:
    found = with_options(command, options)
    assert isinstance(found, Refusal), found
    assert reason in found.reason
    assert f"give --{next(iter(options))}" in found.remedy


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        ((), "neither --save nor --load nor a train script stands in it"),
        (("sleep", "1"), "neither --save nor --load nor a train script stands in it"),
        (("bash", "runs/start.sh"), "start.sh builds the train command"),
        (LAUNCHER, "run_qwen3_4b.py builds the train command"),
        ((*LAUNCHER, "--extra-args", "--save /a; x"), "holds more than options"),
        ((*LAUNCHER, "--extra-args", "--save '/a"), "a quote in it has no partner"),
        ((*LAUNCHER, "--extra-args", "$X --load /a"), "no option list is given"),
        ((*LAUNCHER, "--save", "/a", "--extra-args", "--load /a"), "in two places"),
        (("env", "A_EXTRA_ARGS=--lr 1", "EXTRA_ARGS=--lr 1", *LAUNCHER), "in two places"),
        (("python3", "train.py", "--save", "/a", "--load"), "--load has no value"),
        (("python3", "train.py", "--save", "--load", "/a"), "--save has no value"),
        (("python3", "train.py", "--save", "/a", "--loa", "/a"), "--loa may be short for"),
        (("env", "X=--load /b", "python3", "train.py", "--save", "/a"), "in two places"),
    ],
)
def test_refused(argv: tuple[str, ...], reason: str) -> None:
    refused(start(*argv), reason)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("python3 train.py $ARGS", "filled in by the shell"),
        ('python3 train.py "${ARGS[@]}"', "filled in by the shell"),
        ("A=(--save /a); python3 train.py ${A[@]}", "a function or an array"),
        ("A='--save /a'; A=\"$A --load /b\"; python3 train.py $A", "where it may not count"),
        ("A='--save /a'; A+=' --load /b'; python3 train.py $A", "where it may not count"),
        ("A=\"--save '/a'\"; python3 train.py $A", "the quotes in an option list"),
        ("python3 train.py --save /a --load '/b", "a quote in it has no partner"),
        ('python3 train.py --save "/a', "a quote in it has no partner"),
        ("python3 train.py --save /a \\", "ends in a backslash"),
        ("(python3 train.py --save /a", "a parenthesis in it has no partner"),
        ("case x in x) python3 train.py --save /a;; esac", "a parenthesis in it has no partner"),
        ("python3 train.py --save /a --name $(x", "an expansion in it has no end"),
        ("python3 train.py --save /a --name ${x:-'}'}", "an expansion in it has no end"),
        ("python3 train.py --save /a --name $'x'", "quotes that not every shell knows"),
        ("python3 train.py --save /a >", "a redirection in it leads nowhere"),
        ("python3 train.py --save /a <<X\n--load /b\nX", "a here-document"),
        ("python3 train.py --save /a | python3 train.py --save /b", "more than one train script"),
        ("cat train.py && python3 train.py --save /a", "more than one train script"),
        ("python3 train.py --save /a --load /b*", "several words of the value of --load"),
        ('python3 train.py --save /a --load "$@"', "several words of the value of --load"),
        ("python3 train.py --save /a # --load /b", "where it may not count"),
        ("python3 train.py --save /a\n--load /b", "where it may not count"),
        ("python3 train.py --save /a --load /b\\\nc", "can be read in two ways"),
        ("python3 train.py --save /a --load > log --x /b", "--load has no value"),
        ("python3 run.py --save /a; python3 run.py --save /b", "in two places"),
    ],
)
def test_refused_in_a_shell(text: str, reason: str) -> None:
    refused(start("bash", "-c", text), reason)


@pytest.mark.parametrize(
    ("argv", "value", "reason"),
    [
        (("python3", "train.py", "--save", "/a"), "", "no program can be given"),
        (("python3", "train.py", "--save", "/a"), "a\0b", "no program can be given"),
        (("python3", "train.py", "--save", "/a"), "a train.py", "cannot be proven"),
        (("bash", "-c", "python3 train.py --save $A"), "$A/b", "the shell fills in the $A"),
        ((*LAUNCHER, "--extra-args", "--save /a"), "$A", "through the shells on its way"),
        (("ray", "job", "submit", "--", "train.py", "--save", "/a"), "a;b", "through the shells"),
        (("bash", "-c", "A='--save /a'; python3 train.py $A"), "a b", "through the shells"),
        (("bash", "-c", "python3 train.py --save /a"), "\\\n", "cannot be proven"),
    ],
)
def test_values_that_would_not_arrive(argv: tuple[str, ...], value: str, reason: str) -> None:
    refused(start(*argv), reason, {"load": value})


def test_a_value_that_needs_an_equals_sign_is_not_put_across_a_redirection() -> None:
    text = "python3 train.py --save /a --load > log /b"
    assert in_bash(text, {"load": "/c"}) == text.replace("/b", "/c")
    refused(start("bash", "-c", text), "right behind its option", {"load": "-c"})


def test_an_option_that_is_not_read_back() -> None:
    refused(start("python3", "train.py", "--save", "/a"), "--lr is not an option", {"lr": "1"})


def test_secrets_stay_out_of_every_repr() -> None:
    command = start(*LAUNCHER, "--extra-args", "--wandb-key hidden --save /a", KEY="hidden")
    assert "hidden" not in repr((command, with_options(command, WANTED)))


# Against real shells

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


def given_to_the_trainer(shell: str, text: str, stub: Path) -> tuple[str, ...]:
    told = stub / "told"
    told.write_bytes(b"")
    environment = {"PATH": f"{stub}:{os.environ['PATH']}", "TOLD": str(told), "LC_ALL": "C.UTF-8"}
    subprocess.run([shell, "-c", text], env=environment, check=True, timeout=30, cwd=stub)
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
        found = with_options(start("bash", "-c", f"train.py --save /a {word * 5_000}"), WANTED)
        assert isinstance(found, Refusal | Edited)
