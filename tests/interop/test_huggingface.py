"""Models as transformers has them: what is installed can make and read them."""

import torch
import transformers


def test_models_can_be_made_and_read(tmp_path):
    config = transformers.GPT2Config(n_layer=1, n_embd=8, n_head=2, n_positions=8, vocab_size=16)
    transformers.GPT2LMHeadModel(config).save_pretrained(tmp_path)
    model, loading = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(loading.values())
    assert model(torch.arange(8).reshape(1, 8)).logits.shape == (1, 8, 16)
