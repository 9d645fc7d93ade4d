"""Tests which parameters the plug-in takes, that none is changed by more than its update, and that copies continue alike."""

import copy
import pickle
import unittest

import torch
from gyre.optim import BasisRotation


def gradients(step):
    generator = torch.Generator().manual_seed(step)
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in ((8, 6), (6,), (5, 8))]


def parameters(dtype):
    torch.manual_seed(3)
    return [torch.nn.Parameter(torch.randn(g.shape, dtype=torch.float64).to(dtype)) for g in gradients(0)]


def train(params, optimizer, begin, end):
    for step in range(begin, end):
        for p, g in zip(params, gradients(step)):
            p.grad = g.to(p.dtype)
        optimizer.step()


class WithATorchFunction(torch.Tensor):
    pass


class WithATorchDispatch(torch.Tensor):
    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        raise AssertionError(f"{function} of a parameter that was to be refused")


class Types(unittest.TestCase):
    def test_a_rate_of_zero_changes_nothing(self):
        for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
            params = parameters(dtype)
            before = [p.detach().clone() for p in params]
            train(params, BasisRotation(params, lr=0.0, interval=2, weight_decay=0.1), 0, 5)
            for p, q in zip(params, before):
                self.assertEqual(p.dtype, dtype)
                self.assertTrue(torch.equal(p, q), dtype)

    def test_fp64_is_updated_in_fp64(self):
        torch.set_default_dtype(torch.float64)
        self.addCleanup(torch.set_default_dtype, torch.float32)
        settings = dict(lr=1e-11, betas=(0.9, 0.99), weight_decay=0.1)  # changes far below fp32's precision
        params, others = parameters(torch.float64), parameters(torch.float64)
        before = [p.detach().clone() for p in params]
        train(params, BasisRotation(params, rotate=False, **settings), 0, 20)
        train(others, torch.optim.AdamW(others, **settings), 0, 20)
        for p, q, start in zip(params, others, before):
            self.assertLess((p - q).abs().max().item(), 1e-5 * (q - start).abs().max().item())

    def test_fp64_follows_fp32(self):
        settings = dict(lr=1e-2, interval=3, weight_decay=0.1, look_ahead=0.6, delay=2)
        params, others = parameters(torch.float64), parameters(torch.float32)
        train(params, BasisRotation(params, **settings), 0, 20)
        train(others, BasisRotation(others, **settings), 0, 20)
        for p, q in zip(params, others):
            self.assertLess((p - q).abs().max().item(), 1e-5)

    def test_fp64_gradients_too_large_for_fp32_are_skipped(self):
        p = torch.nn.Parameter(torch.ones(4, 4, dtype=torch.float64))
        optimizer = BasisRotation([p])
        p.grad = torch.full_like(p, 1e39)
        optimizer.step()
        self.assertEqual(optimizer.skipped, 1)
        self.assertTrue(torch.equal(p, torch.ones_like(p)))

    def refused(self):
        """What cannot be updated, with a part of the message."""
        ones = torch.ones(4, 4)
        yield torch.nn.Parameter(ones.to(torch.complex64)), "torch.complex64; give it to another optimizer"
        yield torch.nn.Parameter(ones.to_sparse()), "torch.sparse_coo; make it dense"
        yield torch.nn.Parameter(ones.to("meta")), "on the meta device"
        yield torch.Tensor._make_wrapper_subclass(WithATorchDispatch, (4, 4), requires_grad=True), "a WithATorchDispatch; only plain tensors"
        for name in ("float8_e4m3fn", "float8_e5m2"):
            if hasattr(torch, name):
                yield torch.nn.Parameter(ones.to(getattr(torch, name))), f"torch.{name}; give it to another optimizer"

    def test_what_cannot_be_updated_is_refused(self):
        for p, words in self.refused():
            with self.assertRaisesRegex(TypeError, r"a parameter of shape \(4, 4\) is " + words):
                BasisRotation([p])
            optimizer = BasisRotation(parameters(torch.float32))
            with self.assertRaisesRegex(TypeError, words):
                optimizer.add_param_group({"params": [p]})
            self.assertEqual(len(optimizer.param_groups), 1)

    def test_frozen_ones_are_left_alone_until_they_have_a_gradient(self):
        for p, words in self.refused():
            p.requires_grad_(False)
            params = parameters(torch.float32)
            optimizer = BasisRotation([*params, p])
            train(params, optimizer, 0, 2)
            before = [q.detach().clone() for q in params]
            if p.layout == torch.strided and type(p) is not WithATorchDispatch:
                p.grad = torch.ones_like(p.detach())
                with self.assertRaisesRegex(TypeError, words):
                    optimizer.step()
            for q, same in zip(params, before):
                self.assertTrue(torch.equal(q, same))
        whole = torch.nn.Parameter(torch.ones(4, 4, dtype=torch.int8), requires_grad=False)
        BasisRotation([*parameters(torch.float32), whole])

    def test_subclasses_that_are_plain_tensors_are_updated(self):
        p = WithATorchFunction(torch.ones(4, 4)).requires_grad_()
        optimizer = BasisRotation([p])
        p.grad = torch.eye(4)
        optimizer.step()
        self.assertFalse(torch.equal(p.detach(), torch.ones(4, 4)))

    def test_other_strides_are_updated_alike(self):
        gradients = [torch.randn(6, 4, generator=torch.Generator().manual_seed(t)) for t in range(15)]
        for options in ({}, {"rotate": False}, {"row_blocks": 2}):
            made = []
            for weight in (torch.ones(6, 4), torch.ones(4, 6).t(), torch.ones(12, 8)[::2, ::2]):
                p = torch.nn.Parameter(weight)
                optimizer = BasisRotation([p], lr=1e-2, interval=4, **options)
                for g in gradients:
                    p.grad = g.clone()
                    optimizer.step()
                made.append(p.detach())
            for other in made[1:]:
                self.assertLess((made[0] - other).abs().max().item(), 1e-5, options)


class Autograd(unittest.TestCase):
    def test_autocast_has_no_effect(self):
        settings = dict(lr=1e-2, interval=3, look_ahead=0.6, delay=2)
        params, others = parameters(torch.float32), parameters(torch.float32)
        train(params, BasisRotation(params, **settings), 0, 9)
        with torch.autocast("cpu", torch.bfloat16):
            train(others, BasisRotation(others, **settings), 0, 9)
        for p, q in zip(params, others):
            self.assertTrue(torch.equal(p, q))

    def test_a_backward_pass_with_weights_from_before_the_step_is_refused(self):
        for options in ({}, {"rotate": False}):
            for dtype in (torch.bfloat16, torch.float32, torch.float64):
                w, x = torch.nn.Parameter(torch.ones(3, 3, dtype=dtype)), torch.ones(3, 3, dtype=dtype, requires_grad=True)
                loss = (x @ w).square().sum()
                loss.backward(retain_graph=True)
                BasisRotation([w], **options).step()
                with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
                    loss.backward()


class Copies(unittest.TestCase):
    def test_a_copy_continues_to_the_bit(self):
        # A refresh begins at every sixth step and is finished four steps later.
        settings = dict(lr=1e-2, interval=6, refresh_lag=4, covariance_every=2, look_ahead=0.6, delay=3)
        for how in (copy.deepcopy, lambda both: pickle.loads(pickle.dumps(both))):
            for dtype in (torch.bfloat16, torch.float32, torch.float64):
                for stop in (0, 5, 7, 9, 13):
                    params = parameters(dtype)
                    optimizer = BasisRotation(params, max_skipped=7, **settings)
                    optimizer.skipped = 2
                    train(params, optimizer, 0, stop)
                    for p in params:
                        p.grad = None
                    others, resumed = how((params, optimizer))
                    self.assertEqual((resumed.max_skipped, resumed.skipped), (7, 2))
                    train(params, optimizer, stop, 25)
                    train(others, resumed, stop, 25)
                    for p, q in zip(params, others):
                        self.assertTrue(torch.equal(p, q), (dtype, stop))


if __name__ == "__main__":
    unittest.main()
