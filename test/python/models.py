"""Whole models of tiny sizes with random weights, and inputs for them; nothing is downloaded.

Each makes a module and the keywords it is called with; `loss` sums up what it returns, so that every parameter gets
a gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
import transformers
from torch import Tensor, nn

Keywords = dict[str, Tensor]


@dataclass(frozen=True)
class Model:
    """A maker of a module, a maker of the keywords of a call."""

    name: str
    make: Callable[[], nn.Module]
    inputs: Callable[[], Keywords]

    def __str__(self) -> str:
        return self.name


def outputs(returned: object) -> list[Tensor]:
    """The tensors that a model returned, in order."""
    if isinstance(returned, Tensor):
        return [returned]
    if isinstance(returned, dict):
        return [tensor for value in returned.values() for tensor in outputs(value)]
    if isinstance(returned, list | tuple):
        return [tensor for value in returned for tensor in outputs(value)]
    return []


def loss(returned: object) -> Tensor:
    """A number that depends on every element of every floating-point output, each with a weight of its own.

    (Without weights, the gradient of a normalised output's square is nothing but rounding errors.)
    """
    tensors = [tensor for tensor in outputs(returned) if tensor.is_floating_point()]
    weighted = [(tensor.float() * _weights(tensor)).mean() for tensor in tensors]
    return torch.stack(weighted).sum()


def _weights(tensor: Tensor) -> Tensor:
    return torch.linspace(-1, 2, tensor.numel()).reshape(tensor.shape).sin()


class UNetBlock(nn.Module):
    """A residual block as in diffusion models: group norm, SiLU, convolutions, a time embedding, down and up again."""

    def __init__(self, channels: int = 16) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(4, channels), nn.GroupNorm(4, 2 * channels)
        self.conv1 = nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1)
        self.conv2 = nn.Conv2d(2 * channels, channels, 3, padding=1)
        self.time = nn.Linear(12, 2 * channels)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        h = self.conv1(F.silu(self.norm1(x)))
        h = self.norm2(h) * (1 + self.time(F.silu(t))[:, :, None, None])
        h = F.interpolate(self.conv2(F.silu(h)), scale_factor=2, mode="nearest")
        return x + h


def tokens(rows: int = 2, columns: int = 11, vocabulary: int = 97) -> Tensor:
    return torch.randint(0, vocabulary, (rows, columns))


def images(*shape: int) -> Keywords:
    return {"pixel_values": torch.randn(shape)}


def causal() -> Keywords:
    ids = tokens()
    return {"input_ids": ids, "labels": ids}


def gpt2() -> nn.Module:
    config = transformers.GPT2Config(
        vocab_size=97,
        n_positions=16,
        n_embd=24,
        n_layer=2,
        n_head=3,
        use_cache=False,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
    )
    return transformers.GPT2LMHeadModel(config)


LLAMA = {
    "vocab_size": 97,
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 32,
    "use_cache": False,
}


def llama() -> nn.Module:
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA))


def mixtral() -> nn.Module:
    return transformers.MixtralForCausalLM(transformers.MixtralConfig(**LLAMA, num_local_experts=4))


def bert() -> nn.Module:
    config = transformers.BertConfig(
        vocab_size=97,
        hidden_size=24,
        num_hidden_layers=2,
        num_attention_heads=3,
        intermediate_size=36,
        max_position_embeddings=32,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return transformers.BertForMaskedLM(config)


def masked() -> Keywords:
    mask = torch.ones(2, 11, dtype=torch.int64)
    mask[1, 7:] = 0
    return {"input_ids": tokens(), "attention_mask": mask, "labels": tokens()}


def t5() -> nn.Module:
    config = transformers.T5Config(
        vocab_size=97,
        d_model=24,
        d_kv=8,
        d_ff=36,
        num_layers=2,
        num_heads=3,
        dropout_rate=0.0,
        decoder_start_token_id=0,
        pad_token_id=0,
        use_cache=False,
    )
    return transformers.T5ForConditionalGeneration(config)


def vit() -> nn.Module:
    config = transformers.ViTConfig(
        hidden_size=24,
        num_hidden_layers=2,
        num_attention_heads=3,
        intermediate_size=36,
        image_size=16,
        patch_size=4,
        num_labels=5,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return transformers.ViTForImageClassification(config)


def convnext() -> nn.Module:
    config = transformers.ConvNextConfig(
        num_channels=3, hidden_sizes=[8, 12], depths=[1, 2], num_stages=2, image_size=16, num_labels=5
    )
    return transformers.ConvNextForImageClassification(config)


def resnet() -> nn.Module:
    config = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 2], layer_type="basic", num_labels=5
    )
    return transformers.ResNetForImageClassification(config)


def whisper_encoder() -> nn.Module:
    config = transformers.WhisperConfig(
        vocab_size=97,
        num_mel_bins=8,
        d_model=24,
        encoder_layers=2,
        encoder_attention_heads=3,
        encoder_ffn_dim=36,
        max_source_positions=15,
        dropout=0.0,
        attention_dropout=0.0,
        activation_dropout=0.0,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
        decoder_layers=1,
        decoder_attention_heads=3,
    )
    return transformers.WhisperModel(config).get_encoder()


def mamba() -> nn.Module:
    config = transformers.MambaConfig(
        vocab_size=97, hidden_size=16, state_size=4, num_hidden_layers=2, expand=2, use_cache=False
    )
    return transformers.MambaForCausalLM(config)


MODELS = [
    Model("gpt2", gpt2, causal),
    Model("llama", llama, causal),
    Model("mixtral", mixtral, causal),
    Model("bert", bert, masked),
    Model("t5", t5, lambda: {"input_ids": tokens(), "labels": tokens(2, 7)}),
    Model("vit", vit, lambda: images(2, 3, 16, 16)),
    Model("convnext", convnext, lambda: images(2, 3, 16, 16)),
    Model("resnet", resnet, lambda: images(3, 3, 32, 32)),
    Model("whisper_encoder", whisper_encoder, lambda: {"input_features": torch.randn(2, 8, 30)}),
    Model("mamba", mamba, causal),
    Model("unet_block", UNetBlock, lambda: {"x": torch.randn(2, 16, 8, 10), "t": torch.randn(2, 12)}),
]
