"""The memory pool and the disks of the box."""

from __future__ import annotations

from dataclasses import dataclass

from tui.model.reading import NOT_ASKED, Reading

GIB = 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """The box's memory from /proc/meminfo. On a unified-memory part it is the GPU's too."""

    total_bytes: int
    available_bytes: int
    """MemAvailable: an upper bound of what can still be taken."""
    free_bytes: int
    cached_bytes: int
    """Page cache with reclaimable slab, shared memory left out."""
    shmem_bytes: int = 0
    swap_total_bytes: int = 0
    swap_free_bytes: int = 0
    cma_total_bytes: int = 0
    cma_free_bytes: int = 0
    huge_pages_total: int = 0
    huge_pages_free_bytes: int = 0
    pressure_full_ratio: Reading[float] = NOT_ASKED
    """Share of the last ten seconds in which every task waited for memory (PSI `full`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """The filesystem a path is really on."""

    path: str
    """The path asked about."""
    mount: str
    filesystem: str
    total_bytes: int
    free_bytes: int
    """Free for an unprivileged writer."""
    inodes_free_ratio: float = 1.0
    read_only: bool = False
