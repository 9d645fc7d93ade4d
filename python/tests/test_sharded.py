"""Tests parameters that FSDP2 or tensor parallelism divides among processes: their updates are those of one process, bit for bit."""

import itertools
import unittest
from unittest import mock

import torch
from gyre import _sharded
from gyre.optim import BasisRotation
from sharded import MODELS, ROTATED, SETTINGS, assert_same, fully_shard, gradients, in_processes, layouts, made, parameters, train, whole

if fully_shard is not None:
    from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
    from torch.distributed.tensor import DTensor, Partial, Shard


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


def default_dtypes(size):
    """What has no dtype of its own is made with the default."""
    place = next(layouts(size))
    for dtype in (torch.bfloat16, torch.float64):
        params, alone = parameters(place), parameters()
        optimizer, data = made(params), [[place(g) for g in gradients(step)] for step in range(6)]
        torch.set_default_dtype(dtype)
        for of_step in data:
            for p, g in zip(params, of_step):
                p.grad = g
            optimizer.step()
        optimizer.load_state_dict(optimizer.state_dict())
        torch.set_default_dtype(torch.float32)
        train(params, optimizer, 6, 9, place)
        train(alone, made(alone), 0, 9)
        assert_same(whole(params), alone)


def small_batches(size):
    place = next(layouts(size))
    params, alone = parameters(place), parameters()
    with mock.patch.object(_sharded, "_SENT_TOGETHER_ON_A_CPU", 100):
        optimizer = made(params)
        assert len(optimizer._owners.batches(params[:len(ROTATED)])) > 1
        train(params, optimizer, 0, 9, place)
        optimizer.load_state_dict(optimizer.state_dict())
        train(params, optimizer, 9, 12, place)
    train(alone, made(alone), 0, 12)
    assert_same(whole(params), alone)


def groups_travel_together(size):
    place = next(layouts(size))
    params, alone = parameters(place), parameters()
    optimizer, other = (BasisRotation([{"params": [p], "lr": 1e-2 / (1 + number)} for number, p in enumerate(of)], **SETTINGS)
                        for of in (params, alone))
    train(params, optimizer, 0, 4, place)
    send = torch.distributed.all_to_all_single
    with mock.patch.object(torch.distributed, "all_to_all_single", side_effect=send) as sent:
        train(params, optimizer, 4, 5, place)
    assert sent.call_count == 3, sent.call_count
    optimizer.load_state_dict(optimizer.state_dict())
    train(params, optimizer, 5, 9, place)
    train(alone, other, 0, 9)
    assert_same(whole(params), alone)


def rotate_later(size):
    """Has no effect, as no option of rotation has after the first step."""
    place = next(layouts(size))
    params, alone = parameters(place), parameters()
    for of, optimizer, there in ((params, made(params), place), (alone, made(alone), lambda x: x)):
        train(of, optimizer, 0, 4, there)
        for group in optimizer.param_groups:
            group["rotate"] = not group["rotate"]
        train(of, optimizer, 4, 8, there)
    assert_same(whole(params), alone)


def matrices_have_one_owner(size):
    """Also where several processes have copies of the same parts (HSDP)."""
    for number, place in enumerate(layouts(size)):
        if number == 2:  # each has all of it
            continue
        params = parameters(place)
        optimizer = made(params)
        train(params, optimizer, 0, 4, place)
        names = [sorted(name for name, x in optimizer.state[p].items() if name == "step" or x.numel())
                 for p in params[:len(ROTATED)]]
        everywhere = [None] * size
        torch.distributed.all_gather_object(everywhere, names)
        for of_one in zip(*everywhere):
            assert sorted(map(len, of_one))[:-1] == [1] * (size - 1), of_one  # all others count steps alone
            assert any("left_basis" in of_process for of_process in of_one)
        work = [_sharded._work(p) for p in params[:len(ROTATED)]]
        loads = [sum(one for one, of_one in zip(work, of_process) if len(of_one) > 1) for of_process in everywhere]
        assert max(loads) <= max(1.5 * sum(work) / size, max(work)), loads


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


def other_gradients_in_one_process(size):
    """Matrices of one shape would be mixed up, and of several shapes messages would not fit."""
    for place in layouts(size):
        params = parameters(place)
        optimizer = made(params)
        train(params, optimizer, 0, 4, place)
        before = [p.clone() for p in whole(params)]
        for here, elsewhere in ((0, 2), (1, None), (None, len(ROTATED))):
            for p, g in zip(params, gradients(4)):
                p.grad = place(g)
            left_out = here if torch.distributed.get_rank() == 0 else elsewhere
            if left_out is not None:
                params[left_out].grad = None
            try:
                optimizer.step()
            except RuntimeError as error:
                assert "a gradient in one process and none in another" in str(error) and "\n" not in str(error), error
            else:
                raise AssertionError("stepped with other gradients in one process than in another")
        assert_same(whole(params), before)
        alone = parameters()
        train(params, optimizer, 4, 6, place)
        train(alone, made(alone), 0, 6)
        assert_same(whole(params), alone)


def refused(size):
    mesh = init_device_mesh("cpu", (size,))
    p = torch.nn.Parameter(DTensor.from_local(torch.ones(2, 2), mesh, [Partial()]))
    try:
        BasisRotation([p])
    except TypeError as error:
        assert "only what is divided or replicated" in str(error) and "\n" not in str(error), error
    else:
        raise AssertionError("what is to be summed was taken")
    elsewhere = DeviceMesh("cpu", [(torch.distributed.get_rank() + 1) % size])
    assert "without this process" in _sharded.fault(DTensor.from_local(torch.ones(0, 2), elsewhere, [Shard(0)]))[0]


@unittest.skipIf(fully_shard is None, "needs PyTorch 2.6 or newer")
class Sharded(unittest.TestCase):
    def test_as_in_one_process(self):
        in_processes((1, 3, 4), [as_in_one_process])

    def test_types_batches_and_groups(self):
        in_processes((2,), [types, default_dtypes, small_batches, groups_travel_together, rotate_later])

    def test_matrices_have_one_owner(self):
        in_processes((3, 4), [matrices_have_one_owner])

    def test_not_finite_in_one_process(self):
        in_processes((2, 4), [not_finite_in_one_process])

    def test_other_gradients_in_one_process(self):
        in_processes((2, 4), [other_gradients_in_one_process])

    def test_refused(self):
        in_processes((2,), [refused])
