"""Miles' command line, from argument vectors, shell strings, and strings inside strings."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.miles.flags import launch_from_argv, launch_from_shell
from tui.miles.secrets import MASK, masked_text, masked_words
from tui.model.launch import LaunchArgs


def test_every_option_a_monitor_needs() -> None:
    launch = launch_from_argv(
        (
            *("python3", "/root/miles/train.py", "--train-backend", "fsdp"),
            *("--save", "/ckpt/a", "--load=/ckpt/b", "--ref-load", "/m/ref"),
            *("--hf-checkpoint", "/m/hf", "--save-interval", "2", "--eval-interval=5"),
            *("--num-rollout", "100", "--start-rollout-id", "7"),
            *("--save-trigger-sentinel", "/ckpt/save-now", "--rollout-batch-size", "32"),
            *("--n-samples-per-prompt", "8", "--global-batch-size", "256"),
            *("--num-steps-per-rollout", "1", "--colocate", "--use-fault-tolerance"),
            "--async-save",
        )
    )
    assert launch == LaunchArgs(
        argv=launch.argv,
        script="/root/miles/train.py",
        save="/ckpt/a",
        load="/ckpt/b",
        ref_load="/m/ref",
        hf_checkpoint="/m/hf",
        save_interval=2,
        eval_interval=5,
        num_rollout=100,
        start_rollout_id=7,
        save_trigger="/ckpt/save-now",
        rollout_batch_size=32,
        samples_per_prompt=8,
        global_batch_size=256,
        steps_per_rollout=1,
        backend="fsdp",
        colocate=True,
        fault_tolerance=True,
        async_save=True,
    )


def test_nothing_given_is_nothing_known() -> None:
    assert launch_from_argv(("python3", "train.py")) == LaunchArgs(
        argv=("python3", "train.py"), script="train.py"
    )
    assert launch_from_argv(()) == LaunchArgs()
    assert launch_from_shell("") == LaunchArgs()


def test_the_last_of_a_repeated_option_wins() -> None:
    launch = launch_from_shell(
        "python3 /root/miles/train.py --save-interval 2 --num-rollout 12 --save-interval=5"
    )
    assert (launch.save_interval, launch.num_rollout) == (5, 12)


@pytest.mark.parametrize("value", ["", "x", "1e3", "4.0", "9" * 30, "--colocate"])
def test_a_number_that_is_none_is_not_given(value: str) -> None:
    launch = launch_from_argv(("python3", "train.py", "--num-rollout", value))
    assert launch.num_rollout is None


def test_a_negative_number_is_a_value() -> None:
    launch = launch_from_argv(("python3", "train.py", "--start-rollout-id", "-1", "--colocate"))
    assert (launch.start_rollout_id, launch.colocate) == (-1, True)


@pytest.mark.parametrize(
    ("words", "backend"),
    [
        ("--train-backend fsdp --tensor-model-parallel-size 2", "fsdp"),
        ("--train-backend megatron", "megatron"),
        ("--gradient-checkpointing", "fsdp"),
        ("--fsdp-cpu-offload", "fsdp"),
        ("--tensor-model-parallel-size 2", "megatron"),
        ("--megatron-to-hf-mode bridge", "megatron"),
        ("--save /ckpt", ""),
        ("--train-backend olmo", ""),
    ],
)
def test_backend(words: str, backend: str) -> None:
    assert launch_from_shell(f"python3 train.py {words}").backend == backend


def test_a_command_in_a_shell_in_a_container() -> None:
    inner = (
        "cd /root/miles && python3 tools/convert_hf_to_torch_dist.py --save /not/this && "
        "ray job submit --address=http://127.0.0.1:8265 --runtime-env-json='{\"env_vars\": {}}' "
        "-- python3 /root/miles/train_async.py --save '/ckpt/with blank' --num-rollout 9 "
        "> /logs/run.log 2>&1; echo --num-rollout 1"
    )
    launch = launch_from_argv(("docker", "run", "--rm", "radixark/miles", "bash", "-lc", inner))
    assert launch.script == "/root/miles/train_async.py"
    assert launch.save == "/ckpt/with blank"
    assert launch.num_rollout == 9


def test_two_shells_deep() -> None:
    launch = launch_from_argv(("bash", "-c", "bash -lc 'python3 train.py --save /ckpt'"))
    assert launch.save == "/ckpt"


def test_options_inside_an_environment_value_count_where_the_script_is_silent() -> None:
    launch = launch_from_argv(
        (
            *("docker", "run", "-e", "MILES_SCRIPT_EXTRA_ARGS=--save /x --save-interval 5"),
            *("image", "python3", "train.py", "--save-interval", "2"),
        )
    )
    assert (launch.save, launch.save_interval) == ("/x", 2)


def test_options_of_a_launcher_without_a_driver() -> None:
    launch = launch_from_argv(
        (
            *("python", "scripts/run_qwen3_4b.py", "--num-rollout", "3"),
            *("--extra-args", "--save-trigger-sentinel /ckpt/save-now --save=/ckpt"),
        )
    )
    assert launch.script == ""
    assert (launch.num_rollout, launch.save) == (3, "/ckpt")
    assert launch.save_trigger == "/ckpt/save-now"


@pytest.mark.parametrize("tail", ["2>&1 | tee run.log", "> run.log", "&", "; true", "|& tee x"])
def test_shell_words_after_the_command_are_no_values(tail: str) -> None:
    launch = launch_from_shell(f"python3 train.py --save /ckpt --colocate {tail}")
    assert (launch.save, launch.colocate) == ("/ckpt", True)


def test_words_behind_a_redirection_still_count() -> None:
    launch = launch_from_shell("python3 train.py --save /a > run.log 2>&1 --num-rollout 4")
    assert (launch.save, launch.num_rollout) == ("/a", 4)


def test_continued_lines_are_one_command() -> None:
    launch = launch_from_shell("python3 train.py \\\n  --save /ckpt \\\n  --num-rollout 4\n")
    assert (launch.save, launch.num_rollout) == ("/ckpt", 4)


def test_continued_lines_in_a_shell_in_a_shell() -> None:
    launch = launch_from_shell('bash -c "python3 train.py --save \\\\\n /a --load \\\\\n /b"')
    assert (launch.save, launch.load) == ("/a", "/b")


@pytest.mark.parametrize(
    "words", [("-e", "X=--save /a"), ("-eX=--save /a",), ("--env=X=\n--save /a",)]
)
def test_an_option_list_in_every_form_of_a_containers_variable(words: tuple[str, ...]) -> None:
    assert launch_from_argv(("docker", "run", *words, "image", "run.py")).save == "/a"


def test_broken_quoting_still_gives_words() -> None:
    launch = launch_from_shell("python3 train.py --save '/ckpt --num-rollout 4")
    assert (launch.script, launch.num_rollout) == ("train.py", 4)


@given(st.text(max_size=200) | st.text("'\"\\ -=;&|<>$()train.py", max_size=200))
def test_any_text_is_read_without_complaint(text: str) -> None:
    launch_from_shell(text)
    launch_from_shell(f"python3 train.py {text}")
    launch_from_argv(("python3", "train.py", text, "bash", "-c", text))


@pytest.mark.parametrize(
    "word", ["'", '"', "\\", "a=", "key=", "--key ", "-c ", "(", "a=--b ", "train.py "]
)
def test_a_huge_command_is_bounded(word: str) -> None:
    huge = word * 200_000
    assert len(launch_from_shell(huge).argv) <= 8192
    assert launch_from_argv(("python3", "train.py", huge, "--save", "/ckpt")).save == "/ckpt"


SECRET = "0123abcd" * 4


@pytest.mark.parametrize(
    "command",
    [
        f"python3 train.py --wandb-key '{SECRET}' --save /ckpt",
        f"python3 train.py --wandb-key={SECRET}",
        f"docker run -e WANDB_API_KEY={SECRET} image",
        f"env HF_TOKEN={SECRET} AWS_SECRET_ACCESS_KEY={SECRET} python3 train.py",
        f"x --db-password {SECRET} --sglang-api-key {SECRET} --client-secret {SECRET}",
        f"bash -c 'python3 train.py --wandb-key {SECRET}'",
        "ray job submit --runtime-env-json='"
        + json.dumps({"env_vars": {"WANDB_API_KEY": SECRET}})
        + "' -- python3 train.py",
        f"python3 train.py --some-name hf_{SECRET}",
        f"python3 train.py --some-name {SECRET}01234567",
    ],
)
def test_secrets_never_come_through(command: str) -> None:
    shown = launch_from_shell(command).argv
    assert not any(SECRET in word for word in shown)
    assert any(MASK in word for word in shown)
    assert SECRET not in masked_text(command)


def test_what_is_no_secret_stays_readable() -> None:
    words = ("--input-key", "prompt", "--label-key=label", "--max-tokens-per-gpu", "9216")
    assert masked_words(words) == words
    assert masked_text(" ".join(words)) == " ".join(words)


def test_a_secret_flag_without_a_value_hides_no_flag() -> None:
    assert masked_words(("--wandb-key", "--save", "/ckpt")) == ("--wandb-key", "--save", "/ckpt")


def test_masking_keeps_the_number_of_words() -> None:
    words = ("a", "--hf-token", "secret value", "b=c", "X_KEY=a b c")
    assert masked_words(words) == ("a", "--hf-token", MASK, "b=c", f"X_KEY={MASK}")
