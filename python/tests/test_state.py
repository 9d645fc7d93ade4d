"""Tests that optimizer.state is what counts: users reset it, replace its tensors, and take parameters and groups out, as with torch.optim."""

import collections
import copy
import unittest

import torch
from gyre.optim import BasisRotation

OPTIONS = {torch.optim.AdamW: {}, BasisRotation: {"interval": 3}}


def gradients(step):
    generator = torch.Generator().manual_seed(step)
    return [torch.randn(shape, generator=generator) for shape in ((6, 4), (6, 4), (6,), (4, 6))]


def parameters():
    return [torch.nn.Parameter(torch.ones_like(g)) for g in gradients(0)]


def train(params, optimizer, begin, end):
    for step in range(begin, end):
        for p, g in zip(params, gradients(step)):
            p.grad = g
        optimizer.step()


def made(optimizer_class, params, **options):
    return optimizer_class(params, lr=1e-2, **{**OPTIONS[optimizer_class], **options})


def trained(optimizer_class, steps=8, **options):
    params = parameters()
    optimizer = made(optimizer_class, params, **options)
    train(params, optimizer, 0, steps)
    return params, optimizer


class Reset(unittest.TestCase):
    def assert_begins_anew(self, reset):
        for optimizer_class in OPTIONS:
            params, optimizer = trained(optimizer_class)
            others = copy.deepcopy(params)
            reset(optimizer, params)
            self.assertEqual(optimizer.state_dict()["state"], {})
            train(params, optimizer, 8, 13)
            train(others, made(optimizer_class, others), 8, 13)
            for p, q in zip(params, others):
                self.assertTrue(torch.equal(p, q), optimizer_class)

    def test_all_of_it(self):
        self.assert_begins_anew(lambda optimizer, params: optimizer.state.clear())
        self.assert_begins_anew(lambda optimizer, params: setattr(optimizer, "state", collections.defaultdict(dict)))
        self.assert_begins_anew(lambda optimizer, params: [optimizer.state.pop(p) for p in params])

    def test_of_one_parameter(self):
        for empty in (lambda state, p: state.pop(p), lambda state, p: state[p].clear()):
            for optimizer_class in OPTIONS:
                params, optimizer = trained(optimizer_class)
                others, unchanged = copy.deepcopy((params, optimizer))
                new = made(optimizer_class, others[:1])
                empty(optimizer.state, params[0])
                train(params, optimizer, 8, 13)
                train(others, unchanged, 8, 13)
                for p, q in zip(params[1:], others[1:]):
                    self.assertTrue(torch.equal(p, q), optimizer_class)
                others[0].data = trained(optimizer_class)[0][0].data
                train(others[:1], new, 8, 13)
                self.assertTrue(torch.equal(params[0], others[0]), optimizer_class)
                self.assertEqual([int(optimizer.state[p]["step"]) for p in params], [5, 13, 13, 13])

    def test_those_once_alone_are_stepped_together_again(self):
        params, optimizer = trained(BasisRotation)
        optimizer.zero_grad(set_to_none=True)
        train(params[:3], optimizer, 8, 9)
        train(params, optimizer, 9, 10)
        self.assertEqual([len(optimizer._together[p].params) for p in params], [3, 3, 3, 1])
        optimizer.state.clear()
        train(params, optimizer, 10, 11)
        self.assertEqual([len(optimizer._together[p].params) for p in params], [4, 4, 4, 4])

    def test_looking_at_the_state_before_the_first_step(self):
        params = parameters()
        optimizer = made(BasisRotation, params)
        self.assertEqual(optimizer.state[params[0]], {})
        train(params, optimizer, 0, 1)
        self.assertEqual(optimizer.state[params[0]]["step"], 1)


class Replaced(unittest.TestCase):
    def test_tensors(self):
        ends = []
        for optimizer_class in OPTIONS:
            unrotated = {"rotate": False} if optimizer_class is BasisRotation else {}
            params, optimizer = trained(optimizer_class, betas=(0.9, 0.99), **unrotated)
            for p in params[:2]:
                p.data.fill_(1.0)
                optimizer.state[p]["exp_avg"] = torch.full_like(p, 0.5)
                optimizer.state[p]["exp_avg_sq"] = torch.full_like(p, 0.25)
            saved = optimizer.state_dict()["state"]
            self.assertTrue(torch.equal(saved[1]["exp_avg"], torch.full((6, 4), 0.5)))
            train(params, optimizer, 8, 10)
            ends.append(params)
        for p, q in zip(*ends):
            self.assertLess((p - q).abs().max().item(), 1e-6)

    def test_the_rest_stays_to_the_bit_while_a_refresh_is_under_way(self):
        # A refresh begins at every sixth step and is finished four steps later.
        for look, stop in ((None, 7), (7, 8), (7, 11), (13, 14)):
            params, optimizer = trained(BasisRotation, 0, interval=6, refresh_lag=4)
            others, unchanged = copy.deepcopy((params, optimizer))
            for t in range(stop):
                train(params, optimizer, t, t + 1)
                train(others, unchanged, t, t + 1)
                if t == look:
                    optimizer.state_dict()  # self.state has the next bases from here on
            optimizer.state[params[0]]["exp_avg"] = optimizer.state[params[0]]["exp_avg"].clone()
            train(params, optimizer, stop, 25)
            train(others, unchanged, stop, 25)
            for p, q in zip(params, others):
                self.assertTrue(torch.equal(p, q), (look, stop))


class TakenOut(unittest.TestCase):
    def test_a_group(self):
        for optimizer_class in OPTIONS:
            params = parameters()
            optimizer = made(optimizer_class, [{"params": params[:2]}, {"params": params[2:]}])
            train(params, optimizer, 0, 8)
            others, unchanged = copy.deepcopy((params, optimizer))
            for p in optimizer.param_groups.pop()["params"]:
                optimizer.state.pop(p)
            self.assertEqual(list(optimizer.state_dict()["state"]), [0, 1])
            train(params, optimizer, 8, 13)
            train(others, unchanged, 8, 13)
            self.assertEqual(list(optimizer.state_dict()["state"]), [0, 1])
            for p, q in zip(params[:2], others[:2]):
                self.assertTrue(torch.equal(p, q), optimizer_class)

    def test_a_parameter_that_another_replaces(self):
        for optimizer_class in OPTIONS:
            params, optimizer = trained(optimizer_class)
            old, new = params[1], torch.nn.Parameter(torch.ones(6, 4))
            params[1] = optimizer.param_groups[0]["params"][1] = new
            optimizer.state.pop(old)
            train(params, optimizer, 8, 13)
            saved = optimizer.state_dict()["state"]
            self.assertEqual([int(saved[n]["step"]) for n in range(4)], [13, 5, 13, 13])
            self.assertNotIn(old, optimizer.state)

    def test_nothing_is_kept_of_it(self):
        params, optimizer = trained(BasisRotation)
        old = params.pop()
        old.grad = None
        train(params, optimizer, 8, 9)  # it is left out, so it is alone from here on
        old.grad = torch.ones_like(old)
        train(params, optimizer, 9, 10)
        optimizer.param_groups[0]["params"].pop()
        optimizer.state.pop(old)
        train(params, optimizer, 10, 11)
        for kept in (optimizer.state, optimizer._together, optimizer._alone):
            self.assertNotIn(old, kept)


@unittest.skipUnless(hasattr(torch.optim.Optimizer, "register_load_state_dict_pre_hook"), "needs a newer PyTorch")
class Hooks(unittest.TestCase):
    def test_users_may_change_what_is_saved_and_loaded(self):
        def renamed(_, state_dict):
            return {**state_dict, "state": {str(number): state for number, state in state_dict["state"].items()}}

        def named_back(_, state_dict):
            return {**state_dict, "state": {int(number): state for number, state in state_dict["state"].items()}}

        def one_anew(optimizer):
            self.assertEqual([optimizer.state[p]["step"] for p in optimizer.param_groups[0]["params"]], [8] * 4)
            optimizer.state.pop(optimizer.param_groups[0]["params"][1])

        for optimizer_class in OPTIONS:
            params, optimizer = trained(optimizer_class)
            others = copy.deepcopy(params)
            loaded = made(optimizer_class, others)
            optimizer.register_state_dict_post_hook(renamed)
            loaded.register_load_state_dict_pre_hook(named_back)
            loaded.register_load_state_dict_post_hook(one_anew)
            loaded.load_state_dict(copy.deepcopy(optimizer.state_dict()))  # AdamW loads the same tensors
            optimizer.state.pop(params[1])
            train(params, optimizer, 8, 13)
            train(others, loaded, 8, 13)
            for p, q in zip(params, others):
                self.assertTrue(torch.equal(p, q), optimizer_class)


if __name__ == "__main__":
    unittest.main()
