"""Files as people have them: each kind is read, or refused with the one setting that reads it."""

import gzip
import re
import shlex

import numpy as np
import pandas as pd
import pytest

from dpbench.cli import main
from dpbench.data import csv_layout
from dpbench.data.coding import code_frame, decoded
from dpbench.data.csv_format import CsvFormat
from dpbench.data.dataset import Dataset
from dpbench.data.declare import domain_from_config
from dpbench.data.load import check, fingerprint
from dpbench.data.row_errors import drop_setting
from dpbench.data.synthetic_csv import typed_rows
from dpbench.data.table import Table
from dpbench.data.tabular import load_csv
from dpbench.errors import UserError

DOMAIN = (
    "age: {bounds: [16, 100], bins: 4}\nregion: {levels: [north, south]}\nincome: {bounds: [0, 100000], bins: 10}\n"
)


@pytest.fixture
def load(tmp_path):
    """The table of a CSV of this text, under this declaration and these settings."""

    def loaded(text, domain=DOMAIN, **settings):
        (tmp_path / "my.csv").write_text(text, encoding="utf-8")
        (tmp_path / "my.yaml").write_text(domain, encoding="utf-8")
        node = {"_target_": "dpbench.data.tabular.load_csv", "name": "csv", "path": str(tmp_path / "my.csv")}
        return load_csv(Dataset.of({**node, "domain": str(tmp_path / "my.yaml"), **settings}))

    return loaded


def rows(*incomes, mark=","):
    lines = [mark.join((f"{20 + i}", ["north", "south"][i % 2], income)) for i, income in enumerate(incomes)]
    return "\n".join([mark.join(("age", "region", "income")), *lines, ""])


READ = {  # a text, the settings that read it, and the incomes in it
    "semicolons": (rows("3581", "2088", mark=";"), {"separator": "semicolon"}, [3581, 2088]),
    "their sign": (rows("3581", "2088", mark=";"), {"separator": ";"}, [3581, 2088]),
    "tabs": (rows("3581", "2088", mark="\t"), {"separator": "tab"}, [3581, 2088]),
    "decimal commas": (rows("35,81", "-0,0", mark=";"), {"separator": "semicolon", "decimal": "comma"}, [35.81, 0]),
    "as in Germany": (
        rows("3.581,5", "588", mark=";"),
        {"separator": ";", "decimal": ",", "thousands": "."},
        [3581.5, 588],
    ),
    "thousands": (rows('"35,810"', '"20,880.5"'), {"thousands": "comma"}, [35810, 20880.5]),
    "spaces": (rows("35 810", "20\u00a0880"), {"thousands": "space"}, [35810, 20880]),
    "narrow spaces": (rows("35\u202f810", "880"), {"thousands": "space"}, [35810, 880]),
    "apostrophes": (rows("35'810", "880"), {"thousands": "apostrophe"}, [35810, 880]),
    "a sep line": ("sep=;\n" + rows("3581", "2088", mark=";"), {}, [3581, 2088]),
    "a sep line with a mark": ("\ufeffsep=;\r\n" + rows("3581", "2088", mark=";"), {}, [3581, 2088]),
    "a title": ("Income survey 2024,,\n" + rows("3581", "2088"), {"header": 2}, [3581, 2088]),
}


@pytest.mark.parametrize("kind", READ)
def test_read(load, kind):
    text, settings, incomes = READ[kind]
    assert load(text, **settings).numbers["income"].tolist() == incomes


REFUSED = {  # a text, and the settings that the message gives
    "semicolons": (rows("3581", "2088", mark=";"), {"separator": "semicolon"}),
    "decimal commas": (rows("35,81", "20,88", mark=";"), {"separator": "semicolon", "decimal": "comma"}),
    "tabs": (rows("3581", "2088", mark="\t"), {"separator": "tab"}),
    "thousands": (rows('"35,810"', '"20,880"'), {"thousands": "comma"}),
    "spaces": (rows("35\u00a0810", "20\u00a0880"), {"thousands": "space"}),
    "quoted decimal commas": (rows('"35,8"', '"20,8"'), {"decimal": "comma"}),
    "a title": ("Income survey 2024,,\n" + rows("3581", "2088"), {"header": 2}),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_the_message_gives_the_settings_that_read_the_file(load, kind):
    text, settings = REFUSED[kind]
    with pytest.raises(UserError) as raised:
        load(text)
    given = dict(re.findall(r"dataset\.(separator|decimal|thousands|header)=(\w+)", str(raised.value).split(" (or")[0]))
    assert {key: int(value) if key == "header" else value for key, value in given.items()} == settings
    assert len(load(text, **settings)) == 2


@pytest.mark.parametrize(
    ("income", "unit"), [("$35.81", "$"), ("35.8%", "'%'"), ("35.8 %", "'%'"), ("€ 35.81", "1000 €")]
)
def test_a_sign_is_read_where_the_unit_has_it_and_said_where_not(load, income, unit):
    text = rows(income, income)
    with pytest.raises(UserError, match="declare its unit, unit: "):
        load(text)
    found = load(text, DOMAIN.replace("bins: 10", f"bins: 10, unit: {unit}"))
    assert found.numbers["income"] == pytest.approx(35.8, abs=0.02)


@pytest.mark.parametrize("absent", ["", "NA", "n/a"])
def test_missing_values_are_said_to_have_a_declaration(load, absent):
    text = rows("3581", "2088").replace("20,", f"{absent},")
    with pytest.raises(UserError, match="`missing: true` in its declaration") as raised:
        load(text)
    assert "outside=clip has no nearest value" in str(raised.value)
    assert load(text, DOMAIN.replace("bins: 4", "bins: 4, missing: true")).column("age").tolist() == [4, 0]


def test_clip_is_advised_where_it_helps_alone(load):
    with pytest.raises(UserError, match="outside=clip moves numbers"):
        load(rows("3581", "999999"))
    with pytest.raises(UserError, match="outside=clip has no nearest value"):
        load(rows("999999", "much"))


def test_a_total_is_recognised_in_the_last_row_alone(load):
    text = rows("3581", "2088")
    with pytest.raises(UserError, match="the last row, 3, looks like a total"):
        load(text + "Total,,5669\n")
    with pytest.raises(UserError, match="values outside the declared domain"):
        load(text.replace("20,", "total,"))


def test_columns_with_any_name_are_left_out_by_the_line_that_the_message_gives(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.csv").write_text('age,"Income, gross €","it\'s ""so"""\n20,1,2\n', encoding="utf-8")
    (tmp_path / "my.yaml").write_text("age: {bounds: [16, 100], bins: 4}\n")
    line = ["data", "check", "dataset.path=my.csv", "dataset.domain=my.yaml", "sample.test_rows=0"]
    assert main(line) == 2
    said = capsys.readouterr().err
    (setting,) = shlex.split(said[said.index("leave it out with ") + len("leave it out with ") :])
    assert main([*line, setting]) == 0
    assert drop_setting(["a", "b_2"]) == "dataset.drop=[a,b_2]"


def test_signs_are_part_of_what_identifies_the_rows_and_their_absence_is_not(load, tmp_path):
    load(rows("3581"))
    node = {"_target_": "dpbench.data.tabular.load_csv", "name": "csv", "path": str(tmp_path / "my.csv")}
    node |= {"domain": str(tmp_path / "my.yaml")}
    plain, unset = (fingerprint(Dataset.of({**node, **more})) for more in ({}, {"separator": None, "header": None}))
    assert plain == unset and plain["parameters"] == {}
    assert fingerprint(Dataset.of({**node, "decimal": "comma"}))["parameters"] == {"decimal": "comma"}


def test_signs_that_are_none(load):
    with pytest.raises(UserError, match=r"dataset\.separator must be one of comma, semicolon, tab, bar, not 'x'"):
        load(rows("1"), separator="x")
    with pytest.raises(UserError, match="are the same sign"):
        load(rows("1"), decimal="comma", thousands="comma")


def test_a_packed_file_is_read_alike(load, tmp_path):
    load(rows("3581", mark=";"), separator="semicolon")
    packed = tmp_path / "my.csv.gz"
    packed.write_bytes(gzip.compress((tmp_path / "my.csv").read_bytes()))
    assert len(load(rows("1"), path=str(packed), separator="semicolon")) == 1


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ("00", "y (the target) is '0' in every row: nothing to predict"),
        ("01" + "0" * 20, "is '1' in 1 row: the rows for"),
    ],
)
def test_check_says_which_level_of_the_target_is_rare_or_alone(tmp_path, labels, said):
    (tmp_path / "my.csv").write_text("\n".join(["y", *labels]))
    node = {"_target_": "dpbench.data.tabular.load_csv", "name": "csv", "path": str(tmp_path / "my.csv")}
    (tmp_path / "my.yaml").write_text("y: {levels: [0, 1]}\n")
    assert said in check(Dataset.of({**node, "domain": str(tmp_path / "my.yaml"), "target": "y"}))


# --- dates -----------------------------------------------------------------------------------------------------------

DATES = {"visit": {"dates": ["2023-11-15", "2024-03-02"], "by": "month"}}


def test_dates_are_in_bins_of_a_month_and_written_as_they_were():
    domain = domain_from_config(DATES)
    days = ["2023-11-15", "2023-11-30", "2023-12-01", "2024-02-29", "2024-03-02"]
    for given in (days, pd.to_datetime(days), [f"{day}T10:30:00" for day in days]):
        table = code_frame(pd.DataFrame({"visit": given}), domain)
        assert table.codes.ravel().tolist() == [0, 0, 1, 3, 4]
        assert decoded(table)["visit"].tolist() == days
    assert typed_rows(table)["visit"].tolist() == days
    binned = Table(domain, table.codes)
    middles = typed_rows(binned)["visit"].tolist()
    assert middles == ["2023-11-22", "2023-11-22", "2023-12-16", "2024-02-15", "2024-03-01"]
    drawn = typed_rows(binned, np.random.default_rng(0))
    assert code_frame(drawn, domain).codes.tolist() == table.codes.tolist()
    with pytest.raises(UserError, match="'2024-03-03' is not a date from 2023-11-15 to 2024-03-02"):
        code_frame(pd.DataFrame({"visit": ["2024-03-03"]}), domain)
    clipped = code_frame(pd.DataFrame({"visit": ["1999-01-01"]}), domain, "clip")
    assert decoded(clipped)["visit"].tolist() == ["2023-11-15"]


@pytest.mark.parametrize(("by", "bins"), [("day", 109), ("week", 16), ("month", 5), ("quarter", 2), ("year", 2)])
def test_bins_of_dates(by, bins):
    attribute = domain_from_config({"visit": {**DATES["visit"], "by": by}})["visit"]
    assert attribute.size == bins and attribute.text(attribute.edges[0]) == "2023-11-15"
    rows = np.arange(attribute.bounds[0], attribute.bounds[1] + 1)
    assert np.bincount(attribute.code(rows)).tolist() == np.diff(attribute.edges).tolist()
    assert type(attribute).from_dict(attribute.to_dict()) == attribute


def test_dates_in_another_format_and_missing_ones():
    declared = {"visit": {**DATES["visit"], "format": "%d.%m.%Y", "missing": True}}
    table = code_frame(pd.DataFrame({"visit": ["15.11.2023", "", "02.03.2024"]}), domain_from_config(declared))
    assert table.codes.ravel().tolist() == [0, 5, 4]
    assert decoded(table)["visit"].tolist()[::2] == ["15.11.2023", "02.03.2024"] and decoded(table)["visit"].isna()[1]
    assert typed_rows(table)["visit"].isna().tolist() == [False, True, False]


def test_dates_that_are_not_declared_are_shown_as_written_with_their_declaration(load):
    for day, form in (("2024-01-31", ""), ("31.01.2024", ", format: '%d.%m.%Y'")):
        with pytest.raises(UserError) as raised:
            load(rows(day, day))
        hint = re.search(r"declared as (\{.*\})\.", str(raised.value))[1]
        assert hint.endswith(f"by: month{form}}}") and repr(day) in str(raised.value)
        domain = re.sub("income: .*", f"income: {hint}", DOMAIN)
        assert decoded(load(rows(day, day), domain))["income"].tolist() == [day, day]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"dates": ["2024-01-01"], "by": "month"}, "the first and the last one"),
        ({"dates": ["2024-01-01", "2023-01-01"], "by": "month"}, "from a day to a later one"),
        ({"dates": ["2024-01-01", "soon"], "by": "month"}, "written as 2024-12-31, not soon"),
        ({"dates": ["2024-01-01", "2024-02-01"], "by": "moon"}, "unknown attribute 'x': by 'moon'"),
        ({"dates": ["2024-01-01", "2024-02-01"], "by": "day", "format": "%H"}, "does not give the day"),
        ({"dates": ["2024-01-01", "2024-02-01"], "by": "day", "unit": "days"}, "have no unit"),
    ],
)
def test_dates_that_cannot_be_declared(given, said):
    with pytest.raises(UserError, match=re.escape(said)):
        domain_from_config({"x": given})


def test_rows_are_found_by_counts_of_bytes_as_by_the_reader_of_csv(tmp_path, monkeypatch):
    """Files of random signs, read in blocks of a few bytes; those with a quote, or a lone carriage return, are not."""
    signs, compared = [b"a", b",", b" ", b"\n", b"\r\n", "é".encode()], 0
    rng, path = np.random.default_rng(0), tmp_path / "a.csv"
    for size in rng.integers(0, 30, 150):
        text = b"".join(signs[k] for k in rng.integers(0, len(signs), size))
        path.write_bytes(text)
        monkeypatch.setattr(csv_layout, "BLOCK", int(rng.integers(1, 8)))
        for header in (1, 2):
            style = CsvFormat(header=header)
            assert csv_layout._counted(path, style) == csv_layout._listed(path, style), text
        compared += text.count(b",") > 2
        path.write_bytes(text + rng.choice([b'"', b"\ra"]))
        assert csv_layout._counted(path, style) is None
    assert compared > 50


@pytest.mark.parametrize("begin", ["a: " + "[" * 300_000, "a: " + "{b: " * 300_000, "- " * 300_000])
def test_a_declaration_that_is_nested_without_end_is_refused(begin, load):
    with pytest.raises(UserError, match=r"my\.yaml is nested too deeply"):
        load(rows("1"), begin)


def test_numbers_are_those_that_python_reads(load):
    """Whether all of a column are plain numbers, which Arrow reads, or some have spaces or are missing."""
    values = [f"{value:.{digits}g}" for value in np.random.default_rng(0).uniform(0, 1e5, 300) for digits in (3, 9, 17)]
    known = [float(value) for value in values]

    def read(*more, domain=DOMAIN):
        lines = [f"20,north,{value}" for value in (*values, *more)]
        return load("\n".join(["age,region,income", *lines, ""]), domain).numbers["income"]

    assert read().tolist() == known
    assert read(" 7 ", "1e3").tolist() == [*known, 7, 1000]
    some = read("", "NA", domain=DOMAIN.replace("bins: 10", "bins: 10, missing: true"))
    assert some[:-2].tolist() == known and np.isnan(some[-2:]).all()
