from dpbench.report.page.text_blocks import blocks
from dpbench.report.text import markdown, markdown_table


def test_a_table_is_read_back_as_it_was_written():
    header, rows = ["", "a|b"], [["x\\|y", "<i> *1* _2_"], ["", "back\\"]]
    text = (
        f"# {markdown('A [title]')}\n\n{markdown('Some | words')}\n\n- one\n- two\n\n{markdown_table(header, rows)}\n"
    )
    found = blocks(text)
    assert [one.kind for one in found] == ["heading", "paragraph", "item", "item", "table"]
    assert [one.text for one in found[:4]] == ["A [title]", "Some | words", "one", "two"]
    assert (found[4].header, found[4].rows) == (header, rows)


def test_two_tables_are_two():
    table = markdown_table(["a"], [["1"]])
    assert [one.rows for one in blocks(f"{table}\n\n{table}")] == [[["1"]], [["1"]]]
