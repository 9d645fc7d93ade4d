"""Qwen3 for a version of transformers older than the model: Llama with an RMSNorm of every head's queries and keys before the
rotary embedding, and an independent head size."""

import json

import safetensors.torch
import transformers
from transformers.models.llama.modeling_llama import LlamaRMSNorm


def add_norm(attention, name, size, epsilon):
    norm = LlamaRMSNorm(size, eps=epsilon)
    setattr(attention, f"{name}_norm", norm)
    getattr(attention, f"{name}_proj").register_forward_hook(
        lambda module, inputs, output: norm(output.view(*output.shape[:-1], -1, size)).flatten(-2)
    )


class Qwen3(transformers.LlamaForCausalLM):
    def __init__(self, config):
        super().__init__(config)
        for layer in self.model.layers:
            for name in ("q", "k"):
                add_norm(layer.self_attn, name, config.head_dim, config.rms_norm_eps)

    def save_pretrained(self, directory, **words):
        super().save_pretrained(directory, **words)
        path = directory / "config.json"
        config = json.loads(path.read_text())
        config.update(model_type="qwen3", architectures=["Qwen3ForCausalLM"], use_sliding_window=False)
        del config["mlp_bias"]
        path.write_text(json.dumps(config))

    @classmethod
    def from_pretrained(cls, directory, output_loading_info=False):
        """Loads all of the model's tensors; fails if one is missing or unexpected."""
        config = json.loads((directory / "config.json").read_text())
        assert config.pop("model_type") == "qwen3" and config.pop("architectures") == ["Qwen3ForCausalLM"]
        model = cls(transformers.LlamaConfig(**config))
        tensors = {}
        for path in directory.glob("*.safetensors"):
            tensors.update(safetensors.torch.load_file(path))
        if config["tie_word_embeddings"]:
            assert "lm_head.weight" not in tensors
            tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"]
        model.to(next(iter(tensors.values())).dtype).load_state_dict(tensors, strict=True)
        return (model, {}) if output_loading_info else model
