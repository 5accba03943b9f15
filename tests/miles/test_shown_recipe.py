"""A recipe as it is shown: all that matters to read, and no secret in any form."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.miles.secrets import MASK
from tui.miles.shown_recipe import shown
from tui.model.recipe import Recipe, RecipeKind

RECIPE = Recipe(
    kind=RecipeKind.PROCESS,
    source="docker run client, process 7",
    captured_at=0.0,
    argv=("docker", "run", "--name", "run-a", "-e", "EXTRA_ARGS=--save /ckpt --load /ckpt", "img"),
    environment=(("PATH", "/bin"), ("HF_HOME", "/hf"), ("MILES_SCRIPT_NUM_ROLLOUT", "200")),
    cwd="/lab",
    log="/lab/plain.log",
    container_name="run-a",
    mounts=(("/data", "/ckpt"),),
    missing=("it was started by `bash start.sh`",),
)
NAMES = st.sampled_from(
    (
        *("WANDB_API_KEY", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "X_SECRET"),
        *("DB_PASSWORD", "MY_PASSPHRASE", "LAB_PAT", "HTTP_AUTHORIZATION", "SLACK_WEBHOOK_URL"),
    )
)
FLAGS = st.sampled_from(("--wandb-key", "--hf-token", "--sglang-api-key", "--db-password"))
SECRETS = st.text("abcdefghijkXYZ0123456789+/=._-", min_size=10, max_size=40).filter(
    lambda text: not text.startswith("--")
)
Hide = Callable[[str, str, str], Recipe]
HIDDEN: tuple[Hide, ...] = (
    lambda name, flag, secret: replace(RECIPE, environment=((name, secret),)),
    lambda name, flag, secret: replace(
        RECIPE, environment=((name, secret), ("MILES_NOTE", f"x{secret}y"))
    ),
    lambda name, flag, secret: replace(
        RECIPE, environment=(("MILES_SCRIPT_EXTRA_ARGS", f"--save /a {flag} {secret} --load /a"),)
    ),
    lambda name, flag, secret: replace(RECIPE, argv=("docker", "run", "-e", f"{name}={secret}")),
    lambda name, flag, secret: replace(RECIPE, argv=("docker", "run", f"--env={name}={secret}")),
    lambda name, flag, secret: replace(RECIPE, argv=("train.py", flag, secret, "--load", "/a")),
    lambda name, flag, secret: replace(RECIPE, argv=("train.py", f"{flag}={secret}")),
    lambda name, flag, secret: replace(RECIPE, argv=("-e", f"EXTRA_ARGS={flag} '{secret}' --a")),
    lambda name, flag, secret: replace(
        RECIPE,
        argv=("bash", "-c", f"export {name}={shlex.quote(secret)}; python train.py {secret}"),
    ),
    lambda name, flag, secret: replace(
        RECIPE, argv=("bash", "-c", shlex.join(("docker", "run", "-e", f"{name}={secret}", "i")))
    ),
    lambda name, flag, secret: replace(
        RECIPE,
        argv=("ray", "job", f"--runtime-env-json={json.dumps({'env_vars': {name: secret}})}"),
    ),
    lambda name, flag, secret: replace(
        RECIPE,
        argv=(
            *("bash", "-c"),
            f"ray job submit --runtime-env-json {shlex.quote(json.dumps({name: secret}))}",
        ),
    ),
    lambda name, flag, secret: replace(RECIPE, entrypoint=f"{name}={secret} python3 train.py"),
    lambda name, flag, secret: replace(RECIPE, entrypoint=f"python3 train.py {flag} {secret}"),
    lambda name, flag, secret: replace(
        RECIPE, runtime_env=json.dumps({"env_vars": {name: secret, "A": f"see {secret}"}})
    ),
    lambda name, flag, secret: replace(
        RECIPE,
        runtime_env=json.dumps({"env_vars": {name: secret}, "working_dir": f"s3://{secret}/x"}),
    ),
    lambda name, flag, secret: replace(RECIPE, metadata=((name, secret),)),
    lambda name, flag, secret: replace(
        RECIPE, missing=(f"it was started by `bash start.sh {flag} {secret}`",)
    ),
    lambda name, flag, secret: replace(
        RECIPE,
        container_spec=json.dumps({"Config": {"Env": [f"{name}={secret}"]}}),
        argv=("img", f"--note={secret}"),
    ),
)


@pytest.mark.parametrize("hidden", HIDDEN)
@given(name=NAMES, flag=FLAGS, secret=SECRETS)
def test_a_secret_is_never_shown(hidden: Hide, name: str, flag: str, secret: str) -> None:
    rows = shown(hidden(name, flag, secret))
    assert not any(secret in text for row in rows for text in row)


@pytest.mark.parametrize(
    "value",
    [
        "https://me:hunter2hunter2@lab.example/model.git",
        "https://hunter2hunter2@lab.example",
        "curl -H 'Authorization: Bearer hunter2hunter2'",
        "hf_hunter2hunter2hunter2",
        "-----BEGIN RSA PRIVATE KEY-----\nhunter2\nhunter2\n-----END RSA PRIVATE KEY-----",
        "eyJhbGciOiJIUzI1NiJ9.hunter2hunter2.hunter2hunter2",
    ],
)
def test_what_gives_itself_away_needs_no_name(value: str) -> None:
    recipe = replace(RECIPE, argv=("x", value), environment=(("MILES_X", value),), entrypoint=value)
    assert "hunter2" not in str(shown(recipe))
    assert "hunter2" not in str(shown(replace(RECIPE, log=value, cwd=value, address=value)))


def test_a_short_secret_hides_nothing_else() -> None:
    recipe = replace(RECIPE, environment=(("X_KEY", "1"), ("MILES_NUM", "1")))
    assert dict(shown(recipe))["environment"] == "X_KEY MILES_NUM=1"


def test_what_matters_is_shown() -> None:
    assert shown(RECIPE) == (
        ("how", "process"),
        ("known from", "docker run client, process 7"),
        ("command", "docker run --name run-a -e 'EXTRA_ARGS=--save /ckpt --load /ckpt' img"),
        ("environment", "PATH HF_HOME MILES_SCRIPT_NUM_ROLLOUT=200"),
        ("folder", "/lab"),
        ("log", "/lab/plain.log"),
        ("container", "run-a"),
        ("mounts", "/data at /ckpt"),
        ("not known", "it was started by `bash start.sh`"),
    )


def test_a_job_is_shown_with_its_environment() -> None:
    env = {"env_vars": {"HF_TOKEN": "x", "NCCL_DEBUG": "INFO"}, "pip": ["miles"]}
    recipe = Recipe(
        kind=RecipeKind.JOB,
        source="Ray job one",
        captured_at=0.0,
        entrypoint="python3 train.py --wandb-key hunter2 --save /a",
        runtime_env=json.dumps(env),
        metadata=(("owner", "me"),),
        address="http://127.0.0.1:8265",
    )
    assert shown(recipe) == (
        ("how", "Ray job"),
        ("known from", "Ray job one"),
        ("entrypoint", f"python3 train.py --wandb-key {MASK} --save /a"),
        ("job's environment", "HF_TOKEN NCCL_DEBUG=INFO"),
        ("job's runtime", '{"pip": ["miles"]}'),
        ("job's metadata", "owner=me"),
        ("Ray", "http://127.0.0.1:8265"),
    )


@given(st.text(max_size=300))
def test_any_text_is_shown_without_complaint(text: str) -> None:
    shown(
        replace(
            RECIPE,
            argv=(text, text),
            environment=((text, text),),
            entrypoint=text,
            runtime_env=text,
            container_spec=text,
        )
    )
