"""What the methods of query release share: the mixture that they end with."""

import numpy as np
import pytest

from dpbench.errors import NoEstimateError
from dpbench.inference.product_queries import softmax
from dpbench.inference.queries import QueryWorkload
from dpbench.mechanisms.query_release import mixture_of

SIZES = {"a": 2, "b": 3}
QUERIES = QueryWorkload(SIZES, (("a", "b"), ("b",)))


def test_logits_that_are_no_numbers_have_no_estimate():
    with pytest.raises(NoEstimateError, match="after 7 rounds"):
        mixture_of(SIZES, np.full((5, 4), np.nan), 10, 7)
    logits = np.random.default_rng(0).normal(size=(5, 4))
    model = mixture_of(SIZES, logits, 10, 7)
    expected = 10 * QUERIES.of_products(softmax(logits, [2, 3]).T)
    np.testing.assert_allclose(np.concatenate([t.ravel() for t in model.answer(QUERIES.cliques).values()]), expected)
