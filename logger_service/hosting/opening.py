"""Opens and closes a run's backends: recovery before it accepts, adoption where the journal does not know its files."""

from __future__ import annotations

import time

from logger_service.hosting import identity
from logger_service.hosting.run import Run


def open_backends(run: Run) -> None:
    """Opens the run's backends, if they are not open: blocks until they are recovered and the journal knows it."""
    with run.open_lock:
        if run.is_open:
            return
        run.context.committer.commit([])  # a checkpoint on its way is known before it is gone on from
        directory = run.directory
        existed = directory.exists() if run.existed is None else run.existed
        data_dir = run.context.settings.data_dir
        claimed = identity.read(data_dir, run.log_dir)
        newer = claimed is not None and claimed.run_id == run.run_id and claimed.epoch > run.row.epoch
        adopt = existed and (run.is_unknown or newer)
        if newer and claimed is not None:
            run.remember(epoch=claimed.epoch)
        if claimed != run.identity:
            identity.write(data_dir, run.identity)
        run.log.count_tail()
        for projector in run.projectors:
            projector.recover(directory, adopt=adopt)
        with run.lock:
            run.is_open = True
            run.is_unknown = False
            run.last_activity = time.monotonic()
    run.got_on()


def close_backends(run: Run, *, only_if_idle: bool) -> bool:
    """Applies what is left, checkpoints and closes the run's backends; blocks.

    Args:
        run: The run.
        only_if_idle: Leave it open if a writer is connected or wrote lately.

    Returns:
        Whether it is closed now.
    """
    with run.open_lock:
        with run.lock:
            if not run.is_open:
                return True
            idle_s = time.monotonic() - run.last_activity
            is_idle = idle_s >= run.context.settings.idle_after_s and run.applied == run.log.committed
            if only_if_idle and (run.has_sessions or not is_idle):
                return False
            # From here on whoever wants to write opens it again, and waits for the lock that is held here.
            run.is_open = False
        try:
            run.context.committer.commit([])  # all that was accepted is durable, and so visible to the projectors
            for projector in run.projectors:
                projector.finish()
        except BaseException:
            with run.lock:
                run.is_open = True
            run.wake_projectors(urgent=False)
            raise
    run.got_on()
    return True
