"""--verify-diagnostics: which comments expect what, and what is said when it does not come."""

import pytest
from mlir_fusion.driver.errors import Diagnostic
from mlir_fusion.tools.expected import Expected, compare, read_expectations


def error(line: int, message: str, severity: str = "error", notes: tuple[Diagnostic, ...] = ()) -> Diagnostic:
    return Diagnostic("a.mlir", line, 1, severity, message, notes)


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("// expected-error {{bad}}", Expected("error", 2, "bad", 2)),
        ("// expected-error @+1 {{bad}}", Expected("error", 3, "bad", 2)),
        ("// expected-warning@-1 {{bad}}", Expected("warning", 1, "bad", 2)),
        ("// expected-note @below {{bad}}", Expected("note", 3, "bad", 2)),
        ("// expected-remark @above {{bad}}", Expected("remark", 1, "bad", 2)),
        ("// expected-error @unknown {{bad}}", Expected("error", None, "bad", 2)),
        ("// expected-error-re {{b{{a+}}d}}", Expected("error", 2, "b{{a+}}d", 2, is_regex=True)),
    ],
)
def test_a_comment_is_read(comment: str, expected: Expected):
    assert read_expectations(f"first\n{comment}\nthird\n") == [expected]


def test_below_skips_other_expectations():
    text = "// expected-error @below {{one}}\n// expected-error @below {{two}}\nop\n"
    assert [expected.line for expected in read_expectations(text)] == [3, 3]


def test_what_comes_as_expected_is_fine():
    expected = read_expectations("op // expected-error {{bad}}\n// expected-note @-1 {{see}}\n")
    assert compare(expected, [error(1, "very bad", notes=(error(1, "see here", "note"),))], "a.mlir") == []


def test_regular_expressions_are_only_inside_braces():
    (expected,) = read_expectations("// expected-error-re {{op (1) has {{[0-9]+}} results}}")
    assert expected.matches(error(1, "op (1) has 12 results"))
    assert not expected.matches(error(1, "op 1 has 12 results"))


def test_what_does_not_come_is_told_at_the_comment():
    expected = read_expectations("\n// expected-error @+1 {{bad}}\nop\n")
    (problem,) = compare(expected, [], "a.mlir")
    assert str(problem) == 'a.mlir:2:1: error: expected error "bad" was not produced'


def test_what_comes_unexpected_is_told_where_it_is():
    (problem,) = compare([], [error(7, "bad")], "a.mlir")
    assert str(problem) == "a.mlir:7:1: error: unexpected error: bad"


def test_one_expectation_is_for_one_diagnostic():
    expected = read_expectations("op // expected-error {{bad}}")
    assert len(compare(expected, [error(1, "bad"), error(1, "bad")], "a.mlir")) == 1


def test_another_line_or_severity_does_not_count():
    expected = read_expectations("op // expected-error {{bad}}")
    assert len(compare(expected, [error(2, "bad")], "a.mlir")) == 2
    assert len(compare(expected, [error(1, "bad", "warning")], "a.mlir")) == 2
