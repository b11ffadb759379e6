"""The size of the sample, the limits and the budgets of an experiment."""

from collections import Counter

import pytest

from dpbench.config import compose
from dpbench.errors import UserError
from dpbench.grid.plan import make_plan, one_repetition
from dpbench.privacy.accounting import gaussian_epsilon


def test_the_size_of_the_sample_and_the_limits_are_groups_of_their_own():
    made = compose(["sample=smoke", "sample.train_rows=70", "sample.public_rows=5", "limits.seconds=9"])
    assert (made.sample.train_rows, made.sample.test_rows, made.sample.public_rows) == (70, [0.2, 500], 5)
    assert (made.limits.name, made.limits.seconds) == ("full", 9.0)


def test_delta_may_be_a_power_of_the_declared_number_of_training_rows():
    small, large = (compose(["delta=n**-1.1", f"sample.train_rows={n}"]).delta for n in (100, 1000))
    assert small == pytest.approx(100**-1.1) and large == pytest.approx(1000**-1.1)
    every = compose(["delta=n**-1", "dataset=liver_disorders", "sample.test_rows=45", "metric=[rel_mse_train]"])
    assert every.delta == pytest.approx(1 / 300), "no more rows than the card declares, without those for testing"


def test_delta_counts_the_rows_that_a_mechanism_sees():
    line = ["delta=n**-2", "dataset=liver_disorders", "mechanism=[aim]", "sample.test_rows=0.2"]
    split, authors = (compose([*line, f"sample.protocol={name}"]).delta for name in ("split", "authors"))
    assert (split, authors) == pytest.approx((276**-2, 345**-2))


def test_no_reference_is_fitted_to_its_test_rows():
    with pytest.raises(UserError, match=r"exact_table would release them as they are.*sample\.protocol=split"):
        compose(["mechanism=[aim,exact_table]", "sample.protocol=authors"])
    with pytest.raises(UserError, match=r"unknown sample\.protocol 'author'; did you mean 'authors'"):
        compose(["sample.protocol=author"])


def test_a_split_is_fresh_or_fixed():
    assert (compose([]).sample.split, compose(["sample.split=fixed"]).sample.split) == ("fresh", "fixed")
    with pytest.raises(UserError, match=r"unknown sample\.split 'fix'; did you mean 'fixed'"):
        compose(["sample.split=fix"])


@pytest.mark.parametrize("line", [["mu=[1]"], ["experiment=binagg_table2"]])
def test_an_epsilon_that_mu_would_overrule_is_refused(line):
    with pytest.raises(UserError, match="mu is set"):
        compose([*line, "epsilon=[1]"])
    assert compose([*line, "epsilon=[1]", "mu=null"]).epsilons == (1.0,)


def test_mu_is_converted_to_the_epsilon_that_it_has_at_delta():
    made = compose(["mu=[0.5,1]", "delta=1e-6"])
    assert made.epsilons == pytest.approx([gaussian_epsilon(mu, 1e-6) for mu in (0.5, 1)])


def test_a_mechanism_may_have_a_number_of_repetitions_of_its_own():
    line = ["mechanism=[ssp,adassp]", "model=[linear_statistics]", "metric=[mse]", "epsilon=1"]
    made = compose([*line, "repetitions={ssp: 3, others: 2}"])
    keys = [trial.fit.release for item in make_plan(made).releases for trial in item.trials]
    assert Counter(key.mechanism.name for key in keys) == {"ssp": 3, "adassp": 2}
    assert {key.repetition for key in keys if key.mechanism.name == "ssp"} == {0, 1, 2}
    assert len(one_repetition(made).trial_ids) == 2
    assert make_plan(compose([*line, "repetitions={ssp: 2, others: 2}"])).trial_ids == (
        make_plan(compose([*line, "repetitions=2"])).trial_ids
    )
    given = compose(["experiment=linreg_adult", "repetitions={aim: 3, others: 2}"])  # which has numbers of its own
    assert (given.own_repetitions, given.repetitions) == ({"aim": 3}, 2)
    with pytest.raises(UserError, match=r"repetitions must be a number, or .*repetitions=\{aim: 20, others: 5\}"):
        compose([*line, "repetitions={ssp: 3}"])
    with pytest.raises(UserError, match="unknown mechanism in repetitions 'sp'; did you mean 'ssp'"):
        compose([*line, "repetitions={sp: 3, others: 2}"])
    with pytest.raises(UserError, match=r"repetitions\.ssp must be a whole number of at least 1"):
        compose([*line, "repetitions={ssp: 0, others: 2}"])
