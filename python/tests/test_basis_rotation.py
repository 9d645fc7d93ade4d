"""Compares the plug-in with torch's AdamW and with the update written in Python, and uses it as frameworks use an optimizer.

Run with the interpreter that scripts/install-python names: python3 -m unittest discover python/tests
"""

import copy
import io
import json
import os
import subprocess
import sys
import unittest
import unittest.mock
import warnings
from pathlib import Path

import torch
from gyre import _core
from gyre.optim import BasisRotation


def reference_rotation(weight, gradients, lr, betas, eps, weight_decay, interval):
    """The update rule in Python: source second, bilateral, fixed refresh, with momentum stored unrotated."""
    b1, b2 = betas
    m, n = weight.shape
    left, right = torch.zeros(m, m), torch.zeros(n, n)
    first, second = torch.zeros(m, n), torch.zeros(m, n)  # first: unrotated
    u = v = None
    for t, g in enumerate(gradients, 1):
        left = b2 * left + (1 - b2) * g @ g.T
        right = b2 * right + (1 - b2) * g.T @ g
        if t % interval == 0:
            if u is None:  # cold start; the variances move with the basis
                u = torch.linalg.eigh(left)[1].flip(1)
                v = torch.linalg.eigh(right)[1].flip(1)
                second = (u**2).T @ second @ (v**2)
            else:
                for side in ("u", "v"):
                    c, q = (left, u) if side == "u" else (right, v)
                    order = torch.argsort((q * (c @ q)).sum(0), descending=True)
                    q2, r = torch.linalg.qr((c @ q)[:, order])
                    q2 = q2 * torch.sign(r.diagonal())
                    if side == "u":
                        u, second = q2, second[order]
                    else:
                        v, second = q2, second[:, order]
        first = b1 * first + (1 - b1) * g
        rotate = (lambda x: u.T @ x @ v) if u is not None else (lambda x: x)
        back = (lambda x: u @ x @ v.T) if u is not None else (lambda x: x)
        second = b2 * second + (1 - b2) * rotate(g) ** 2
        direction = back(rotate(first) / (1 - b1**t) / ((second / (1 - b2**t)).sqrt() + eps))
        weight = weight * (1 - lr * weight_decay) - lr * direction
    return weight


class Rotation(unittest.TestCase):
    def run_on(self, gradients, **options):
        p = torch.nn.Parameter(torch.ones(gradients[0].shape))
        optimizer = BasisRotation([p], lr=1e-2, **options)
        for g in gradients:
            p.grad = g.clone()
            optimizer.step()
        return p.detach(), optimizer

    def gradients(self, count, *shape):
        generator = torch.Generator().manual_seed(1)
        scales = torch.linspace(0.2, 3, shape[0]).view(-1, *[1] * (len(shape) - 1))
        return [torch.randn(*shape, generator=generator) * scales for _ in range(count)]

    def test_follows_the_published_update(self):
        gradients = self.gradients(60, 7, 5)
        ours, _ = self.run_on(gradients, betas=(0.9, 0.999), interval=10, long_sides="whole",
                              covariance_every=1)
        expected = reference_rotation(torch.ones(7, 5), gradients, 1e-2, (0.9, 0.999), 1e-8, 0.01, 10)
        self.assertLess((ours - expected).abs().max().item(), 2e-4)
        unrotated, _ = self.run_on(gradients, betas=(0.9, 0.999), rotate=False)
        self.assertGreater((unrotated - expected).abs().max().item(), 1e-2)

    def test_without_rotation_is_adamw(self):
        for shape in ((6, 4), (5,), (2, 3, 4)):
            gradients = self.gradients(30, *shape)
            ours, _ = self.run_on(gradients, betas=(0.9, 0.999), rotate=False)
            p = torch.nn.Parameter(torch.ones(shape))
            adamw = torch.optim.AdamW([p], lr=1e-2, weight_decay=0.01)
            for g in gradients:
                p.grad = g.clone()
                adamw.step()
            self.assertTrue(torch.allclose(ours, p.detach(), atol=2e-6), shape)

    def test_row_blocks_are_separate_matrices(self):
        gradients = self.gradients(25, 12, 5)
        fused, _ = self.run_on(gradients, interval=5, row_blocks=3)
        for block in range(3):
            alone, _ = self.run_on([g[4 * block : 4 * block + 4] for g in gradients], interval=5)
            self.assertTrue(torch.equal(fused[4 * block : 4 * block + 4], alone))

    def test_row_blocks_may_differ_in_size(self):
        gradients = self.gradients(25, 12, 5)
        fused, optimizer = self.run_on(gradients, interval=5, row_blocks=[8, 1, 3])
        for begin, end in ((0, 8), (8, 9), (9, 12)):
            alone, _ = self.run_on([g[begin:end] for g in gradients], interval=5)
            self.assertTrue(torch.equal(fused[begin:end], alone))
        again = torch.nn.Parameter(fused.clone())
        resumed = BasisRotation([again])
        resumed.load_state_dict(optimizer.state_dict())
        self.assertEqual({k for k in resumed.state[again]}, {k for s in optimizer.state.values() for k in s})

    def test_every_variant_runs_and_keeps_bases_orthogonal(self):
        gradients = self.gradients(40, 9, 6)
        for source in ("second", "first"):
            for geometry in ("bilateral", "unilateral"):
                for refresh in ("fixed", "stage-aware", "adaptive"):
                    p, optimizer = self.run_on(gradients, interval=4, source=source, geometry=geometry,
                                               refresh=refresh, delay=2, mean_delay=1.5)
                    self.assertTrue(torch.isfinite(p).all())
                    bases = [v for s in optimizer.state.values() for k, v in s.items() if k.endswith("basis")]
                    self.assertEqual(len(bases), 2 if geometry == "bilateral" else 1)
                    for q in bases:
                        self.assertLess((q.T @ q - torch.eye(q.shape[1])).abs().max().item(), 1e-5)

    def stepped_together_or_alone(self, together, dtype=torch.float32):
        """Four parameters after 30 steps, of which some leave one out, and one stops in between to be saved and loaded."""
        shapes, settings = ((8, 6), (8, 6), (6,), (5, 8)), dict(lr=1e-2, interval=5, refresh_lag=2)
        params = [torch.nn.Parameter(torch.ones(shape, dtype=dtype)) for shape in shapes]
        make = lambda: [BasisRotation(some, **settings) for some in ([params] if together else [[p] for p in params])]
        optimizers, gradients = make(), [self.gradients(30, *shape) for shape in shapes]
        for step in range(30):
            for n, p in enumerate(params):
                left_out = (n == 0 and step % 7 == 3) or (n == 3 and step < 4)
                p.grad = None if left_out else gradients[n][step].to(dtype)
            for optimizer in optimizers:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # one has no matrix
                    optimizer.step()
            if step == 16:
                states = [optimizer.state_dict() for optimizer in optimizers]
                optimizers = make()
                for optimizer, state in zip(optimizers, states):
                    optimizer.load_state_dict(state)
        return params, [state for optimizer in optimizers for state in optimizer.state_dict()["state"].values()]

    def test_together_as_each_alone(self):
        for dtype, limit in ((torch.float32, None), (torch.bfloat16, None), (torch.bfloat16, 60), (torch.bfloat16, 1)):
            with unittest.mock.patch("gyre.optim._CONVERTED_TOGETHER", limit or 1 << 26):
                params, states = self.stepped_together_or_alone(True, dtype)
            alone, states_alone = self.stepped_together_or_alone(False, dtype)
            for n, (p, q) in enumerate(zip(params, alone)):
                self.assertTrue(torch.equal(p, q), (dtype, limit, n))
                self.assertEqual(states[n].keys(), states_alone[n].keys())
                for key, value in states[n].items():
                    self.assertTrue(torch.equal(torch.as_tensor(value), torch.as_tensor(states_alone[n][key])), key)
        self.assertEqual([state["step"] for state in states], [26, 30, 30, 26])

    def test_who_is_stepped_together(self):
        params = [torch.nn.Parameter(torch.ones(4, 4)) for _ in range(3)]
        optimizer = BasisRotation(params)
        together = lambda: [len(optimizer._together[p].params) for p in params if p in optimizer._together]

        def step(*with_gradient):
            for n, p in enumerate(params):
                p.grad = torch.ones(4, 4) if n in with_gradient else None
            optimizer.step()

        step(0, 1, 2)
        self.assertEqual(together(), [3, 3, 3])
        first = optimizer._together[params[0]]
        step(0, 1, 2)
        self.assertIs(optimizer._together[params[0]], first)
        step()
        self.assertIs(optimizer._together[params[0]], first)
        step(1, 2)
        self.assertEqual(together(), [2, 2])
        step(0)
        step(0, 1, 2)
        self.assertEqual({optimizer.state[p]["step"] for p in params}, {4})
        self.assertEqual(together(), [1, 2, 2])  # though all are at the same step again

    def test_of_lower_precision_only_some_are_stepped_together(self):
        params = [torch.nn.Parameter(torch.ones(4, 4, dtype=torch.bfloat16)) for _ in range(5)]
        for p in params:
            p.grad = torch.ones(4, 4, dtype=torch.bfloat16)
        with unittest.mock.patch("gyre.optim._CONVERTED_TOGETHER", 32):
            optimizer = BasisRotation(params)
            optimizer.step()
        self.assertEqual([len(optimizer._together[p].params) for p in params], [2, 2, 2, 2, 1])

    def test_low_precision_parameters(self):
        p = torch.nn.Parameter(torch.ones(8, 8, dtype=torch.bfloat16))
        optimizer = BasisRotation([p], lr=1e-1, interval=3)
        for g in self.gradients(10, 8, 8):
            p.grad = g.to(torch.bfloat16)
            optimizer.step()
        self.assertEqual(p.dtype, torch.bfloat16)
        self.assertEqual(optimizer.state[p]["exp_avg"].dtype, torch.float32)


class AsATorchOptimizer(unittest.TestCase):
    def model(self):
        torch.manual_seed(2)
        return torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))

    def train(self, model, optimizer, begin, end, scheduler=None):
        losses = []
        for t in range(begin, end):
            generator = torch.Generator().manual_seed(t)
            x = torch.randn(32, 6, generator=generator)
            y = (x[:, :1] * x[:, 1:2]).tanh()

            def closure():
                optimizer.zero_grad()
                loss = ((model(x) - y) ** 2).mean()
                loss.backward()
                return loss

            losses.append(optimizer.step(closure).item())
            if scheduler is not None:
                scheduler.step()
        return losses

    def test_learns_with_closure_scheduler_and_groups(self):
        model = self.model()
        optimizer = BasisRotation([{"params": model[0].parameters()}, {"params": model[2].parameters(), "rotate": False}],
                                  lr=1e-2, interval=5)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 300)
        losses = self.train(model, optimizer, 0, 300, scheduler)
        self.assertLess(sum(losses[-20:]), 0.5 * sum(losses[:20]))
        self.assertLess(optimizer.param_groups[0]["lr"], 1e-3)

    def saved_and_loaded(self, model, optimizer):
        """A new model and optimizer that continue from these through a file."""
        buffer = io.BytesIO()
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, buffer)
        buffer.seek(0)
        saved = torch.load(buffer)
        other = self.model()
        other.load_state_dict(saved["model"])
        resumed = BasisRotation(other.parameters(), lr=1.0)  # everything comes from the state
        resumed.load_state_dict(saved["optimizer"])
        return other, resumed

    def test_state_dict_continues_to_the_bit(self):
        plain = dict(lr=1e-2, interval=4)
        # A refresh begins at every sixth step and is finished four steps later.
        under_way = dict(lr=1e-2, interval=6, refresh_lag=4, covariance_every=2, max_dimension=6, sketch=3,
                         look_ahead=0.6, delay=3)
        for settings, stop in ((plain, 11), (under_way, 7), (under_way, 9), (under_way, 13)):
            model = self.model()
            optimizer = BasisRotation(model.parameters(), **settings)
            self.train(model, optimizer, 0, stop)
            other, resumed = self.saved_and_loaded(model, optimizer)
            self.assertEqual(self.train(model, optimizer, stop, 30), self.train(other, resumed, stop, 30), stop)

    def test_state_of_low_precision_parameters_stays_fp32(self):
        p, q = (torch.nn.Parameter(torch.ones(6, 6, dtype=torch.bfloat16)) for _ in range(2))
        a, b = BasisRotation([p], lr=1e-2, interval=2), BasisRotation([q], lr=1e-2, interval=2)
        for _ in range(5):
            p.grad = torch.randn(6, 6).to(torch.bfloat16)
            a.step()
        b.load_state_dict(a.state_dict())
        for key, value in a.state[p].items():
            if key != "step":
                self.assertTrue(torch.equal(value, b.state[q][key]), key)

    def test_non_finite_gradients_are_skipped_and_counted(self):
        p = torch.nn.Parameter(torch.ones(4, 4))
        optimizer = BasisRotation([p], max_skipped=2, interval=1)
        p.grad = torch.randn(4, 4)
        optimizer.step()
        before, state = p.detach().clone(), {k: copy.copy(v) for k, v in optimizer.state[p].items()}
        p.grad = torch.full((4, 4), float("nan"))
        optimizer.step()
        optimizer.step()
        self.assertTrue(torch.equal(p.detach(), before))
        self.assertEqual(optimizer.skipped, 2)
        self.assertEqual(optimizer.state[p]["step"], state["step"])
        with self.assertRaises(FloatingPointError):
            optimizer.step()
        p.grad = torch.randn(4, 4)
        optimizer.step()
        self.assertTrue(torch.isfinite(p).all())

    def test_steps_skipped_in_a_row_are_counted_on_after_a_restart(self):
        p = torch.nn.Parameter(torch.ones(4, 4))
        optimizer = BasisRotation([p], max_skipped=2)
        p.grad = torch.full((4, 4), float("nan"))
        optimizer.step()
        optimizer.step()
        saved = optimizer.state_dict()
        resumed = BasisRotation([p], max_skipped=2)
        resumed.load_state_dict(saved)
        self.assertEqual(resumed.skipped, 2)
        with self.assertRaisesRegex(FloatingPointError, "3 times in a row"):
            resumed.step()
        # A state without the counts begins them anew, and one that is refused leaves them.
        for group in saved["param_groups"]:
            del group["skipped"], group["skipped_in_a_row"]
        optimizer.load_state_dict(saved)
        optimizer.step()
        self.assertEqual(optimizer.skipped, 1)
        with self.assertRaises(ValueError):
            optimizer.load_state_dict({**saved, "state": {0: {}}})
        self.assertEqual(optimizer.skipped, 1)

    def test_odd_parameters(self):
        empty, scalar = torch.nn.Parameter(torch.zeros(0, 5)), torch.nn.Parameter(torch.ones(()))
        unused = torch.nn.Parameter(torch.ones(3, 3))
        optimizer = BasisRotation([empty, scalar, unused], lr=0.1)
        empty.grad, scalar.grad = torch.zeros(0, 5), torch.ones(())
        optimizer.step()
        self.assertLess(scalar.item(), 1)
        self.assertTrue(torch.equal(unused.detach(), torch.ones(3, 3)))

    def test_a_sparse_gradient_is_refused_before_anything_is_stepped(self):
        dense, sparse = torch.nn.Parameter(torch.ones(4, 4)), torch.nn.Parameter(torch.ones(4, 4))
        dense.grad, sparse.grad = torch.ones(4, 4), torch.ones(4, 4).to_sparse()
        with self.assertRaisesRegex(RuntimeError, "sparse gradients are not supported"):
            BasisRotation([dense, sparse]).step()
        self.assertTrue(torch.equal(dense.detach(), torch.ones(4, 4)))

    def test_flat_parameters_are_told_once(self):
        flat = torch.nn.Parameter(torch.ones(12))
        flat.grad = torch.ones(12)
        optimizer = BasisRotation([flat])
        with self.assertWarnsRegex(UserWarning, "nothing is rotated"):
            optimizer.step()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            optimizer.step()
            BasisRotation([flat], rotate=False).step()

    def test_rank_deficient_gradients(self):
        p = torch.nn.Parameter(torch.ones(8, 6))
        optimizer = BasisRotation([p], interval=2)
        for t in range(20):
            p.grad = torch.zeros(8, 6)
            if t > 5:
                p.grad[0, 0] = 1
            optimizer.step()
        self.assertTrue(torch.isfinite(p).all())

    def test_defaults_are_those_of_the_runs(self):
        path = Path(__file__).resolve().parents[2] / "docs/configuration.md"
        if not path.exists():
            self.skipTest("a source distribution has no docs/configuration.md")
        reference = path.read_text()
        table = reference.split("## [optimizer.basis-rotation]")[1].split("## [")[0]
        rows = [[cell.strip(" `") for cell in line.split("|")] for line in table.splitlines() if line.startswith("| `")]
        optimizer = BasisRotation([torch.nn.Parameter(torch.ones(2, 2))])
        group = optimizer.param_groups[0]
        self.assertEqual([key for _, key, *_ in rows], [key for key, *_ in _core.options()])
        for _, key, default, *_ in rows:
            self.assertEqual(group[key], json.loads(default), key)
        common = {"lr": group["lr"], "epsilon": group["eps"], "weight_decay": group["weight_decay"],
                  "max_skipped": optimizer.max_skipped}
        rows = [line.split("|") for line in reference.splitlines() if line.startswith("| `")]
        declared = {row[1].strip(" `"): row[2].strip(" `") for row in rows}
        for key, value in common.items():
            self.assertEqual(value, json.loads(declared[key]), key)

    # LAPACK's own number of threads must not matter, even before torch's number has been queried.
    def test_the_first_basis_is_that_of_the_number_of_threads_torch_says(self):
        script = """if True:
            import hashlib, sys, torch
            from gyre.optim import BasisRotation
            if sys.argv[1] == "asked":
                torch.get_num_threads()
            p = torch.nn.Parameter(torch.zeros(256, 64))
            optimizer = BasisRotation([p], interval=1)
            p.grad = (torch.arange(256 * 64) % 1009 - 504.0).view(256, 64)
            optimizer.step()
            bases = [v for k, v in sorted(optimizer.state[p].items()) if k.endswith("basis")]
            print(hashlib.sha256(b"".join(b.contiguous().numpy().tobytes() for b in bases)).hexdigest())"""
        environment = {k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"}
        run = lambda how: subprocess.run([sys.executable, "-c", script, how], env=environment, check=True,
                                         capture_output=True, text=True).stdout
        self.assertEqual(run("asked"), run("not asked"))

    # The refresh's thread needs the GIL to let go of tensors that Python has seen, so nobody may wait for it with the GIL.
    def test_an_optimizer_may_go_while_a_refresh_is_under_way(self):
        script = """if True:
            import torch
            from gyre.optim import BasisRotation
            for i in range(300):
                p = torch.nn.Parameter(torch.ones(8, 6))
                optimizer = BasisRotation([p], interval=3, refresh_lag=2)
                for _ in range(3 + i % 3):
                    p.grad = torch.randn(8, 6)
                    optimizer.step()
                    if i % 2:
                        optimizer.state_dict()
                optimizer.state_dict()"""
        subprocess.run([sys.executable, "-c", script], check=True, timeout=120)

    # A forked process has no thread for refreshes until it starts one, so none may be under way in it.
    def test_a_forked_process_goes_on_to_the_bit(self):
        script = """if True:
            import os, signal, torch
            from gyre.optim import BasisRotation

            def trained(while_a_refresh_is_under_way):
                p = torch.nn.Parameter(torch.ones(96, 64))
                optimizer = BasisRotation([p], lr=1e-2, interval=6, refresh_lag=4)
                for t in range(20):
                    if t == 7:
                        while_a_refresh_is_under_way()
                    p.grad = torch.randn(96, 64, generator=torch.Generator().manual_seed(t))
                    optimizer.step()
                return p

            def fork():
                global child
                child = os.fork() or signal.alarm(60)  # in place of waiting without end

            plain = trained(lambda: None)
            same = torch.equal(trained(fork), plain)
            if child == 0:
                os._exit(0 if same else 1)
            print(os.waitpid(child, 0)[1], same)"""
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}  # OpenMP's threads do not outlive a fork either
        done = subprocess.run([sys.executable, "-c", script], env=environment, check=True, timeout=120, capture_output=True,
                              text=True)
        self.assertEqual(done.stdout.split(), ["0", "True"])

    def test_a_state_that_does_not_fit_changes_nothing(self):
        def trained(seed):
            torch.manual_seed(seed)
            parameters = [torch.nn.Parameter(torch.randn(4, 6)) for _ in range(2)]
            optimizer = BasisRotation(parameters, lr=1e-2)
            for p in parameters:
                p.grad = torch.randn(4, 6)
            optimizer.step()
            return optimizer

        optimizer, broken = trained(1), trained(2).state_dict()
        del broken["state"][1]["step"]
        before = [t.clone() for state in optimizer.state.values() for t in state.values() if torch.is_tensor(t)]
        with self.assertRaisesRegex(ValueError, "parameter 1 has no 'step'"):
            optimizer.load_state_dict(broken)
        after = [t for state in optimizer.state.values() for t in state.values() if torch.is_tensor(t)]
        for a, b in zip(before, after, strict=True):
            self.assertTrue(torch.equal(a, b))
        optimizer.step()  # with what it has


if __name__ == "__main__":
    unittest.main()
