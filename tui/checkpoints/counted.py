"""Parameters on both sides of a conversion, and what may explain that there are fewer on one.

Two tensors have a row for each token, and only they may differ: Megatron pads their rows, and a
head that is tied to the embedding is the same weights under a second name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from tui.miles import converter

Shape = tuple[int, ...]

_EMBEDDINGS = ("embed_tokens.weight", converter.EMBEDDING)
_HEADS = ("lm_head.weight", converter.HEAD)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """Parameters of one side."""

    total: int
    embedding: Shape | None = None
    """Tokens by width; None where no tensor, or more than one, has its name."""
    head: Shape | None = None

    @property
    def rest(self) -> int:
        """All but the two."""
        return self.total - prod(self.embedding or (0,)) - prod(self.head or (0,))


def counted_of(tensors: Iterable[tuple[str, Shape]]) -> Counted:
    """Of names and shapes, those of Megatron or of Hugging Face."""
    total = 0
    embeddings, heads = [], []
    for name, shape in tensors:
        total += prod(shape)
        if name.endswith(_EMBEDDINGS):
            embeddings.append(shape)
        elif name.endswith(_HEADS):
            heads.append(shape)
    return Counted(total=total, embedding=_only(embeddings), head=_only(heads))


def compared(
    checkpoint: Counted, folder: Counted, *, is_tied: bool, is_padded: bool
) -> tuple[str, tuple[str, ...]]:
    """What cannot be explained, empty when nothing is left of it; and the explanations."""
    if checkpoint.total == folder.total:
        return "", ()
    fault = f"{folder.total:,} parameters in it, {checkpoint.total:,} in the checkpoint"
    told: list[str] = []
    if checkpoint.rest != folder.rest:
        return fault, ()
    if is_tied and (checkpoint.head is None) != (folder.head is None):
        told.append("its head is its embedding, counted once")
    elif not _is_explained("head", checkpoint.head, folder.head, told, is_padded=is_padded):
        return fault, ()
    if not _is_explained(
        "embedding", checkpoint.embedding, folder.embedding, told, is_padded=is_padded
    ):
        return fault, ()
    return "", tuple(told)


def _is_explained(
    name: str, checkpoint: Shape | None, folder: Shape | None, told: list[str], *, is_padded: bool
) -> bool:
    """Whether one of the two is the same on both sides, or only lost its padding."""
    if checkpoint == folder:
        return True
    if not is_padded or checkpoint is None or folder is None:
        return False
    spare = checkpoint[0] - folder[0]
    if checkpoint[1:] != folder[1:] or spare < 0:
        return False
    told.append(f"{spare:,} rows that pad the vocabulary are left out of its {name}")
    return True


def _only(shapes: list[Shape]) -> Shape | None:
    return shapes[0] if len(shapes) == 1 and shapes[0] else None
