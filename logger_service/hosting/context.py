"""What all runs of a host share."""

from __future__ import annotations

from dataclasses import dataclass

from logger_service.hosting.committer import Committer
from logger_service.hosting.pool import TaskPool
from logger_service.hosting.settings import HostSettings
from logger_service.hosting.tail import TailBudget
from logger_service.journal.base import Journal


@dataclass
class HostContext:
    """What all runs of a host share."""

    settings: HostSettings
    journal: Journal
    committer: Committer
    pool: TaskPool
    tail_budget: TailBudget
    draining: bool = False
    """Whether the host is ending, and takes nothing new."""
