"""Domains from plain data and from users' files."""

import json

import pytest

from dpbench.data.declare import domain_from_config, read_domain_file
from dpbench.data.domain import Attribute
from dpbench.errors import UserError


def test_each_form():
    domain = domain_from_config(
        {
            "sex": {"levels": ["F", "M"]},
            "age": {"bounds": [16, 100], "bins": 4, "unit": "years"},
            "rate": {"edges": [0, 1, 10]},
            "grade": {"values": [1, 2, 4]},
            "rank": {"values": {"from": 1, "to": 16}, "unit": "levels"},
            "coded": 3,
        }
    )
    assert domain.attributes == (
        Attribute.categorical("sex", ["F", "M"]),
        Attribute.binned("age", 16, 100, 4, "years"),
        Attribute.from_edges("rate", [0, 1, 10]),
        Attribute.discrete("grade", [1, 2, 4]),
        Attribute.discrete("rank", range(1, 17), "levels"),
        Attribute.categorical("coded", ["0", "1", "2"]),
    )


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"levels": ["a", "b"], "bins": 2}, "bins, levels"),
        ({"bounds": [0, 1]}, "cannot be declared with bounds"),
        ({"bounds": [0, 1], "bins": 2, "uint": "m"}, "uint"),
        ({}, "nothing"),
        ({"levels": "abc"}, "levels must be a list"),
        ({"levels": []}, "levels must be a list"),
        ({"levels": ["a", "b"], "unit": "m"}, "unit"),
        ({"levels": [False, True]}, "level False is neither text nor a number"),
        ({"levels": [None]}, "level None"),
        ({"bounds": [0, 1, 2], "bins": 2}, "two numbers"),
        ({"bounds": [0, "x"], "bins": 2}, "finite numbers, not 'x'"),
        ({"bounds": [0, float("inf")], "bins": 2}, "finite"),
        ({"bounds": [0, True], "bins": 2}, "not True"),
        ({"bounds": 3, "bins": 2}, "list of numbers"),
        ({"bounds": [0, 1], "bins": 2.5}, "bins must be a whole number"),
        ({"bounds": [0, 1], "bins": 0}, "bins must be a whole number from 1"),
        ({"bounds": [0, 1], "bins": 10**9}, "1,000,000"),
        ({"bounds": [0, 1], "bins": 2, "unit": 5}, "unit must be text"),
        ({"values": {"from": 1}}, "from: 1, to: 16"),
        ({"values": {"from": 3, "to": 1}}, "from: 1, to: 16"),
        ({"values": {"from": 0, "to": 10**9}}, "1,000,000"),
        (True, "cannot be declared as True"),
        (0, "size must be a whole number"),
        ("85", "cannot be declared as '85'"),
        ([1, 2], "cannot be declared"),
    ],
)
def test_wrong_form_names_the_attribute_and_the_forms(given, reason):
    with pytest.raises(UserError) as caught:
        domain_from_config({"fine": 2, "height": given})
    assert "attribute 'height'" in str(caught.value)
    assert reason in str(caught.value)
    assert "{bounds: [lower, upper], bins: k}" in str(caught.value)


@pytest.mark.parametrize("given", [{}, [], "age", None])
def test_no_domain(given):
    with pytest.raises(UserError, match="must map attribute names"):
        domain_from_config(given)


def test_yaml_file_with_and_without_attributes_key(tmp_path):
    plain, wrapped = tmp_path / "a.yaml", tmp_path / "b.yaml"
    plain.write_text("age: {bounds: [0, 1e2], bins: 5}\n2010: {levels: [1, 2]}\n")  # 1e2 is text to YAML
    wrapped.write_text("attributes:\n  age: {bounds: [0, 100], bins: 5}\n  '2010': {levels: ['1', '2']}\n")
    assert read_domain_file(plain) == read_domain_file(wrapped)
    assert read_domain_file(str(plain))["age"].bounds == (0, 100)


def test_json_of_sizes(tmp_path):
    path = tmp_path / "domain.json"
    path.write_text('\ufeff{"age": 85,\n\t"sex": 2}', encoding="utf-8")
    domain = read_domain_file(path)
    assert domain.sizes == {"age": 85, "sex": 2}
    assert domain["age"].levels[-1] == "84"


def test_json_of_declarations(tmp_path):
    path = tmp_path / "domain.json"
    path.write_text(json.dumps({"attributes": {"age": {"bounds": [0, 100], "bins": 5}}}))
    assert read_domain_file(path)["age"] == Attribute.binned("age", 0, 100, 5)


def test_an_attribute_may_be_called_attributes(tmp_path):
    path = tmp_path / "domain.yaml"
    path.write_text("attributes: 3\nsex: 2\n")
    assert read_domain_file(path).sizes == {"attributes": 3, "sex": 2}


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("a.yaml", "age: 3\nage: 4\n", "gives 'age' twice"),
        ("a.json", '{"age": 3, "age": 4}', "gives 'age' twice"),
        ("a.yaml", "age: [3\n", "not valid YAML"),
        ("a.json", "{age: 3}", "not valid JSON"),
        ("a.yaml", "", "must map attribute names"),
        ("a.yaml", "age: {lvels: [a]}\n", "attribute 'age'"),
        ("a.yaml", "age: {bounds: [010, 100], bins: 4}\n", "write 010 in plain digits"),
    ],
)
def test_bad_file_is_named(tmp_path, name, text, reason):
    (tmp_path / name).write_text(text)
    with pytest.raises(UserError, match=reason) as caught:
        read_domain_file(tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)


def test_absent_file(tmp_path):
    with pytest.raises(UserError, match="cannot be read"):
        read_domain_file(tmp_path / "none.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="cannot be read"):
        read_domain_file(tmp_path / "binary.yaml")


def test_codes_declared_by_a_size_can_be_read_as_numbers(tmp_path):
    path = tmp_path / "sizes.json"
    path.write_text('{"age": 5, "sex": 2}')
    domain = read_domain_file(path, ["age"])
    assert domain["age"].values == (0.0, 1.0, 2.0, 3.0, 4.0)
    assert not domain["sex"].numeric
    for name in ("height", "sex"):
        path.write_text('{"age": 5, "sex": {"levels": ["f", "m"]}}')
        with pytest.raises(UserError, match=name):
            read_domain_file(path, [name])


def test_missing_values_are_declared_in_any_form_but_a_size():
    given = {"a": {"bounds": [0, 4], "bins": 2, "missing": True}, "b": {"levels": ["p", "q"], "missing": True}}
    domain = domain_from_config(given)
    assert domain.sizes == {"a": 3, "b": 3} and domain["b"].levels == ("p", "q", "")
    assert domain_from_config({"a": {**given["a"], "missing": False}})["a"].size == 2
    with pytest.raises(UserError, match="missing must be true or false"):
        domain_from_config({"a": {**given["a"], "missing": "yes"}})
    with pytest.raises(UserError, match="twice"):
        domain_from_config({"b": {"levels": ["p", ""], "missing": True}})
