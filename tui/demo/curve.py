"""What the simulated model learns: every metric of every rollout, from the seed alone.

Each rollout draws from its own source, so a resumed run goes on with the same numbers as one that
never stopped.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

Metrics = dict[str, object]

LR = 1e-06
_GENERATE_S = 35.0


class NumpyFloat(float):
    """A value Miles leaves as numpy computed it; its repr says so."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"np.float64({float(self)!r})"


@dataclass(frozen=True, slots=True)
class Plan:
    """One rollout's generation: when each sample ends, in simulated seconds, and its length."""

    finish_s: tuple[float, ...]
    tokens: tuple[int, ...]


class Curve:
    """The course of one run."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def _draw(self, kind: str, number: int) -> random.Random:
        return random.Random(f"{self._seed}:{kind}:{number}")  # noqa: S311 - no secret

    def jitter(self, kind: str, rollout: int) -> float:
        """A factor about 1 for the length of a phase."""
        return self._draw(kind, rollout).uniform(0.93, 1.08)

    def reward(self, rollout: int) -> float:
        learnt = 0.08 + 0.62 * (1.0 - math.exp(-rollout / 40.0))
        return min(1.0, max(0.0, learnt + self._draw("reward", rollout).gauss(0.0, 0.02)))

    def plan(self, rollout: int, samples: int) -> Plan:
        """Now and then a rollout has a long tail: a few samples that hold up all others."""
        draw = self._draw("plan", rollout)
        whole_s = _GENERATE_S * draw.uniform(0.92, 1.1)
        tail = max(1, samples // 32) if draw.random() < 0.15 else 0
        body_s = whole_s
        if tail:
            whole_s *= 1.5
        finish_s = sorted(
            body_s * (0.12 + 0.88 * draw.betavariate(2.0, 1.7)) for _ in range(samples - tail)
        )
        finish_s += sorted(draw.uniform(body_s, whole_s) for _ in range(tail))
        finish_s[-1] = whole_s
        mean = self.response_length(rollout)
        shares = [0.4 + 1.2 * at / whole_s for at in finish_s]
        return Plan(tuple(finish_s), tuple(max(8, int(mean * share)) for share in shares))

    def eval_plan(self, rollout: int, samples: int) -> Plan:
        draw = self._draw("eval-plan", rollout)
        finish_s = sorted(9.5 * (0.2 + 0.8 * draw.random()) for _ in range(samples))
        return Plan(tuple(finish_s), tuple(draw.randint(300, 1600) for _ in range(samples)))

    def response_length(self, rollout: int) -> float:
        drift = 560.0 + 340.0 * (1.0 - math.exp(-rollout / 60.0))
        return drift * self._draw("length", rollout).uniform(0.96, 1.04)

    def generated(
        self, rollout: int, plan: Plan, *, rollout_s: float, weight_version: int
    ) -> Metrics:
        """The rollout side's `perf N`."""
        draw = self._draw("perf", rollout)
        reward, count = self.reward(rollout), len(plan.tokens)
        rate = 3000.0 * draw.uniform(0.95, 1.05)
        longest = max(plan.tokens) / _GENERATE_S
        return {
            **_lengths("rollout/response_len", plan.tokens),
            "rollout/zero_std/count_0.0": int(count // 8 * (1.0 - reward) * 0.3),
            "rollout/zero_std/count_1.0": int(count // 8 * reward * 0.3),
            "rollout/prefix_cache_hit_rate": round(draw.uniform(0.40, 0.46), 6),
            "rollout/avg_cached_tokens_per_sample": draw.uniform(46.0, 52.0),
            "rollout/repetition_frac": 0.0,
            "rollout/truncated_ratio": round(draw.choice((0, 1, 1, 2, 3)) / count, 6),
            "rollout/weight_version/mean": float(weight_version),
            "rollout/weight_version/mixed_version_ratio": 0.0,
            "perf/rollout_time": rollout_s,
            "perf/tokens_per_gpu_per_sec": rate,
            "perf/longest_sample_tokens_per_sec": longest,
            "perf/effective_tokens_per_gpu_per_sec": rate,
            "perf/longest_effective_sample_tokens_per_sec": longest,
            "passrate/pass@1": NumpyFloat(round(reward, 6)),
            "passrate/pass@8": NumpyFloat(round(1.0 - (1.0 - reward) ** 3, 6)),
        }

    def collected(self, rollout: int, plan: Plan) -> Metrics:
        """The trainer's `rollout N`."""
        draw = self._draw("rollout", rollout)
        length = sum(plan.tokens) / len(plan.tokens)
        log_prob = -0.42 + 0.0004 * rollout
        return {
            "rollout/response_lengths": length,
            "rollout/total_lengths": length + 112.0,
            "rollout/rewards": draw.gauss(0.0, 1e-08),
            "rollout/raw_reward": self.reward(rollout),
            "rollout/truncated": round(draw.choice((0, 1, 2)) / len(plan.tokens), 6),
            "rollout/rollout_log_probs": log_prob + draw.gauss(0.0, 0.004),
            "rollout/log_probs": log_prob + draw.gauss(0.0, 0.004),
            "rollout/entropy": 0.46 * math.exp(-rollout / 300.0) + draw.gauss(0.0, 0.004),
            "rollout/advantages": draw.gauss(0.0, 1e-07),
            "rollout/returns": draw.gauss(0.0, 1e-07),
        }

    def stepped(self, step: int, *, on_policy: bool) -> Metrics:
        """One optimiser step's `step S`."""
        draw = self._draw("step", step)
        loss = draw.gauss(0.0, 1e-08 if on_policy else 0.004)
        drift = 0.0 if on_policy else abs(draw.gauss(0.0004, 0.0001))
        norm = 0.28 + 0.55 * math.exp(-step / 60.0) + abs(draw.gauss(0.0, 0.05))
        return {
            "train/loss": loss,
            "train/pg_loss": loss,
            "train/entropy_loss": 0.0,
            "train/pg_clipfrac": 0.0 if on_policy else abs(draw.gauss(0.002, 0.0005)),
            "train/ppo_kl": drift,
            "train/ess_ratio": 1.0 - drift,
            "train/train_rollout_logprob_abs_diff": abs(draw.gauss(0.012, 0.0008)),
            "train/train_rollout_kl": abs(draw.gauss(0.0006, 0.0001)),
            "train/grad_norm": norm,
            "train/lr-pg_0": LR,
            "train/step": step,
        }

    def evaluated(self, rollout: int, plan: Plan) -> Metrics:
        draw = self._draw("eval", rollout)
        score = min(1.0, max(0.0, 0.7 * self.reward(rollout) + draw.gauss(0.0, 0.03)))
        return {
            "eval/aime-none_reward_ratio": 0.0,
            "eval/aime": score,
            **_lengths("eval/aime/response_len", plan.tokens),
            "eval/aime-truncated_ratio": round(draw.choice((0, 1, 2)) / len(plan.tokens), 6),
            "eval/aime-pass@1": NumpyFloat(round(score, 6)),
        }


def _lengths(key: str, tokens: tuple[int, ...]) -> Metrics:
    ordered = sorted(tokens)
    return {
        f"{key}/mean": sum(tokens) / len(tokens),
        f"{key}/median": float(ordered[len(ordered) // 2]),
        f"{key}/max": ordered[-1],
        f"{key}/min": ordered[0],
    }
