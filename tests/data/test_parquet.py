"""Rows that are counted from a parquet file, batch by batch."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dpbench.data import parquet
from dpbench.data.coding import code_frame
from dpbench.data.domain import Attribute, Domain
from dpbench.data.parquet import ParquetTable
from dpbench.errors import UserError
from dpbench.mechanisms.aim_grem import aim_grem
from dpbench.mechanisms.gaussian_marginals import gaussian_marginals
from dpbench.mechanisms.residual_planner import residual_planner
from dpbench.privacy.budget import Budget
from dpbench.releases import Marginals

SEX, KIDS = Attribute.categorical("sex", ["F", "M"]), Attribute.categorical("kids", range(4))
DOMAIN = Domain((SEX, Attribute.binned("age", 0, 100, 10), KIDS))


@pytest.fixture
def frame(monkeypatch):
    monkeypatch.setattr(parquet, "BATCH", 100)  # the file has three batches
    rng = np.random.default_rng(0)
    known = {"kids": rng.integers(0, 4, 250), "age": rng.random(250) * 100, "sex": rng.choice(["F", "M"], 250)}
    return pd.DataFrame({"name": "x", **known})


def written(frame, folder):
    frame.to_parquet(folder / "rows.parquet")
    return ParquetTable(folder / "rows.parquet", DOMAIN)


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("mechanism", [gaussian_marginals, residual_planner, aim_grem])
def test_a_release_is_that_of_the_same_rows_in_memory(mechanism, relation, frame, tmp_path):
    table, budget = code_frame(frame, DOMAIN, ignore=["name"]), Budget(1.0, 1e-5, relation)
    one, other = (mechanism(rows, budget, np.random.default_rng(0)) for rows in (table, written(frame, tmp_path)))
    assert one.ledger.to_list() == other.ledger.to_list()
    for clique, values in one[Marginals].tables.items():
        np.testing.assert_array_equal(values, other[Marginals].tables[clique])


def test_what_does_not_fit_the_domain_is_named_or_left_out(frame, tmp_path):
    frame.loc[120, "sex"] = "X"
    rows = written(frame, tmp_path)
    with pytest.raises(UserError, match=r"rows from 100: values outside .*\n.*'sex', row 21: 'X' is not"):
        len(rows)
    frame.loc[:99, "sex"] = "X"  # all of the first batch
    dropped = replace(written(frame, tmp_path), outside="drop")
    assert len(dropped) == 149
    assert dropped.marginals([("sex",)])["sex",].sum() == 149
    with pytest.raises(UserError, match="declared but missing: age"):
        len(written(frame.drop(columns="age"), tmp_path))


def test_a_file_that_is_no_parquet_file_is_refused(tmp_path):
    (tmp_path / "rows.parquet").write_text("sex,age\nF,3\n")
    for name in ("rows.parquet", "none.parquet"):
        with pytest.raises(UserError, match=f"{name} cannot be read as a parquet file: "):
            len(ParquetTable(tmp_path / name, DOMAIN))


LARGE = """
import resource, sys
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
from dpbench.data.domain import Attribute, Domain
from dpbench.data.parquet import ParquetTable
from dpbench.mechanisms.residual_planner import residual_planner
from dpbench.privacy.budget import Budget
from dpbench.releases import Marginals

rng, names, million = np.random.default_rng(0), "abcdefgh", 1_000_000
schema = pa.schema([(name, pa.int8()) for name in names])
with pq.ParquetWriter(sys.argv[1], schema) as writer:
    for _ in range(50):
        columns = [pa.array(rng.integers(0, 10, million, dtype=np.int8)) for _ in names]
        writer.write_batch(pa.record_batch(columns, schema=schema))
rows = ParquetTable(sys.argv[1], Domain(tuple(Attribute.categorical(name, range(10)) for name in names)))
release = residual_planner(rows, Budget(1.0, 1e-5, "add_remove"), np.random.default_rng(0), workload=3)
tables = release[Marginals].tables.values()
assert len(tables) == 56
assert all(abs(table / (50 * million) - 0.001).max() < 1e-4 for table in tables)
"""


@pytest.mark.slow
def test_50_000_000_rows_are_released_within_3_gb_where_their_codes_alone_would_take_them(tmp_path):
    """8 attributes of 8 bytes are 3.2 GB. A cell has 50,000 rows, give or take 224 and the noise: 22 deviations."""
    subprocess.run([sys.executable, "-c", LARGE, tmp_path / "rows.parquet"], check=True)
