"""Fire: rows in any order are one table (on made-up rows), and the real file where a mirror has it."""

import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pytest

from dpbench.data.dataset import Dataset
from dpbench.data.encode import Design
from dpbench.data.fetch import sort_rows, verify
from dpbench.data.load import check, fingerprint, load_dataset
from dpbench.errors import UserError

HEADER = (
    "ALS Unit,Battalion,Call Final Disposition,Call Type,Call Type Group,City,Final Priority,Fire Prevention District,"
    "Neighborhooods - Analysis Boundaries,Original Priority,Priority,Station Area,Supervisor District,Unit Type,"
    "Zipcode of Incident"
)
# Nobody's calls.
ROWS = ["1,10,14,30,4,8,1,10,41,7,7,45,11,9,27", "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0", "0,0,0,2,0,0,0,0,0,0,2,0,0,0,0"]


def text(rows):
    return "\n".join([HEADER, *rows]) + "\n"


@pytest.fixture
def made_up(node, places, monkeypatch):
    """made_up(rows) -> Fire's node with these rows in a mirror; its checksum is that of ROWS."""
    monkeypatch.setenv("DPBENCH_DATA_MIRRORS", str(places / "mirror"))

    def put(rows):
        config = node("fire")
        (places / "mirror").mkdir(exist_ok=True)
        (places / "mirror" / "fire.csv").write_text(text(rows))
        config["sources"][0]["sha256"] = hashlib.sha256(sort_rows(text(ROWS).encode())).hexdigest()
        return {**config, "offline": True}

    return put


def test_rows_in_any_order_are_the_same_table(made_up):
    first = load_dataset(Dataset.of(made_up(ROWS)))
    assert first.column("Priority").tolist() == [0, 2, 7]
    again = load_dataset(Dataset.of(made_up([ROWS[1], ROWS[0], ROWS[2]])))
    assert np.array_equal(first.codes, again.codes)


@pytest.mark.parametrize("rows", [ROWS[:2], [*ROWS, ROWS[0]], [ROWS[0], ROWS[1], ROWS[2].replace("2", "3")]])
def test_other_rows_are_refused(made_up, rows):
    with pytest.raises(UserError, match=r"fire\.csv: another sha256"):
        load_dataset(Dataset.of(made_up(rows)))


def test_codes_have_names(made_up):
    table = load_dataset(Dataset.of(made_up(ROWS)))
    last = {a.name: a.levels[a.size - 1] for a in table.domain.attributes if not a.numeric}
    assert table.codes[-1].tolist() == [a.size - 1 for a in table.domain.attributes]
    assert list(last.values())[:5] == ["true", "B09", "Multi-casualty Incident", "Watercraft in Distress", "(empty)"]
    assert list(last.values())[5:9] == ["Brisbane", "3", "None", "McLaren Park"]
    assert list(last.values())[9:] == ["1", "(empty)", "None", "AIRPORT", "(empty)"]


def test_names_with_spaces_can_be_dropped(node):
    config = node("fire", "drop=[Original Priority,'Final Priority']", "target=Priority")
    domain = Dataset.of(config).domain
    assert len(domain.names) == 13
    assert "Original Priority" not in domain.names
    assert "Call Type=Traffic Collision" in Design(domain, "Priority").columns


def test_message_says_how_to_get_it(node, places):
    with pytest.raises(UserError) as caught:
        load_dataset(Dataset.of({**node("fire"), "offline": True}))
    for part in (
        "`dpbench data fetch fire`",
        "data/fire.zip",
        "fire/priv.csv and fire/pub.csv of that zip file, joined",
        "in any order",
        "a folder with fire.csv (or fire.csv.gz) in DPBENCH_DATA_MIRRORS",
    ):
        assert part in str(caught.value)


def test_identity_needs_no_file(node, places):
    assert list(fingerprint(Dataset.of(node("fire")))["sources"]) == ["fire/fire.csv"]


# --- the real file ---------------------------------------------------------------------------------------


@pytest.fixture
def fire(node):
    config = node("fire")
    if any(state == "absent" for _, state, _ in verify(Dataset.of(config).sources)):
        pytest.skip("fire.csv is in no folder of DPBENCH_DATA_MIRRORS")
    return config


@pytest.fixture
def mirror():
    for folder in os.environ.get("DPBENCH_DATA_MIRRORS", "").split(os.pathsep):
        if folder and (Path(folder) / "fire" / "fire-domain.json").is_file():
            return Path(folder)
    pytest.skip("fire/fire-domain.json is in no folder of DPBENCH_DATA_MIRRORS")


def test_real_fire_is_table_1_of_dd_ssp(fire, mirror):
    table = load_dataset(Dataset.of(fire))
    assert table.codes.shape == (305_119, 15)
    theirs = json.loads((mirror / "fire" / "fire-domain.json").read_text())
    assert list(table.domain.sizes.items()) == list(theirs.items())
    assert [attribute.name for attribute in table.domain.attributes if attribute.numeric] == ["Priority"]
    assert "305,119 rows x 15 attributes" in check(Dataset.of(fire))


def test_real_fire_holds_the_test_rows_of_dd_ssp(fire, mirror):
    if not (mirror / "ddssp" / "fire_test.csv").is_file():
        pytest.skip("ddssp/fire_test.csv is in no folder of DPBENCH_DATA_MIRRORS")
    theirs = np.loadtxt(mirror / "ddssp" / "fire_test.csv", delimiter=",", skiprows=1, dtype=np.int64)
    rows = {row.tobytes() for row in load_dataset(Dataset.of(fire)).codes}
    assert len(rows) == 305_119 - 242_855  # the repeats that the card counts
    assert all(row.tobytes() in rows for row in theirs)


def test_real_fire_fits_the_names_of_its_levels(fire):
    """What the names of two attributes say of each other holds in the rows."""
    table = load_dataset(Dataset.of(fire))

    def rows(name, level):
        return table.column(name) == table.domain[name].levels.index(level)

    island, private = rows("Zipcode of Incident", "94130"), rows("Unit Type", "PRIVATE")
    assert np.mean(rows("Neighborhooods - Analysis Boundaries", "Treasure Island")[island]) > 0.99
    assert not rows("ALS Unit", "true")[private].any()
    assert rows("Supervisor District", "11")[rows("Neighborhooods - Analysis Boundaries", "Excelsior")].mean() > 0.9
    urgent = np.isin(table.column("Priority"), [1, 2, 5, 6])  # 3, E, I, C
    assert np.array_equal(rows("Final Priority", "3"), urgent)
    assert np.mean(np.isin(table.column("Priority"), [0, 1])) == pytest.approx(0.95, abs=0.005)
