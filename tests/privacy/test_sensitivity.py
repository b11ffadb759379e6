"""Sensitivities against every pair of records of small domains, and a search among the records of larger ones."""

import math
from itertools import accumulate, combinations, product

import numpy as np
import pytest
from scipy.optimize import minimize

from dpbench.data.domain import Attribute, Domain
from dpbench.data.encode import Design
from dpbench.data.table import Table
from dpbench.inference.residuals import centred
from dpbench.privacy import sensitivity
from dpbench.privacy.sensitivity import (
    of_cross,
    of_gram,
    of_least_eigenvalue,
    of_marginal,
    of_monomials,
    of_products,
    of_residuals,
    of_square,
    of_triangle,
)

RELATIONS = ("add_remove", "replace")
TARGETS = [(-1.0, 7.0), (2.0, 5.0), (-6.0, -1.0), (0.0, 3.0)]
FEATURES = {
    "numbers": [(-3.0, 1.0), (2.0, 5.0), (-1.0, 1.0)],
    "levels": ["pqr", "uv"],
    "both": [(-3.0, 1.0), "pqr", "o", (-2.0, 2.0)],
    "one": [(-1.0, 4.0)],
    "missing": [(-3.0, 1.0, "missing"), (-0.2, 0.1, "missing"), "uv", (2.0, 5.0)],
}


def design_of(features, target, **settings):
    attributes = [
        Attribute.categorical(f"x{i}", part) if isinstance(part, str) else Attribute.binned(f"x{i}", *part[:2], 2)
        for i, part in enumerate(features)
    ]
    attributes = [
        a.with_missing() if part[-1] == "missing" else a for a, part in zip(attributes, features, strict=True)
    ]
    domain = Domain((*attributes, Attribute.binned("y", *target, 2)))
    return Design(domain, "y", **{"scaled": False, "exact": True, **settings})


def corners_of(design):
    """X and y of the corners of the domain: every combination of the ends of the numbers and of the levels."""
    ends = [range(a.size) if a.bounds is None else a.bounds for a in design.domain.attributes]
    parts = [[*end, np.nan] if a.missing else end for a, end in zip(design.domain.attributes, ends, strict=True)]
    rows = np.array(list(product(*parts)), dtype=float)
    return design.encode(table_of(design, rows))


def table_of(design, rows):
    """The table of these numbers and codes (n, d)."""
    attributes = list(enumerate(design.domain.attributes))
    numbers = {a.name: rows[:, j] for j, a in attributes if a.numeric}
    codes = [a.code(rows[:, j]) if a.numeric else rows[:, j] for j, a in attributes]
    return Table(design.domain, np.column_stack(codes).astype(np.int64), numbers)


def gram(rows):
    return (rows[:, :, None] * rows[:, None, :]).reshape(len(rows), -1)


def triangle(rows):
    upper = np.triu_indices(rows.shape[1])
    return rows[:, upper[0]] * rows[:, upper[1]]


RELEASED = {  # each statistic of one record, one row per record; of A'A, A = [X, y], as well as of X'X
    "gram": lambda X, y: gram(X),
    "gram of A": lambda X, y: gram(np.column_stack([X, y])),
    "triangle": lambda X, y: triangle(X),
    "triangle of A": lambda X, y: triangle(np.column_stack([X, y])),
    "cross": lambda X, y: X * y[:, None],
    "square": lambda X, y: y[:, None] ** 2,
}


def bounds(design, relation):
    return {
        "gram": of_gram(design, relation),
        "gram of A": of_gram(design, relation, target=True),
        "triangle": of_triangle(design, relation),
        "triangle of A": of_triangle(design, relation, target=True),
        "cross": of_cross(design, relation),
        "square": of_square(design, relation),
    }


def largest(values, relation):
    """The largest move by one record (n, k): of its own, or from any other."""
    if relation == "add_remove":
        return np.linalg.norm(values, axis=1).max()
    squares = (values**2).sum(axis=1)
    return math.sqrt(max((squares[:, None] + squares - 2 * values @ values.T).max(), 0.0))


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("settings", [{}, {"intercept": False, "categorical": "one_hot"}, {"scaled": True}])
def test_bounds_hold_at_all_corners_and_are_attained(features, target, settings):
    """All of them under add/remove; under replace that of X'y, and those of a matrix where two records can share no
    entry, as two of one-hot attributes can without an intercept. y'y changes most where y is 0, if it can be."""
    design = design_of(FEATURES[features], target, **settings)
    X, y = corners_of(design)
    zero = np.clip(0.0, *design.target_range)
    X, y = np.concatenate([X, X[:1]]), np.append(y, zero)
    for relation in RELATIONS:
        found = {name: largest(values(X, y), relation) for name, values in RELEASED.items()}
        for name, bound in bounds(design, relation).items():
            assert found[name] <= bound * (1 + 1e-12), name
            alone = features == "levels" and not design.intercept and "of A" not in name
            if relation == "add_remove" or name in ("cross", "square") or alone:
                assert found[name] == pytest.approx(bound, rel=1e-6), name


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("settings", [{}, {"intercept": False, "categorical": "one_hot"}, {"scaled": True}])
def test_each_entry_alone_moves_as_far_as_the_records_at_the_ends_and_at_zero_move_it(features, target, settings):
    design = design_of(FEATURES[features], target, **settings)
    attributes = design.domain.attributes
    parts = [
        range(a.size)
        if a.bounds is None
        else [*a.bounds, np.clip(0.0, *a.bounds), np.mean(a.bounds), *([np.nan] if a.missing else [])]
        for a in attributes
    ]
    X, y = design.encode(table_of(design, np.array(list(product(*parts)), dtype=float)))
    entries = gram(np.column_stack([X, y]))
    moves = {"add_remove": np.abs(entries).max(axis=0), "replace": np.ptp(entries, axis=0)}
    for relation in RELATIONS:
        assert of_products(design, relation).ravel() == pytest.approx(moves[relation], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("target", TARGETS)
def test_no_record_inside_the_domain_does_more_than_the_corners(relation, target):
    """20 climbs from random pairs of records, one coordinate at a time; X'y reaches its bound, none passes one."""
    design, rng = design_of([(-3.0, 1.0), (2.0, 5.0), (-1.0, 1.0)], target), np.random.default_rng(0)
    low, high = (np.append(end, side) for end, side in zip(design.box, design.target_range, strict=True))
    climbs = np.arange(20)
    for name, bound in bounds(design, relation).items():
        pairs, values = rng.uniform(low, high, (20, 2, len(low))), np.zeros(20)
        for _ in range(200):
            others = pairs.copy()
            row, column, which = rng.integers(2, size=20), rng.integers(len(low), size=20), rng.integers(3, size=20)
            others[climbs, row, column] = np.choose(
                which, [low[column], high[column], rng.uniform(low[column], high[column])]
            )
            flat = others.reshape(40, -1)
            released = RELEASED[name](flat[:, :-1], flat[:, -1]).reshape(20, 2, -1)
            moves = released if relation == "add_remove" else released[:, :1] - released[:, 1:]
            moved = np.linalg.norm(moves, axis=2).max(axis=1)
            up = moved >= values
            pairs[up], values[up] = others[up], moved[up]
        best = values.max()
        assert best <= bound * (1 + 1e-12), name
        if name == "cross" or (relation == "add_remove"):
            assert best == pytest.approx(bound, rel=1e-6), name


def test_the_cross_of_two_records_is_twice_that_of_one_for_a_symmetric_target_and_less_for_others():
    for target, ratio in [((-2.0, 2.0), 2.0), ((-1.0, 2.0), 1.5)]:
        design = design_of(["pqr"], target)
        assert of_cross(design, "replace") == pytest.approx(ratio * of_cross(design, "add_remove"))
    one_sided = design_of(["uv"], (0.0, 3.0), intercept=False, categorical="one_hot")
    assert of_cross(one_sided, "replace") == pytest.approx(math.sqrt(2) * of_cross(one_sided, "add_remove"))


@pytest.mark.parametrize("relation", RELATIONS)
def test_marginals(relation):
    cells = np.eye(4)
    l1, l2 = of_marginal(relation)
    moves = cells if relation == "add_remove" else (cells[:, None] - cells[None]).reshape(-1, 4)
    assert np.abs(moves).sum(axis=1).max() == l1
    assert np.linalg.norm(moves, axis=1).max() == l2


def test_the_least_eigenvalue_moves_by_the_largest_row_and_no_more():
    """Random tables; and one that is large in all directions but that of a corner, where the bound is reached."""
    design, rng = design_of([(-3.0, 1.0), (2.0, 5.0)], (0.0, 1.0), intercept=False), np.random.default_rng(0)
    low, high = design.box
    bound = of_least_eigenvalue(design)

    def least(*rows):
        return np.linalg.eigvalsh(sum(np.outer(row, row) for row in rows))[0]

    for _ in range(500):
        table = [rng.uniform(low, high) for _ in range(rng.integers(1, 9))]
        a, b = rng.uniform(low, high, (2, 2))
        assert abs(least(*table, a) - least(*table)) <= bound
        assert abs(least(*table, a) - least(*table, b)) <= bound
    corner, across = np.array([-3.0, 5.0]), np.array([1.0, 0.6])  # orthogonal; the second stands for many rows
    assert least(1e4 * across, corner) - least(1e4 * across) == pytest.approx(bound, rel=1e-6)


# --- monomials of bounded rows ---------------------------------------------------------------------------------------


def monomials(x, y, plain, times_y):
    """All sqrt(p_m) t_m(x) and sqrt(q_m) y t_m(x): each tensor power of x has the norms and products of t_m."""
    powers = list(accumulate([x] * len(plain), lambda tensor, one: np.multiply.outer(tensor, one).ravel()))
    plainly = [math.sqrt(p) * tensor for p, tensor in zip(plain, powers, strict=True)]
    return np.concatenate([*plainly, *(math.sqrt(q) * y * tensor for q, tensor in zip(times_y, powers, strict=False))])


def furthest(radius, plain, relation, times_y, largest, d=2):
    """The largest move that 10 climbs find, over x, z in the ball and y, w in [0, largest]."""
    rng = np.random.default_rng(0)

    def move(v):
        one, two = (radius * u / max(1.0, np.linalg.norm(u)) for u in (v[:d], v[d : 2 * d]))
        y, w = largest * np.sin(v[-2:]) ** 2
        other = monomials(two, w, plain, times_y) if relation == "replace" else 0.0
        return -float(np.sum((monomials(one, y, plain, times_y) - other) ** 2))

    return max(math.sqrt(-minimize(move, rng.normal(size=2 * d + 2), tol=1e-14).fun) for _ in range(10))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    ("radius", "plain", "times_y", "largest"),
    [
        (1.0, [1, 1], [], 0.0),
        (0.5, [1, 1], [], 0.0),  # the maximum is at t = -R^2
        (3.0, [1, 0.2], [], 0.0),
        (1.0, [1, 1, 1], [], 0.0),
        (1.0, [1, 1], [1, 1], 5.0),
        (0.7, [1, 0.5], [2.0, 0.1], 3.0),
        (1.0, [1, 1e-6], [1e-6, 1], 1.0),  # the maximum is at counts of 1 and 0
    ],
)
def test_the_sensitivity_of_monomials_is_met_and_never_exceeded(radius, plain, times_y, largest, relation):
    bound = of_monomials(radius, plain, relation, times_y=times_y, largest=largest)
    found = furthest(radius, plain, relation, times_y, largest)
    assert found <= bound * (1 + 1e-12)
    assert found == pytest.approx(bound, rel=1e-6)


def test_monomials_agree_with_the_papers_lemmas_where_these_hold():
    """Lemmas 3.4.1 and 3.4.2 of Kulkarni et al. 2021, and the m = 6 of their section 3.4.1."""
    for radius, c in [(1.0, 1.0), (1.5, 0.7)]:
        lemma = math.sqrt(1 / (2 * c) + 2 * radius**2 + 2 * c * radius**4)
        assert of_monomials(radius, [1, c], "replace") == pytest.approx(lemma)
    for largest, c2, c3, c4 in [(5.0, 1.0, 1.0, 1.0), (2.0, 0.8, 1.5, 1.1)]:
        b, c = 1 + c3 * largest**2, c2 + c4 * largest**2
        found = of_monomials(1.0, [1, c2], "replace", times_y=[c3, c4], largest=largest)
        assert found == pytest.approx((2 * c + b) / math.sqrt(2 * c))
    assert of_monomials(1.0, [1] * 6, "replace") ** 2 == pytest.approx(12.72, abs=0.01)


def test_the_papers_poisson_lemma_is_exceeded_where_noise_scales_differ_much():
    """c_2, c_3 near 0 and c_4 = 1: the lemma has 4.5, and x, y = 1 against -x, w = 0 is 4 + 1 apart."""
    x = np.array([1.0, 0.0])
    one, two = monomials(x, 1.0, [1, 1e-9], [1e-9, 1]), monomials(-x, 0.0, [1, 1e-9], [1e-9, 1])
    assert np.sum((one - two) ** 2) == pytest.approx(5.0)
    assert of_monomials(1.0, [1, 1e-9], "replace", times_y=[1e-9, 1], largest=1.0) ** 2 == pytest.approx(5.0)


def residuals_of_records(sizes, weights):
    """The weighted residuals of every record of a domain, one per row."""
    found = []
    for record in product(*map(range, sizes.values())):
        table = np.zeros(tuple(sizes.values()))
        table[record] = 1
        parts = [
            w * centred(table.sum(axis=tuple(i for i, name in enumerate(sizes) if name not in r)))
            for r, w in weights.items()
        ]
        found.append(np.concatenate([part.ravel() for part in parts]))
    return np.array(found)


@pytest.mark.parametrize(
    "sizes", [{"a": 2, "b": 3, "c": 4}, {"a": 2, "b": 2, "c": 2, "d": 2}, {"a": 3, "b": 1, "c": 2}]
)
@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("total", [True, False])
def test_of_residuals_is_that_of_the_worst_of_all_pairs_of_records(monkeypatch, sizes, degree, total):
    rng = np.random.default_rng(degree)
    cliques = [r for k in range(0 if total else 1, degree + 1) for r in combinations(sizes, k)]
    weights = {r: float(rng.uniform(0.5, 3)) for r in cliques}
    rows = residuals_of_records(sizes, weights)
    apart = max(np.linalg.norm(one - two) for one, two in product(rows, rows))
    assert of_residuals(sizes, weights, "add_remove") == pytest.approx(np.linalg.norm(rows, axis=1).max())
    assert of_residuals(sizes, weights, "replace") == pytest.approx(apart)
    monkeypatch.setattr(sensitivity, "MOST_EXACT", 0)  # as of many attributes: a bound
    bound = of_residuals(sizes, weights, "replace")
    assert apart * (1 - 1e-9) <= bound <= 1.3 * apart


def test_of_residuals_of_many_attributes_is_a_bound_that_takes_seconds():
    """Of 40 binary attributes in pairs: 780 pairs, in which no two records can differ most all at once."""
    sizes = {f"x{i}": 2 for i in range(40)}
    weights = {r: 1.0 for k in range(1, 3) for r in combinations(sizes, k)}
    found = of_residuals(sizes, weights, "replace") ** 2
    # Of two records that differ in k attributes the squared distance is 2 k + k (40 - k).
    exact = max(2 * k + k * (40 - k) for k in range(41))
    assert exact <= found <= 2.1 * exact
