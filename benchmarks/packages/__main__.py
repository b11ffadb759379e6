"""Audit public packages: `python -m benchmarks.packages [CASE ...] [--sources FOLDER] [--page]` (see docs/packages.md).

Each case that was run replaces its row of results/packages/audits.csv, and docs/packages.md is written anew.
"""

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import yaml

from benchmarks.packages.audit import CONFIDENCE, measured
from dpbench.errors import UserError, check_known
from dpbench.grid.provenance import provenance

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RESULTS, PAGE = ROOT / "results" / "packages" / "audits.csv", ROOT / "docs" / "packages.md"
MARKS = "<!-- table -->\n", "\n<!-- end of the table -->"
DECLARED = yaml.safe_load((HERE / "cases.yaml").read_text(encoding="utf-8"))
CASES, SOURCES = DECLARED["cases"], DECLARED["sources"]


def python_of(environment):
    """The interpreter of an environment."""
    return Path(sys.executable) if environment == "main" else ROOT / f".venv-{environment}" / "bin" / "python"


def missing(case, sources):
    """Why it cannot be run here; None if it can."""
    if not python_of(case["environment"]).is_file():
        return f"no environment .venv-{case['environment']}: `make audit-packages` makes it"
    if case.get("source") == "mbi" and find_spec("jax") is None:
        return "it needs jax"
    if (name := case.get("source")) and not (sources / name).is_dir():
        origin = SOURCES[name]
        return f"no {name} among the sources: git clone {origin['url']}; git checkout {origin['commit']}"
    return None


def audited(name, sources, timeout):
    """The row of a case."""
    case = CASES[name]
    epsilon, delta = case["asked"]
    python, worker = python_of(case["environment"]), HERE / case["worker"]
    found = measured(
        python, worker, case["case"], runs=case.get("runs", 1), delta=delta, sources=sources, timeout=timeout
    )
    origin, code = case.get("source"), provenance()
    option = " --sources FOLDER" if origin else ""
    return {
        "case": name,
        "package": origin or case["package"],
        "version": SOURCES[origin]["commit"][:7] if origin else found.versions[case["package"]],
        "function": case["function"],
        "given": case["given"],
        "neighbours": case["neighbours"],
        "epsilon": epsilon,
        "delta": delta,
        "measured": found.epsilon,
        "estimate": found.estimate,
        "confidence": CONFIDENCE if "runs" in found.estimate else 1.0,
        "selection": found.selection,
        "verdict": "more than asked" if found.epsilon > epsilon else "nothing found",
        "note": " ".join(case.get("wrong", case.get("unseen", "")).split()),
        "command": f"python -m benchmarks.packages {name}{option}",
        "versions": " ".join(f"{package}=={version}" for package, version in found.versions.items()),
        "commit": code["commit"],
        "dirty": code["dirty"],
        "cpu": code["cpu"],
    }


def table(frame):
    """The rows of the page."""
    lines = [
        "| package | function | given | asked | at least | by | what was seen |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in frame.itertuples():
        asked = f"{row.epsilon:.4g}" + (f", {row.delta:.0e}" if row.delta else "")
        bound = "infinite" if row.measured == float("inf") else f"{row.measured:,.2f}"
        bound = f"**{bound}**" if row.verdict == "more than asked" else bound
        how = f"{row.estimate}, 95%" if "runs" in row.estimate else f"{row.estimate}, exact"
        selection = "" if pd.isna(row.selection) else f" Largest loss of a selection: {row.selection:.3f}."
        note = row.note[0].upper() + row.note[1:]
        lines.append(
            f"| {row.package} {row.version} | {row.function} | {row.given}. {row.neighbours} | {asked} | {bound} | "
            f"{how} | {note}.{selection} `{row.case}` |"
        )
    return "\n".join(lines)


def write_page():
    """The table of the page, from the committed file."""
    before, rest = PAGE.read_text(encoding="utf-8").split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    PAGE.write_text(before + MARKS[0] + "\n" + table(pd.read_csv(RESULTS)) + "\n" + MARKS[1] + after, encoding="utf-8")


def main(arguments=None):
    """Run cases, store them, write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.packages", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help="all that can be run, if none is named")
    parser.add_argument("--sources", type=Path, default=ROOT / "sources", help="a folder of checkouts")
    parser.add_argument("--timeout", type=float, default=1800, help="seconds of a case")
    parser.add_argument("--page", action="store_true", help="only write the page anew")
    options = parser.parse_args(arguments)
    code, ran = 0, False
    for name in [] if options.page else options.cases or CASES:
        check_known("case", name, CASES)
        if reason := missing(CASES[name], options.sources.absolute()):
            print(f"{name}: not run: {reason}")
            code = 2 if options.cases else code
            continue
        try:
            row = audited(name, options.sources.absolute(), options.timeout)
        except UserError as error:
            print(f"{name}: {error}")
            code = 2
            continue
        print(f"{name}: asked {row['epsilon']:g}, at least {row['measured']:.4g} by {row['estimate']}", flush=True)
        rows = pd.read_csv(RESULTS).query("case != @name") if RESULTS.exists() else pd.DataFrame()
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        rows = pd.concat([rows, pd.DataFrame([row])]).sort_values("case", key=lambda c: c.map(list(CASES).index))
        rows.to_csv(RESULTS, index=False)
        ran = True
    if ran or options.page:
        write_page()
    return code


if __name__ == "__main__":
    sys.exit(main())
