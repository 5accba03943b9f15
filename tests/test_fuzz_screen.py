"""Hostile text in every source of the screen, and from its own keyboard: the terminal gets text."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import hostile
import logs
import pytest
from answering import Server
from terminal import Terminal

from tui.app.themes import all_themes

pytestmark = pytest.mark.pty

MILEPOST = [sys.executable, "-m", "tui"]
MEANT = re.compile(
    r"\x1b\[[0-9;]*m"  # colour
    r"|\x1b\[\d+;\d+H"  # cursor
    r"|\x1b\[\?(?:25|7|1000|1003|1004|1006|1015|1016|1049|2004|2026|2048)[hl]"  # modes
    r"|\x1b\[\?(?:2026|2048)\$p"  # questions
    r"|\x1b\[<u"  # keyboard protocol off
    r"|\x1b\]22;[a-z]*\x07"  # shape of the mouse pointer
    r"|[\r\x18]"
)
HOSTILE_SGR = re.compile(r"\x1b\[3;7;9;53m")
RECORDS = (
    "Running entrypoint for job J: python3 train.py --save 'X' --hf-checkpoint 'X' --num-rollout 9",
    "X",
    logs.trainer("10:00:01", "Timer X start"),
    logs.trainer("10:00:02", "[FSDP] Failed to load model from /X/iter_0000004: X"),
    logs.rollout("10:00:03", "X, retrying... (attempt 9/60, url=http://X, response=X)"),
    logs.step("10:00:04", 3, X="0.5"),
    logs.engine("10:00:05", "X"),
    "(raylet) file_system_monitor.cc: /X is over 95% full, available space: 1.0 GB; capacity: 9 GB",
    "RuntimeError: X",
    "X:  50%|█████     | 4/8 [00:01<00:01, X]",
)
NAME = "run\x1b]0;x\x07\u202e\x9b2J"
"""For files and folders: no slash, no NUL, not too long."""


def received(terminal: Terminal) -> str:
    return terminal.raw.decode()


def assert_only_text(terminal: Terminal) -> None:
    text = received(terminal)
    assert hostile.unmeant(text, MEANT) == []
    assert not HOSTILE_SGR.search(text)
    assert text.count("\x1b[?1049l") == 1


def log_of(folder: Path) -> Path:
    lines = [record.replace("X", text) for text in hostile.STRINGS[:-1] for record in RECORDS]
    path = folder / f"{NAME}.log"
    path.write_bytes("\n".join([*lines, ""]).encode("utf-8", "surrogatepass"))
    return path


@pytest.fixture
def checkpoints(tmp_path: Path, data: Path) -> Path:
    folder = shutil.copytree(data / "captures" / "ckpt-run-a", tmp_path / NAME)
    (folder / "iter_0000004" / NAME).mkdir()
    (folder / "iter_0000004" / f"{NAME}.distcp").touch()
    (folder / "latest_checkpointed_iteration.txt").write_text(f"{NAME}[/]")
    return folder


@pytest.fixture
def themes(tmp_path: Path) -> Path:
    """A folder of configuration whose themes are none, by hostile names."""
    folder = tmp_path / "config" / "milepost" / "themes"
    folder.mkdir(parents=True)
    (folder / f"{NAME}.toml").write_text('name = "[link=x]\\u001b[2J"\n[colours]\n[roles]\n')
    shutil.copy(next(shipped()), folder / "fine.toml")
    text = (folder / "fine.toml").read_text()
    (folder / "fine.toml").write_text(
        re.sub(r'^name = ".*"', 'name = "[/][link=x]y"', text, flags=re.MULTILINE)
    )
    return tmp_path / "config"


def shipped() -> Iterator[Path]:
    names = tuple(all_themes(None).by_name)
    return iter((Path(__file__).parents[1] / "themes").glob(f"{names[0]}.toml"))


@pytest.fixture
def docker() -> Iterator[Server]:
    inspected = {
        "Id": "ab12" * 16,
        "Name": f"/{NAME}",
        "State": {"Status": NAME, "Running": True, "StartedAt": NAME},
        "Config": {"Image": f"miles{NAME}", "Env": [f"A={NAME}"]},
        "Mounts": [{"Source": f"/{NAME}", "Destination": f"/{NAME}"}],
        "Args": ["train.py", "--save", f"/{NAME}"],
    }
    answers = {
        "/version": '{"ApiVersion": "1.41"}',
        "/containers/json": json.dumps([{"Id": "ab12" * 16}]),
        f"/containers/{'ab12' * 16}/json": json.dumps(inspected),
    }
    with Server(answers) as server:
        yield server


def visit_everything(terminal: Terminal) -> None:
    """Panes, zoom, a filter typed and one pasted, the palette, all themes, the help."""
    for pane in "123456":
        terminal.type(pane)
        terminal.wait(0.2)
        terminal.type("z")
        terminal.wait(0.2)
        terminal.type("z")
    for text in hostile.STRINGS[:-1]:
        typed = text.encode("utf-8", "replace").decode()
        terminal.type("/")
        terminal.shows("text to look for")
        terminal.type("".join(char for char in typed if char.isprintable())[:6])
        terminal.type(f"\x1b[200~{typed[:200]}\x1b[201~")
        terminal.shows("filter: ")
        terminal.type("\x1b")
        terminal.until(lambda told: "text to look for" not in told and "filter: " not in told)
    terminal.type(":")
    terminal.shows("🔎")
    terminal.type(f"\x1b[200~{NAME}[/]\x1b[201~")
    terminal.shows("No matches found")
    while "🔎" in terminal.text:
        terminal.type("\x1b")
        terminal.wait(0.3)
    for _ in range(12):
        terminal.type("t")
        terminal.wait(0.1)
    terminal.type("?")
    terminal.wait(0.2)
    terminal.type("?")


def test_the_screen_gets_text_from_every_source(
    tmp_path: Path, checkpoints: Path, themes: Path, docker: Server
) -> None:
    argv = [*MILEPOST, "--log", str(log_of(tmp_path)), "--checkpoints", str(checkpoints)]
    argv += ["--engine", f"http://{NAME}", "--engine", "http://[/][link=x]"]
    env = {"XDG_CONFIG_HOME": str(themes), "DOCKER_HOST": f"tcp://{docker.address}"}
    with Terminal(argv, (160, 50), **env) as terminal:
        terminal.shows("6 Log", "whole")
        visit_everything(terminal)
        assert terminal.leave() == 0
        assert_only_text(terminal)
        assert terminal.is_clean


def test_any_bytes_from_the_terminal_do_no_harm(tmp_path: Path, data: Path) -> None:
    """A paste of Latin-1, half characters, answers nobody asked for: it goes on."""
    argv = [*MILEPOST, "--log", str(data / "captures" / "fresh.log"), "--no-mouse"]
    noise = (
        b"\xff\xfe\x80",
        b"\xe5\x9b",
        b"\x9e",
        b"\x1b[<99999999;99999999;99999999M",
        b"\x1b[999999999999;9R",
        b"\x1b[?2048;9$y\x1b[?9999;9$y",
        b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\",
        b"\x1bP>|terminal 1.0\x1b\\",
        b"\x1b[200~" + b"\x1b[31mred\x1b]52;c;x\x07\n" * 200 + b"\x1b[201~",
        b"\0" * 300,
    )
    with Terminal(argv, (160, 50)) as terminal:
        terminal.shows("FINISHED", "6 Log")
        for piece in noise:
            terminal.send(piece)
            terminal.wait(0.3)
            terminal.type("\x1b")
            terminal.wait(0.2)
        terminal.type("?")
        terminal.shows("Leave at once. The run goes on.")
        assert terminal.leave() == 0
        assert_only_text(terminal)


def test_explain_on_a_terminal_sends_colour_and_text(tmp_path: Path) -> None:
    argv = [*MILEPOST, "explain", str(log_of(tmp_path))]
    with Terminal(argv, (100, 60)) as terminal:
        assert terminal.ends() in range(8)
        text = received(terminal).replace("\r\n", "\n")
    assert hostile.SGR.search(text)
    assert hostile.unmeant(text, hostile.SGR) == []
    assert not HOSTILE_SGR.search(text)
