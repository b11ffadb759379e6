"""The tables that scikit-learn ships."""

import numpy as np
import pytest

from dpbench.data.dataset import Dataset
from dpbench.data.encode import Design
from dpbench.data.load import fingerprint, load_dataset
from dpbench.errors import UserError


def test_diabetes_is_that_of_least_angle_regression(node):
    config = node("diabetes")
    table = load_dataset(Dataset.of(config))
    assert len(table) == config["card"]["rows"] == 442 and len(Design(table.domain, "target").columns) == 11
    assert table.domain["sex"].levels == ("1", "2")
    names = [name for name in table.domain.names if name not in ("sex", "target")]
    X = np.column_stack([np.ones(442), table.column("sex"), *(table.numbers[name] for name in names)])
    y = table.numbers["target"]
    residuals = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
    assert 1 - residuals.var() / y.var() == pytest.approx(0.5177, abs=1e-4), "R2 of the paper's Table 1"


def test_breast_cancer_has_the_means_and_the_names_of_its_classes(node):
    config = node("breast_cancer")
    table = load_dataset(Dataset.of(config))
    assert len(table) == config["card"]["rows"] == 569 and len(table.domain.names) == 11
    assert all(name.startswith("mean ") for name in table.domain.names[:-1])
    malignant = table.column("target") == table.domain["target"].levels.index("malignant")
    radius = table.numbers["mean radius"]
    assert malignant.sum() == 212 and radius[malignant].mean() > 1.4 * radius[~malignant].mean()


@pytest.mark.parametrize("name", ["diabetes", "breast_cancer"])
def test_bounds_are_round_numbers_beyond_all_values(node, name):
    config = node(name)
    table = load_dataset(Dataset.of(config))
    assert "round numbers" in config["unpaid"]
    for attribute in Dataset.of(config).domain.attributes:
        if attribute.numeric:
            lower, upper = config["attributes"][attribute.name]["bounds"]
            values = table.numbers[attribute.name]
            assert lower <= values.min() and values.max() < upper
            assert all(float(f"{bound:.2g}") == bound for bound in (lower, upper)), "two digits at most"


def test_other_numbers_and_other_tables_are_refused(node):
    config = node("diabetes")
    with pytest.raises(UserError, match="install the version of requirements"):
        load_dataset(Dataset.of({**config, "sha256": "0" * 64}))
    with pytest.raises(UserError, match="breast_cancer"):
        load_dataset(Dataset.of({**config, "table": "breast"}))
    assert fingerprint(Dataset.of(config))["parameters"] == {"table": "diabetes", "sha256": config["sha256"]}
