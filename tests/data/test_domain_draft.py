"""The skeleton of a domain file has names and types of a table, and nothing else of it."""

import pytest

from dpbench.cli import main
from dpbench.data.declare import read_domain_file
from dpbench.errors import UserError

TABLE = """person_id,visit,age,code,Region name,income,share,remark
P1,2024-01-05,20,01,north,35.81,3%,"a long remark, which goes on and on and on"
P2,2024-02-06,,02,south,20.5,NA,short
P3,2024-03-07,40,02,north,31,4%,none
"""


@pytest.fixture(autouse=True)
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.csv").write_text(TABLE)


def declared(capsys, *more):
    assert main(["data", "declare", "my.csv", *more]) == 0
    return capsys.readouterr().out


def test_names_and_types_are_there_and_no_value_of_the_table_is(capsys):
    said = declared(capsys)
    lines = dict(line.split(": ", 1) for line in said.splitlines() if not line.startswith("#"))
    assert list(lines) == ["visit", "age", "code", '"Region name"', "income", "share"]
    assert lines["visit"] == "{dates: [FIRST, LAST], by: month}" and lines["code"].startswith("{levels: []}")
    assert "decimals: 0}" in lines["age"] and "decimals: 0}" not in lines["income"] and 'unit: "%"' in lines["share"]
    for value in ("2024-01-05", "20,", "north", "35.81", "P1", "on and on"):
        assert value not in said
    assert "dataset.drop=[person_id,remark]" in said and "only the names of the columns and their types" in said


def test_another_row_of_the_same_types_changes_nothing(capsys, tmp_path):
    before = declared(capsys)
    (tmp_path / "my.csv").write_text(TABLE + "P4,1999-12-31,99,77,west,999.5,88%,none\n")
    assert declared(capsys) == before


def test_what_is_not_filled_in_is_asked_for_by_name(tmp_path, capsys):
    assert main(["data", "declare", "my.csv", "--out", "my.yaml"]) == 0
    text = (tmp_path / "my.yaml").read_text()
    for filled, said in (
        (("FIRST, LAST", "2024-01-01, 2024-12-31"), "not FIRST"),
        (("LOWER, UPPER", "0, 100"), "attribute 'age': bounds must be finite numbers, not 'LOWER'"),
        (("levels: []", "levels: ['01', '02', north, south]"), "attribute 'code': levels must be a list of"),
    ):
        with pytest.raises(UserError, match=said):
            read_domain_file(tmp_path / "my.yaml")
        text = text.replace(*filled)
        (tmp_path / "my.yaml").write_text(text)
    read_domain_file(tmp_path / "my.yaml")
    assert main(["data", "declare", "my.csv", "--out", "my.yaml"]) == 2
    assert "it is kept" in capsys.readouterr().err


def test_from_a_public_table_come_bounds_and_levels_and_the_private_one_fits_them(tmp_path, capsys):
    (tmp_path / "public.csv").write_text(TABLE.replace("north", "east"))
    (tmp_path / "my.csv").write_text(TABLE.replace("north", "east").replace("35.81", "22.22").replace("\nP3", "\nP9"))
    assert main(["data", "declare", "my.csv", "--from-public", "public.csv", "--out", "my.yaml"]) == 0
    domain = read_domain_file(tmp_path / "my.yaml")
    assert domain["age"].bounds == (20, 40) and domain["age"].missing and domain["age"].decimals == 0
    assert domain["income"].bounds == (20.5, 35.81) and domain["income"].decimals == 2
    assert domain["code"].levels == ("01", "02") and domain["Region name"].levels == ("east", "south")
    assert domain["visit"].text(domain["visit"].bounds[0]) == "2024-01-05" and "22.22" not in str(domain)
    line = ["data", "check", "dataset.path=my.csv", "dataset.domain=my.yaml", "sample.test_rows=0"]
    assert main([*line, "dataset.drop=[person_id,remark]"]) == 0
    (tmp_path / "public.csv").write_text("age\n20\n")
    assert main(["data", "declare", "my.csv", "--from-public", "public.csv"]) == 2
    assert "public.csv has no column person_id, visit, code" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Income survey,,\nage,region,x\n1,a,2\n", "dataset.header=2 reads it"),
        ("age,region\n1,a\nTotal,\n", "the last row, 2, looks like a total"),
        ("age;region\n1;a\n", "dataset.separator=semicolon reads it"),
    ],
)
def test_a_file_that_is_not_what_it_seems_is_named_so(tmp_path, capsys, text, said):
    (tmp_path / "my.csv").write_text(text)
    assert main(["data", "declare", "my.csv"]) == 2 and said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("first", "said"),
    [
        ("26,east,18271", "my.csv: the first line gives numbers as names of columns: 26, 18271. If that line is"),
        ("age,region,1.5", "names of columns: 1.5. If"),
        ("2019,2020,a1", ""),
    ],
)
def test_a_row_in_place_of_names_is_noticed(tmp_path, capsys, caplog, first, said):
    (tmp_path / "my.csv").write_text(first + "\n30,west,20000\n")
    declared(capsys)
    assert said in caplog.text and bool(said) == bool(caplog.text)


def test_numbers_as_people_write_them_are_named_with_the_setting_that_reads_them(tmp_path, capsys):
    (tmp_path / "my.csv").write_text('income\n"35,810"\n"880"\n')
    assert "or read them as numbers with dataset.thousands=comma" in declared(capsys)
    assert "income: {bounds: [LOWER, UPPER], bins: 32, decimals: 0}" in declared(capsys, "dataset.thousands=comma")
