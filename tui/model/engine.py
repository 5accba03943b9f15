"""SGLang engines as their own HTTP answers and the router show them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tui.model.reading import NOT_ASKED, Reading
from tui.model.series import Durations


class EngineState(StrEnum):
    """What an engine is doing, judged from health and tokens together."""

    UNKNOWN = "unknown"
    STARTING = "starting"
    GENERATING = "generating"
    """Tokens move."""
    IDLE = "idle"
    """Answers, and nothing is asked of it."""
    BUSY = "busy"
    """Slow to answer while work moves: a long prefill, not a death."""
    PAUSED = "paused"
    """Miles has offloaded it; silence is no alarm."""
    SUSPECT = "suspect"
    """Answers its health check, has open requests, and no token moves."""
    DEAD = "dead"
    RECOVERED = "recovered"
    """Restarted; serves old weights until the next weight update."""
    NO_TRAFFIC = "no traffic"
    """Alive and listed, but the router sends it nothing while others work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineMetrics:
    """The parts of an engine's `/metrics` that say whether it works."""

    running_requests: float = 0.0
    queued_requests: float = 0.0
    token_usage_ratio: float = 0.0
    """Share of the KV cache in use."""
    throughput_tokens_per_s: float = 0.0
    """Of the engine's last log interval; keeps its last value when idle."""
    cache_hit_ratio: float = 0.0
    prompt_tokens_total: float = 0.0
    generation_tokens_total: float = 0.0
    """Counts when a request ends, so it can stand still for minutes while tokens flow."""
    realtime_tokens_total: float = 0.0
    """Counts at every log interval of the engine, whatever the requests do."""
    requests_total: float = 0.0
    aborted_requests_total: float = 0.0
    retracted_requests: float = 0.0

    @property
    def tokens_total(self) -> float:
        """Rises whenever any token was processed."""
        counted = self.prompt_tokens_total + self.generation_tokens_total
        return counted + self.realtime_tokens_total


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineProbe:
    """One look at one engine."""

    url: str
    """`http://host:port`, without a trailing slash."""
    reachable: Reading[bool] = NOT_ASKED
    """A TCP connection was taken. Costs the run's log no line."""
    health_status: Reading[int] = NOT_ASKED
    """HTTP status of `/health`; 503 while starting or shutting down."""
    metrics: Reading[EngineMetrics] = NOT_ASKED
    weight_version: Reading[str] = NOT_ASKED


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterProbe:
    """One look at the router: whom it would send requests to."""

    url: str
    workers: Reading[tuple[str, ...]] = NOT_ASKED
    """URLs it lists. It lags: a worker just killed is still listed as healthy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineTrack:
    """What the looks so far say of one engine."""

    probe: EngineProbe
    first_seen_at: float
    tokens_moved_at: float = 0.0
    """When a token counter last rose, 0.0 if it never did."""
    answered_at: float = 0.0
    """When it last took a connection or answered, 0.0 if it never did."""
    unreachable_since: float = 0.0
    """First of the unbroken row of refused connections, 0.0 while it answers."""
    mute_since: float = 0.0
    """First of the unbroken row of looks at which it took a connection and answered nothing."""
    restarted_at: float = 0.0
    """When its counters were last seen to start again."""
    open_since: float = 0.0
    """Since when it has had open requests without a pause, 0.0 when it has none."""
    token_gaps: Durations = Durations()
    """Times between looks at which tokens had moved, while requests were open."""

    @property
    def usual_gap_s(self) -> float:
        """A long but normal time between two moves, 0.0 before any was seen."""
        return self.token_gaps.p95_s() or 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineVerdict:
    """One engine's row: state, since when, and why we say so."""

    label: str
    """Engine index in the run, or its address when the index is not known."""
    url: str
    state: EngineState
    since: float
    reason: str
    throughput_tokens_per_s: float = 0.0
    running_requests: float = 0.0
    queued_requests: float = 0.0
    token_usage_ratio: float = 0.0
    cache_hit_ratio: float = 0.0
    tokens_moved_at: float = 0.0
    weight_version: str = ""
