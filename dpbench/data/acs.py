"""American Community Survey, person files (PUMS), by the problem definitions of folktables (Ding et al. 2021)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

from dpbench.data.coding import code_frame
from dpbench.data.dataset import Dataset
from dpbench.data.domain import Domain
from dpbench.data.fetch import Source, fetch_all, open_binary
from dpbench.data.table import Table
from dpbench.errors import UserError, check_known

if TYPE_CHECKING:
    import pandas as pd

URL = "https://www2.census.gov/programs-surveys/acs/data/pums"
HORIZONS = ("1-Year", "5-Year")
FIRST_YEAR = 2014  # of folktables
FILTERS = ("AGEP", "PINCP", "WKHP", "PWGTP", "ESR")  # columns by which the problems of folktables select rows
MISSING = "N/A"  # the level of a missing value


def load(config: Dataset) -> Table:
    """The rows that a problem of folktables selects from the persons of `config.states`, state after state.

    `config.problem` names the problem, such as ACSIncome. Its target is the label that the problem makes of it
    where it is declared with two levels (the second is true), and the number itself where it is declared numeric. A
    missing value is the level "N/A", or the number 0, as in folktables. Without a problem (null) all
    persons are there, and each attribute is a column of the files.

    Raises `UserError` for an unknown problem, state, year or horizon, and for files that are missing or lack a
    column.
    """
    import pandas as pd

    domain, problem = config.full_domain, _problem(config)
    columns = sorted({*domain.names, *((problem.target, *FILTERS) if problem else ())})
    frames = []
    for state, (source, path) in zip(config["states"], fetch_all(config), strict=True):
        frames.append(_read(path, source.holds, columns))
        found, published = len(frames[-1]), config["sources"]["rows"].get(_key(config, state))
        if published is not None and found != published:
            raise UserError(f"{path} has {found:,} persons, not {published:,} as published; remove and fetch it again")
    persons = pd.concat(frames, ignore_index=True)  # ACSMobility drops rows by their index
    rows = problem._preprocess(persons) if problem else persons  # the selection has no public name
    frame = _values(rows, domain, problem)
    return code_frame(frame, domain, config.outside, config.name)


def sources(config: Dataset) -> tuple[Source, ...]:
    """The zip file of each state of `config.states`, with its sha256 where `config.sources.sha256` has it.

    Raises `UserError` for a state, year or horizon that folktables does not have.
    """
    from folktables.load_acs import _STATE_CODES, state_list

    states, year, horizon = config["states"], config["year"], config["horizon"]
    if not isinstance(states, list) or not states or len({*map(str, states)}) < len(states):
        raise UserError(f"dataset.states must list different states, such as dataset.states=[CA,WY], not {states!r}")
    for state in states:
        check_known("state in dataset.states:", state, state_list)
    if type(year) is not int or year < FIRST_YEAR:
        raise UserError(f"dataset.year must be a year from {FIRST_YEAR} on, such as 2018, not {year!r}")
    check_known("dataset.horizon", horizon, HORIZONS)
    found = []
    for state in states:
        path = f"{year}/{horizon}/csv_p{state.lower()}.zip"
        fetched_by = f"{config.name} dataset.states=[{state}] dataset.year={year} dataset.horizon={horizon}"
        sha256 = config["sources"]["sha256"].get(_key(config, state), "")
        member = f"psam_p{_STATE_CODES[state]}.csv" if year >= 2017 else f"ss{year % 100}p{state.lower()}.csv"
        found.append(Source(f"acs_pums/{path}", f"{URL}/{path}", sha256, holds=member, fetched_by=fetched_by))
    return tuple(found)


def _key(config: Dataset, state: str) -> str:
    return f"{config['year']}/{config['horizon']}/{state}"


def _problem(config: Dataset) -> Any:
    """The problem of folktables that `config.problem` names; None if it is null."""
    import folktables

    if config["problem"] is None:
        return None
    name = str(config["problem"])
    known = [key for key, value in vars(folktables).items() if isinstance(value, folktables.BasicProblem)]
    check_known("dataset.problem", name, known)
    return getattr(folktables, name)


def _read(path: Path, member: str, columns: list[str]) -> pd.DataFrame:
    """The columns of the persons in a state's zip file, as float64; the other 260 or so are not read."""
    import pandas as pd

    with open_binary(path) as packed, ZipFile(packed) as archive:
        with archive.open(member) as stream:
            there = pd.read_csv(stream, nrows=0).columns
        if missing := [name for name in columns if name not in there]:
            raise UserError(
                f"{path}: {member} has no column {', '.join(missing)}; the Census Bureau renames columns "
                "between years (RELP is RELSHIPP from 2019 on): choose another dataset.year"
            )
        with archive.open(member) as stream:
            try:
                return pd.read_csv(stream, usecols=columns, dtype="float64")
            except ValueError as error:
                raise UserError(f"{path}: {member} has text in a numeric column: {error}") from error


def _values(rows: pd.DataFrame, domain: Domain, problem: Any) -> pd.DataFrame:
    """The attributes of the rows, with the label of the problem, if any, for its target; missing values are filled."""
    import numpy as np

    frame = rows[list(domain.names)].reset_index(drop=True)
    for attribute in domain.attributes:
        name = attribute.name
        if attribute.numeric:
            frame[name] = frame[name].fillna(0.0)
        elif problem and name == problem.target and attribute.size == 2:
            label = problem.target_transform(frame[name]).to_numpy(dtype=bool)
            frame[name] = np.array(attribute.levels, dtype=object)[label.astype(int)]
        else:
            frame[name] = frame[name].astype(object).fillna(MISSING)
    return frame
