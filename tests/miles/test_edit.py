from __future__ import annotations

import shlex

import pytest
from starts import (
    ADDED,
    FOLDER,
    LAUNCHER,
    LIST,
    RUN,
    TRIGGER,
    WANTED,
    edited,
    in_bash,
    parsed,
    start,
)

from tui.miles.edit import Edited, entrypoint_with_options, with_options
from tui.miles.outline import Command
from tui.model.plan import Refusal


def shown(found: Edited[Command]) -> list[str]:
    return [f"{change.where}: {change}" for change in found.changes]


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
        "  --name 'it'\\''s' > \"log-$(date '+%F (%Z)')\\\n.log\" 2>&1 | tee ~/b"
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


def test_a_file_that_the_shell_makes_up_is_one_more_thing_that_it_fills_in() -> None:
    text = "python3 train.py --save /a --name <(echo x)@ > >(tee log)"
    assert in_bash(text.replace("@", ""), {"load": "/a"}) == text.replace("@", " --load /a")
    refused(start("bash", "-c", "python3 train.py --save /a > > log"), "leads nowhere")


def test_an_option_list_that_the_script_takes_by_name_is_changed_where_it_stands() -> None:
    inner = ("image", "bash", "-c", "python3 train.py --save /b $MORE --lr 1")
    found = edited(start(*RUN, "-e", "MORE=--load /a", *inner), {"load": "/b"})
    assert found.command == start(*RUN, "-e", "MORE=--load /b", *inner)


@pytest.mark.parametrize("sets", ["MORE=$X", "MORE+=' --lr 1'", "read MORE", "MORE='--load /a'"])
def test_a_variable_that_the_shell_sets_may_hold_anything(sets: str) -> None:
    text = f"{sets}; python3 train.py --save /b $MORE"
    command = start(*RUN, "-e", "MORE=--load /a", "image", "bash", "-c", text)
    assert edited(command, {"load": "/b"}).command.argv[-1] == f"{text} --load /b"


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
        (("env", "X=$Y --load /b", *LAUNCHER, "--extra-args", "--save /a"), "may not count"),
        (("env", "A_EXTRA_ARGS=--lr 1", "EXTRA_ARGS=--lr 1", *LAUNCHER), "in two places"),
        (("python3", "train.py", "--save", "/a", "--load"), "--load has no value"),
        (("python3", "train.py", "--save", "--load", "/a"), "--save has no value"),
        (("python3", "train.py", "--save", "/a", "--loa", "/a"), "--loa may be short for"),
        (("env", "X=--load /b", "python3", "train.py", "--save", "/a"), "in two places"),
        (
            ("env", "X=--save '/b'", "sh", "-c", "python3 train.py $X"),
            "the quotes in an option list",
        ),
        (("env", "X=--save /b", "python3", "train.py"), "the script does not take them from"),
        (
            ("env", "X=--load", "sh", "-c", "python3 train.py --save /a $X /b"),
            "has its value elsewhere",
        ),
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
        ("A='--save /a'; A=\"$A --load /b\"; python3 train.py $A", "filled in by the shell"),
        ("A='--save /a'; A+=' --load /b'; python3 train.py $A", "filled in by the shell"),
        ("A='--save /a'; python3 train.py $A", "filled in by the shell"),
        ("python3 train.py --save /a --load '/b", "a quote in it has no partner"),
        ('python3 train.py --save "/a', "a quote in it has no partner"),
        ("python3 train.py --save /a \\", "ends in a backslash"),
        ("(python3 train.py --save /a", "a parenthesis in it has no partner"),
        ("case x in x) python3 train.py --save /a;; esac", "a parenthesis in it has no partner"),
        ("python3 train.py --save /a --name $(x", "an expansion in it has no end"),
        ("python3 train.py --save /a --name ${x:-'}'}", "an expansion in it has no end"),
        ("python3 train.py --save /a --name $'x'", "quotes that not every shell knows"),
        ("python3 train.py --save /a" + " " * (1 << 17), "longer than Linux lets a word be"),
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
        (("python3", "train.py", "--save", "/a"), "", "--load cannot be given ''"),
        (("python3", "train.py", "--save", "/a"), "a\0b", "--load cannot be given"),
        (("python3", "train.py", "--save", "/a"), "--", "--load cannot be given"),
        (("python3", "train.py", "--save", "/a"), "a train.py", "cannot be proven"),
        (("bash", "-c", "python3 train.py --save $A"), "$A/b", "the shell fills in the $A"),
        ((*LAUNCHER, "--extra-args", "--save /a"), "$A", "through the shells on its way"),
        (("env", "ARGS=--save /a", "bash", "start.sh"), "a b", "through the shells on its way"),
        (("ray", "job", "submit", "--", "train.py", "--save", "/a"), "a;b", "through the shells"),
        (("env", "A=--save /a", "sh", "-c", "python3 train.py $A"), "a b", "through the shells"),
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
