"""Random numbers: the published words of Philox, the same for every schedule and target, repeated by a seed."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from mlir_fusion.dialects.mlir import ir
from mlir_fusion.driver.build import build
from mlir_fusion.driver.launchers import make_launcher
from mlir_fusion.driver.options import Options
from mlir_fusion.driver.programs import make_program
from mlir_fusion.driver.runner import make_context

import mlir_fusion

M0, M1, W0, W1, LOW = 0xD2511F53, 0xCD9E8D57, 0x9E3779B9, 0xBB67AE85, 0xFFFFFFFF


def philox(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, int, int, int]:
    """Philox4x32-10 as the paper has it."""
    a, b, c, d = counter
    k0, k1 = key
    for _ in range(10):
        p0, p1 = M0 * a, M1 * c
        a, b, c, d = (p1 >> 32) ^ b ^ k0, p1 & LOW, (p0 >> 32) ^ d ^ k1, p0 & LOW
        k0, k1 = (k0 + W0) & LOW, (k1 + W1) & LOW
    return a, b, c, d


def expected(seed: int, offset: int, count: int) -> np.ndarray:
    """The words of a draw."""
    key = seed % 2**64
    words = []
    for place in range(-(-count // 4)):
        counter = (offset + place) % 2**64
        words += philox((counter & LOW, counter >> 32, 0, 0), (key & LOW, key >> 32))
    return np.array(words[:count], np.uint32)


def test_the_reference_gives_the_published_words() -> None:
    assert philox((0, 0, 0, 0), (0, 0)) == (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
    assert philox((LOW,) * 4, (LOW,) * 2) == (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)
    digits_of_pi = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0)
    assert philox(*digits_of_pi) == (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)


# What is done to a draw of bits [rows, columns] %r, as %y of a type; and the same in numpy
USES = {
    "as it lies": ("%y = tensor.cast %r : tensor<RxCxi32> to tensor<RxCxi32>", lambda r: r),
    "transposed": (
        """%e = tensor.empty() : tensor<CxRxi32>
        %y = linalg.transpose ins(%r : tensor<RxCxi32>) outs(%e : tensor<CxRxi32>) permutation = [1, 0]""",
        lambda r: r.T,
    ),
    "from the second column on": (
        """%s = tensor.extract_slice %r[0, 1] [R, D] [1, 1] : tensor<RxCxi32> to tensor<RxDxi32>
        %e = tensor.empty() : tensor<RxDxi32>
        %y = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
            ins(%s : tensor<RxDxi32>) outs(%e : tensor<RxDxi32>) {
        ^bb0(%in: i32, %out: i32):
          linalg.yield %in : i32
        } -> tensor<RxDxi32>""",
        lambda r: r[:, 1:],
    ),
    "summed by rows": (
        """%z = arith.constant 0 : i32
        %e = tensor.empty() : tensor<Rxi32>
        %f = linalg.fill ins(%z : i32) outs(%e : tensor<Rxi32>) -> tensor<Rxi32>
        %y = linalg.reduce ins(%r : tensor<RxCxi32>) outs(%f : tensor<Rxi32>) dimensions = [1]
            (%a: i32, %b: i32) { %s = arith.addi %a, %b : i32 linalg.yield %s : i32 }""",
        lambda r: r.sum(1, dtype=np.uint32),
    ),
    "summed by columns": (
        """%z = arith.constant 0 : i32
        %e = tensor.empty() : tensor<Cxi32>
        %f = linalg.fill ins(%z : i32) outs(%e : tensor<Cxi32>) -> tensor<Cxi32>
        %y = linalg.reduce ins(%r : tensor<RxCxi32>) outs(%f : tensor<Cxi32>) dimensions = [0]
            (%a: i32, %b: i32) { %s = arith.addi %a, %b : i32 linalg.yield %s : i32 }""",
        lambda r: r.sum(0, dtype=np.uint32),
    ),
}


@pytest.mark.parametrize("target", ["cpu", "simt"])
@pytest.mark.parametrize("shape", [(33, 64), (7, 61), (40, 2)], ids=str)
@pytest.mark.parametrize("use", USES)
def test_every_schedule_draws_the_same_words(use: str, shape: tuple[int, int], target: str) -> None:
    seed, offset = -(2**61) - 12345, 2**32 - 7
    code, reference = USES[use]
    wanted = reference(expected(seed, offset, math.prod(shape)).reshape(shape))
    result = "x".join(map(str, wanted.shape))
    for letter, extent in zip("RCD", (*shape, shape[1] - 1), strict=True):
        for before, after in (("", "x"), ("[", ","), (" ", "]")):
            code = code.replace(f"{before}{letter}{after}", f"{before}{extent}{after}")
    found = run(
        f"""#map = affine_map<(d0, d1) -> (d0, d1)>
        func.func @main(%seed: tensor<i64>) -> tensor<{result}xi32> {{
          %offset = arith.constant dense<{offset}> : tensor<i64>
          %r = "fusion.random"(%seed, %offset) {{kind = "bits"}}
              : (tensor<i64>, tensor<i64>) -> tensor<{shape[0]}x{shape[1]}xi32>
          {code}
          return %y : tensor<{result}xi32>
        }}""",
        target,
        torch.tensor(seed),
    )
    assert np.array_equal(found.numpy().view(np.uint32), wanted)


def run(code: str, target: str, *inputs: torch.Tensor) -> torch.Tensor:
    """The first result of @main."""
    options = Options(target=target, fusion_type="dataflow", disk_cache=False)
    with make_context():
        artifact = build(ir.Module.parse(code), options)
    (result,) = make_program(artifact.host, make_launcher(artifact.code, options))(*inputs)
    return result


DRAWS = {
    "dropout": lambda x: F.dropout(x, 0.3),
    "rand": lambda x: torch.rand(x.shape) + x,
    "rand_like_bf16": lambda x: torch.rand_like(x.bfloat16()),
    "uniform": lambda x: torch.empty(x.shape).uniform_(-2, 5),
    "uniform_f16": lambda x: torch.empty(x.shape, dtype=torch.float16).uniform_(1, 3),
    "randn": lambda x: torch.randn(x.shape),
    "normal": lambda x: torch.empty(x.shape).normal_(3, 0.5),
    "bernoulli": lambda x: torch.bernoulli(x * 0.25),
    "bernoulli_p": lambda x: torch.empty(x.shape).bernoulli_(0.7),
}


@pytest.mark.parametrize("name", DRAWS)
def test_draws_have_eagers_distribution(name: str) -> None:
    """Compared with eager by the Kolmogorov-Smirnov distance, which 1 in 10,000 pairs of such samples exceeds."""
    torch._dynamo.reset()
    torch.manual_seed(len(name))
    x, count = torch.ones(200, 333), 200 * 333
    compiled = mlir_fusion.compile(DRAWS[name], target="cpu")
    found, eager = compiled(x), DRAWS[name](x)
    assert "fusion.random" in compiled.ir("region")
    assert found.dtype == eager.dtype
    assert distance(found, eager) < 2.23 * math.sqrt(2 / count)
    assert abs(correlation(found)) < 4 / math.sqrt(count)


def distance(one: torch.Tensor, other: torch.Tensor) -> float:
    """The largest difference of the shares of elements below a value."""
    one, other = (tensor.double().flatten().sort().values for tensor in (one, other))
    values = torch.cat((one, other))
    shares = [torch.searchsorted(sample, values, right=True) / len(sample) for sample in (one, other)]
    return (shares[0] - shares[1]).abs().max().item()


def correlation(sample: torch.Tensor) -> float:
    """Of neighbours."""
    flat = sample.double().flatten()
    return torch.corrcoef(torch.stack((flat[1:], flat[:-1])))[0, 1].item()


def test_bounds_are_kept() -> None:
    """[0, 1) and [low, high) in narrow types too, where a draw could be rounded up."""

    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.rand_like(x), torch.empty_like(x).uniform_(1, 3)

    for dtype in (torch.bfloat16, torch.float16):
        torch._dynamo.reset()
        torch.manual_seed(1)
        unit, other = mlir_fusion.compile(function, target="cpu")(torch.ones(300, 500, dtype=dtype))
        assert 0 == unit.min() and unit.max() == 1 - torch.finfo(dtype).eps / 2
        assert 1 <= other.min() and other.max() < 3


def test_a_graph_draws_one_seed_and_no_word_twice() -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.rand(3, 7), torch.rand(5), torch.rand(3, 7) + x

    torch._dynamo.reset()
    compiled = mlir_fusion.compile(function, target="cpu")
    drawn = torch.cat([tensor.flatten() for tensor in compiled(torch.zeros(3, 7))])
    assert compiled.ir("linalg").count("aten.randint") == 1
    assert len(drawn.unique()) == len(drawn)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.rand(4, dtype=torch.float64) + x.sum(),
        lambda x: torch.rand_like(x.t()),
        lambda x: torch.randint(0, 9, (4,)) + x.sum(),
        lambda x: F.dropout(x, 1.0),
    ],
    ids=["f64", "not row by row", "integers", "nothing kept"],
)
def test_the_library_draws_the_rest(function) -> None:
    torch._dynamo.reset()
    x, compiled = torch.ones(3, 5), mlir_fusion.compile(function, target="cpu")
    torch.manual_seed(0)
    found = compiled(x)
    torch.manual_seed(0)
    assert torch.equal(found, function(x))
    assert "fusion.random" not in compiled.ir("region")


def test_an_option_draws_what_eager_draws() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return F.dropout(x, 0.5) + torch.rand_like(x) + torch.randn(4, 5)

    torch._dynamo.reset()
    x, compiled = torch.ones(4, 5), mlir_fusion.compile(function, target="cpu", enable_options=["eager_random"])
    torch.manual_seed(0)
    found = compiled(x)
    torch.manual_seed(0)
    assert torch.equal(found, function(x))


def test_a_gpu_takes_one_computation_for_four_neighbours() -> None:
    torch._dynamo.reset()
    x = torch.ones(64, 64, dtype=torch.bfloat16)
    code = mlir_fusion.compile(lambda x: F.dropout(x, 0.1), target="sm_90").lower(x).ptx()
    assert "ld.global.v4" in code and ".local" not in code
    assert 2 * 17 <= code.count("mul.wide.u32") <= 2 * 20 + 2
