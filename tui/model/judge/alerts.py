"""All reasons for concern, most urgent first. Codes are stable; the README lists them."""

from __future__ import annotations

from tui.model.engine import EngineVerdict
from tui.model.judge.box import box_alerts
from tui.model.judge.run import run_alerts
from tui.model.judge.saves import save_alerts
from tui.model.judge.standing import Standing
from tui.model.snapshot import Alert, Cause, Level, ResumeProof, Snapshot, WorkAtRisk

_ORDER = {Level.CRITICAL: 0, Level.WARNING: 1, Level.INFO: 2}


def alerts_of(
    snapshot: Snapshot,
    standing: Standing,
    engines: tuple[EngineVerdict, ...],
    resume: ResumeProof,
    risk: WorkAtRisk | None,
    cause: Cause | None,
) -> tuple[Alert, ...]:
    """The alerts that hold now."""
    alerts = [
        *run_alerts(snapshot, standing, engines, resume, cause),
        *save_alerts(snapshot, standing, risk),
        *box_alerts(snapshot, standing),
    ]
    return tuple(sorted(alerts, key=lambda alert: _ORDER[alert.level]))
