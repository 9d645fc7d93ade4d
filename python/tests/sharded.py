"""What the tests of parameters that are divided among processes share: parameters, their placements, and processes."""

import datetime
import os
import tempfile

import torch
from gyre.optim import BasisRotation

try:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard  # not there before PyTorch 2.6
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
except ImportError:
    fully_shard = None

SETTINGS = dict(lr=1e-2, interval=3, weight_decay=0.1, delay=2)
ROTATED = ((12, 6), (6, 10), (12, 6), (2, 8), (7, 7), (40, 8))  # (2, 8): fewer rows than processes
OTHERS = ((9, 4), (9,), (1,), (1,))
MODELS = {"plain": {}, "ahead": dict(look_ahead=0.5), "lag": dict(refresh_lag=2, covariance_every=2),
          "sketch": dict(max_dimension=16, sketch=4, long_sides="whole"), "first": dict(source="first", geometry="unilateral")}


def gradients(step):
    generator = torch.Generator().manual_seed(step)
    return [torch.randn(shape, generator=generator) for shape in (*ROTATED, *OTHERS)]


def parameters(place=lambda x: x, dtype=torch.float32):
    torch.manual_seed(3)
    return [torch.nn.Parameter(place(torch.randn(shape).to(dtype))) for shape in (*ROTATED, *OTHERS)]


def made(params, **options):
    first, last = params[:len(ROTATED)], params[len(ROTATED):]
    return BasisRotation([{"params": first}, {"params": last, "rotate": False}], **{**SETTINGS, **options})


def train(params, optimizer, begin, end, place=lambda x: x, left_out=()):
    for step in range(begin, end):
        for number, (p, g) in enumerate(zip(params, gradients(step))):
            p.grad = None if (step, number) in left_out else place(g.to(p.dtype))
        optimizer.step()


def placed(mesh, *placements):
    """The placement of whole tensors; the one dimension of vectors is divided where a second would be."""
    def place(x):
        fitting = [Shard(min(one.dim, x.dim() - 1)) if isinstance(one, Shard) else one for one in placements]
        return distribute_tensor(x, mesh, fitting)
    return place


def whole(params):
    return [p.full_tensor() for p in params]


def assert_same(params, others):
    for number, (p, q) in enumerate(zip(params, others)):
        assert torch.equal(p, q), f"parameter {number} differs by {(p - q).abs().max()}"


def process(rank, size, store, functions, arguments):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", store=torch.distributed.FileStore(store, size), rank=rank, world_size=size,
                                         timeout=datetime.timedelta(minutes=5))
    for function in functions:
        function(size, *arguments)
    torch.distributed.barrier()
    # Without the end of the interpreter: PyTorch's threads for gloo may still let go of tensors then, and abort the process.
    os._exit(0)


def in_processes(sizes, functions, *arguments):
    """Calls each function with the number of processes and the arguments in each of them."""
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            torch.multiprocessing.spawn(process, (size, folder + "/store", functions, arguments), nprocs=size)


def layouts(size):
    mesh = init_device_mesh("cpu", (size,))
    yield placed(mesh, Shard(0))
    yield placed(mesh, Shard(1))
    yield placed(mesh, Replicate())
    if size == 4:
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("copies", "parts"))
        yield placed(mesh, Replicate(), Shard(0))
        yield placed(mesh, Shard(0), Replicate())
        yield placed(mesh, Shard(1), Shard(0))
        yield placed(mesh, Shard(0), Shard(0))
