"""Marginals: what was measured and with which noise."""

import numpy as np
import pytest

from dpbench.errors import ContractError
from dpbench.grid.tiny_tables import tiny_table
from dpbench.mechanisms.aim import aim
from dpbench.mechanisms.exact import exact_table
from dpbench.mechanisms.gaussian_marginals import gaussian_marginals
from dpbench.mechanisms.mst import mst
from dpbench.mechanisms.mwem_pgm import mwem_pgm
from dpbench.privacy.budget import Budget
from dpbench.privacy.events import Gaussian
from dpbench.releases import Marginals, Release

TABLE = tiny_table()


@pytest.mark.parametrize("mechanism", [aim, mst, mwem_pgm, gaussian_marginals])
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_the_noise_of_the_measured_cliques_is_that_of_the_ledger(mechanism, relation):
    made = mechanism(TABLE, Budget(1.0, 1e-5, relation), np.random.default_rng(0), iterations=50)
    drawn = [e for e in made.ledger.events if isinstance(e, Gaussian)]
    assert [f"marginal {','.join(clique)}" for clique, _ in made[Marginals].noise] == [e.label for e in drawn]
    sds = [sd for _, sd in made[Marginals].noise]
    assert sds == pytest.approx([e.sensitivity * e.multiplier for e in drawn], rel=1e-15)


def test_exact_marginals_have_no_noise():
    made = exact_table(TABLE, Budget(float("inf")), np.random.default_rng(0))
    assert made[Marginals].noise == ()


def test_order_cliques_and_noise_are_stored():
    tables = {clique: TABLE.marginal(clique) for clique in (("work", "sex"), ("age",), ())}
    part = Marginals(tables, ((("work",), 1.5), (("age", "sex"), 2.0)))
    back = Marginals.from_parts(TABLE.domain, *part.to_parts())
    assert list(back.tables) == list(tables)
    assert back.noise == part.noise
    assert not back.of_residuals
    residuals = Marginals(tables, part.noise, of_residuals=True)
    assert Marginals.from_parts(TABLE.domain, *residuals.to_parts()).of_residuals
    assert all(np.array_equal(back.tables[clique], tables[clique]) for clique in tables)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (Marginals({}, ((("height",), 1.0),)), "not of .'height',."),
        (Marginals({}, ((("age",), float("nan")),)), "the noise of the marginals"),
        (Marginals({"age": TABLE.marginal(("age",))}), "a tuple of attributes"),
    ],
)
def test_cliques_must_be_of_the_domain_and_noise_a_number(part, message):
    with pytest.raises(ContractError, match=message):
        part.check(TABLE.domain)


def test_a_large_workload_may_have_noise_of_any_length():
    Marginals({}, tuple((("age", "sex", "work"), 1.0) for _ in range(20_000))).check(TABLE.domain)


def test_releases_of_other_cliques_have_another_outline():
    one, two = (Release(TABLE.domain, Budget(1.0), None, (Marginals({r: TABLE.marginal(r)}),)) for r in [("age",), ()])
    assert one.outline != two.outline
