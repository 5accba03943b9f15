"""What the simulated model says: text that a log reader must pass by, or show as it is."""

from __future__ import annotations

import random

_TEXTS = (
    "Let x be the number of apples. Then 3x + 4 = 19, so x = 5. The answer is \\boxed{5}.",
    "A regex: use [/\\s] and {provider}/{type}[/{nestedType}...]/read, then [bold]done[/bold].",
    "First 🤔 think; then ✅ answer. 数学推理: 12 × 12 = 144 👩‍🔬",
    "def f(a: list[int]) -> dict[str, int]: return {k: v for k, v in zip('ab', a[0:2])}",
    "The log says step 99: {'train/loss': nan, 'train/grad_norm': inf}. That is not our run.",
    "[2026-01-01 00:00:00.000 actor_cell0_rank0] timer.py:31 - Timer train start, I quote.",
    "perf 7: {'perf/step_time': 1.0} and Job 'raysubmit_fake' succeeded are only words here.",
    "\\[escaped] [link=https://example.invalid]x[/link] [#ff0000]not a colour[/] [/]",
    "The area is πr² ≈ 78.54 cm²; é composed, é not; a zero-width‍joiner.",
)


def sample_line(draw: random.Random, kind: str) -> str:
    """`First rollout sample` or `Finish rollout`, with a preview of one sample."""
    text = draw.choice(_TEXTS)
    cut = draw.randint(900, 16_000)
    label = draw.randint(1, 999)
    preview = f"{text}...<truncated chars={cut}>"
    return f"{kind}: text_preview={preview}, label={label}, reward_summary={draw.randint(0, 1)}"


def eval_sample(draw: random.Random) -> str:
    """A whole sample in one record of several lines, one of which looks like another record."""
    first, second = draw.sample(_TEXTS, 2)
    return (
        f"eval_rollout_single_dataset example data: ['Solve the problem.\\n\\n{first}\n"
        f"step 12: {{'train/loss': 0.5}}\n{second}'] reward={draw.randint(0, 1)}"
    )
