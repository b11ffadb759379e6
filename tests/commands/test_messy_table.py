"""Coefficients of a table as people have them, dates, money, signs and gaps in it, compared with plain least squares.

At epsilon = 1e9 the noise moves an effect by cents on sufficient statistics, and by a dollar or two on marginals: what
is left is how the texts became numbers. (At 1e6 it is 30 times that.)
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpbench.cli import main

DOMAIN = """
opened:   {dates: [2023-01-01, 2024-12-31], by: month, format: "%d.%m.%Y", missing: true}
income:   {bounds: [0, 60000], bins: 60, unit: $}
debt:     {bounds: [0, 100], bins: 40, unit: "%", missing: ["?", n/a]}
children: {values: {from: 0, to: 5}, missing: true}
reason:   {levels: [home, car], other: elsewhere, missing: true}
member:   {levels: [no, yes]}
balance:  {bounds: [-10000, 90000], bins: 200, unit: $}
"""
FIRST_DAY = 19358  # since 1970: 2023-01-01
LINE = ("dataset=csv", "dataset.path=my.csv", "dataset.domain=my.yaml", "dataset.thousands=comma")
NAMES = ("opened", "opened=(missing)", "income", "debt", "debt=(missing)", "children", "children=(missing)")
NAMES += ("reason=car", "reason=elsewhere", "reason=(missing)", "member=yes", "(intercept)")


@pytest.fixture
def numbers(tmp_path, monkeypatch):
    """A folder with the file and its declaration; the numbers that it was written from, NaN and "" where none is."""
    monkeypatch.setenv("DPBENCH_SALT", str(tmp_path / "state" / "salt"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.yaml").write_text(DOMAIN)
    rng, n = np.random.default_rng(0), 3000

    def gaps(values):
        return np.where(rng.uniform(size=n) < 0.15, np.nan, values)

    days = gaps(rng.integers(0, 731, n) + FIRST_DAY)
    income, debt, children = (
        rng.uniform(0, 60_000, n).round(2),
        gaps(rng.uniform(0, 100, n).round(1)),
        gaps(rng.integers(0, 6, n)),
    )
    reason, member = rng.choice(["home", "car", "boat", "travel", ""], n), rng.choice(["no", "yes"], n)
    balance = 0.9 * income - 80 * np.nan_to_num(debt) + 3000 * (member == "yes") + 9000 * (reason == "car")
    balance = (balance + 8 * np.nan_to_num(days - FIRST_DAY) + rng.normal(0, 4000, n)).clip(-9999, 89_999).round(2)
    dates = pd.to_datetime(pd.Series(days), unit="D").dt.strftime("%d.%m.%Y").fillna("")
    written = {
        "opened": dates,
        "income": [f"${value:,.2f}" for value in income],
        "debt": ["?" if np.isnan(value) else f"{value}%" for value in debt],
        "children": ["" if np.isnan(value) else f"{value:.0f}" for value in children],
        "reason": reason,
        "member": member,
        "balance": [f"(${-value:,.2f})" if value < 0 else f"${value:,.2f}" for value in balance],
    }
    pd.DataFrame(written).to_csv("my.csv", index=False)
    assert (balance < 0).any() and (balance > 1000).any()
    return {"days": days, "income": income, "debt": debt, "children": children, "balance": balance} | {
        "reason": reason,
        "member": member,
    }


def least_squares(numbers, of_bin):
    """Coefficients by numpy in the table's units, of numbers as `of_bin` gives them and the middle for missing ones."""
    columns = []
    for name, middle in (("days", FIRST_DAY + 365.0), ("income", None), ("debt", 50.0), ("children", 2.5)):
        missing = np.isnan(numbers[name])
        columns.append(np.where(missing, middle or 0.0, of_bin(name, numbers[name])))
        columns += [missing] if middle else []
    reason = numbers["reason"]
    columns += [reason == "car", np.isin(reason, ["boat", "travel"]), reason == "", numbers["member"] == "yes"]
    X = np.column_stack([*columns, np.ones(len(reason))]).astype(float)
    return np.linalg.lstsq(X, of_bin("balance", numbers["balance"]), rcond=None)[0]


def middle_of_bin(name, values):
    """The middle of the bin that a number is in, by the bounds of the declaration."""
    if name == "children":
        return values
    if name == "days":
        starts = pd.date_range("2023-01-01", "2025-01-01", freq="MS").to_numpy().astype("datetime64[D]").astype(float)
        place = np.clip(np.searchsorted(starts, np.nan_to_num(values), side="right") - 1, 0, 23)
        return np.floor((starts[place] + starts[place + 1] - 1) / 2)  # a day
    low, high, bins = {"income": (0, 60_000, 60), "debt": (0, 100, 40), "balance": (-10_000, 90_000, 200)}[name]
    width = (high - low) / bins
    return low + (np.clip(np.floor((np.nan_to_num(values) - low) / width), 0, bins - 1) + 0.5) * width


def effects(coefficients):
    """The changes of the target, in dollars, that half of the bounds of each number make, or a level; and the target
    in their middle. A number that is misread moves these by more than the noise does.
    """
    numbers, halves, middles = [0, 2, 3, 5], [365, 30_000, 50, 2.5], [FIRST_DAY + 365, 30_000, 50, 2.5]
    found = np.array(coefficients)
    found[-1] += found[numbers] @ middles
    found[numbers] *= halves
    return found


def released(*more):
    assert main(["release", *LINE, "dataset.target=balance", "epsilon=1e9", "--out", "out", *more]) == 0
    table = pd.read_csv("out/coefficients.csv").set_index("feature")
    assert list(table.index) == list(NAMES)
    return effects(table["own_estimate"])


@pytest.mark.parametrize(
    ("settings", "dollars"),  # ten standard deviations
    [
        (["mechanism=ssp", "model=linear_statistics", "+design.exact=false"], 1),
        (["mechanism=gaussian_marginals", "model=linear_marginals"], 10),
    ],
)
def test_of_numbers_in_their_bins(settings, dollars, numbers):
    found = released(*settings)
    assert "Numbers were read as those of their bins" in Path("out/coefficients.md").read_text(encoding="utf-8")
    assert found == pytest.approx(effects(least_squares(numbers, middle_of_bin)), abs=dollars)


def test_of_exact_numbers(numbers):
    found = released("mechanism=ssp", "model=linear_statistics")
    assert "Numbers were read as they are in the table" in Path("out/coefficients.md").read_text(encoding="utf-8")
    assert found == pytest.approx(effects(least_squares(numbers, lambda _, values: values)), abs=1)
