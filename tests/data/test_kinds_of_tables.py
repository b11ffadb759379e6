"""Tables as people have them, by kind: each is read, and its rows are written as it is, or a setting is named."""

import json
import re
import shlex
from contextlib import suppress

import numpy as np
import pytest

from dpbench.cli import main
from dpbench.data.dataset import Dataset
from dpbench.data.load import check
from dpbench.data.synthetic_csv import typed_rows
from dpbench.data.tabular import load_csv
from dpbench.errors import UserError

DAYS = "{dates: [2020-01-01, 2023-12-31], by: year, format: '%s'}"
MONEY = "{bounds: [-5000, 5000], bins: 10, unit: '%s'}"
YES = "{levels: [no, yes]}"
SAME = None  # the rows are written as they were
READ = {  # cells, their declaration, and what they are
    "iso": ("2020-01-31|2021-12-01", "{dates: [2020-01-01, 2023-12-31], by: year}", SAME),
    "times": (
        "2020-01-31 23:30|2021-12-01T00:10:00+02:00",
        "{dates: [2020-01-01, 2023-12-31], by: day}",
        "18292|18962",
    ),
    "german": ("31.01.2020|01.12.2021", DAYS % "%d.%m.%Y", SAME),
    "german with times": ("31.01.2020 12:00|1.12.2021 0:10", DAYS % "%d.%m.%Y", "18292|18962"),
    "american": ("01/31/2020|12/01/2021", DAYS % "%m/%d/%Y", SAME),
    "short years": ("31.01.20|01.12.21", DAYS % "%d.%m.%y", SAME),
    "names of months": ("31-Jan-2020|01-Dec-2021", DAYS % "%d-%b-%Y", SAME),
    "compact": ("20200131|20211201", DAYS % "%Y%m%d", SAME),
    "months": ("2020-01|2021-12", DAYS % "%Y-%m", SAME),
    "years": ("2020|2021", DAYS % "%Y", SAME),
    "yes": ("yes|no", YES, SAME),
    "any case": ("YES|No", YES, "yes|no"),
    "true": ("True|False", "{levels: [False, True]}", SAME),
    "codes": ("01|08", "{levels: [01, 08]}", SAME),
    "decimals": ("1.50|2.00", "{levels: [1.50, 2.00]}", SAME),
    "fewer zeros": ("1.5|2", "{levels: [1.50, 2.00]}", "1.50|2.00"),
    "Namibia": ("NA|DE", "{levels: [NA, DE]}", SAME),
    "null": ("null|None", "{levels: [null, None]}", SAME),
    "others": ("home|boat", "{levels: [home, car], other: elsewhere}", "home|elsewhere"),
    "one of the levels for others": ("home|boat", "{levels: [home, else], other: else}", "home|else"),
    "parentheses": ("(35.5)|4", MONEY % "", "-35.5|4"),
    "minus behind": ("35.5-|4", MONEY % "", "-35.5|4"),
    "another minus": ("\u221235.5|+4", MONEY % "", "-35.5|4"),
    "debts": ("($35.5)|$4", MONEY % "$", "-35.5|4"),
    "codes of money": ("USD -35.5|USD 4", MONEY % "USD", "-35.5|4"),
    "no-break spaces": ("-35.5\u00a0€|4\u00a0€", MONEY % "€", "-35.5|4"),
    "a mark": ("?|4", "{bounds: [0, 10], bins: 2, missing: ['?', -999]}", "nan|4"),
    "a number for a mark": ("-999.0|4", "{bounds: [0, 10], bins: 2, missing: ['?', -999]}", "nan|4"),
    "a mark among levels": ("k.A.|a", "{levels: [a], missing: [k.A.]}", "|a"),
}


@pytest.fixture
def loaded(tmp_path):
    def load(content, domain, **settings):
        (tmp_path / "my.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
        (tmp_path / "my.yaml").write_text(domain, encoding="utf-8")
        node = {"_target_": "dpbench.data.tabular.load_csv", "name": "csv", "path": str(tmp_path / "my.csv")}
        return Dataset.of({**node, "domain": str(tmp_path / "my.yaml"), **settings})

    return load


@pytest.mark.parametrize("kind", READ)
def test_cells_are_read_and_written(loaded, kind):
    cells, declared, meant = READ[kind]
    table = load_csv(loaded("\n".join(["x", *cells.split("|")]), f"x: {declared}\n"))
    if "x" in table.numbers and meant is not SAME:
        assert table.numbers["x"].tolist() == pytest.approx([float(one) for one in meant.split("|")], nan_ok=True)
        return
    rows = typed_rows(table, np.random.default_rng(0))["x"].fillna("").tolist()
    if table.domain["x"].dates:  # each day within its year
        assert all(
            re.sub(r"[A-Za-z]+|\d", "0", one) == re.sub(r"[A-Za-z]+|\d", "0", cells.split("|")[0]) for one in rows
        )
    else:
        assert rows == (meant or cells).split("|")


AGES = "age,region\n" + "".join(f"{20 + k},{'NS'[k % 2]}\n" for k in range(20))
DOMAIN = "age: {bounds: [16, 100], bins: 4}\nregion: {levels: [N, S]}\n"
WHOLE = {  # files that hold the table of 20 rows
    "UTF-16": AGES.encode("utf-16"),
    "UTF-16 of the other order": b"\xfe\xff" + AGES.encode("utf-16-be"),
    "a mark and quotes": b"\xef\xbb\xbf" + AGES.replace("age", '"age"').encode(),
    "old Mac": AGES.replace("\n", "\r"),
    "capital SEP": "SEP=;\r\n" + AGES.replace(",", ";"),
    "empty lines of commas": AGES.replace("22,", ",\n22,") + ",\n,\n",
    "separators at the end": AGES.replace("\n", ",\n"),
    "separators below": AGES.replace("\n", ",\n").replace("region,", "region"),
    "a separator above": AGES.replace("region", "region,"),
    "names again": AGES.replace("30,", "age,region\n30,"),
    "a row number": ",".join(["", AGES.split("\n")[0]])
    + "".join(f"\n{k},{row}" for k, row in enumerate(AGES.split("\n")[1:-1])),
    "as R writes": AGES.split("\n")[0] + "".join(f'\n"{k}",{row}' for k, row in enumerate(AGES.split("\n")[1:-1], 1)),
}


@pytest.mark.parametrize("kind", WHOLE)
def test_files_are_read_without_a_setting(loaded, kind):
    table = load_csv(loaded(WHOLE[kind], DOMAIN))
    assert table.numbers["age"].tolist() == list(range(20, 40)) and table.column("region").tolist() == [0, 1] * 10


MENDED = {  # files that hold it, and the setting that the message gives
    "Latin-1": (AGES.replace("N", "Ö").encode("latin-1"), "encoding=cp1252"),
    "UTF-16 without a mark": (AGES.encode("utf-16-le"), "encoding=utf-16-le"),
    "a title": ("Survey of 2024\n" + AGES, "header=2"),
    "a title and a line": ("Survey of 2024,\n,\n" + AGES, "header=3"),
    "a title above semicolons": ("Survey of 2024\n" + AGES.replace(",", ";"), "separator=semicolon dataset.header=2"),
    "units": (AGES.replace("20,", "years,code\n20,", 1), "skip=1"),
    "a total": (AGES + "Total,\n", "footer=1"),
    "a sum": (AGES + "590,\n", "footer=1"),
    "a footnote": (AGES + "\nSource: our survey\n", "footer=1"),
    "two footnotes": (AGES + "Source: our survey,\n* provisional,\n", "footer=2"),
}


@pytest.mark.parametrize("kind", MENDED)
def test_the_message_gives_the_setting_that_reads_the_file(loaded, tmp_path, monkeypatch, capsys, kind):
    content, setting = MENDED[kind]
    loaded(content, DOMAIN.replace("N", "Ö") if kind == "Latin-1" else DOMAIN)
    monkeypatch.chdir(tmp_path)
    line = ["data", "check", "dataset.path=my.csv", "dataset.domain=my.yaml", "sample.test_rows=0"]
    assert main(line) == 2
    said = capsys.readouterr().err
    found = re.findall(r"dataset\.\w+=[\w-]+", said.split("Correct the data")[0])
    assert " ".join(found) == f"dataset.{setting}"
    assert main([*line, *found]) == 0 and "20 rows x 2" in capsys.readouterr().out


HINTS = {  # a cell, its declaration, and the line of the declaration that mends it
    "12/31/2020": ("{levels: [a]}", "format: '%m/%d/%Y'"),
    "31.12.20": ("{dates: [2020-01-01, 2020-12-31], by: year}", "format: '%d.%m.%y'"),
    "2020": ("{dates: [2020-01-01, 2020-12-31], by: year}", "format: '%Y'"),
    "5 kg": ("{bounds: [0, 9], bins: 3}", "unit: 'kg'"),
    "1.234,50 €": ("{bounds: [0, 9999], bins: 3}", "dataset.decimal=comma dataset.thousands=point"),
    "12,34,567": ("{bounds: [0, 9], bins: 3}", "dataset.thousands=comma reads"),
    "1\u2019234": ("{bounds: [0, 9999], bins: 3}", "dataset.thousands=apostrophe"),
    "-999": ("{bounds: [0, 9], bins: 3}", 'missing: ["-999"]'),
    "unknown": ("{levels: [a]}", 'missing: ["unknown"]'),
    "01": ("{levels: [1]}", "list 01 as a level"),
    "boat": ("{levels: [car]}", "other: NAME"),
}


@pytest.mark.parametrize("cell", HINTS)
def test_a_cell_that_does_not_fit_has_a_hint(loaded, cell):
    declared, hint = HINTS[cell]
    with pytest.raises(UserError, match=re.escape(hint)):
        load_csv(loaded(f'x\n"{cell}"\n"{cell}"\n', f"x: {declared}\n"))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"PK\x03\x04abc", "a workbook of Excel"),
        (b"PAR1abc", "a parquet file"),
        (b"\x1f\x8babc", r"let its name end in \.gz"),
        (b'[{"age": 1}]', "JSON"),
        (b"<table>", "HTML"),
        (b"\x80\x04\x00\x00\x01", "no text"),
        (b"age,region\n20\n21,N\n22,S\n", "line 2 has 1 field, the header 2"),
    ],
)
def test_other_files_are_named(loaded, content, said):
    with pytest.raises(UserError, match=said):
        load_csv(loaded(content, DOMAIN))


@pytest.mark.parametrize("name", ["a\\b", 'the "age"', "${x}", "null", "it's", "a, [b]", "a=b", "€", "-a"])
def test_columns_of_any_name_are_left_out_as_the_message_says(loaded, tmp_path, monkeypatch, capsys, name):
    quoted = '"' + name.replace('"', '""') + '"'
    loaded(f"{quoted},region\n1,N\n2,S\n", "region: {levels: [N, S]}\n")
    monkeypatch.chdir(tmp_path)
    line = ["data", "check", "dataset.path=my.csv", "dataset.domain=my.yaml", "sample.test_rows=0"]
    assert main(line) == 2
    said = capsys.readouterr().err
    assert main([*line, *shlex.split(said[said.index("leave it out with ") + 18 :])]) == 0
    assert main(["data", "declare", "my.csv"]) == 0  # its key is read as it is, too
    lines = [one for one in capsys.readouterr().out.splitlines() if not one.startswith("#")]
    with suppress(UserError):  # nothing is filled in
        load_csv(loaded(f"{quoted},region\n1,N\n2,S\n", "\n".join(lines)))


def test_a_level_for_all_others_is_no_place_for_what_is_missing(loaded):
    declared = "x: {levels: [a], other: rest}\n"
    with pytest.raises(UserError, match="missing: true"):
        load_csv(loaded('x\na\n""\n', declared))
    table = load_csv(loaded("x\na\nb\nNA\n", "x: {levels: [a], other: rest, missing: true}\n"))
    assert table.column("x").tolist() == [0, 1, 2] and table.domain["x"].levels == ("a", "rest", "")
    assert type(table.domain["x"]).from_dict(json.loads(json.dumps(table.domain["x"].to_dict()))) == table.domain["x"]


def test_a_row_without_values_is_kept_where_all_may_be_missing(loaded):
    content = "age,region\n20,N\n,\n30,S\n"
    assert len(load_csv(loaded(content, DOMAIN))) == 2
    assert len(load_csv(loaded(content, DOMAIN.replace("}", ", missing: true}")))) == 3


def test_whole_numbers_that_cannot_be_told_apart_are_refused(loaded):
    with pytest.raises(UserError, match=r"beyond 2\^53"):
        load_csv(loaded("x\n1\n", "x: {bounds: [0, 1e17], bins: 2, decimals: 0}\n"))


def test_check_warns_of_weak_budgets_and_of_points_between_thousands(loaded):
    said = check(
        loaded("x\n37.014\n35.2\n", "x: {bounds: [0, 99], bins: 2, decimals: 0}\n"), 0, [(20.0, 0.7), (1.0, 0.1)]
    )
    assert "epsilon = 20 is above 10" in said and "delta = 0.7 is above 1/n" in said and "delta = 0.1" not in said
    assert "dataset.thousands=point" in said


@pytest.mark.parametrize("empty", ['""', '" "', '"NA"'])
def test_no_row_of_a_single_column_is_lost(loaded, empty):
    table = load_csv(loaded(f"x\n1\n{empty}\n\n2\n{empty}\n", "x: {bounds: [0, 9], bins: 3, missing: true}\n"))
    assert table.column("x").tolist() == [0, 3, 0, 3]
