"""Process termination: graceful on SIGTERM or SIGINT, and forced if the event loop does not respond.

Signal handlers of an event loop are not called while the loop is stuck. Here the signal handler only puts a
number on a queue, which the interpreter does between any two instructions of the main thread. A thread of its
own reads the queue, asks the loop to stop, and ends the process when that takes too long or at a second
signal. Only native code that never returns to the interpreter can prevent that.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Callable
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Final

from moorage.klog import Logger

log = Logger(__name__)

GRACE_SECONDS: Final = 25.0
"""Time limit of a graceful end: below Kubernetes' default terminationGracePeriodSeconds of 30 s."""
FAILED: Final = 1
"""Exit status after a forced termination."""
_LOG_SECONDS: Final = 1.0
"""Time limit of the last log line, in seconds: standard error may be blocked."""


def on_termination(stop: Callable[[], None], grace_seconds: float = GRACE_SECONDS) -> None:
    """Call `stop` in the running loop at the first SIGTERM or SIGINT; to be called in the main thread.

    The process ends at once at the second signal, or if it still runs `grace_seconds` after the first.
    """
    loop = asyncio.get_running_loop()
    signals: SimpleQueue[int] = SimpleQueue()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _: signals.put(received))
    stop_in_loop = partial(loop.call_soon_threadsafe, stop)
    arguments = (signals.get, stop_in_loop, grace_seconds, end_process)
    threading.Thread(target=follow_signals, args=arguments, name="signals", daemon=True).start()


def follow_signals(
    next_signal: Callable[..., object],
    stop: Callable[[], object],
    grace_seconds: float,
    end: Callable[[str], object],
) -> None:
    """Request a graceful stop at the first signal; `end` at the second, or after the grace period.

    next_signal: waits for a signal; with `timeout`, raises Empty if none comes in that time.
    """
    next_signal()
    stop()
    try:
        next_signal(timeout=grace_seconds)
    except Empty:
        end(f"Not terminated within the grace period of {grace_seconds:g} s, exiting at once")
    else:
        end("Requested to terminate again, exiting at once")


def end_process(message: str, **values: Any) -> None:
    """End the process immediately, from any thread; no work in flight is completed."""

    def write() -> None:
        log.error(None, message, **values)
        for handler in logging.getLogger().handlers:
            handler.flush()

    # The main thread may hold the log's lock: then there is no last line, but the process still ends.
    writing = threading.Thread(target=write, name="last-log-line", daemon=True)
    writing.start()
    writing.join(_LOG_SECONDS)
    os._exit(FAILED)
