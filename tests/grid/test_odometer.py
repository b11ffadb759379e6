"""The odometer adds up what all releases of a table spent, forgets none, and keeps to a limit."""

import fcntl
import json
import math
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from dpbench.data.dataset import Dataset
from dpbench.errors import UserError
from dpbench.grid.odometer import Odometer, TableKey
from dpbench.privacy.accounting import gaussian_epsilon, gaussian_mu, spent
from dpbench.privacy.budget import Budget
from dpbench.privacy.events import Gaussian
from dpbench.privacy.ledger import Ledger

BUDGET = Budget(1.0)
MU = gaussian_mu(1.0, 1e-5)
LEDGER = Ledger([Gaussian("sum", 1.0, 1 / MU)])


@pytest.fixture(autouse=True)
def salt(tmp_path, monkeypatch):
    monkeypatch.setenv("DPBENCH_SALT", str(tmp_path / "state" / "salt"))
    monkeypatch.chdir(tmp_path)


def key(path="my.csv", content="age\n1\n", name="csv"):
    with open(path, "w") as file:
        file.write(content)
    with open("my.yaml", "w") as file:
        file.write("age: {bounds: [0, 9], bins: 3}\n")
    return TableKey.of(
        Dataset.of({"_target_": "dpbench.data.tabular.load_csv", "name": name, "path": path, "domain": "my.yaml"})
    )


def spend(table, budget=BUDGET, ledger=LEDGER, limit=None):
    odometer = Odometer()
    return odometer.end(table, odometer.begin(table, "any", budget, limit), ledger, spent(ledger, budget.delta))


def test_releases_of_a_table_compose_at_one_delta():
    for count in (1, 2, 3):
        total = spend(key()).total
        assert total.delta == 1e-5 and total.epsilon == pytest.approx(gaussian_epsilon(math.sqrt(count) * MU, 1e-5))
    assert total.epsilon < 3 * 0.7  # far below the plain sum


def test_a_table_that_grows_or_is_copied_is_known_again_and_another_is_not():
    spend(key("my.csv", "age\n1\n"))
    assert len(spend(key("my.csv", "age\n1\n2\n")).entries) == 2
    assert len(spend(key("copy.csv", "age\n1\n2\n")).entries) == 3  # with what its original spent before it grew
    assert len(Odometer().of(key("my.csv", "age\n7\n")).entries) == 3
    assert Odometer().of(key("other.csv", "age\n5\n")).entries == ()
    assert Odometer().of(key("my.csv", "age\n8\n", name="another")).entries == ()


def test_the_log_is_its_owners_alone_and_tells_nothing_of_path_and_content(tmp_path):
    spend(key())
    path = tmp_path / "state" / "odometer.jsonl"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    text = path.read_text()
    assert "my.csv" not in text and all(
        line["entry"] in ("begun", "spent") for line in map(json.loads, text.split("\n")[:-1])
    )


def test_a_limit_refuses_before_a_release_begins_and_stays():
    table, odometer = key(), Odometer()
    spend(table, limit=2.5)
    spend(table)
    before = odometer.path.read_text()
    with pytest.raises(UserError, match=r"my.csv: earlier releases \(2\) spent epsilon = 1.4.*limit of 2.5"):
        spend(table, Budget(1.2))
    assert odometer.path.read_text() == before  # and nothing was entered
    odometer.set_limit(table, 4.0)
    assert len(spend(table).entries) == 3
    with pytest.raises(UserError, match="must be positive"):
        odometer.set_limit(table, 0.0)


def test_what_was_begun_counts_in_full_until_it_has_a_ledger():
    table, odometer = key(), Odometer()
    spend(table)
    begun = odometer.begin(table, "any", BUDGET)
    total = odometer.of(table).total
    assert (total.epsilon, total.delta) == (pytest.approx(2.0), pytest.approx(2e-5))
    odometer.take_back(begun)
    assert len(odometer.of(table).entries) == 1


def test_published_constants_that_spend_more_than_was_asked_are_held_to_the_limit():
    table, dear = key(), Ledger([Gaussian("sum", 1.0, 0.5 / MU)])
    with pytest.raises(UserError, match=r"exceeds the limit of 1\.5"):
        spend(table, ledger=dear, limit=1.5)
    assert Odometer().of(table).total.epsilon == pytest.approx(gaussian_epsilon(2 * MU, 1e-5))


def test_releases_between_other_neighbours_are_refused():
    spend(key())
    with pytest.raises(UserError, match="relation=add_remove"):
        spend(key(), Budget(1.0, relation="replace"))


def test_a_line_that_a_process_died_in_is_cut_off_and_a_damaged_one_refused():
    table, odometer = key(), Odometer()
    spend(table)
    with odometer.path.open("a") as file:
        file.write('{"entry": "begun", "id"')
    assert len(odometer.of(table).entries) == 1
    assert len(spend(table).entries) == 2
    lines = odometer.path.read_text().splitlines()
    odometer.path.write_text("\n".join([lines[0][:20], *lines[1:]]) + "\n")
    with pytest.raises(UserError, match=r"line 1 of .* is damaged"):
        spend(table)


def test_a_release_waits_while_another_process_is_in_the_log():
    table, odometer = key(), Odometer()
    spend(table)
    with odometer.path.open("r+b") as file, ThreadPoolExecutor(1) as pool:
        fcntl.flock(file, fcntl.LOCK_EX)
        waiting = pool.submit(odometer.begin, table, "any", BUDGET)
        with pytest.raises(TimeoutError):
            waiting.result(timeout=0.3)
        fcntl.flock(file, fcntl.LOCK_UN)
        assert waiting.result(timeout=10)
    assert len(odometer.of(table).entries) == 2


def test_releases_that_begin_together_keep_to_the_limit():
    """Each opens the log itself, as processes do."""
    table, odometer = key(), Odometer()
    odometer.set_limit(table, 2.0)

    def begin(_):
        try:
            return Odometer().begin(table, "any", Budget(0.1))
        except UserError:
            return None

    with ThreadPoolExecutor(8) as pool:
        begun = [one for one in pool.map(begin, range(40)) if one]
    found = odometer.of(table)
    assert len(begun) == len(found.entries) == 20 and found.total.epsilon == pytest.approx(2.0)
