"""Basis rotation (arXiv 2602.03515) as a torch.optim.Optimizer; the arithmetic is gyre's own C++."""

import torch

from gyre import _core

_CHOICES = {
    "source": ("second", "first"),
    "geometry": ("bilateral", "unilateral"),
    "refresh": ("fixed", "stage-aware", "adaptive"),
    "long_sides": ("thin", "whole"),
    "products": ("fp32", "bf16"),
    "covariance_products": ("fp32", "bf16"),
    "iteration_products": ("fp32", "bf16"),
}
# What the C++ side is built with, besides the shape.
_SETTINGS = ("frequency", "source", "geometry", "refresh", "drift", "refresh_lag", "covariance_beta", "covariance_every",
             "long_sides", "max_dimension", "sketch", "transport", "look_ahead", "products", "covariance_products",
             "iteration_products")


class BasisRotation(torch.optim.Optimizer):
    """Adam in the eigenbasis of the gradients' covariances.

    2-D parameters are rotated, all others get AdamW. Put embeddings and the output head into a group with
    ``rotate=False``: they are usually left to AdamW.

    Per group, besides AdamW's ``lr, betas, eps, weight_decay``:
      frequency      updates between refreshes of the bases
      source         "second" (gradient covariances) or "first" (the momentum)
      geometry       "bilateral" or "unilateral" (the smaller side alone)
      refresh        "fixed", "stage-aware" (needs ``delay`` and ``mean_delay``) or "adaptive" (by ``drift``)
      long_sides     "thin": of a side twice the other or longer, as many directions are rotated as that has; "whole": all
      max_dimension  longer sides stay unrotated, or have a sketch; 0: none do
      sketch         directions rotated of sides longer than max_dimension; 0: none
      refresh_lag    steps that a refresh may take on a thread of its own; 0: it is made at once
      covariance_beta   decay of the covariances; 0: betas[1]
      covariance_every  every so many gradients go into the covariances
      transport      turn the second moment with the basis instead of reordering it
      look_ahead     share of each side's directions, those of least curvature, along which weights are moved ahead by
                     ``delay`` updates; 0: none
      products       "fp32" or "bf16": type of the products that turn gradients and directions, of those large enough to
                     be faster so; likewise:
      covariance_products  of those that add a gradient to the covariances
      iteration_products   of a refresh's, a covariance times a basis
      row_blocks     the parameter is so many matrices stacked by rows (a fused q, k, v: 3)
      rotate         False: AdamW for the whole group
      delay          updates by which the group's gradients are late, once the pipeline is full
      mean_delay     the mean of that over the pipeline's stages: (P - 1) / 2 for PipeDream's P stages

    ``max_skipped``: a step whose gradients are not all finite is left out and counted in ``skipped``; after so many in a
    row the next one raises FloatingPointError. None: gradients are not looked at.
    """

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01, frequency=10, source="second",
                 geometry="bilateral", refresh="fixed", drift=0.1, long_sides="thin", max_dimension=0,
                 sketch=0, refresh_lag=0, covariance_beta=0.0, covariance_every=1, transport=False, look_ahead=0.0,
                 products="bf16", covariance_products="fp32", iteration_products="fp32", row_blocks=1, rotate=True,
                 delay=0, mean_delay=0.0, max_skipped=10):
        defaults = dict(lr=lr, betas=tuple(betas), eps=eps, weight_decay=weight_decay, frequency=frequency,
                        source=source, geometry=geometry, refresh=refresh, drift=drift, long_sides=long_sides,
                        max_dimension=max_dimension, sketch=sketch, refresh_lag=refresh_lag,
                        covariance_beta=covariance_beta, covariance_every=covariance_every, transport=transport,
                        look_ahead=look_ahead, products=products, covariance_products=covariance_products,
                        iteration_products=iteration_products, row_blocks=row_blocks, rotate=rotate, delay=delay,
                        mean_delay=mean_delay)
        self._cores = {}
        self.max_skipped = max_skipped
        self.skipped = 0
        self._skipped_in_a_row = 0
        super().__init__(params, defaults)

    def add_param_group(self, param_group):
        super().add_param_group(param_group)
        try:
            _check(self.param_groups[-1])
        except ValueError:
            self.param_groups.pop()
            raise

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if self._skips_this_step():
            return loss
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None and p.numel() > 0:
                    self._step_parameter(p, group)
        return loss

    def _step_parameter(self, p, group):
        if p.grad.is_sparse:
            raise RuntimeError("BasisRotation: sparse gradients are not supported; use dense embeddings")
        core = self._core(p, group)
        state = self.state[p]
        state["step"] += 1
        weight = p.detach() if p.dtype == torch.float32 else p.detach().float()
        core.step(weight, p.grad.detach().float(), state["step"], float(group["lr"]), list(group["betas"]),
                  group["eps"], group["weight_decay"], float(group["delay"]), float(group["mean_delay"]))
        if p.dtype != torch.float32:
            p.copy_(weight)

    def _core(self, p, group):
        """The C++ side of a parameter; self.state[p] has its live tensors."""
        if p not in self._cores:
            rotate = group["rotate"] and p.dim() == 2
            blocks = group["row_blocks"] if rotate else 1
            if p.shape and p.shape[0] % blocks != 0:
                raise ValueError(f"row_blocks={blocks} does not divide the {p.shape[0]} rows of a parameter")
            config = _core.Config()
            for key in _SETTINGS:
                setattr(config, key, group[key])
            self._cores[p] = _core.Parameter(list(p.shape), str(p.device), rotate, blocks, config)
            self.state[p] = {"step": 0, **self._cores[p].state()}
        return self._cores[p]

    def _skips_this_step(self):
        if self.max_skipped is None:
            return False
        grads = [p.grad for group in self.param_groups for p in group["params"] if p.grad is not None]
        if all(bool(torch.isfinite(g).all()) for g in grads if not g.is_sparse):
            self._skipped_in_a_row = 0
            return False
        self.skipped += 1
        self._skipped_in_a_row += 1
        if self._skipped_in_a_row > self.max_skipped:
            raise FloatingPointError(f"gradients were not finite {self._skipped_in_a_row} times in a row; lower lr")
        return True

    def state_dict(self):
        # A refresh that is under way adds to the state, so it is asked for now.
        for p, core in self._cores.items():
            self.state[p] = {"step": self.state[p]["step"], **core.state()}
        return super().state_dict()

    def load_state_dict(self, state_dict):
        super().load_state_dict(state_dict)
        self._cores = {}
        # The base class casts state to the parameter's type; ours is fp32 whatever that is, so it is taken afresh.
        numbers = [n for group in state_dict["param_groups"] for n in group["params"]]
        params = [(p, group) for group in self.param_groups for p in group["params"]]
        for number, (p, group) in zip(numbers, params):
            saved = state_dict["state"].get(number)
            if saved is None:
                continue
            self.state.pop(p, None)
            core = self._core(p, group)
            core.load({k: v.to(p.device) for k, v in saved.items() if k != "step"})
            self.state[p]["step"] = int(saved["step"])

    def __setstate__(self, state):
        super().__setstate__(state)
        self.__dict__.setdefault("_cores", {})

    def __getstate__(self):
        raise TypeError("BasisRotation: save optimizer.state_dict(), not the optimizer itself")


def _check(group):
    def require(holds, key, wanted):
        if not holds:
            raise ValueError(f"BasisRotation: {key}={group[key]!r}; give {wanted}")

    require(group["lr"] >= 0, "lr", "0 or more")
    require(len(group["betas"]) == 2 and all(0 <= b < 1 for b in group["betas"]), "betas", "two numbers in [0, 1)")
    require(group["eps"] > 0, "eps", "more than 0")
    require(group["weight_decay"] >= 0, "weight_decay", "0 or more")
    require(int(group["frequency"]) >= 1, "frequency", "1 or more")
    require(group["drift"] > 0, "drift", "more than 0")
    require(group["max_dimension"] >= 0, "max_dimension", "0 or more")
    require(group["sketch"] >= 0 and (group["sketch"] == 0 or group["max_dimension"] > 0), "sketch",
            "0, or a number of directions together with max_dimension")
    require(0 <= group["refresh_lag"] < group["frequency"], "refresh_lag", "0 or more and less than frequency")
    require(0 <= group["covariance_beta"] < 1, "covariance_beta", "0 (as betas[1]), or more and less than 1")
    require(1 <= group["covariance_every"] <= group["frequency"], "covariance_every", "1 to frequency")
    require(0 <= group["look_ahead"] <= 1, "look_ahead", "0 to 1")
    require(group["row_blocks"] >= 1, "row_blocks", "1 or more")
    require(group["delay"] >= 0, "delay", "0 or more")
    require(group["mean_delay"] > 0 or group["refresh"] != "stage-aware" or group["delay"] == 0, "mean_delay",
            "the mean delay of the pipeline's stages, which stage-aware refresh needs: (P - 1) / 2 for PipeDream's P")
    for key, choices in _CHOICES.items():
        require(group[key] in choices, key, " or ".join(repr(c) for c in choices))
