"""Tests parameters that FSDP2 or tensor parallelism divides among processes: bit for bit as in one process, and from their checkpoints."""

import datetime
import itertools
import pathlib
import re
import tempfile
import unittest
from unittest import mock

import torch
from gyre import _sharded
from gyre.optim import BasisRotation

DTensor = _sharded.DTensor
if DTensor is not None:
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import (StateDictOptions, get_optimizer_state_dict, get_state_dict,
                                                         set_optimizer_state_dict, set_state_dict)
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

SETTINGS = dict(lr=1e-2, interval=3, weight_decay=0.1, delay=2)
ROTATED = ((12, 6), (6, 10), (12, 6), (2, 8), (7, 7), (40, 8))  # (2, 8): fewer rows than processes
OTHERS = ((9, 4), (5,), (1,))
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
    try:
        for function in functions:
            function(size, *arguments)
        torch.distributed.barrier()
    finally:
        torch.distributed.destroy_process_group()


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


def as_in_one_process(size):
    left_out = {(3, 0), (4, 6), (5, 1)}
    for name, place in itertools.product(MODELS if size == 3 else ("plain", "lag"), layouts(size)):
        params, alone = parameters(place), parameters()
        optimizer, other = made(params, **MODELS[name]), made(alone, **MODELS[name])
        train(params, optimizer, 0, 9, place, left_out)
        train(alone, other, 0, 9, left_out=left_out)
        assert_same(whole(params), alone)


def types(size):
    place = next(layouts(size))
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        params, alone = parameters(place, dtype), parameters(dtype=dtype)
        train(params, made(params), 0, 6, place)
        train(alone, made(alone), 0, 6)
        assert_same(whole(params), alone)


def small_batches(size):
    place = next(layouts(size))
    params, alone = parameters(place), parameters()
    with mock.patch.object(_sharded, "_SENT_TOGETHER", 100):
        optimizer = made(params)
        assert len(optimizer._owners.batches(params[:len(ROTATED)])) > 1
        train(params, optimizer, 0, 9, place)
        optimizer.load_state_dict(optimizer.state_dict())
        train(params, optimizer, 9, 12, place)
    train(alone, made(alone), 0, 12)
    assert_same(whole(params), alone)


def matrices_have_one_owner(size):
    """Also where several processes have copies of the same parts (HSDP)."""
    for number, place in enumerate(layouts(size)):
        if number == 2:  # each has all of it
            continue
        params = parameters(place)
        optimizer = made(params)
        train(params, optimizer, 0, 4, place)
        names = [sorted(optimizer.state[p]) for p in params[:len(ROTATED)]]
        everywhere = [None] * size
        torch.distributed.all_gather_object(everywhere, names)
        for of_one in zip(*everywhere):
            assert sorted(map(len, of_one))[:-1] == [1] * (size - 1), of_one  # all others count steps alone
            assert any("left_basis" in of_process for of_process in of_one)
        work = [_sharded._work(p) for p in params[:len(ROTATED)]]
        loads = [sum(one for one, of_one in zip(work, of_process) if len(of_one) > 1) for of_process in everywhere]
        assert max(loads) <= max(1.5 * sum(work) / size, max(work)), loads


def states(size):
    """State of divided parameters goes on in one process, and the reverse."""
    for name, place in itertools.product(("ahead", "lag", "sketch") if size == 3 else ("lag",), layouts(size)):
        alone = parameters()
        other = made(alone, **MODELS[name])
        params = parameters(place)
        optimizer = made(params, **MODELS[name])
        train(alone, other, 0, 7)
        train(params, optimizer, 0, 7, place)
        saved, expected = optimizer.state_dict(), other.state_dict()
        full = {number: {key: x.full_tensor() if isinstance(x, DTensor) else x for key, x in state.items()}
                for number, state in saved["state"].items()}
        for number, state in expected["state"].items():
            assert state.keys() == full[number].keys(), (state.keys(), full[number].keys())
            for key, x in state.items():
                assert torch.equal(x, full[number][key]) if torch.is_tensor(x) else x == full[number][key], (name, number, key)

        begun, from_parts = parameters(), made(parameters(), **MODELS[name])
        begun = [p for group in from_parts.param_groups for p in group["params"]]
        for p, q in zip(begun, alone):
            p.data.copy_(q)
        from_parts.load_state_dict({**saved, "state": full})
        params = [torch.nn.Parameter(place(p.detach().clone())) for p in alone]
        from_whole = made(params, **MODELS[name])
        from_whole.load_state_dict(expected)
        train(begun, from_parts, 7, 12)
        train(params, from_whole, 7, 12, place)
        train(alone, other, 7, 12)
        assert_same(begun, alone)
        assert_same(whole(params), alone)


def model(mesh=None):
    torch.manual_seed(3)
    layers = [torch.nn.Linear(columns, rows, bias=False) for rows, columns in ROTATED]
    net = torch.nn.Sequential(*layers, torch.nn.Linear(4, 9), torch.nn.LayerNorm(5))
    if mesh is not None:
        for layer in net:
            fully_shard(layer, mesh=mesh)
        fully_shard(net, mesh=mesh)
    matrices = [p for layer in net[:len(ROTATED)] for p in layer.parameters()]
    others = [p for layer in net[len(ROTATED):] for p in layer.parameters()]
    return net, matrices + others, BasisRotation([{"params": matrices}, {"params": others, "rotate": False}], **SETTINGS)


def gradients_of(params, step, place):
    generator = torch.Generator().manual_seed(step)
    for p in params:
        p.grad = place(torch.randn(p.shape, generator=generator))


def steps_of(params, optimizer, begin, end, place=lambda x: x):
    for step in range(begin, end):
        gradients_of(params, step, place)
        optimizer.step()


def save(size, folder):
    mesh = init_device_mesh("cpu", (size,))
    net, params, optimizer = model(mesh)
    steps_of(params, optimizer, 0, 7, placed(mesh, Shard(0)))
    dcp.save({"model": net.state_dict(), "optimizer": get_optimizer_state_dict(net, optimizer)}, checkpoint_id=folder)
    full = get_optimizer_state_dict(net, optimizer, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
    if torch.distributed.get_rank() == 0:
        torch.save(full, folder + "/full")


def resume(size, folder):
    mesh = init_device_mesh("cpu", (size,))
    place = placed(mesh, Shard(0))
    _, alone, other = model()
    steps_of(alone, other, 0, 12)
    for full in (False, True):
        net, params, optimizer = model(mesh)
        state = {"model": net.state_dict()}
        if not full:
            state["optimizer"] = get_optimizer_state_dict(net, optimizer)
        dcp.load(state, checkpoint_id=folder)
        net.load_state_dict(state["model"])
        if full:
            options = StateDictOptions(full_state_dict=True)
            set_optimizer_state_dict(net, optimizer, torch.load(folder + "/full", weights_only=True), options=options)
        else:
            set_optimizer_state_dict(net, optimizer, state["optimizer"])
        assert optimizer.state[params[0]]["step"] == 7
        steps_of(params, optimizer, 7, 12, place)
        assert_same(whole(params), alone)


def not_finite_in_one_process(size):
    for place in layouts(size):
        params = parameters(place)
        optimizer = made(params, max_skipped=1)
        train(params, optimizer, 0, 2, place)
        before = [p.clone() for p in whole(params)]
        for skipped, number in enumerate((0, len(ROTATED))):
            for p, g in zip(params, gradients(2)):
                p.grad = place(g)
            if torch.distributed.get_rank() == 0:
                params[number].grad.to_local().fill_(float("nan"))
            if skipped:
                try:
                    optimizer.step()
                except FloatingPointError:
                    pass
                else:
                    raise AssertionError("the second step was not refused")
            else:
                optimizer.step()
            assert optimizer.skipped == 1 + skipped
        assert_same(whole(params), before)


def refused(size):
    mesh = init_device_mesh("cpu", (size,))
    p = torch.nn.Parameter(DTensor.from_local(torch.ones(2, 2), mesh, [Partial()]))
    try:
        BasisRotation([p])
    except TypeError as error:
        assert "only what is divided or replicated" in str(error) and "\n" not in str(error), error
    else:
        raise AssertionError("what is to be summed was taken")


def shown(heading):
    """The code under a heading of docs/python.md."""
    part = (pathlib.Path(__file__).resolve().parents[2] / "docs/python.md").read_text().split(f"### {heading}\n")[1].split("\n#")[0]
    return "\n".join(re.findall(r"```python\n(.*?)```", part, re.S))


class Language(torch.nn.Module):
    def __init__(self, words, width, depth):
        super().__init__()
        self.embedding = torch.nn.Embedding(words, width)
        self.layers = torch.nn.ModuleList(torch.nn.Sequential(torch.nn.LayerNorm(width), torch.nn.Linear(width, 2 * width),
                                                              torch.nn.GELU(), torch.nn.Linear(2 * width, width))
                                          for _ in range(depth))
        self.head = torch.nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = x + layer(x)
        return self.head(x)


def as_documented(size, folder):
    words, steps, code = 32, 20, shown("FSDP2")
    recorded, step = [], BasisRotation.step

    def recording(self, closure=None):
        if any(p.grad is not None and p.grad.full_tensor().any() for group in self.param_groups for p in group["params"]):
            recorded.append([[p.grad.full_tensor() for p in group["params"]] for group in self.param_groups])
        return step(self, closure)

    def run(begin, end, resume, checkpoint):
        torch.manual_seed(1)
        generator = torch.Generator().manual_seed(torch.distributed.get_rank())
        begins = torch.randint(words, (steps, 8, 1), generator=generator)
        batches = [(one + torch.arange(9)) % words for one in begins][begin:end]  # counting upwards
        names = {"model": Language(words, 16, 3), "batches": batches, "losses": [], "resume": resume, "checkpoint": checkpoint}
        before = [p.detach().clone() for p in names["model"].parameters()]
        exec(code, names)
        return names, before

    with mock.patch.object(BasisRotation, "step", recording):
        once, before = run(0, steps, None, folder + "/once")
        gradients_of_once = list(recorded)
        run(0, steps // 2, None, folder + "/half")
        twice, _ = run(steps // 2, steps, folder + "/half", folder + "/twice")
    assert sum(once["losses"][-3:]) < 0.8 * sum(once["losses"][:3]), once["losses"]
    names = [name for name, _ in once["model"].named_parameters()]
    assert_same(whole(once["model"].parameters()), whole(twice["model"].parameters()))

    alone = dict(zip(names, map(torch.nn.Parameter, before)))
    named = {p: name for name, p in once["model"].named_parameters()}
    other = BasisRotation([{**{key: x for key, x in group.items() if key != "params"},
                            "params": [alone[named[p]] for p in group["params"]]} for group in once["optimizer"].param_groups])
    assert len(gradients_of_once) == steps
    for of_step in gradients_of_once:
        for group, of_group in zip(other.param_groups, of_step):
            for p, g in zip(group["params"], of_group):
                p.grad = g
        step(other)
    assert_same(whole(once["model"].parameters()), alone.values())


def with_tensor_parallelism(size, folder):
    """FSDP2 of a model that tensor parallelism has divided, which goes on from a checkpoint with other divisions."""
    def made_model(parts, steps, resume=None, checkpoint=None):
        mesh = init_device_mesh("cpu", (size // parts, parts), mesh_dim_names=("data", "tensor"))
        torch.manual_seed(1)
        net = Language(24, 14, 2)
        for layer in net.layers:
            parallelize_module(layer, mesh["tensor"], {"1": ColwiseParallel(), "3": RowwiseParallel()})
            fully_shard(layer, mesh=mesh["data"])
        fully_shard(net, mesh=mesh["data"])
        matrices = [p for layer in net.layers for p in layer.parameters()]
        others = [p for part in (net.embedding, net.head) for p in part.parameters()]
        optimizer = BasisRotation([{"params": matrices}, {"params": others, "rotate": False}], **SETTINGS)
        if resume:
            weights, state = get_state_dict(net, optimizer)
            dcp.load({"model": weights, "optimizer": state}, checkpoint_id=resume)
            set_state_dict(net, optimizer, model_state_dict=weights, optim_state_dict=state)
        else:
            before.update({name: p.full_tensor().clone() for name, p in net.named_parameters()})
        for step in steps:
            generator = torch.Generator().manual_seed(step)
            tokens = torch.randint(24, (4, 8), generator=generator)
            optimizer.zero_grad()
            net(tokens).square().mean().backward()
            gradients.append({name: p.grad.full_tensor() for name, p in net.named_parameters()})
            optimizer.step()
        if checkpoint:
            weights, state = get_state_dict(net, optimizer)
            dcp.save({"model": weights, "optimizer": state}, checkpoint_id=checkpoint)
        return net

    before, gradients = {}, []
    first = made_model(2, range(7), checkpoint=folder)
    kinds = {type(placement).__name__ for p in first.parameters() for placement in p.placements}
    assert "_StridedShard" in kinds, kinds  # the way of cutting that only this has
    after = made_model(1, range(7, 11), resume=folder)
    names = [name for name, _ in first.named_parameters()]
    alone = {name: torch.nn.Parameter(before[name]) for name in names}
    inner = [alone[name] for name in names if name.startswith("layers")]
    other = BasisRotation([{"params": inner}, {"params": [alone[name] for name in names if not name.startswith("layers")],
                                               "rotate": False}], **SETTINGS)
    for step, of_step in enumerate(gradients):
        for name in names:
            alone[name].grad = of_step[name]
        other.step()
        if step == 6:
            assert_same(whole(first.parameters()), [p.clone() for p in alone.values()])
    assert_same(whole(after.parameters()), alone.values())


@unittest.skipIf(DTensor is None, "needs PyTorch 2.6 or newer")
class Sharded(unittest.TestCase):
    def test_as_in_one_process(self):
        in_processes((1, 3, 4), [as_in_one_process])

    def test_states(self):
        in_processes((3, 4), [states])

    def test_types_and_batches(self):
        in_processes((2,), [types, small_batches])

    def test_matrices_have_one_owner(self):
        in_processes((3, 4), [matrices_have_one_owner])

    def test_not_finite_in_one_process(self):
        in_processes((2, 4), [not_finite_in_one_process])

    def test_refused(self):
        in_processes((1,), [refused])

    def test_checkpoints_go_on_in_another_number_of_processes(self):
        for before, after in ((2, 3), (3, 1), (1, 2)):
            with tempfile.TemporaryDirectory() as folder:
                in_processes((before,), [save], folder)
                in_processes((after,), [resume], folder)

    def test_with_tensor_parallelism(self):
        with tempfile.TemporaryDirectory() as folder:
            in_processes((4,), [with_tensor_parallelism], folder)

    def test_as_documented(self):
        with tempfile.TemporaryDirectory() as folder:
            in_processes((2,), [as_documented], folder)
