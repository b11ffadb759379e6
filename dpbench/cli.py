"""The command line: it parses arguments, and imports the module of a command when that runs.

What cannot be written, to a full disk or a closed terminal, is dropped: a run does not end because of it.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from dpbench import __version__
from dpbench.errors import UserError, bounded, missing_extra, shown
from dpbench.files import usual_mode
from dpbench.resources import THREADS, with_threads
from dpbench.targets import config_folder, use_folder

OVERRIDES = "settings in Hydra's syntax, such as experiment=linreg_adult epsilon=[0.1,1] mechanism=[adassp] jobs=2"
DATA_OVERRIDES = "a data set, or its settings"
GROUPS = (
    "datasets",
    "mechanisms",
    "models",
    "metrics",
    "experiments",
    "papers",
    "samples",
    "limits",
    "as",
    "figures",
    "tables",
)
MOST_THREADS = 1024
EXIT_USER, EXIT_INTERRUPTED, EXIT_UNREAD = 2, 130, 141  # the last two as the shell reports SIGINT and SIGPIPE


class Unheard(io.TextIOWrapper):
    """A stream of text. From its first error on, what is written goes nowhere."""

    def write(self, text: str, /) -> int:
        """Write, or do not."""
        try:
            return super().write(text)
        except OSError:
            self._hush()
            return len(text)

    def flush(self) -> None:
        """Flush, or do not."""
        try:
            super().flush()
        except OSError:
            self._hush()

    def _hush(self) -> None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.fileno())
        os.close(nowhere)
        with suppress(OSError):
            super().flush()  # what it still holds


def open_streams() -> None:
    """Have all three standard streams open, so that no file of ours takes the place of one that is closed, and errors
    written to one that is `Unheard`.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # it gets the lowest number that is free
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(_writer(1))
    if sys.stderr is None or sys.stderr is sys.__stderr__:
        sys.stderr = Unheard(_writer(2), errors="backslashreplace", line_buffering=True)


def _writer(descriptor: int) -> io.BufferedWriter:
    return io.BufferedWriter(io.FileIO(descriptor, "w", closefd=False))


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Exit codes: 0 all well, 1 trials failed, 2 invalid input, 130 interrupted, 141 the output was closed.
    """
    if argv is None:
        open_streams()
    arguments = _parse(sys.argv[1:] if argv is None else argv)
    arguments.alone = argv is None  # whether this process does nothing else
    try:
        _set_threads()
        if arguments.config_dir is not None:
            arguments.config_dir = config_folder(arguments.config_dir)
        use_folder(arguments.config_dir)  # a user's own mechanisms are next to their configs
        command: Callable[[argparse.Namespace], int] = resolve_name(f"dpbench.commands.{arguments.command}")
        with usual_mode():
            return command(arguments)
    except UserError as error:
        if arguments.debug:
            raise
        _print_error(bounded(str(error)), error)
        return error.exit_code
    except ModuleNotFoundError as error:
        if arguments.debug or not (message := missing_extra(error)):
            raise
        _print_error(message, error)
        return EXIT_USER
    except KeyboardInterrupt as error:
        print(file=sys.stderr)
        _print_error("interrupted; what was finished is stored, the same command continues from there", error)
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # the reader of the output, such as head, has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_UNREAD


def _print_error(message: str, error: BaseException) -> None:
    """The message, and what was noted on the error on its way."""
    for line in (message, *getattr(error, "__notes__", ())):
        print(f"dpbench: {line}", file=sys.stderr)


def _set_threads() -> None:
    """One thread unless set otherwise, before numpy is imported: sums in another order would give other bits."""
    for variable in THREADS:
        given = os.environ.get(variable, "1")
        if not (given.isascii() and given.isdigit() and 1 <= int(given[:9]) <= MOST_THREADS):
            raise UserError(f"{variable} must be a whole number from 1 to {MOST_THREADS}, not {shown(given)}")
    os.environ.update(with_threads())


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = _parser()
    if "_ARGCOMPLETE" in os.environ:  # set by the shell whose line is completed
        import argcomplete

        argcomplete.autocomplete(parser)  # ends the process
    if not argv:
        parser.exit(EXIT_USER, parser.format_help())
    arguments, rest = parser.parse_known_args(argv)
    if hasattr(arguments, "overrides"):  # settings may stand between the options
        given = [*arguments.overrides, *rest]
        names = arguments.command == "data:data"
        known = [item for item in given if names or "=" in item or item[:1] == "~" or Path(item).is_dir()]
        unknown = [item for item in given if item.startswith("-") or item not in known]
        arguments.overrides = [item for item in given if item not in unknown]
    else:
        unknown = rest
    if unknown:
        settings = hasattr(arguments, "overrides")
        if settings and not unknown[0].startswith("-"):
            parser.exit(EXIT_USER, f"dpbench: {bounded(_hint(unknown[0], argv, arguments.config_dir))}\n")
        expected = "settings look like name=value" if settings else "this command takes no settings"
        parser.error(f"unknown argument {shown(unknown[0])}; {expected} (see dpbench {argv[0]} --help)")
    return arguments


def _hint(word: str, line: Sequence[str], config_dir: Path | None) -> str:
    """What to say of a word that cannot be read."""
    from dpbench.commands.completion import hint

    return hint(word, line, config_dir)


def _offered(**given: Any) -> list[str]:
    """What a setting can be that is being typed."""
    from dpbench.commands.completion import offered

    return offered(**given)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dpbench", description="Benchmark differentially private regression and synthetic data."
    )
    parser.add_argument("--version", action="version", version=f"dpbench {__version__}")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--debug", action="store_true", help="show the traceback of an error")
    common.add_argument("--config-dir", type=Path, help="a folder with your own configs (dataset/, mechanism/, ...)")
    grid = argparse.ArgumentParser(add_help=False, parents=[common])
    _add_settings(grid, OVERRIDES)
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def add(name: str, command: str, text: str, parent: argparse.ArgumentParser = grid) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text, parents=[parent])
        sub.set_defaults(command=command)
        return sub

    run = add("run", "run:run", "Run what is missing of a grid, and show the table.")
    run.add_argument("--dry-run", action="store_true", help="say what would run")
    run.add_argument("--show", action="store_true", help="show the composed configuration and stop")
    run.add_argument("--force", action="store_true", help="run everything again")
    run.add_argument("--retry-failed", action="store_true", help="run failed trials again")
    run.add_argument("--fail-fast", action="store_true", help="stop at the first failed trial")
    run.add_argument("--shard", metavar="I/N", help="run shard I of N")
    run.add_argument("--plan", type=Path, help="run a frozen plan (dpbench slurm writes one for each task)")
    add("status", "status:status", "Show what is stored of every experiment, and the tasks on SLURM.")
    figures = add(
        "figures", "report:figures", "Draw the figures and write the tables of what is stored (paper=...: of a paper)."
    )
    figures.add_argument("--pdf", action="store_true", help="draw each figure as PDF too, for print")
    figures.add_argument(
        "--width",
        type=float,
        metavar="INCHES",
        help="for an article: a PDF of this width too, with its caption as text",
    )
    export = add("export", "export:export", "Write trials as parquet, or the synthetic rows of a release as CSV.")
    export.add_argument("--release", metavar="ID", help="the rows of this release, and its ledger")
    _add_release(add)
    page = add("report", "report:report", "Write what is stored of a paper or an experiment into one HTML file.")
    _add_recommend(add)
    for sub in (run, figures, page, export):
        sub.add_argument("--other-code", action="store_true", help="accept results by other versions of the code")
    slurm = add("slurm", "run:slurm", "Submit what is missing of a grid to SLURM, as an array of tasks.")
    unchecked = "run own mechanisms without their check; footnotes say so"
    for sub in (run, slurm):
        sub.add_argument("--unchecked", action="store_true", help=unchecked)
    slurm.add_argument("--print", action="store_true", dest="print_only", help="show the script, submit nothing")
    _add_evaluate(add, common)
    _add_parts(add, common)
    verify = add("verify", "verify:verify", "Check everything that is stored: checksums, identities and privacy cost.")
    text = "run N stored trials of each experiment again, and compare their scores"
    verify.add_argument("--recompute", type=int, metavar="N", default=0, help=text)
    text = "move what is damaged out of the logs; the same run as before then computes it again"
    verify.add_argument("--set-aside", action="store_true", help=text)
    _add_stored(add, common)
    _add_comparisons(add, common)
    return parser


def _add_settings(parser: argparse.ArgumentParser, text: str, metavar: str = "setting=value") -> None:
    given = parser.add_argument("overrides", nargs="*", default=[], metavar=metavar, help=text)
    given.completer = _offered  # type: ignore[attr-defined]


def _add_recommend(add: Callable[..., argparse.ArgumentParser]) -> None:
    """The command that names methods for a table, or for its size."""
    recommend = add("recommend", "recommend:recommend", "Say which methods to take for a table, and what to expect.")
    needs = ["coefficients", "intervals", "rows", "queries", "classifier"]
    text = "what is needed (default: coefficients, a classifier for a target of two levels, rows without a target)"
    recommend.add_argument("--need", choices=needs, help=text)
    text = "about how many rows the table has; needed if the table is private or not given"
    recommend.add_argument("--rows", type=int, metavar="N", help=text)
    text = "its columns, the target among them, in place of a table"
    recommend.add_argument("--columns", type=int, metavar="D", help=text)
    text = "coefficients of a regression on it, the constant among them (as many as --columns, if left out)"
    recommend.add_argument("--coefficients", type=int, metavar="P", help=text)


def _add_release(add: Callable[..., argparse.ArgumentParser]) -> None:
    """The command that makes one release of a table."""
    text = "Make one private release of a table of your own: synthetic rows, coefficients, a statement, the ledger."
    release = add("release", "release:release", text)
    release.add_argument("--out", type=Path, metavar="FOLDER", help="a new folder for what is released")
    text = "numbers that the mechanism leaves in bins: drawn within their bin (default), or at its midpoint"
    release.add_argument("--numbers", choices=["drawn", "middle"], default="drawn", help=text)
    text = "score the synthetic rows against the real ones too: exact scores, which no budget covers (default: no)"
    release.add_argument("--quality", action="store_true", help=text)
    text = "the most that all releases of this table may spend together, from now on"
    release.add_argument("--limit", type=float, metavar="EPSILON", help=text)
    release.add_argument("--history", action="store_true", help="list the releases of this table, and their sum")


def _add_evaluate(add: Callable[..., argparse.ArgumentParser], common: argparse.ArgumentParser) -> None:
    """The command that scores synthetic rows."""
    text = "Score a synthetic table against the real rows of a data set, as a CSV and one HTML file."
    evaluate = add("evaluate", "evaluate:evaluate", text, common)
    evaluate.add_argument("synthetic", metavar="FILE.csv", help="the synthetic rows, with the attributes' names")
    evaluate.add_argument("--measured", metavar="RELEASE.json", help="score its measured pairs separately")
    _add_settings(evaluate, "the data set of the real rows: dataset=adult, and results=FOLDER")


def _add_parts(add: Callable[..., argparse.ArgumentParser], common: argparse.ArgumentParser) -> None:
    """The commands on what there is to choose from."""
    add("list", "list_and_show:listing", "List the names of a config group.", common).add_argument(
        "group", choices=GROUPS
    )
    text = (
        "Show a mechanism (source, privacy, parameters), model, metric, data set, experiment, paper, figure or table."
    )
    show = add("show", "list_and_show:show", text, common)
    _add_settings(show, "what to show, such as mechanism=aim")
    check = add("check", "check:check", "Test a plug-in of your own against its contract, on tiny data.", common)
    _add_settings(check, "what to check, and settings for it, such as mechanism=mine --config-dir own")


def _add_stored(add: Callable[..., argparse.ArgumentParser], common: argparse.ArgumentParser) -> None:
    """The commands on one trial that is stored, and on the run that is submitted to a leaderboard."""
    log = add("log", "log:log", "Show what a trial printed, after its settings and its status.", common)
    log.add_argument("trial", metavar="TRIAL", help="the id of a trial, or its first digits")
    _add_settings(log, "such as results=FOLDER")
    text = "Check a run of your own method on the arena, and write the one file that puts it on the leaderboard."
    submit = add("submit", "submit:submit", text, common)
    text = "the folder of a run, such as results/arena_lite_regression; or a .parquet or .csv of scores from elsewhere"
    submit.add_argument("source", type=Path, metavar="FOLDER|FILE", help=text)
    submit.add_argument("--method", required=True, metavar="NAME", help="what the leaderboard calls the method")
    submit.add_argument("--who", required=True, metavar="NAME", help="who submits it")
    submit.add_argument("--link", default="", metavar="URL", help="of its paper or code")
    text = "of a folder: run N of its trials again, and compare their scores"
    submit.add_argument("--recompute", type=int, metavar="N", default=0, help=text)
    submit.add_argument("--experiment", metavar="NAME", help="of a file of scores: the experiment that they answer")
    text = "where the file is written (default results/submissions)"
    submit.add_argument("--out", type=Path, metavar="FOLDER", default=Path("results", "submissions"), help=text)


def _add_comparisons(add: Callable[..., argparse.ArgumentParser], common: argparse.ArgumentParser) -> None:
    """The commands that compare: results, ledgers and data."""
    text = "Compare two sets of results cell by cell; exit with 1 where B lacks values that A has."
    compare = add("compare", "compare:compare", text, common)
    compare.add_argument("first", metavar="A", help="a folder with results, or COMMIT[:FOLDER] of this repository")
    compare.add_argument("second", metavar="B", nargs="?", help="results to compare with A")
    text = "in place of B: compare the methods of A with the best of each cell, run by run"
    compare.add_argument("--methods", action="store_true", help=text)
    compare.add_argument("--out", type=Path, metavar="FOLDER", help="--methods: write the table as .csv, .md and .tex")
    text = "exit with 1 also where a difference is beyond this fraction of A's mean"
    compare.add_argument("--tolerance", type=float, metavar="FRACTION", help=text)
    compare.add_argument("--all", action="store_true", help="show all differences")
    audit = add(
        "audit", "audit:run", "Measure a lower bound on the epsilon of mechanisms, and compare it with their ledgers."
    )
    audit.add_argument("--runs", type=int, default=400, help="runs on each of two neighbours (default 400)")
    text = "guess from releases, not from noisy answers, which of 2 * RUNS canaries were included (each by a coin toss)"
    audit.add_argument("--releases", action="store_true", help=text)
    text = "with --releases: one-hot levels (default), or corners of 200 numeric attributes"
    audit.add_argument("--canaries", choices=["levels", "corners"], default="levels", help=text)
    audit.add_argument("--store", action="store_true", help="keep what was measured in RESULTS/audit, for the tables")
    data = add("data", "data:data", "Fetch, verify, describe, declare and check data sets.", common)
    data.add_argument("action", choices=["fetch", "verify", "card", "croissant", "list", "check", "declare"])
    text = "declare: take bounds and levels from this table, which is public"
    data.add_argument("--from-public", type=Path, metavar="CSV", help=text)
    text = "declare: take them from the table itself, by a private release at this epsilon"
    data.add_argument("--private", type=float, metavar="EPSILON", help=text)
    data.add_argument("--out", type=Path, metavar="FILE", help="declare: the new file (by default it is printed)")
    _add_settings(data, DATA_OVERRIDES, "NAME|setting=value")
    data.add_argument("--offline", action="store_true", help="download nothing")
