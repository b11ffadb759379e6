"""Tasks on Dask: each runs a part of a plan, as `dpbench run` on the machine of its worker, in the results folder.

What a worker has at work ends with it, by its guard. Dask gives the task of a worker that died to another one, which
goes on with what is not stored. A task that nobody waits for any more is ended.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from dpbench.errors import UserError
from dpbench.files import Json
from dpbench.grid import process_tree
from dpbench.grid.plan import Plan
from dpbench.grid.process import GUARD
from dpbench.grid.runner import Options, Summary
from dpbench.grid.store import Store
from dpbench.grid.task import arguments, variables
from dpbench.grid.trial import FINISHED

ANSWER_SECONDS = 10.0  # for a scheduler to answer, and to have a worker
LOOK_SECONDS = 0.5
LEAVE_SECONDS = 5.0  # for a task that is not wanted any more to withdraw its claims


def run(
    shards: Sequence[Plan],
    store: Store,
    options: Options,
    summary: Summary,
    progress: Callable[[Summary], None],
    *,
    executor: str,
    config_dir: Path | None,
) -> Summary:
    """Run a task for each of these parts of what is missing; `progress` is called now and then.

    `executor`: the address of a scheduler, or "dask" for `options.jobs` workers on this machine.
    Raises `UserError` if there is no Dask, scheduler or worker, or if a task cannot run its part.
    """
    before = dict(store.trials.scan())
    waiting = [identity for shard in shards for identity in shard.trial_ids]

    def look() -> None:
        entries = store.trials.scan()
        ran = [(name, entries[name]) for name in waiting if name in entries and entries[name] != before.get(name)]
        summary.ran = len(ran)
        summary.failures = [(name, str(entry.status), "") for name, entry in ran if entry.status not in FINISHED]
        progress(summary)

    if not shards:
        return summary
    chosen = {"--force": options.force, "--retry-failed": options.retry_failed, "--fail-fast": options.fail_fast}
    line = [*arguments(store, config_dir), "jobs=1", *(name for name, given in chosen.items() if given)]
    with _client(executor, options.jobs) as client, _looking(look):
        from distributed import as_completed

        client.wait_for_workers(1, timeout=ANSWER_SECONDS)
        given = (line, os.getcwd(), variables())
        tasks = [client.submit(run_shard, "".join(shard.lines()), *given, pure=False) for shard in shards]
        for _, result in as_completed(tasks, loop=client.loop, with_results=True):
            if not isinstance(result, tuple):  # cancelled, as all are once the scheduler is gone
                raise UserError(
                    f"executor={executor}: the Dask scheduler is gone; the same line goes on with what is left"
                )
            code, said = result
            if code not in (0, 1):
                raise UserError(f"a task on Dask ended with exit code {code}. {said}")
            if code and options.fail_fast:
                break
    return summary


@contextmanager
def _client(executor: str, jobs: int) -> Iterator[Any]:
    """A client of the scheduler, or of one that runs as long as the context, with its workers."""
    try:
        from dask import config
        from distributed import Client, KilledWorker, LocalCluster
    except ImportError as error:
        raise UserError(f"executor={executor} needs Dask: pip install 'dpbench[dask]' ({error})") from error
    # in this process, without a port for orders: any user of the machine could give a scheduler code to run
    own: Json = {"n_workers": jobs, "threads_per_worker": 1, "memory_limit": None}
    own |= {"processes": False, "protocol": "inproc://"}
    own |= dict.fromkeys(("dashboard_address", "worker_dashboard_address"), "127.0.0.1:0")  # None would be 0.0.0.0
    log = logging.getLogger("distributed.client")  # it logs the tracebacks of a lost connection, which has one message
    with ExitStack() as stack:
        stack.callback(log.setLevel, log.level)
        log.setLevel(logging.CRITICAL)
        stack.enter_context(config.set({f"distributed.{one}.http.routes": [] for one in ("scheduler", "worker")}))
        at = stack.enter_context(LocalCluster(**own)) if executor == "dask" else executor
        try:
            client = stack.enter_context(Client(at, timeout=ANSWER_SECONDS, set_as_default=False))
        except (OSError, ValueError) as error:
            raise UserError(f"executor={executor}: no Dask scheduler answers there ({error})") from error
        try:
            yield client
        except TimeoutError as error:
            raise UserError(f"executor={executor}: the Dask scheduler has no worker; start some") from error
        except ImportError as error:
            raise UserError(f"executor={executor}: dpbench is not installed where the workers are ({error})") from error
        except KilledWorker as error:
            raise UserError(f"executor={executor}: Dask gave up a task ({error})") from error


@contextmanager
def _looking(look: Callable[[], None]) -> Iterator[None]:
    """Look now and then, and once more at the end."""
    ended = threading.Event()

    def looks() -> None:
        while not ended.wait(LOOK_SECONDS):
            look()
        look()

    thread = threading.Thread(target=looks)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def run_shard(plan: str, line: Sequence[str], folder: str, environment: Mapping[str, str]) -> tuple[int, str]:
    """Run a plan, in a task on Dask, by the arguments `line` of Python; the exit code, and the last line of errors."""
    with tempfile.TemporaryFile("w+") as given, tempfile.TemporaryFile("w+", errors="replace") as said:
        given.write(plan)
        given.flush()
        process = subprocess.Popen(
            [sys.executable, *line, "--plan", "/dev/stdin"],
            cwd=folder,
            env={**os.environ, **environment},
            stdin=given,
            stdout=subprocess.DEVNULL,
            stderr=said,
            start_new_session=True,
        )
        GUARD.watch(process.pid)
        try:
            while process.poll() is None and _awaited():
                time.sleep(LOOK_SECONDS)
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(LEAVE_SECONDS)
        finally:
            process_tree.end([process.pid])
            process.wait()
            GUARD.forget(process.pid)
        said.seek(0)
        return process.returncode, "".join(said.readlines()[-1:]).strip()


def _awaited() -> bool:
    """Whether somebody waits for the task of this thread, on a Dask worker."""
    from distributed import get_worker

    worker = get_worker()
    task = worker.state.tasks.get(worker.get_current_task())
    return task is not None and task.state == "executing"
