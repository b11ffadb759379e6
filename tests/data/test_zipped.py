"""Zip files: what they hold, and a table joined from their members."""

import zipfile

from dpbench.data.fetch import described, join_members, sort_rows, zip_state


def archive(path, **members):
    with zipfile.ZipFile(path, "w") as made:
        for name, text in members.items():
            made.writestr(name, text)
    return path


def test_rows_are_sorted_below_one_header():
    assert sort_rows(b"a,b\n3,1\n\na,b\r\n1,2") == b"a,b\n1,2\n3,1\n"
    assert sort_rows(b"") == b"\n"


def test_members_are_joined_in_any_order(tmp_path):
    one, two = archive(tmp_path / "1.zip", x="a\n2\n", y="a\n1\n"), archive(tmp_path / "2.zip", y="a\n1\n", x="a\n2\n")
    join_members(one, ["x", "y"])
    join_members(two, ["y", "x"])
    assert one.read_bytes() == two.read_bytes() == b"a\n1\n2\n"
    join_members(one, ["x"])
    assert one.read_bytes() == b"a\n1\n2\n", "what is no zip file stays as it is"


def test_the_state_says_what_is_wrong(tmp_path):
    good = archive(tmp_path / "good.zip", **{"train.csv": "a\n" + "1\n" * 500})
    assert zip_state(good, "train.csv") == "ok"
    assert zip_state(good, "test.csv") == "a zip file without test.csv; it holds train.csv"
    content = bytearray(good.read_bytes())
    content[60] ^= 1
    (tmp_path / "damaged.zip").write_bytes(content)
    assert zip_state(tmp_path / "damaged.zip", "train.csv") == "a damaged zip file"
    (tmp_path / "page.zip").write_text("<!DOCTYPE html><p>Not found")
    assert zip_state(tmp_path / "page.zip", "train.csv") == "no usable zip file but an HTML page of 27 bytes"
    assert described(good).startswith("a file of ")
