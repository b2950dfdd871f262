"""A real `logger-service serve` process that tests start, kill and start again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

SERVE = (str(Path(sys.executable).with_name("logger-service")), "serve")


class ServerProcess:
    """A server on a free port of 127.0.0.1, ready when the constructor returns.

    Args:
        data_dir: Its data directory.
        stderr: The file that its stderr is appended to.
        options: More options of `logger-service serve`.
        wrapper: A command that runs it, such as `strace` with its options.

    Raises:
        RuntimeError: It ended before it was ready; the text has its stderr.
    """

    def __init__(
        self, data_dir: Path, stderr: Path, options: Sequence[str] = (), *, wrapper: Sequence[str] = ()
    ) -> None:
        self.data_dir = data_dir
        self._stderr = stderr
        self._options = list(options)
        self._wrapper = list(wrapper)
        self._listen = "127.0.0.1:0"
        self._process: subprocess.Popen[str] | None = None
        self.address = ""
        self.start()

    def start(self) -> None:
        """Starts it, on the port it had before if it had one, and waits until it is ready."""
        assert self._process is None, "it is running"
        command = [*self._wrapper, *SERVE, "--data-dir", str(self.data_dir), "--listen", self._listen, *self._options]
        with self._stderr.open("a") as stderr:
            # A session of its own, so that `kill` reaches it behind a wrapper as well.
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                start_new_session=True,
            )
        assert self._process.stdout is not None
        try:
            line = self._process.stdout.readline()
            if not line.startswith("listening on "):
                raise RuntimeError(f"{' '.join(command)} printed {line!r} in place of its ready line\n{self.stderr}")
        except BaseException:
            self.kill()
            raise
        self.address = self._listen = line.removeprefix("listening on ").strip()

    @property
    def pid(self) -> int:
        """The process id; of the wrapper if there is one."""
        assert self._process is not None, "it is not running"
        return self._process.pid

    @property
    def stderr(self) -> str:
        """What it wrote to stderr so far, over all its lives."""
        return self._stderr.read_text(errors="replace")

    def kill(self) -> None:
        """Ends it with SIGKILL, and waits until it is gone. Does nothing if it is not running."""
        self._end(signal.SIGKILL)

    def terminate(self) -> int:
        """Asks it to end with SIGTERM, waits, and returns its exit status."""
        return self._end(signal.SIGTERM)

    def interrupt(self) -> int:
        """Asks it to end with SIGINT, waits, and returns its exit status."""
        return self._end(signal.SIGINT)

    def restart(self) -> None:
        """Kills it if it is running and starts it again on the same port."""
        self.kill()
        self.start()

    def _end(self, number: signal.Signals) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            pass
        status = process.wait()
        assert process.stdout is not None
        process.stdout.close()
        return status
