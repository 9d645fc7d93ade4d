"""Tests the state of parameters that FSDP2 or tensor parallelism divides: from checkpoints all goes on as if it had not stopped."""

import copy
import io
import itertools
import pathlib
import re
import tempfile
import unittest
from unittest import mock

import torch
from gyre.optim import BasisRotation
from sharded import MODELS, ROTATED, SETTINGS, assert_same, fully_shard, in_processes, layouts, made, parameters, placed, train, whole

if fully_shard is not None:
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import (StateDictOptions, get_optimizer_state_dict, get_state_dict,
                                                         set_optimizer_state_dict, set_state_dict)
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module


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

        begun = [torch.nn.Parameter(p.detach().clone()) for p in alone]
        from_parts = made(begun, **MODELS[name])
        from_parts.load_state_dict({**saved, "state": full})
        params = [torch.nn.Parameter(place(p.detach().clone())) for p in alone]
        from_whole = made(params, **MODELS[name])
        from_whole.load_state_dict(expected)
        train(begun, from_parts, 7, 12)
        train(params, from_whole, 7, 12, place)
        train(alone, other, 7, 12)
        assert_same(begun, alone)
        assert_same(whole(params), alone)


def copied_states(size):
    place = next(layouts(size))
    params = parameters(place)
    optimizer = made(params)
    train(params, optimizer, 0, 7, place)
    written = io.BytesIO()
    torch.save(optimizer.state_dict(), written)
    written.seek(0)
    copies = [copy.deepcopy(optimizer.state_dict()), torch.load(written, weights_only=True)]
    begun = [[torch.nn.Parameter(p.detach().clone()) for p in params] for _ in copies]
    train(params, optimizer, 7, 12, place)
    for state, of in zip(copies, begun):
        other = made(of)
        other.load_state_dict(state)
        train(of, other, 7, 12, place)
        assert_same(whole(params), whole(of))


def hooks(size):
    """Users' hooks look at divided tensors, as they are saved."""
    place = next(layouts(size))
    params = parameters(place)
    optimizer = made(params)
    train(params, optimizer, 0, 5, place)

    def renamed(_, state_dict):
        assert all(isinstance(x, DTensor) for state in state_dict["state"].values() for x in state.values() if torch.is_tensor(x))
        return {**state_dict, "state": {str(number): state for number, state in state_dict["state"].items()}}

    def named_back(_, state_dict):
        return {**state_dict, "state": {int(number): state for number, state in state_dict["state"].items()}}

    others = [torch.nn.Parameter(p.detach().clone()) for p in params]
    loaded = made(others)
    optimizer.register_state_dict_post_hook(renamed)
    loaded.register_load_state_dict_pre_hook(named_back)
    loaded.load_state_dict(optimizer.state_dict())
    train(params, optimizer, 5, 9, place)
    train(others, loaded, 5, 9, place)
    assert_same(whole(params), whole(others))


def model(mesh=None):
    """A module with the parameters of `parameters`, in this order."""
    torch.manual_seed(3)
    layers = [torch.nn.Linear(columns, rows, bias=False) for rows, columns in ROTATED]
    net = torch.nn.Sequential(*layers, torch.nn.Linear(4, 9), torch.nn.LayerNorm(1))
    if mesh is not None:
        for layer in net:
            fully_shard(layer, mesh=mesh)
        fully_shard(net, mesh=mesh)
    params = list(net.parameters())
    return net, params, made(params)


def flat_states(size):
    """Flat names, as torchtitan has them: PyTorch asks optimizer.state, in each process, which tensors there are."""
    mesh, options = init_device_mesh("cpu", (size,)), StateDictOptions(flatten_optimizer_state_dict=True)
    place = placed(mesh, Shard(0))
    net, params, optimizer = model(mesh)
    train(params, optimizer, 0, 7, place)
    another, others, loaded = model(mesh)
    another.load_state_dict(net.state_dict())
    for _ in range(2):
        set_optimizer_state_dict(another, loaded, get_optimizer_state_dict(net, optimizer, options=options), options=options)
    train(params, optimizer, 7, 12, place)
    train(others, loaded, 7, 12, place)
    assert_same(whole(params), whole(others))


def wrong_states(size):
    """What one process cannot load, none loads."""
    place = next(layouts(size))
    params, alone = parameters(place), parameters()
    optimizer = made(params)
    train(params, optimizer, 0, 5, place)
    incomplete, other_names = optimizer.state_dict(), optimizer.state_dict()
    del incomplete["state"][5]["left_basis"]
    if torch.distributed.get_rank() == 0:
        del other_names["state"][5]["left_basis"]
    for state, words in ((incomplete, "no '5/left_basis'|another process could not load"), (other_names, "divided into other tensors")):
        try:
            optimizer.load_state_dict(state)
        except Exception as error:
            assert re.search(words, str(error)) and "\n" not in str(error), error
        else:
            raise AssertionError(f"loaded; expected {words}")
    train(params, optimizer, 5, 9, place)
    train(alone, made(alone), 0, 9)
    assert_same(whole(params), alone)


def save(size, folder):
    mesh = init_device_mesh("cpu", (size,))
    net, params, optimizer = model(mesh)
    train(params, optimizer, 0, 7, placed(mesh, Shard(0)))
    params[0].grad.to_local().fill_(float("nan"))
    optimizer.step()
    optimizer.step()
    dcp.save({"model": net.state_dict(), "optimizer": get_optimizer_state_dict(net, optimizer)}, checkpoint_id=folder)
    full = get_optimizer_state_dict(net, optimizer, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
    if torch.distributed.get_rank() == 0:
        torch.save(full, folder + "/full")


def resume(size, folder):
    mesh = init_device_mesh("cpu", (size,))
    place = placed(mesh, Shard(0))
    _, alone, other = model()
    train(alone, other, 0, 12)
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
        assert (optimizer.skipped, optimizer._skipped_in_a_row) == (2, 2)
        train(params, optimizer, 7, 12, place)
        assert_same(whole(params), alone)


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


@unittest.skipIf(fully_shard is None, "needs PyTorch 2.6 or newer")
class ShardedState(unittest.TestCase):
    def test_goes_on_in_one_process_and_back(self):
        in_processes((3, 4), [states])

    def test_state_dicts(self):
        in_processes((2,), [copied_states, hooks, flat_states, wrong_states])

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
