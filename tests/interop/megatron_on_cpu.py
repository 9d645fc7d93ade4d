"""Runs Megatron-core, which wants a GPU for every tensor that it creates, on a CPU: during a test "cuda" means the CPU, and the world
is one process. None of Megatron's own arithmetic is replaced."""

import contextlib

import torch
from torch.overrides import TorchFunctionMode


class CudaIsTheCpu(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if str(kwargs.get("device", "")).startswith("cuda"):
            kwargs["device"] = "cpu"
        result = function(*args, **kwargs)
        # Wrappers for 16-bit parameters check the name of a parameter's type and accept only the GPU's names.
        if function is torch.Tensor.type and isinstance(result, str):
            return result.replace("torch.", "torch.cuda.")
        return result


@contextlib.contextmanager
def megatron():
    from megatron.core import parallel_state
    from megatron.core.tensor_parallel.random import CudaRNGStatesTracker

    patched = ((torch.cuda, "current_device", lambda: "cuda"),
               # Random states of a GPU, which only dropout uses.
               (CudaRNGStatesTracker, "fork", lambda self, name=None: contextlib.nullcontext()))
    saved = [(place, name, getattr(place, name)) for place, name, _ in patched]
    for place, name, value in patched:
        setattr(place, name, value)
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    parallel_state.initialize_model_parallel()
    try:
        with CudaIsTheCpu():
            yield
    finally:
        parallel_state.destroy_model_parallel()
        torch.distributed.destroy_process_group()
        for place, name, value in saved:
            setattr(place, name, value)
