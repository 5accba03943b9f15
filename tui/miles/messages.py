"""What each known message states. Keyed by words, never by file and line: those move.

Sources: Miles' timer.py, log_utils.py, fsdp_utils/checkpoint.py, data_source.py,
health_monitor.py, server_group.py, addr_allocator.py, router_manager.py, http_utils.py;
Megatron's checkpointing.py; SGLang's metrics_reporter.py; Ray's dashboard/modules/job/cli.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tui.miles.flags import launch_from_shell
from tui.miles.metrics import METRIC_LINE, metric_kind, parsed_values
from tui.miles.records import Form, Record
from tui.model.events import (
    BarMoved,
    CheckpointLoad,
    CheckpointSave,
    ClueFound,
    DiskWarned,
    End,
    EngineAddressed,
    EngineKilled,
    EngineListening,
    EngineReady,
    EnginesRecovered,
    EngineUnwell,
    EngineWorked,
    Event,
    HealthChecking,
    LoadPart,
    LoadResult,
    MemoryWarned,
    MetricsLogged,
    PhaseEnded,
    PhaseStarted,
    RequestRetried,
    RetriesExhausted,
    RouterAddressed,
    RunEnded,
    RunLaunched,
    RunSubmitted,
    SaveStage,
)
from tui.model.progress import LineKind

Maker = Callable[[re.Match[str], Record, float], Event | None]

_CELL = re.compile(r"(?:actor|critic)_cell(\d{1,4})_rank")
_ITERATION = re.compile(r"/iter_(\d{7})(?:/|$)")


def _cell(record: Record) -> int:
    match = _CELL.match(record.name)
    return int(match.group(1)) if match else 0


def _role(record: Record) -> str:
    return "critic" if record.name.startswith("critic_") else "actor"


def _iteration(path: str) -> int | None:
    match = _ITERATION.search(path)
    return int(match.group(1)) if match else None


def _metrics(match: re.Match[str], record: Record, at: float) -> Event:
    values = parsed_values(match["values"])
    return MetricsLogged(
        at=at,
        kind=metric_kind(match["word"], values),
        number=int(match["number"]),
        values=values,
        role="critic" if match["critic"] else _role(record),
        cell=_cell(record),
    )


def _timer(match: re.Match[str], record: Record, at: float) -> Event | None:
    if _cell(record) != 0:
        return None
    name, elapsed = match["name"], match["elapsed"]
    if elapsed is None:
        return PhaseStarted(at=at, phase=name, role=_role(record))
    return PhaseEnded(at=at, phase=name, elapsed_s=float(elapsed), role=_role(record))


def _load(part: LoadPart, result: LoadResult) -> Maker:
    def make(match: re.Match[str], record: Record, at: float) -> Event:
        path = match["path"]
        return CheckpointLoad(
            at=at,
            part=part,
            result=result,
            path=path,
            iteration=_iteration(path),
            detail=record.message[:400],
        )

    return make


def _load_failed(match: re.Match[str], record: Record, at: float) -> Event:
    path = match["path"].split(": ", 1)[0]
    return CheckpointLoad(
        at=at,
        part=LoadPart(match["part"]),
        result=LoadResult.FAILED,
        path=path,
        iteration=_iteration(path),
        detail=record.message[:400],
    )


def _fsdp_saved(match: re.Match[str], _: Record, at: float) -> Event:
    return CheckpointSave(
        at=at, stage=SaveStage.SAVED, iteration=int(match["iteration"]), path=match["path"]
    )


def _ports(match: re.Match[str], _: Record, at: float) -> Event:
    return EngineAddressed(
        at=at, index=int(match["index"]), host=match["host"], port=int(match["port"])
    )


def _retried(match: re.Match[str], _: Record, at: float) -> Event:
    return RequestRetried(
        at=at,
        attempt=int(match["attempt"]),
        limit=int(match["limit"]),
        url=match["url"],
        response=match["response"][:200],
    )


def _unwell(match: re.Match[str], record: Record, at: float) -> Event:
    return EngineUnwell(
        at=at, index=int(match["index"]), pid=record.pid, detail=record.message[:300]
    )


def _first_wait(match: re.Match[str], _: Record, at: float) -> Event:
    return HealthChecking(at=at, active=True, first_wait_s=float(match["seconds"]))


_MILES: tuple[tuple[str, re.Pattern[str], Maker], ...] = tuple(
    (needle, re.compile(pattern, re.DOTALL), maker)
    for needle, pattern, maker in (
        ("Timer ", r"Timer (?P<name>\S{1,80}) (?:start$|end \(elapsed: (?P<elapsed>[\d.]{1,16})s\))", _timer),
        (": {", METRIC_LINE.pattern, _metrics),
        ("[FSDP] S", r"\[FSDP\] Saved checkpoint to (?P<path>.{1,1000}/iter_(?P<iteration>\d{7}))$", _fsdp_saved),
        ("[FSDP] Loaded m", r"\[FSDP\] Loaded model from (?P<path>.{1,1000})$", _load(LoadPart.MODEL, LoadResult.LOADED)),
        ("[FSDP] Loaded o", r"\[FSDP\] Loaded optimizer from (?P<path>.{1,1000})$", _load(LoadPart.OPTIMIZER, LoadResult.LOADED)),
        ("[FSDP] Loaded L", r"\[FSDP\] Loaded LR scheduler from (?P<path>.{1,1000})$", _load(LoadPart.LR_SCHEDULER, LoadResult.LOADED)),
        ("[FSDP] Failed", r"\[FSDP\] Failed to load (?P<part>model|optimizer|LR scheduler) from (?P<path>.{1,2000})$", _load_failed),
        ("[FSDP] No t", r"\[FSDP\] No tracker file at (?P<path>.{1,1000}?); skipping load", _load(LoadPart.MODEL, LoadResult.SKIPPED)),
        ("[FSDP] Check", r"\[FSDP\] Checkpoint directory (?P<path>.{1,1000}?) not found; skipping load", _load(LoadPart.MODEL, LoadResult.SKIPPED)),
        ("[FSDP] Model", r"\[FSDP\] Model checkpoint (?P<path>.{1,1000}?) not found", _load(LoadPart.MODEL, LoadResult.SKIPPED)),
        ("[FSDP] Opt", r"\[FSDP\] Optimizer checkpoint not found at (?P<path>.{1,1000}?), skipping", _load(LoadPart.OPTIMIZER, LoadResult.SKIPPED)),
        ("[FSDP] LR", r"\[FSDP\] LR scheduler checkpoint not found at (?P<path>.{1,1000}?), skipping", _load(LoadPart.LR_SCHEDULER, LoadResult.SKIPPED)),
        ("load metadata from", r"load metadata from (?P<path>.{1,1000})$", _load(LoadPart.DATA, LoadResult.LOADED)),
        ("Checkpoint ", r"Checkpoint (?P<path>.{1,1000}) does not exist\.$", _load(LoadPart.DATA, LoadResult.SKIPPED)),
        ("Ports for", r"Ports for engine (?P<index>\d{1,5}): \{'host': '(?P<host>[^']{1,255})', 'port': (?P<port>\d{1,5})", _ports),
        ("Router l", r"Router launched at (?P<address>[\w.:\[\]-]{1,255}:\d{1,5})", lambda m, _, at: RouterAddressed(at=at, url=f"http://{m['address']}")),
        ("Health check f", r"Health check failed for rollout engine (?P<index>\d{1,5})", _unwell),
        ("Successfully k", r"Successfully killed engine at index (?P<index>\d{1,5})", lambda m, _, at: EngineKilled(at=at, index=int(m["index"]))),
        ("Recovered ", r"Recovered (?P<count>\d{1,5}) dead rollout engines", lambda m, _, at: EnginesRecovered(at=at, count=int(m["count"]))),
        ("Pausing health", r"Pausing health monitor", lambda _m, _, at: HealthChecking(at=at, active=False)),
        ("Resuming health", r"Resuming health monitor", lambda _m, _, at: HealthChecking(at=at, active=True)),
        ("Health monitor d", r"Health monitor doing first wait after resume: (?P<seconds>[\d.]{1,16})s", _first_wait),
        ("retrying...", r".{0,4000}?retrying\.\.\. \(attempt (?P<attempt>\d{1,6})/(?P<limit>\d{1,6}), url=(?P<url>[^,]{1,500}), response=(?P<response>.{0,1000})\)", _retried),
        ("Max retries", r"Max retries \(\d+\) reached, failing\.\.\. \(url=(?P<url>[^)]{1,500})\)", lambda m, _, at: RetriesExhausted(at=at, url=m["url"])),
    )
)  # fmt: skip


def _megatron_load(match: re.Match[str], record: Record, at: float) -> Event:
    done = match["word"] == "successfully loaded"
    return CheckpointLoad(
        at=at,
        part=LoadPart.ALL,
        result=LoadResult.LOADED if done else LoadResult.STARTED,
        path=match["path"],
        iteration=int(match["iteration"]),
        detail=record.message.strip()[:400],
    )


def _megatron_save(stage: SaveStage) -> Maker:
    def make(match: re.Match[str], _: Record, at: float) -> Event:
        return CheckpointSave(
            at=at, stage=stage, iteration=int(match["iteration"]), path=match["path"]
        )

    return make


def _raylet_disk(match: re.Match[str], _: Record, at: float) -> Event:
    return DiskWarned(
        at=at,
        path=match["path"],
        free_bytes=float(match["free"]) * 1e9,
        capacity_bytes=float(match["capacity"]) * 1e9,
    )


_PRINTS: tuple[tuple[str, re.Pattern[str], Maker], ...] = tuple(
    (needle, re.compile(pattern, re.DOTALL), maker)
    for needle, pattern, maker in (
        ("saving checkpoint", r"\s*saving checkpoint at iteration +(?P<iteration>\d{1,12}) to (?P<path>\S{1,1000}) in ", _megatron_save(SaveStage.STARTED)),
        ("successfully saved", r"\s*successfully saved checkpoint from iteration +(?P<iteration>\d{1,12}) to (?P<path>\S{1,1000})", _megatron_save(SaveStage.SAVED)),
        ("scheduled an async", r"\s*scheduled an async checkpoint save at iteration +(?P<iteration>\d{1,12}) to (?P<path>\S{1,1000})", _megatron_save(SaveStage.SCHEDULED)),
        ("checkpoint from", r"\s*(?P<word>successfully loaded|loading)(?: distributed)? checkpoint from (?P<path>\S{1,1000}) .{0,80}?at iteration (?P<iteration>\d{1,12})", _megatron_load),
        ("checkpoint from", r"\s*(?P<word>loading)(?: distributed)? checkpoint from (?P<path>\S{1,1000}) at iteration (?P<iteration>\d{1,12})", _megatron_load),
        ("could not find the metadata", r"\s*WARNING: could not find the metadata file (?P<path>\S{1,1000})", _load(LoadPart.ALL, LoadResult.SKIPPED)),
        ("% full, available", r".{0,200}?(?P<path>/\S{1,500}) is over \d+% full, available space: (?P<free>[\d.]{1,20}) GB; capacity: (?P<capacity>[\d.]{1,20}) GB", _raylet_disk),
        ("killed due to memory", r".{0,200}?killed due to memory pressure", lambda _m, r, at: MemoryWarned(at=at, line=r.message[:300])),
        ("retrying...", r".{0,4000}?retrying\.\.\. \(attempt (?P<attempt>\d{1,6})/(?P<limit>\d{1,6}), url=(?P<url>[^,]{1,500}), response=(?P<response>.{0,1000})\)", _retried),
    )
)  # fmt: skip


def miles_events(record: Record, at: float) -> list[Event]:
    """Events of a record in Miles' own form."""
    return _first(_MILES, record, at)


def print_events(record: Record, at: float) -> list[Event]:
    """Events of a line without Miles' form: Megatron's prints, raylet, the rest of a record."""
    return _first(_PRINTS, record, at)


def _first(
    table: Sequence[tuple[str, re.Pattern[str], Maker]], record: Record, at: float
) -> list[Event]:
    for needle, pattern, maker in table:
        if needle in record.message and (match := pattern.match(record.message)):
            event = maker(match, record, at)
            return [] if event is None else [event]
    return []


_BATCH = re.compile(
    r"(?P<kind>Prefill|Decode) batch, (?:#new-seq: \d+, #new-token: (?P<tokens>\d{1,12}), )?"
    r".{0,80}?token usage: (?P<usage>[\d.]{1,10}),"
)
_RUNNING = re.compile(r"#running-req: (\d{1,9})")
_QUEUED = re.compile(r"#queue-req: (\d{1,9})")
_THROUGHPUT = re.compile(r"gen throughput \(token/s\): ([\d.]{1,20})")
_UVICORN = re.compile(r"INFO: +Uvicorn running on https?://[^\s:]{1,255}:(\d{1,5})")


def sglang_events(record: Record, at: float) -> list[Event]:
    """Events of an SGLang engine's line."""
    message, pid = record.message, record.pid
    if pid is None:
        return []
    if batch := _BATCH.match(message):
        return [_worked(batch, message, pid, at, record.repeated)]
    if message.startswith("The server is fired up"):
        return [EngineReady(at=at, pid=pid)]
    if message.startswith("Health check failed. Server couldn't get a response"):
        return [EngineUnwell(at=at, index=None, pid=pid, detail=message[:300])]
    if listening := _UVICORN.match(message):
        return [EngineListening(at=at, pid=pid, port=int(listening.group(1)))]
    return []


def _worked(batch: re.Match[str], message: str, pid: int, at: float, repeated: int) -> EngineWorked:
    running, queued = _RUNNING.search(message), _QUEUED.search(message)
    throughput = _THROUGHPUT.search(message)
    requests = int(running.group(1)) if running else 0
    waiting = int(queued.group(1)) if queued else 0
    return EngineWorked(
        at=at,
        pid=pid,
        running=requests,
        queued=waiting,
        token_usage_ratio=_number(batch["usage"]),
        throughput_tokens_per_s=_number(throughput.group(1)) if throughput else 0.0,
        probe_only=batch["tokens"] == "1" and requests == 0 and waiting == 0,
        repeated=repeated,
    )


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


_SUBMITTED = re.compile(r"Job '(?P<id>\S{1,200})' submitted successfully")
_JOB_END = re.compile(r"Job '(?P<id>\S{1,200})' (?P<end>succeeded|failed|was stopped)")
_ENTRYPOINT = re.compile(
    r"Running entrypoint for job (?P<id>\S{1,200}): (?P<command>.*)", re.DOTALL
)
_STATUS = re.compile(r"Status message: (?P<message>.{1,1000})", re.DOTALL)
_ENDS = {"succeeded": End.SUCCEEDED, "failed": End.FAILED, "was stopped": End.STOPPED}
_ARGUMENT_ERROR = re.compile(
    r"[\w ().-]{1,200}: error: (?:unrecognized arguments|argument |the following)"
)


def job_events(message: str, at: float) -> list[Event]:
    """Events of a line of Ray's job client."""
    if match := _SUBMITTED.match(message):
        return [RunSubmitted(at=at, job_id=match["id"])]
    if match := _JOB_END.match(message):
        return [RunEnded(at=at, end=_ENDS[match["end"]], job_id=match["id"])]
    if match := _STATUS.match(message):
        return [
            RunEnded(at=at, end=End.FAILED, detail=match["message"].split(", last available")[0])
        ]
    return []


def driver_events(message: str, at: float, job_id: str) -> list[Event]:
    """Events of a line without prefix and stamp: the driver's, the launcher's, the job client's."""
    if match := _ENTRYPOINT.match(message):
        return [RunLaunched(at=at, job_id=match["id"], launch=launch_from_shell(match["command"]))]
    if message.startswith("Job '") and is_job_line(message, job_id):
        return job_events(message, at)
    if message.startswith("Status message: "):
        return job_events(message, at)
    return []


def is_job_line(message: str, job_id: str) -> bool:
    """A line about the job's end, and about our job where we know its id."""
    match = _JOB_END.match(message) or _SUBMITTED.match(message) or _ENTRYPOINT.match(message)
    return match is not None and (not job_id or match["id"] == job_id)


def begins_replay(message: str) -> bool:
    """From here on the job client repeats the end of the log it has printed already."""
    return message.startswith("Status message: ") and "last available logs" in message


_KINDS: tuple[tuple[type[Event], LineKind], ...] = (
    (MetricsLogged, LineKind.METRIC),
    (PhaseStarted, LineKind.PHASE),
    (PhaseEnded, LineKind.PHASE),
    (BarMoved, LineKind.BAR),
    (CheckpointSave, LineKind.CHECKPOINT),
    (CheckpointLoad, LineKind.CHECKPOINT),
    (EngineWorked, LineKind.ENGINE),
    (EngineReady, LineKind.ENGINE),
    (EngineUnwell, LineKind.ERROR),
    (EngineKilled, LineKind.WARNING),
    (RequestRetried, LineKind.WARNING),
    (RetriesExhausted, LineKind.ERROR),
    (DiskWarned, LineKind.WARNING),
    (MemoryWarned, LineKind.ERROR),
    (ClueFound, LineKind.ERROR),
)
_ACCESS = re.compile(r'INFO: +\S{1,80} - "[A-Z]{3,7} ')
_WARNING = re.compile(r"WARNING\b|\bwarn(?:ing)?\b:", re.IGNORECASE)
_ERROR = re.compile(r"\bERROR\b|Traceback \(most recent|^\w*(?:Error|Exception)\b|\bFATAL\b")


def line_kind(record: Record, events: Sequence[Event]) -> LineKind:
    """What a line is, for filters and colour."""
    for event in events:
        if isinstance(event, RunEnded):
            return LineKind.PLAIN if event.end is End.SUCCEEDED else LineKind.ERROR
        for kind, line in _KINDS:
            if isinstance(event, kind):
                return line
    head = record.message[:300]
    if _ACCESS.match(head):
        return LineKind.HTTP
    if record.level == "ERR" or _ERROR.search(head) or _ARGUMENT_ERROR.match(head):
        return LineKind.ERROR
    if record.form is Form.RAY_CLI and record.level.startswith("WARN"):
        return LineKind.WARNING
    return LineKind.WARNING if _WARNING.match(head) else LineKind.PLAIN
