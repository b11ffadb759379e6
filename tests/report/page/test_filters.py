import pytest

from dpbench.report.page.filters import Filters

FILTERS = Filters({"adult": "Adult", "acs": "Adult, others"}, ["DP-SGD", "DP-SGD, optimistic", "SSP"], ["0.1", "1"])


@pytest.mark.parametrize(
    ("cells", "tags"),
    [
        (["Adult: DP-SGD, optimistic (paper)", "0.1"], {"data-d": "0", "data-m": "1"}),
        (["Adult, others: SSP [rows=5]"], {"data-d": "1", "data-m": "2"}),
        (["Adult, δ = 1e-05: SSP"], {"data-d": "0", "data-m": "2"}),
        (["Adult", "DP-SGD"], {"data-d": "0", "data-m": "0"}),
        (["SSP (tight)"], {"data-m": "2"}),
        (["linreg_adult", "adult", "SSP"], {"data-d": "0", "data-m": "2"}),
        (["Adults: SSPs"], {}),
    ],
)
def test_the_data_set_and_the_method_of_a_row(cells, tags):
    assert FILTERS.row(cells) == tags


def test_the_epsilon_or_the_method_of_a_column():
    assert [FILTERS.column(text) for text in ("ε = 1", "ε = inf", "SSP (paper)", "se")] == [
        {"data-e": "1"}, {}, {"data-m": "2"}, {},
    ]  # fmt: skip
