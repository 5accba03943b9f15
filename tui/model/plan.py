"""A plan: an action before it is done. What the confirm shows, `--dry-run` prints, and is run."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tui.model.action import ActionKind
from tui.model.checkpoint import Checkpoint
from tui.model.launch import Attachment
from tui.model.recipe import Recipe
from tui.model.snapshot import Level
from tui.model.target import RunTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What a person asks for; a plan or a refusal answers it."""

    kind: ActionKind
    iteration: int | None = None
    """Of which checkpoint; None: the newest that nothing speaks against."""
    save_first: bool | None = None
    """Save before the stop; None: where the run can."""
    take_autopsy: bool | None = None
    """Before the stop; None: where the run hangs."""
    stop_if_wrong: bool = True
    """Stop what starts in another way than was meant."""
    force: bool = False
    """Also where the same failure came again and again with nothing changed."""
    command: tuple[str, ...] = field(default=(), repr=False)
    """Start this instead of the command that is known."""
    origin: str = ""
    """The base model's Hugging Face folder; empty: as the run's arguments name it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the confirm."""

    label: str
    """`Why`, `You lose`, `Will stop`, …"""
    text: str
    level: Level = Level.INFO


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why there is no plan, and what to do about it."""

    reason: str
    remedy: str = ""


# Steps. Each can be entered twice with the same end.


@dataclass(frozen=True, slots=True, kw_only=True)
class AskToSave:
    """Create the save trigger, once, and wait until what it asked for is on disk."""

    name = "save"

    trigger: str
    """Path as the driver sees it."""
    host_trigger: str
    """The same file by a path of ours; empty: created by `docker exec`."""
    container_id: str = ""
    log: str = ""
    save_folder: str = ""
    """The host's path."""
    target: RunTarget | None = None
    """Who is asked: when it is gone, nobody will save."""
    deadline_s: float = 3600.0
    may_end: bool = False
    """The run may end before it has saved: what comes after starts it again all the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeAutopsy:
    """Write down what the processes are at, before they are gone."""

    name = "autopsy"

    attachment: Attachment
    """Of the run; what is found lies in a folder beside its log."""
    deadline_s: float = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRun:
    """End it: ask, wait, force. Then wait until what it held is free."""

    name = "stop"

    target: RunTarget
    grace_s: float = 30.0
    ports: tuple[int, ...] = ()
    """That have to be free for a start."""
    available_bytes: int = 0
    """What the memory pool has to have left then; 0: it does not matter."""
    free_s: float = 60.0
    """How long to wait for memory and ports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveAside:
    """Move files and folders into a new folder beside them. Nothing is deleted or overwritten."""

    name = "move aside"

    root: str
    """The save folder."""
    paths: tuple[str, ...]
    """Below it."""
    quarantine: str
    """Name of the new folder in it."""
    keeps: Checkpoint | None = None
    """Move also what is newer than this by then: a run saves until it is stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveBack:
    """Undo a `MoveAside`."""

    name = "move back"

    root: str
    paths: tuple[str, ...]
    quarantine: str
    undoes: str = ""
    """Id of the action that moved them aside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTracker:
    """Say which checkpoint a resume loads, in one atomic step."""

    name = "tracker"

    path: str
    text: str | None
    """None: there is to be no tracker file."""
    old_text: str | None
    """What it says before; None: there was none. Anything else found there is a refusal."""
    saved_since: bool = False
    """It may name a later one by then: a run saves until it is stopped."""
    undoes: str = ""
    """Id of the action whose tracker this takes back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRun:
    """Start the recipe's command, its changes made already, in a session of its own."""

    name = "start"

    recipe: Recipe
    log: str
    """New file for its output, opened exclusively; empty: it has no file of its own."""
    container_name: str = ""
    """Name that has to be free; an ended container that has it is renamed aside."""
    submission_id: str = ""
    """Of the new Ray job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProveStart:
    """Watch the new log until it shows what was loaded, and the step that this implies."""

    name = "prove"

    log: str
    save_folder: str
    """The host's path."""
    iteration: int | None
    """What would load when the plan was made; None: nothing, a save comes first."""
    first_rollout: int | None
    deadline_s: float = 1800.0
    stop_if_wrong: bool = True
    """Stop it before its first save overwrites what is good."""
    signature: str = ""
    """Of what is tried, to know a failure that comes again with nothing changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """Something of the host in a container."""

    source: str
    """A path of the host, or a volume's name."""
    host_path: str
    path: str
    """In the container."""
    is_volume: bool = False
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Fresh:
    """A container for one command, in the surroundings that another had."""

    image: str
    """Its id."""
    image_name: str
    mounts: tuple[Mount, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    """Without secrets."""
    user: str = ""
    cwd: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertCheckpoint:
    """Run a converter into a new folder, and prove that the weights arrived."""

    name = "convert"

    converter: str
    """File name of Miles' converter."""
    argv: tuple[str, ...] = field(repr=False)
    checkpoint: str
    """The host's path of the checkpoint's folder."""
    output: str
    """The host's path; it must not be there."""
    log: str
    """New file for what it prints, on the host."""
    inside_log: str
    """The same file as the converter names it."""
    tensors: int
    """How many it has to find."""
    serve_argv: tuple[str, ...] = ()
    """What serves the result, where the converter ran."""
    container_id: str = ""
    """Run it in this container; empty: see `fresh`."""
    fresh: Fresh | None = None
    """Run it in this container of its own; None: on this host."""
    cwd: str = ""


Step = (
    AskToSave
    | TakeAutopsy
    | StopRun
    | MoveAside
    | MoveBack
    | WriteTracker
    | StartRun
    | ProveStart
    | ConvertCheckpoint
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionPlan:
    """What will be done, to what, and what should be true then."""

    id: str
    """Sorts by time: `20261129-181503-resume-4f2a`."""
    kind: ActionKind
    title: str
    """`Kill and resume run-a`."""
    run_id: str
    run_name: str
    made_at: float
    """Epoch seconds. Facts of a plan age: one older than its `valid_s` is refused."""
    rows: tuple[Row, ...]
    steps: tuple[Step, ...]
    go: str
    """What the confirming button says."""
    typed_name: str = ""
    """Has to be typed to confirm; empty: a key is enough."""
    valid_s: float = 600.0


def with_steps(plan: ActionPlan, steps: tuple[Step, ...]) -> ActionPlan:
    """The plan with these steps instead."""
    return replace(plan, steps=steps)
