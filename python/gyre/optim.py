"""Basis rotation (arXiv 2602.03515) as a torch.optim.Optimizer; the arithmetic is gyre's own C++."""

import warnings

import torch

from gyre import _core

# The options of gyre's [optimizer.basis-rotation] as (key, default, meaning), as the C++ side declares them.
_OPTIONS = _core.options()
_DEFAULTS = {key: default for key, default, _ in _OPTIONS}
_COMMON = {key: default for key, default, _ in _core.common_options()}


class BasisRotation(torch.optim.Optimizer):
    """Adam in the eigenbasis of the gradients' covariances.

    2-D parameters are rotated, all others get AdamW. Put embeddings and the output head into a group with
    ``rotate=False``: they are usually left to AdamW.

    Options of a group, besides AdamW's ``lr, betas, eps, weight_decay`` and the options listed at the end:
      row_blocks     for a parameter that is several matrices stacked by rows: their number, if they are of one size (a fused
                     q, k, v: 3), or a list of their numbers of rows (heads that share keys and values: [512, 128, 128])
      rotate         False: AdamW for the whole group
      delay          the number of updates by which the group's gradients are late, once the pipeline is full
      mean_delay     the mean delay of the pipeline's stages: (P - 1) / 2 for PipeDream's P stages

    ``max_skipped``: a step whose gradients are not all finite is left out and counted in ``skipped``. After ``max_skipped``
    such steps in a row the next one raises FloatingPointError. With None, gradients are not checked.
    """

    def __init__(self, params, lr=_COMMON["lr"], betas=tuple(_COMMON["betas"]), eps=_COMMON["eps"],
                 weight_decay=_COMMON["weight_decay"], row_blocks=1, rotate=True, delay=0, mean_delay=0.0,
                 max_skipped=_core.max_skipped, **options):
        unknown = sorted(set(options) - set(_DEFAULTS))
        if unknown:
            raise TypeError(f"BasisRotation: unknown option {unknown[0]!r}; there are {', '.join(_DEFAULTS)}")
        defaults = dict(lr=lr, betas=tuple(betas), eps=eps, weight_decay=weight_decay, **{**_DEFAULTS, **options},
                        row_blocks=row_blocks, rotate=rotate, delay=delay, mean_delay=mean_delay)
        self._cores = {}
        self._beside = _core.SideThread()
        self.max_skipped = max_skipped
        self.skipped = 0
        self._skipped_in_a_row = 0
        self._looked_at_shapes = False
        super().__init__(params, defaults)

    def add_param_group(self, param_group):
        super().add_param_group(param_group)
        try:
            _check(self.param_groups[-1])
        except Exception:
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
        self._warn_if_flat()
        for group in self.param_groups:
            adam = _core.adam_settings(group)
            for p in group["params"]:
                if p.grad is not None and p.numel() > 0:
                    self._step_parameter(p, group, adam)
        return loss

    def _step_parameter(self, p, group, adam):
        if p.grad.is_sparse:
            raise RuntimeError("BasisRotation: sparse gradients are not supported; use dense embeddings")
        core = self._core(p, group)
        state = self.state[p]
        state["step"] += 1
        weight = p.detach() if p.dtype == torch.float32 else p.detach().float()
        core.step(weight, p.grad.detach().float(), state["step"], float(group["lr"]), adam, float(group["delay"]),
                  float(group["mean_delay"]), self._beside)
        if p.dtype != torch.float32:
            p.copy_(weight)

    def _core(self, p, group):
        """The C++ side of a parameter; self.state[p] has its live tensors."""
        if p not in self._cores:
            rotate = group["rotate"] and p.dim() == 2
            blocks = _row_blocks(p, group) if rotate else []
            settings = _core.rotation_settings(group)
            self._cores[p] = _core.Parameter(list(p.shape), str(p.device), rotate, blocks, settings)
            self.state[p] = {"step": 0, **self._cores[p].state()}
        return self._cores[p]

    def _warn_if_flat(self):
        """Called at the first step, since frameworks put flattened parameters into the groups after construction."""
        if self._looked_at_shapes:
            return
        self._looked_at_shapes = True
        dimensions = [p.dim() for group in self.param_groups if group["rotate"] for p in group["params"]]
        if dimensions and 2 not in dimensions:
            warnings.warn("BasisRotation: no parameter has two dimensions, so nothing is rotated; do without what flattens "
                          "parameters (ZeRO, distributed optimizers), or say rotate=False", stacklevel=3)

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
        # The C++ side is read now, since a refresh in progress adds to the state.
        for p, core in self._cores.items():
            self.state[p] = {"step": self.state[p]["step"], **core.state()}
        return super().state_dict()

    def load_state_dict(self, state_dict):
        """Loads all of it or, if something in it is wrong, nothing."""
        before = {name: self.__dict__[name] for name in ("state", "param_groups", "_cores")}
        try:
            self._load(state_dict)
        except Exception:
            self.__dict__.update(before)
            raise

    def _load(self, state_dict):
        super().load_state_dict(state_dict)
        self._cores = {}
        # The base class casts state to the parameter's type. Ours is always fp32, so it is loaded again from state_dict.
        numbers = [n for group in state_dict["param_groups"] for n in group["params"]]
        params = [(p, group) for group in self.param_groups for p in group["params"]]
        for number, (p, group) in zip(numbers, params):
            saved = state_dict["state"].get(number)
            if saved is None:
                continue
            self.state.pop(p, None)
            core = self._core(p, group)
            if "step" not in saved:
                raise ValueError(f"BasisRotation: the state of parameter {number} has no 'step'; is it another optimizer's?")
            core.load({k: v.to(p.device) for k, v in saved.items() if k != "step"})
            self.state[p]["step"] = int(saved["step"])

    def __setstate__(self, state):
        super().__setstate__(state)
        self.__dict__.setdefault("_cores", {})
        self.__dict__.setdefault("_beside", _core.SideThread())

    def __getstate__(self):
        raise TypeError("BasisRotation: save optimizer.state_dict(), not the optimizer itself")


def _check(group):
    _core.adam_settings(group)
    if not group["delay"] >= 0:
        raise ValueError(f"BasisRotation: delay={group['delay']!r}; give 0 or more")
    _core.rotation_settings(group)
    for p in group["params"]:
        if group["rotate"] and p.dim() == 2:
            _row_blocks(p, group)


def _row_blocks(p, group):
    """The number of rows of each of the parameter's matrices; empty if the parameter is one matrix."""
    blocks, rows = group["row_blocks"], p.shape[0]
    if isinstance(blocks, int):
        if blocks < 1 or rows % blocks != 0:
            raise ValueError(f"BasisRotation: row_blocks={blocks} does not divide the {rows} rows of a parameter")
        return [] if blocks == 1 else blocks * [rows // blocks]
    blocks = [int(block) for block in blocks]
    if any(block < 1 for block in blocks) or sum(blocks) != rows:
        raise ValueError(f"BasisRotation: row_blocks={blocks} are not the {rows} rows of a parameter, cut into blocks")
    return [] if len(blocks) == 1 else blocks


BasisRotation.__doc__ += "\n    Options, as those of gyre's [optimizer.basis-rotation]:\n" + "".join(
    f"      {key:<20} {meaning} (default {default!r})\n" for key, default, meaning in _OPTIONS)
