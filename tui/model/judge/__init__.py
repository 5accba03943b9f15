"""What the evidence adds up to: judged from a snapshot alone, with ages, never from one sign."""

from __future__ import annotations

from tui.model.judge.alerts import alerts_of
from tui.model.judge.cause import cause_of
from tui.model.judge.engines import engines_of
from tui.model.judge.forecast import forecast_of
from tui.model.judge.interval import save_advice_of
from tui.model.judge.resume import resume_of
from tui.model.judge.risk import risk_of
from tui.model.judge.state import end_of, standing_of
from tui.model.judge.would_load import would_load_of
from tui.model.snapshot import Alert, Level, Snapshot, Verdict


def judge(snapshot: Snapshot) -> Verdict:
    """The verdict on a snapshot; `snapshot.verdict` itself is only used to keep `since` steady."""
    end = end_of(snapshot)
    engines = engines_of(snapshot, end if end is not None and end.has_ended else None)
    resume = resume_of(snapshot)
    standing = end or standing_of(snapshot, engines)
    risk = risk_of(snapshot, standing)
    cause = cause_of(snapshot, standing)
    alerts = alerts_of(snapshot, standing, engines, resume, risk, cause)
    before = snapshot.verdict
    return Verdict(
        state=standing.state,
        since=before.since if before.state is standing.state else standing.since,
        reason=standing.reason,
        degraded=() if standing.has_ended else _degrading(alerts),
        cause=cause,
        alerts=alerts,
        engines=engines,
        resume=resume,
        risk=risk,
        forecast=forecast_of(snapshot, standing),
        would_load=would_load_of(snapshot),
        save_advice=save_advice_of(snapshot),
        stall_limit_s=standing.stall_limit_s,
    )


def _degrading(alerts: tuple[Alert, ...]) -> tuple[str, ...]:
    codes = (alert.code for alert in alerts if alert.degrades and alert.level is not Level.INFO)
    return tuple(dict.fromkeys(codes))
