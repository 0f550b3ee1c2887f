"""Programs for all sizes on a GPU: one graph, right for every size, and what it costs that sizes are not known."""

import pytest
import torch

import mlir_fusion

SIZES = [(3, 8, 16), (2, 9, 5), (5, 70, 2), (4, 6, 1000), (33, 65, 130), (8, 512, 1024)]
TOLERANCES = {torch.float32: 1e-4, torch.bfloat16: 3e-2}


def pointwise(x, w):
    return (x * 2 + w).relu(), torch.cat([x, x], 1), x.transpose(1, 2).contiguous() + 1


def normed(x, w):
    return torch.nn.functional.layer_norm(x, (x.shape[-1],), w), x.mean(1), x.amax(0)


def attended(x, w):
    scores = torch.softmax(torch.tril(x @ x.transpose(-1, -2)) / 8, -1)
    return (
        torch.nn.functional.scaled_dot_product_attention(x, x, x, scale=0.125),
        scores,
        torch.nn.functional.pad(x, (1, 2)),
    )


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("function", [pointwise, normed, attended], ids=lambda function: function.__name__)
def test_one_graph_is_right_for_every_size(function, dtype: torch.dtype) -> None:
    torch._dynamo.reset()
    fast = mlir_fusion.compile(function, dynamic=True, fusion_type="dataflow")
    for size in SIZES:
        x, w = torch.randn(size, device="cuda", dtype=dtype), torch.randn(size[-1], device="cuda", dtype=dtype)
        for one, other in zip(fast(x, w), function(x.double(), w.double()), strict=True):
            limit = TOLERANCES[dtype]
            torch.testing.assert_close(one.double(), other, rtol=limit, atol=limit)
    assert fast.ir("linalg").count("// graph") == 1
