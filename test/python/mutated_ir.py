"""Programs that nobody should write, for fusion-opt: it has to end with a status and a message whatever it is given.

    python mutated_ir.py COUNT [SEED]       `make attack COUNT=100000`

Inputs are this repository's lit tests and what the stages make of a program, with bytes, words, lines and whole pieces
changed; and inputs made for the purpose: deep nesting, gigantic constants, values that use themselves, thousands of
operations, dialects that nobody registered. The command's `main` runs on them in forked
processes. An input that ends its process is given to the command as it is installed, which must tell that.
"""

from __future__ import annotations

import faulthandler
import io
import json
import os
import random
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import NoReturn

from mlir_fusion.driver.runner import make_context
from mlir_fusion.tools import fusion_opt
from mlir_fusion.tools.fusion_opt import main

LONG = "MLIR_FUSION_TEST_LONG"
LIT = Path(__file__).resolve().parents[1]
FROZEN = LIT / "python" / "Inputs" / "attacked.mlir"
"""Lit tests and a program at each stage, as they were once: the same seeds give the same inputs."""
MOST_BYTES = 8000
BATCH = 250
"""Inputs a process."""
SHARED = 10
"""Inputs that have one context, which takes as long to make as most inputs take to be refused."""
SECONDS = 30
"""Of the processor, for one input; the largest ones made here take three."""
PATIENCE = 20
"""How many times as long it may take by the clock, on a machine that has other work."""
MEMORY = 8 << 30
"""Address space of a process, in bytes."""
WORD = re.compile(rb"x(?=[0-9?]|[a-z]+[0-9]*[,>])|[A-Za-z_][\w.$]*|[0-9]+|[%@#!^][\w.$]+|\s+|.", re.DOTALL)
COMMANDS = (
    (),
    (),
    ("--fusion=dataflow",),
    ("--fusion=none", "--emit=kernel"),
    ("--fusion=dataflow", "--emit=kernel", "--target=cpu"),
    ("--emit=gpu",),
    ("--emit=llvm", "--target=cpu"),
    ("--report=json",),
    ("--emit=ptx",),
)
NUMBERS = (b"0", b"-1", b"1", b"3", b"9223372036854775807", b"-9223372036854775808", b"99999999999999999999999", b"?")
ELEMENTS = (b"f32", b"f64", b"bf16", b"f16", b"i1", b"i8", b"i64", b"index")
TYPES = (
    *(b"f32", b"f64", b"bf16", b"f16", b"i1", b"i8", b"i64", b"i17", b"index", b"none", b"f8E4M3FN", b"tf32"),
    *(b"tensor<f32>", b"tensor<?xf32>", b"tensor<0xf32>", b"tensor<*xf32>", b"memref<4xf32>", b"vector<4xf32>"),
    *(b"complex<f32>", b"tuple<>", b"() -> ()", b"!torch.int", b"!llvm.ptr", b"tensor<4xcomplex<f64>>"),
)


@dataclass(frozen=True)
class Case:
    """One call of fusion-opt: its standard input and its flags."""

    text: bytes
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Finding:
    """What the command did that it mustn't, and for which input."""

    case: Case
    why: str


# -- inputs


@cache
def corpus() -> tuple[bytes, ...]:
    """The programs that inputs are made from: always the same ones, and in long runs all lit tests as they are now."""
    files = [FROZEN]
    if LONG in os.environ:
        files += sorted(path for path in LIT.rglob("*.mlir") if "Inputs" not in path.parts)
    chunks = [chunk for path in files for chunk in path.read_bytes().split(b"// -----\n")]
    programs = [re.sub(rb"(?m)^\s*//.*\n", b"", chunk).strip() + b"\n" for chunk in chunks]
    return tuple(program for program in programs if 20 < len(program) < MOST_BYTES)


def cases(count: int, seed: int) -> Iterator[Case]:
    """`count` inputs, the same for the same seed: one in ten made for the purpose, the others changed programs."""
    generator = random.Random(seed)
    for _ in range(count):
        make = generator.choice(MADE) if generator.random() < 0.1 else _changed
        yield Case(make(generator), generator.choice(COMMANDS))


def _changed(generator: random.Random) -> bytes:
    text = generator.choice(corpus())
    for _ in range(generator.choice((1, 1, 1, 1, 1, 2, 4))):
        text = generator.choice(CHANGES)(text, generator)
    return text


def _flip(text: bytes, generator: random.Random) -> bytes:
    changed = bytearray(text)
    for _ in range(generator.randint(1, 4)):
        if changed:
            changed[generator.randrange(len(changed))] = generator.randrange(256)
    return bytes(changed)


def _truncate(text: bytes, generator: random.Random) -> bytes:
    return text[: generator.randrange(len(text) + 1)]


def _drop(text: bytes, generator: random.Random) -> bytes:
    start = generator.randrange(len(text) + 1)
    return text[:start] + text[start + generator.randint(1, 60) :]


def _on_words(change: Callable[[list[bytes], int, random.Random], None]) -> Callable[[bytes, random.Random], bytes]:
    """A change to the list of words at the place of one that isn't a space."""

    def changed(text: bytes, generator: random.Random) -> bytes:
        words = WORD.findall(text)
        places = [place for place, word in enumerate(words) if not word.isspace()]
        if places:
            change(words, generator.choice(places), generator)
        return b"".join(words)

    return changed


def _swap_words(words: list[bytes], place: int, generator: random.Random) -> None:
    other = generator.randrange(len(words))
    words[place], words[other] = words[other], words[place]


def _other_word(words: list[bytes], place: int, generator: random.Random) -> None:
    words[place] = generator.choice([word for word in WORD.findall(generator.choice(corpus()))])


def _other_number(words: list[bytes], _: int, generator: random.Random) -> None:
    places = [place for place, word in enumerate(words) if word.isdigit()]
    if places:
        words[generator.choice(places)] = generator.choice(NUMBERS)


def _other_value(words: list[bytes], _: int, generator: random.Random) -> None:
    places = [place for place, word in enumerate(words) if word[:1] == b"%"]
    if places:
        words[generator.choice(places)] = words[generator.choice(places)]


def _other_type(words: list[bytes], _: int, generator: random.Random) -> None:
    places = [place for place, word in enumerate(words) if word in (b"f32", b"f64", b"bf16", b"index", b"i64")]
    if places:
        words[generator.choice(places)] = generator.choice(TYPES)


def _other_operation(words: list[bytes], _: int, generator: random.Random) -> None:
    places = [place for place, word in enumerate(words) if re.fullmatch(rb"[a-z_]+\.[a-z_.0-9]+", word)]
    if places:
        others = re.findall(rb"\b[a-z_]+\.[a-z_.]+\b", generator.choice(corpus()))
        words[generator.choice(places)] = generator.choice(others or [b"no.such"])


def _number_everywhere(words: list[bytes], _: int, generator: random.Random) -> None:
    numbers = [word for word in words if word.isdigit()]
    if numbers:
        _replace(
            words, generator.choice(numbers), str(generator.choice((0, 1, 2, 3, 7, 8, 65, 4096, 1 << 33))).encode()
        )


def _type_everywhere(words: list[bytes], _: int, generator: random.Random) -> None:
    types = [word for word in words if word in ELEMENTS]
    if types:
        _replace(words, generator.choice(types), generator.choice(ELEMENTS))


def _similar_operation(words: list[bytes], _: int, generator: random.Random) -> None:
    """Another operation of the same dialect, which may well be valid there."""
    places = [place for place, word in enumerate(words) if re.fullmatch(rb"[a-z_]+\.[a-z_.0-9]+", word)]
    if places:
        place = generator.choice(places)
        words[place] = generator.choice(_operations().get(words[place].partition(b".")[0], [words[place]]))


@cache
def _operations() -> dict[bytes, list[bytes]]:
    """The operations in the corpus, by dialect."""
    found = sorted({name for text in corpus() for name in re.findall(rb"\b[a-z_]+\.[a-z_.0-9]+\b", text)})
    return {dialect: list(names) for dialect, names in groupby(found, lambda name: name.partition(b".")[0])}


def _replace(words: list[bytes], old: bytes, new: bytes) -> None:
    words[:] = [new if word == old else word for word in words]


def _on_lines(change: Callable[[list[bytes], int, random.Random], None]) -> Callable[[bytes, random.Random], bytes]:
    def changed(text: bytes, generator: random.Random) -> bytes:
        lines = text.splitlines(keepends=True)
        if lines:
            change(lines, generator.randrange(len(lines)), generator)
        return b"".join(lines)

    return changed


def _drop_line(lines: list[bytes], place: int, _: random.Random) -> None:
    del lines[place]


def _repeat_line(lines: list[bytes], place: int, _: random.Random) -> None:
    lines.insert(place, lines[place])


def _move_line(lines: list[bytes], place: int, generator: random.Random) -> None:
    lines.insert(generator.randrange(len(lines)), lines.pop(place))


def _other_line(lines: list[bytes], place: int, generator: random.Random) -> None:
    lines.insert(place, generator.choice(generator.choice(corpus()).splitlines(keepends=True) or [b"\n"]))


CHANGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _flip,
    _truncate,
    _drop,
    *map(_on_words, (_swap_words, _other_word, _other_number, _other_value, _other_type, _other_operation)),
    *map(_on_words, (_number_everywhere, _type_everywhere, _similar_operation) * 5),
    *map(_on_lines, (_drop_line, _repeat_line, _move_line, _other_line)),
)


# -- inputs made for the purpose


def _random_bytes(generator: random.Random) -> bytes:
    start = generator.choice((b"", b"ML\xefR", b"ML\xefR\x06", b"func.func @f() {\n", b"module {\n"))
    return start + generator.randbytes(generator.randrange(2000))


def _nested_regions(generator: random.Random) -> bytes:
    depth = generator.choice((10, 100, 250, 1000, 20_000))
    opening, closing = generator.choice(
        (
            (b'"fusion.region"() ({', b"}) : () -> ()"),
            (b"module {", b"}"),
            (b"scf.execute_region {", b"}"),
            (b"gpu.module @m {", b"}"),
        )
    )
    return (opening + b"\n") * depth + (closing + b"\n") * (depth if generator.random() < 0.8 else depth - 1)


def _nested_brackets(generator: random.Random) -> bytes:
    depth = generator.choice((10, 250, 1000, 20_000))
    opening, closing = generator.choice(((b"[", b"]"), (b"{a = ", b"}"), (b"tuple<", b">"), (b"(", b")"), (b"<", b">")))
    inner = opening * depth + b"1" + closing * depth
    return generator.choice((b'"a.b"() {v = %s} : () -> ()\n', b"func.func private @f(%s)\n", b"#a = %s\n")) % inner


def _aliases(generator: random.Random) -> bytes:
    count = generator.choice((10, 40, 250, 5000))
    body = generator.choice(("[{0}, {0}]", "[{0}]", "{{a = {0}}}", "array<i64: {0}>"))
    lines = ["#a0 = [1]", *(f"#a{number + 1} = {body.format(f'#a{number}')}" for number in range(count))]
    return "\n".join([*lines, f'"a.b"() {{v = #a{count}}} : () -> ()\n']).encode()


def _affine(generator: random.Random) -> bytes:
    count = generator.choice((10, 300, 10_000))
    expression = generator.choice(("-" * count + "d0", "d0" + " + d0" * count, "(" * count + "d0" + ")" * count))
    domain = generator.choice(("d0", "d0, d1", ", ".join(f"d{number}" for number in range(min(count, 500)))))
    return f"#m = affine_map<({domain}) -> ({expression})>\nfunc.func private @f() attributes {{m = #m}}\n".encode()


def _escapes(generator: random.Random) -> bytes:
    escape = generator.choice((r"\FF", r"\C3\A9", r"\00", r"\C3", "é", r"\n", r"\22"))
    return generator.choice(
        (
            f'func.func @"{escape}"(%x: tensor<4xf32>) -> tensor<4xf32> {{\n  return %x : tensor<4xf32>\n}}\n',
            f'"{escape}"() : () -> ()\n',
            f'module {{}} loc("{escape}":1:1)\n',
            "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
            f'  %y = "fusion.extern"(%x) {{op = "{escape}", args = [#fusion.operand<0>, "{escape}"]}}'
            " : (tensor<4xf32>) -> tensor<4xf32>\n  return %y : tensor<4xf32>\n}\n",
        )
    ).encode()


def _gigantic_constant(generator: random.Random) -> bytes:
    sizes = b"x".join(generator.choice((b"2147483648", b"65536", b"9223372036854775807", b"7")) for _ in range(3))
    values = ((b"f32", b"0.0"), (b"i1", b"true"), (b"f32", b'"0x"'), (b"i64", b"[[1], [3]]"))
    element, value = generator.choice(values)
    digits = b"9" * generator.choice((20, 1000, 20_000))
    return generator.choice(
        (
            b"func.func @main() -> tensor<%sx%s> {\n  %%0 = arith.constant dense<%s> : tensor<%sx%s>\n"
            b"  return %%0 : tensor<%sx%s>\n}\n" % (sizes, element, value, sizes, element, sizes, element),
            b"func.func @main() -> i64 {\n  %%0 = arith.constant %s : i64\n  return %%0 : i64\n}\n" % digits,
            b"func.func @main() -> f32 {\n  %%0 = arith.constant %s.0 : f32\n  return %%0 : f32\n}\n" % digits,
            b"func.func @main(%%x: tensor<%sxf32>) -> tensor<%sxf32> {\n  %%e = tensor.empty() : tensor<%sxf32>\n"
            b"  %%0 = linalg.exp ins(%%x : tensor<%sxf32>) outs(%%e : tensor<%sxf32>) -> tensor<%sxf32>\n"
            b"  return %%0 : tensor<%sxf32>\n}\n" % ((sizes,) * 7),
            b"func.func @main(%%x: i%s) -> i%s {\n  return %%x : i%s\n}\n" % ((digits[:9],) * 3),
            b'func.func @main() { "a.b"() {v = dense<"0x%s"> : tensor<%sxi8>} : () -> () return }' % (digits, sizes),
        )
    )


def _cyclic(generator: random.Random) -> bytes:
    return generator.choice(
        (
            b'func.func @main() {\n  %a = "fusion.region"(%b) ({}) : (f32) -> f32\n'
            b'  %b = "fusion.region"(%a) ({}) : (f32) -> f32\n  return\n}\n',
            b"func.func @main(%e: tensor<4xf32>) -> tensor<4xf32> {\n"
            b"  %a = linalg.exp ins(%b : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>\n"
            b"  %b = linalg.exp ins(%a : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>\n"
            b"  return %b : tensor<4xf32>\n}\n",
            b"#a = #b\n#b = #a\nfunc.func private @f() attributes {x = #a}\n",
            b"!a = !b\n!b = !a\nfunc.func private @f(!a)\n",
            b"#loc = loc(fused[#loc])\nmodule {} loc(#loc)\n",
            b"#loc1 = loc(callsite(#loc2 at #loc1))\n#loc2 = loc(callsite(#loc1 at #loc2))\nmodule {} loc(#loc1)\n",
            b"func.func @main() {\n  func.call @main() : () -> ()\n  return\n}\n",
            b"func.func @main() {\n  cf.br ^a\n^a:\n  cf.br ^a\n}\n",
            b"func.func @main() -> f32 {\n  cf.br ^a\n^a:\n  cf.br ^b(%x : f32)\n^b(%x: f32):\n  return %x : f32\n}\n",
            b"module @m {\n  module @m {\n    module @m {}\n  }\n}\n",
            b'"builtin.module"() ({\n^a:\n  "cf.br"()[^a] : () -> ()\n}) : () -> ()\n',
        )
    )


def _many_operations(generator: random.Random) -> bytes:
    count = generator.choice((100, 300, 1000))
    chain = generator.random() < 0.5
    lines = [
        f"  %{n + 1} = linalg.exp ins(%{n if chain else 0} : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>\n"
        for n in range(count)
    ]
    head = "func.func @main(%0: tensor<4xf32>) -> tensor<4xf32> {\n  %e = tensor.empty() : tensor<4xf32>\n"
    return (head + "".join(lines) + f"  return %{count} : tensor<4xf32>\n}}\n").encode()


def _unregistered(generator: random.Random) -> bytes:
    name = generator.choice(("no.such", "fusion.kernl", "linalg.exq", "torch.aten.nothing", "a" * 5000 + ".b", "x"))
    body = generator.choice(("", "({})", '({\n^a(%z: !no.type<"x">):\n  "no.end"(%z) : (!no.type<"x">) -> ()\n})'))
    return (
        f"func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{\n"
        f'  %y = "{name}"(%x) {body} {{v = #no.attribute<[1, {{2}}]>}} : (tensor<4xf32>) -> tensor<4xf32>\n'
        f"  return %y : tensor<4xf32>\n}}\n"
    ).encode()


MADE: tuple[Callable[[random.Random], bytes], ...] = (
    _random_bytes,
    _nested_regions,
    _nested_brackets,
    _aliases,
    _affine,
    _escapes,
    _gigantic_constant,
    _cyclic,
    _many_operations,
    _unregistered,
)


# -- running them


def attack(given: Sequence[Case]) -> list[Finding]:
    """The cases that the command didn't end well on, in order; each batch has a process of its own."""
    corpus()
    findings: list[Finding] = []
    start = 0
    while start < len(given):
        batch = given[start : start + BATCH]
        done, found = _run_batch(batch)
        findings += found
        start += done
    return findings


def _run_batch(batch: Sequence[Case]) -> tuple[int, list[Finding]]:
    """How many of the cases were run, and what was found; one that ended or held up the process is the last."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _child(batch, writer)
    os.close(writer)
    with os.fdopen(reader, "rb", buffering=0) as pipe:
        lines, is_late = _read_lines(pipe)
    if is_late:
        os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    findings = [Finding(batch[number], why) for number, why in enumerate(lines) if why]
    if len(lines) == len(batch):
        return len(batch), findings
    case = batch[len(lines)]
    is_late |= status == -signal.SIGPROF
    why = f"took more than {SECONDS} s" if is_late else _fault_of_command(case)
    return len(lines) + 1, [*findings, Finding(case, why)] if why else findings


def _fault_of_command(case: Case) -> str:
    """What the installed command does wrong with an input that ends the process."""
    command = [sys.executable, "-m", "mlir_fusion.tools.fusion_opt", "-", *case.flags]
    done = subprocess.run(command, input=case.text, capture_output=True, timeout=PATIENCE * SECONDS, check=False)
    return judge(done.returncode, done.stderr.decode(errors="replace"))


def _read_lines(pipe: io.RawIOBase) -> tuple[list[str], bool]:
    """What the process said of each case, and whether it was too late with the next one."""
    data, deadline = b"", time.monotonic() + PATIENCE * SECONDS
    while True:
        ready, _, _ = select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return _decode(data), True
        piece = pipe.read(1 << 16)
        if not piece:
            return _decode(data), False
        data, deadline = data + piece, time.monotonic() + PATIENCE * SECONDS


def _decode(data: bytes) -> list[str]:
    return [json.loads(line) for line in data.split(b"\n")[:-1]]


def _child(batch: Sequence[Case], writer: int) -> NoReturn:
    """Runs the cases; for each, a line into the pipe that says what was wrong, as JSON."""
    folder = tempfile.mkdtemp(prefix="mutated-ir-")
    os.environ["MLIR_FUSION_DUMP"] = folder
    tempfile.tempdir = folder
    faulthandler.disable()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    output = os.open(os.path.join(folder, "output"), os.O_RDWR | os.O_CREAT)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.stdout = io.TextIOWrapper(os.fdopen(1, "wb", closefd=False))
    sys.stderr = io.TextIOWrapper(os.fdopen(2, "wb", closefd=False), errors="backslashreplace")
    try:
        for number, case in enumerate(batch):
            if number % SHARED == 0:
                share_context()
            os.ftruncate(output, 0)
            os.lseek(output, 0, os.SEEK_SET)
            # SIGPROF, which ends the process
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            why = _fault(case, output)
            os.write(writer, json.dumps(why).encode() + b"\n")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)


def share_context() -> None:
    """Lets the commands that follow have one context."""
    context = make_context()
    fusion_opt.make_context = lambda: context


def _fault(case: Case, output: int) -> str:
    """What the command did wrong; nothing where it did well."""
    sys.stdin = io.TextIOWrapper(io.BytesIO(case.text))
    try:
        status = main(["-", *case.flags])
    except BaseException as error:
        return f"raised {type(error).__name__}: {error}"
    sys.stdout.flush()
    sys.stderr.flush()
    return judge(status, os.pread(output, 1 << 16, 0).decode(errors="replace"))


def judge(status: int, text: str) -> str:
    """What is wrong with a command that ended with this status, having written this; nothing where nothing is."""
    if status not in (0, 1):
        return f"status {status}: {text[-500:]}"
    for sign in ("Traceback", "internal error"):
        if sign in text:
            return text[text.index(sign) :][:500]
    if status == 1 and "error: " not in text:
        return f"status 1 without a message: {text[-200:]!r}"
    return ""


# -- by hand


def _main(count: int, seed: int) -> int:
    """Rounds of new cases until there were `count`; prints each kind of finding once, and keeps its input."""
    os.environ[LONG] = "1"
    folder = Path("build/attack")
    kinds: Counter[str] = Counter()
    for start in range(0, count, BATCH * 4):
        for finding in attack(list(cases(min(BATCH * 4, count - start), seed + start))):
            kind = re.sub(r"0x[0-9a-f]+|[0-9]+|'[^']*'", "_", finding.why)[:120]
            kinds[kind] += 1
            if kinds[kind] == 1:
                folder.mkdir(parents=True, exist_ok=True)
                path = folder / f"{seed}-{len(kinds)}.mlir"
                path.write_bytes(finding.case.text)
                print(f"{path} {' '.join(finding.case.flags)}: {finding.why}\n", flush=True)
        print(f"{min(start + BATCH * 4, count)} inputs, {sum(kinds.values())} findings", file=sys.stderr, flush=True)
    print(f"{count} inputs from seed {seed}, {sum(kinds.values())} findings of {len(kinds)} kinds")
    return min(1, len(kinds))


if __name__ == "__main__":
    sys.exit(_main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())))
