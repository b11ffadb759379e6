"""A SLURM of one node in a folder of its own, from Debian's packages munge, slurmctld, slurmd and slurm-client."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

DAEMONS = ("munged", "slurmctld", "slurmd")
CLIENTS = ("sbatch", "squeue", "scancel", "scontrol", "sinfo")
START_SECONDS = 30.0
CONF = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ctld_port}
SlurmdPort={node_port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerParameters=batch_sched_delay=0,sched_interval=1
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=1
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
NodeName={host} NodeAddr=127.0.0.1 CPUs=8 RealMemory=8000
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def lacking() -> list[str]:
    """The programs of SLURM that are not installed; the daemons may lie beside a user's PATH."""
    return [name for name in (*DAEMONS, *CLIENTS) if program(name) is None]


def program(name: str) -> str | None:
    """Where a program is."""
    return shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")


class Cluster:
    """A context within which SLURM runs, for this process and its children; afterwards no process and file is left."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.host = folder, socket.gethostname().split(".")[0]
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> "Cluster":
        for name in ("state", "spool"):
            (self.folder / name).mkdir(parents=True)
        key = self.folder / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(128))
        conf = self.folder / "slurm.conf"
        ports = {"ctld_port": free_port(), "node_port": free_port()}
        user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
        conf.write_text(CONF.format(folder=self.folder, host=self.host, user=user, **ports))
        os.environ["SLURM_CONF"] = str(conf)
        try:
            files = {name: f"--{name}-file={self.folder}/munge.{name}" for name in ("pid", "log", "seed")}
            where = [f"--key-file={key}", f"--socket={self.folder}/munge.socket", *files.values()]
            self._start("munged", "--force", "--foreground", *where)
            wait_for((self.folder / "munge.socket").exists, "munged")
            self._start("slurmctld", "-D")
            self.start_node()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for name in reversed(self._daemons):
            self._daemons[name].terminate()
            try:
                self._daemons[name].wait(10)
            except subprocess.TimeoutExpired:
                self._daemons[name].kill()
                self._daemons[name].wait()
        self._kill_all()
        del os.environ["SLURM_CONF"]
        shutil.rmtree(self.folder)

    def start_node(self) -> None:
        """Start slurmd, and wait until the controller knows that it is there."""
        self._start("slurmd", "-D")
        wait_for(lambda: self.client("sinfo", "--noheader", "--format=%T", check=False).strip() == "idle", "slurmd")

    def kill_node(self) -> None:
        """What the end of a node's power does: slurmd and all that it runs are gone at once.

        The controller would find out when pings stay without answer for SlurmdTimeout; it is told.
        """
        node = self._daemons.pop("slurmd")
        node.kill()
        node.wait()
        self._kill_all()
        self.client("scontrol", "update", f"nodename={self.host}", "state=down", "reason=power")

    def states(self, job: str) -> dict[int, str]:
        """The state of each task of an array."""
        lines = self.client("squeue", "--noheader", "--array", "--states=all", f"--jobs={job}", "--format=%K %T")
        return {int(number): state for number, state in map(str.split, lines.splitlines())}

    def wait(self, job: str, seconds: float = 120.0) -> dict[int, str]:
        """The states of an array's tasks when none waits or runs any more."""
        wait_for(lambda: not set(self.states(job).values()) & {"PENDING", "RUNNING", "COMPLETING"}, job, seconds)
        return self.states(job)

    def client(self, *command: str, check: bool = True) -> str:
        """What a program of SLURM answers."""
        return subprocess.run(command, capture_output=True, text=True, check=check).stdout

    def _start(self, name: str, *arguments: str) -> None:
        command = [str(program(name)), *arguments]
        with (self.folder / f"{name}.out").open("wb") as out:
            self._daemons[name] = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL)

    def _kill_all(self) -> None:
        """Kill the steps and their jobs, which are no children of the daemons that run."""
        spared = {os.getpid(), *(daemon.pid for daemon in self._daemons.values())}
        for folder in Path("/proc").glob("[0-9]*"):
            if self._owns(folder) and not {int(folder.name), parent(folder)} & spared:
                os.kill(int(folder.name), signal.SIGKILL)

    def _owns(self, process: Path) -> bool:
        """Whether the environment of a process names this SLURM, or it has a file of it open."""
        try:
            named = f"SLURM_CONF={self.folder}/".encode() in (process / "environ").read_bytes()
            return named or any(Path(os.readlink(fd)).is_relative_to(self.folder) for fd in (process / "fd").iterdir())
        except OSError:  # ended, or of another user
            return False


def wait_for(holds, what: str, seconds: float = START_SECONDS) -> None:
    """Wait until it holds. Raises `TimeoutError`, naming what was waited for."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds:.0f} s")
        time.sleep(0.1)


def parent(process: Path) -> int:
    """The id of the process that started it (proc(5)); 0 if it has ended."""
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
