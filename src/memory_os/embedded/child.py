"""One child process: started in a session of its own, tied to our life, stopped within a bounded time."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from memory_os.embedded.logs import LogFile
from memory_os.embedded.placement import ServerUser
from memory_os.errors import StartupError

ESCALATION_S = 3.0
"""Seconds for each sterner signal after the first one has used up the grace."""

_PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
# Looked up before any fork: between fork and exec nothing may import or allocate more than it must.
_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


@dataclass(frozen=True, slots=True)
class Command:
    """What to run.

    Args:
        argv: Program and arguments; never a secret, other users of the machine can read it.
        env: The whole environment.
        cwd: Working folder.
        user: Run as this user, if we are root and the program refuses to be.
        death_signal: What the kernel sends it if we die without stopping it (Linux only).
        stop_signals: What asks it to end, the gentlest first; SIGKILL always comes last and need not be named.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path = Path("/")
    user: ServerUser | None = None
    death_signal: signal.Signals = signal.SIGTERM
    stop_signals: tuple[signal.Signals, ...] = (signal.SIGTERM,)


class Child:
    """A process that we start, watch and end; it can be started again after it has ended.

    On Linux the kernel signals the child when the *thread* that started it ends, so `spawn` belongs into a thread
    that lives as long as the child should, in practice the main thread.

    Args:
        name: For messages.
        command: What to run.
        log: Where its standard output and error go.
    """

    def __init__(self, name: str, command: Command, log: LogFile) -> None:
        self.name = name
        self.command = command
        self.log = log
        self.log_start = 0
        """Size of the log when the present process was started, in bytes."""
        self.started: float | None = None
        """Start time of the present process as the kernel tells it, in seconds since the epoch."""
        self._process: subprocess.Popen[bytes] | None = None
        self._swept = True

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return self._process.pid if self._process is not None and self.running() else None

    @property
    def exit_code(self) -> int | None:
        """How the last process ended: a code, or minus the signal's number; None while it runs or before a start."""
        return self._process.poll() if self._process else None

    def spawn(self) -> None:
        """Start the process; does nothing while one runs.

        Raises:
            StartupError: If the program can't be executed on this machine.
        """
        if self.running():
            return
        self.log_start = self.log.size
        command, user = self.command, self.command.user
        try:
            with self.log.open() as log:
                self._process = subprocess.Popen(  # noqa: S603 - argv is built here from paths of installed packages
                    command.argv,
                    env=dict(command.env),
                    cwd=command.cwd,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,  # the terminal's Ctrl-C reaches us alone, we stop the rest in order
                    preexec_fn=_tether(os.getpid(), command.death_signal),  # noqa: PLW1509 - one system call, no locks
                    user=user.uid if user else None,
                    group=user.gid if user else None,
                    extra_groups=[] if user else None,
                )
        except OSError as error:
            raise StartupError(
                f"{self.name}: {command.argv[0]} can't be run here ({error.strerror}); "
                "reinstall it with `pip install --force-reinstall 'memory-os[embedded]'`"
            ) from error
        self._swept = False
        # The process is our child and not reaped, so it has an entry even if it has ended already.
        self.started = psutil.Process(self._process.pid).create_time()

    def running(self) -> bool:
        """Whether the process lives; the first call after its end also ends what it left in its process group."""
        if self._process is None:
            return False
        if self._process.poll() is None:
            return True
        self._sweep_group()
        return False

    def send(self, signum: signal.Signals) -> None:
        """Send a signal to the process alone; nothing happens if it has ended."""
        if self._process is not None:
            self._process.send_signal(signum)

    def wait(self, timeout: float) -> bool:
        """Wait for its end, at most `timeout` seconds; returns whether it has ended."""
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout)
        return not self.running()

    def stop(self, grace: float = 10.0) -> None:
        """End it: the gentlest signal and `grace` seconds, then sterner ones, then SIGKILL. Never raises, never hangs.

        Args:
            grace: Seconds that the gentlest signal may take.
        """
        for signum in self.command.stop_signals:
            if not self.running():
                return
            self.send(signum)
            if self.wait(grace):
                return
            grace = min(grace, ESCALATION_S)
        self.kill()

    def kill(self) -> None:
        """SIGKILL to its whole process group, and reap it."""
        if self._process is not None and self.running():
            self._kill_group()
            self._process.wait()
            self._swept = True

    def _sweep_group(self) -> None:
        """End what a dead leader left behind in its group.

        The number could only name a stranger's group if the kernel had wrapped round all process ids between the
        reaping in `poll` and this call.
        """
        if not self._swept:
            self._swept = True
            self._kill_group()

    def _kill_group(self) -> None:
        if self._process is not None:
            # PermissionError: macOS answers so for a group of which only zombies are left.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)


def _tether(parent: int, signum: signal.Signals) -> Callable[[], None] | None:
    """What a new child runs before exec so that the kernel signals it when we die; None where there is no such call.

    It must run after the change of user, which clears the setting; `subprocess` keeps that order.
    """
    libc = _LIBC
    if libc is None:
        return None

    def tether() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, int(signum), 0, 0, 0)
        if os.getppid() != parent:  # we died between the fork and the call: no signal will come any more
            os._exit(1)

    return tether


def clean_environment(**extra: str) -> dict[str, str]:
    """Our environment for a server, without what would redirect libpq or leak the caller's locale, plus `extra`."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_")) and name != "LANGUAGE"
    }
    return {**kept, **extra}
