"""The split of private rows: neighbouring tables have neighbouring training tables, and only the secret gives them."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpbench.data.domain import Attribute, Domain
from dpbench.data.secret_split import coin_splitter, siphash
from dpbench.data.table import Table
from dpbench.errors import UserError

SECRET = bytes(range(32))
DOMAIN = Domain((Attribute.binned("x", -1, 1, 4), Attribute.categorical("a", "uvw")))
FEW = st.lists(st.tuples(st.sampled_from([-1.0, -0.0, 0.0, 0.3]), st.integers(0, 2)), min_size=24, max_size=40)


def table(records):
    x, a = (np.array(column) for column in zip(*records, strict=True))
    return Table(DOMAIN, np.stack([DOMAIN["x"].code(x), a], axis=1), {"x": x})


def records(part):
    return [(float(x), int(a)) for x, a in zip(part.numbers["x"], part.column("a"), strict=True)]


def split(rows, coins="records", *, name="one", probability=0.4, secret=SECRET):
    return coin_splitter(table(rows), secret)(name, probability, coins)


@pytest.mark.parametrize(("size", "expected"), [(1, 0x93F5F5799A932462), (2, 0x3F2ACC7F57C29BDB)])
def test_the_hash_is_siphash(size, expected):
    """The authors' vectors, for the messages 0 1 2 ... of 8 and 16 bytes under the key 0 1 2 ... 15."""
    words = np.frombuffer(bytes(range(8 * size)), dtype="<u8").astype(np.uint64)
    assert siphash([words[i : i + 1] for i in range(size)], bytes(range(16))) == [expected]


@given(rows=FEW, record=st.tuples(st.sampled_from([-1.0, 0.3, 0.7]), st.integers(0, 2)), data=st.data())
@settings(max_examples=60)
def test_one_record_more_changes_one_coin_wherever_it_stands_and_however_many_are_equal(rows, record, data):
    """Many rows are equal, and the order of the file is another one."""
    more = data.draw(st.permutations([*rows, record]))
    one, other = split(rows), split(more)
    added = Counter({record: 1})
    train = Counter(records(other.train)) - Counter(records(one.train))
    test = Counter(records(other.test)) - Counter(records(one.test))
    assert (train, test) in [(added, Counter()), (Counter(), added)]
    assert not Counter(records(one.train)) - Counter(records(other.train))
    assert not Counter(records(one.test)) - Counter(records(other.test))


@given(rows=FEW, record=st.tuples(st.just(0.7), st.integers(0, 2)), data=st.data())
@settings(max_examples=60)
def test_another_record_in_a_place_changes_one_place_of_one_part(rows, record, data):
    """The sizes stay as they are: mechanisms that are private under `replace` take them for public."""
    place = data.draw(st.integers(0, len(rows) - 1))
    one, other = split(rows, "positions"), split([*rows[:place], record, *rows[place + 1 :]], "positions")
    assert (len(one.train), len(one.test)) == (len(other.train), len(other.test))
    changed = [
        sum(a != b for a, b in zip(records(x), records(y), strict=True))
        for x, y in ((one.train, other.train), (one.test, other.test))
    ]
    assert sorted(changed) == [0, 1]


def test_with_coins_of_records_a_replaced_record_may_change_the_size_so_they_are_not_for_replace():
    rng = np.random.default_rng(0)
    rows = [(float(x), int(a)) for x, a in zip(rng.uniform(-1, 1, 300), rng.integers(0, 3, 300), strict=True)]
    sizes = {len(split([*rows[:-1], (float(x), 0)]).train) for x in rng.uniform(-1, 1, 20)}
    assert len(sizes) == 2


def test_the_coins_are_fair_and_independent_from_name_to_name_and_of_equal_rows():
    """Six parts of 20,000 rows, half of them equal: each within 5 standard deviations (once in 300,000 by chance)."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-1, 1, 10_000), np.zeros(10_000)])
    rows, number = table([(one, 0) for one in x]), {one: i for i, one in enumerate(x)}
    for coins in ("records", "positions"):
        splitter, tested = coin_splitter(rows, SECRET), []
        for name in ("one", "two", "three"):
            part = splitter(name, 0.3, coins).test
            assert abs(len(part) - 6000) < 5 * np.sqrt(20_000 * 0.3 * 0.7)
            equal = np.sum(part.numbers["x"] == 0)
            assert abs(equal - 3000) < 5 * np.sqrt(10_000 * 0.3 * 0.7)
            tested.append({number[one] for one in part.numbers["x"]} - {10_000, 19_999})
        both = len(tested[0] & tested[1])
        assert abs(both - 900) < 5 * np.sqrt(10_000 * 0.09 * 0.91)


def test_another_secret_gives_another_split_and_the_same_one_the_same():
    rows = [(x, 0) for x in np.linspace(-1, 1, 50)]
    assert records(split(rows).train) == records(split(rows).train)
    assert records(split(rows).train) != records(split(rows, secret=bytes(32)).train)
    assert sorted(records(split(rows, probability=0.0).train)) == rows


@pytest.mark.parametrize(("probability", "part"), [(1e-9, "testing"), (1 - 1e-9, "training")])
def test_coins_that_leave_a_part_empty_are_reported(probability, part):
    with pytest.raises(UserError, match=f"the coins leave no row for {part}"):
        split([(0.0, 0), (0.3, 1)], probability=probability)
