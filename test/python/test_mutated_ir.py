"""fusion-opt on what nobody should write: a status and a message, whatever it is given."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from mlir_fusion.tools.hostile import DEEPEST, LONGEST_NUMBER, why_hostile
from mutated_ir import Case, attack, cases, judge

LONG = "MLIR_FUSION_TEST_LONG" in os.environ
COUNT = 100_000 if LONG else 2000
CHAIN = 10_000
ROUND = 1000


@pytest.mark.parametrize("start", range(0, COUNT, ROUND))
def test_changed_programs(start: int) -> None:
    assert attack(list(cases(ROUND, seed=start))) == []


@pytest.mark.parametrize("case", list(cases(6, seed=-1)), ids=str)
def test_changed_programs_as_whole_commands(case: Case) -> None:
    command = [sys.executable, "-m", "mlir_fusion.tools.fusion_opt", "-", *case.flags]
    done = subprocess.run(command, input=case.text, capture_output=True, timeout=120, check=False)
    assert judge(done.returncode, done.stderr.decode()) == ""


def test_a_function_of_ten_thousand_operations() -> None:
    lines = [
        f"  %{n + 1} = linalg.exp ins(%{n} : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>\n"
        for n in range(CHAIN)
    ]
    head = "func.func @main(%0: tensor<4xf32>) -> tensor<4xf32> {\n  %e = tensor.empty() : tensor<4xf32>\n"
    text = head + "".join(lines) + f"  return %{CHAIN} : tensor<4xf32>\n}}\n"
    flags = ("--fusion=dataflow", "--report=json") if LONG else ("--fusion=dataflow",)
    assert attack([Case(text.encode(), flags)]) == []


@pytest.mark.parametrize(
    ("status", "output", "fault"),
    [
        (0, "module {\n}", ""),
        (1, "<stdin>:1:1: error: no", ""),
        (1, "", "status 1 without a message"),
        (2, "error: ", "status 2"),
        (1, "error: internal error: KeyError", "internal error"),
        (0, "Traceback (most recent call last)", "Traceback"),
    ],
)
def test_what_counts_as_an_end(status: int, output: str, fault: str) -> None:
    found = judge(status, output)
    assert found.startswith(fault)
    assert bool(found) == bool(fault)


def test_an_input_that_ends_the_process_is_told() -> None:
    text = b'func.func @f() {\n  "linalg.exp"() ({}) : () -> ()\n  return\n}\n'
    command = [sys.executable, "-m", "mlir_fusion.tools.fusion_opt", "-"]
    done = subprocess.run(command, input=text, capture_output=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.startswith(b"fusion-opt: error: MLIR or LLVM can't take this input: it ended the process (SIG")


def test_after_an_input_that_ended_the_process_come_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def end(argv: list[str]) -> int:
        text = sys.stdin.read()
        if text == "end":
            os.abort()
        return 2 if text == "wrong" else 0

    monkeypatch.setattr("mutated_ir.main", end)
    found = attack([Case(b"go on"), Case(b"end"), Case(b"wrong"), Case(b"go on")])
    assert [(finding.case.text, finding.why) for finding in found] == [(b"wrong", "status 2: ")]


def test_a_command_that_does_not_end_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def go_on(argv: list[str]) -> int:
        while True:
            pass

    monkeypatch.setattr("mutated_ir.main", go_on)
    monkeypatch.setattr("mutated_ir.SECONDS", 1)
    assert [finding.why for finding in attack([Case(b"")])] == ["took more than 1 s"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            b"ML\xefR\x06",
            "<stdin>:1:1: error: this is bytecode; MLIR's reader trusts its every byte, so text is needed",
        ),
        (b"module {}\n\xe9", "<stdin>:2:1: error: byte 0xe9 is not part of UTF-8 text"),
        (b'// "\\FF"\nfunc.func private @"\\FF"()', "<stdin>:2:20: error: the bytes of this string are not UTF-8 text"),
        (b"#a = " + b"[" * (DEEPEST + 1), f"<stdin>:1:{DEEPEST + 6}: error: nested more than {DEEPEST} deep"),
        (b"1" * (LONGEST_NUMBER + 1), f"<stdin>:1:1: error: a number of more than {LONGEST_NUMBER} digits"),
        (b"- " * (DEEPEST + 1), f"<stdin>:1:1: error: more than {DEEPEST} signs in a row"),
        (
            b"".join(b"#a%d = [#a%d]\n" % (number + 1, number) for number in range(2 * DEEPEST)),
            f"<stdin>:{DEEPEST + 1}:9: error: nested more than {DEEPEST} deep",
        ),
        (
            b"#a0 = [1]\n" + b"".join(b"#a%d = [#a%d, #a%d]\n" % (n + 1, n, n) for n in range(40)),
            "<stdin>:24:1: error: aliases stand for more than 256 MiB of text",
        ),
    ],
)
def test_what_may_not_be_parsed(text: bytes, message: str) -> None:
    assert str(why_hostile(text, "<stdin>")) == message


@pytest.mark.parametrize(
    "text",
    [
        b"// [[" + b"[" * DEEPEST,
        b'"' + b"[" * DEEPEST + b'"' + b"[" * DEEPEST,
        b"()" * 1000,
        b"-> " * 1000,
        b"\xc3\xa9",
        b'"\\C3\\A9"',
        b'"' + b"9" * 2 * LONGEST_NUMBER + b'"',
    ],
)
def test_what_may_be_parsed(text: bytes) -> None:
    assert why_hostile(text, "<stdin>") is None
