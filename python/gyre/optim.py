"""Basis rotation (arXiv 2602.03515) as a torch.optim.Optimizer; the arithmetic is gyre's own C++."""

import difflib
import itertools
import operator
import os
import warnings
import weakref
from numbers import Integral, Real

import torch

from gyre import _core, _sharded

# The options of gyre's [optimizer.basis-rotation] as (key, default, meaning), as the C++ side declares them.
_OPTIONS = _core.options()
_DEFAULTS = {key: default for key, default, _ in _OPTIONS}
_COMMON = {key: default for key, default, _ in _core.common_options()}
_KEYS = ("lr", "betas", "eps", "weight_decay", "row_blocks", "rotate", "delay", "mean_delay", *_DEFAULTS)  # of a group

# The types of parameters that can be updated.
_TYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)

# Elements of other types than fp32 that are in fp32 at a time; a larger parameter is alone.
_CONVERTED_TOGETHER = 1 << 26

# The most updates by which gradients may be late: what counts them on the C++ side must not overflow.
_MAX_DELAY = 1_000_000_000

# What to give in place of names that are not near it.
_INSTEAD = {"frequency": "interval", "num_stages": "mean_delay, which is (P - 1) / 2 for PipeDream's P stages",
            "max_skipped": "BasisRotation's argument"}

_side_threads = weakref.WeakSet()


def _side_thread():
    """A thread for refreshes, which starts at the first one."""
    thread = _core.SideThread()
    _side_threads.add(thread)
    return thread


def _finish_side_threads():
    """A forked process has none of its parent's threads, and would wait for them without end. Those that are needed start again."""
    for thread in list(_side_threads):
        thread.finish()


os.register_at_fork(before=_finish_side_threads)


class BasisRotation(torch.optim.Optimizer):
    """Adam in the eigenbasis of the gradients' covariances.

    2-D parameters are rotated, all others get AdamW. Put embeddings and the output head into a group with
    ``rotate=False``: they are usually left to AdamW. Parameters are dense tensors of fp16, bf16, fp32 or fp64, or
    DTensors of these: where FSDP2 divides a matrix among processes, one of them rotates all of it.

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
            advice = _advice(unknown[0], 0.6) or f"there are {', '.join(_KEYS)}"
            raise TypeError(f"BasisRotation: unknown option {unknown[0]!r}; {advice}")
        if max_skipped is not None and not (isinstance(max_skipped, Integral) and max_skipped >= 0):
            raise ValueError(f"BasisRotation: max_skipped={max_skipped!r}; give a whole number from 0, or None")
        self._together = {}  # by parameter
        self._alone = set()  # parameters once left out of a step of those with which they were together
        self._beside = _side_thread()
        self.max_skipped = max_skipped
        self.skipped = 0
        self._skipped_in_a_row = 0
        self._looked_at_shapes = False
        self._owners = _sharded.Owners()
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, row_blocks=row_blocks,
                                      rotate=rotate, delay=delay, mean_delay=mean_delay, **{**_DEFAULTS, **options}))

    def add_param_group(self, param_group):
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        try:
            _check(group)
        except Exception:
            self.param_groups.pop()
            raise
        _warn_of_keys(group)

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        stepped = [[p for p in group["params"] if p.grad is not None and p.numel() > 0] for group in self.param_groups]
        for p in (p for params in stepped for p in params):
            _check_kind(p)
            if p.grad.layout != torch.strided:
                raise RuntimeError("BasisRotation: sparse gradients are not supported; use dense embeddings")
        if self._skips_this_step():
            return loss
        self._warn_if_flat()
        self._take_apart_what_changed()
        self._set_apart({p for params in stepped for p in params})
        travelling = {}  # those of all groups together, so that messages are few
        for group, params in zip(self.param_groups, stepped):
            settings = group, _core.adam_settings(group)
            travelling.update({p: settings for p in params if self._travels(p, group)})
            self._step_here([p for p in params if p not in travelling], *settings)
        for batch in self._owners.batches(travelling):
            self._step_at_owners(batch, travelling)
        return loss

    def _step_here(self, params, group, adam):
        for alike in self._alike(params):
            weights = [_in_fp32(p) for p in alike]
            self._step_together(alike, weights, [_gradient(p) for p in alike], group, adam)
            for p, weight in zip(alike, weights):
                if p.dtype != torch.float32:
                    _write(p, weight, group)

    def _step_at_owners(self, batch, settings):
        """Steps whole matrices in their owners, with parts that are in all processes. settings: (group, adam) of each."""
        begins = not all(map(self.state.get, batch.items))
        weights = batch.to_owners([_in_fp32(p) for p in batch.items])
        gradients = batch.to_owners([_gradient(p) for p in batch.items])
        whole = dict(zip(batch.items, zip(weights, gradients)))
        for of_group in _of_one_group(batch.mine(), settings):
            for alike in self._alike(of_group):
                self._step_together(alike, *zip(*map(whole.get, alike)), *settings[alike[0]])
        for p in batch.of_others():
            self.state[p]["step"] = self._steps(p) + 1
        if begins:
            names = dict(zip(batch.items, batch.shapes_at_owners(self.state)))
            for p in batch.of_others():
                self.state[p].update(_sharded.names_alone(names[p], p))
        del gradients, whole  # sending takes as much memory
        for p, weight in zip(batch.items, batch.from_owners(weights)):
            _write(p, weight, settings[p][0])

    def _set_apart(self, stepped):
        """Those that this step leaves out, though it steps others with which they are together, are alone from now on."""
        for together in set(self._together.values()):
            left_out = [p for p in together.params if p not in stepped]
            if len(left_out) < len(together.params):
                self._alone.update(left_out)

    def _alike(self, params):
        """Lists of those that can be stepped together: on one device, and stepped equally often so far."""
        lists, sizes = {}, {}
        for p in params:
            key = (p.device, p.dtype, self._steps(p), id(p) if p in self._alone else None)
            if key not in lists or (p.dtype != torch.float32 and sizes[key] + p.numel() > _CONVERTED_TOGETHER):
                lists.setdefault(key, []).append([])
                sizes[key] = 0
            lists[key][-1].append(p)
            sizes[key] += p.numel()
        return [alike for of_key in lists.values() for alike in of_key]

    def _steps(self, p):
        state = self.state.get(p)
        return state["step"] if state else 0

    def _step_together(self, params, weights, gradients, group, adam):
        together = self._made_together(params, group)
        step = self._steps(params[0]) + 1
        together.core.step(weights, gradients, step, float(group["lr"]), adam, float(group["delay"]), float(group["mean_delay"]),
                           self._beside)
        for p in params:
            self.state[p]["step"] = step

    def _made_together(self, params, group):
        """The _Together of exactly these. It has what self.state has of them, and self.state has its live tensors."""
        together = self._together.get(params[0])
        if together is not None and len(together.params) == len(params) and all(map(operator.is_, together.params, params)):
            return together
        for p in params:
            if p in self._together:
                self._take_apart(self._together[p])
        numbers = {p: number for number, p in enumerate(p for group in self.param_groups for p in group["params"])}
        together = _Together(params, [str(numbers[p]) for p in params], group)
        together.load([self.state.get(p) for p in params])
        self._together.update({p: together for p in params})
        together.shown = together.core.state()
        for p, state in zip(params, together.shown):
            self.state[p] = {"step": self._steps(p), **state}
        return together

    def _is_as_shown(self, together):
        """Whether self.state still has the tensors that were put there. A user may have reset or replaced them."""
        for p, shown in zip(together.params, together.shown):
            state = self.state.get(p)
            if not state or not all(map(operator.is_, map(state.get, shown), shown.values())):
                return False
        return True

    def _show(self, together):
        """Puts live tensors into self.state, which a refresh in progress adds to. What a user has changed there stays."""
        live = together.core.state()
        for p, old, new in zip(together.params, together.shown, live):
            state = self.state.get(p)
            if state:
                users = {name: x for name, x in state.items() if old.get(name) is not x}
                self.state[p] = {**users, **{name: x for name, x in new.items() if state.get(name) is old.get(name)}}
        together.shown = live

    def _take_apart(self, together):
        """Forgets the _Together, which is made again from self.state where its parameters are stepped again."""
        self._show(together)
        for p in together.params:
            del self._together[p]
            if not self.state.get(p):
                self._alone.discard(p)  # it begins anew, if it is still in a group

    def _take_apart_what_changed(self):
        for together in set(self._together.values()):
            if not self._is_as_shown(together):
                self._take_apart(together)

    def _show_all(self):
        """Brings self.state up to date."""
        self._take_apart_what_changed()
        for together in set(self._together.values()):
            self._show(together)

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
        params = [p for group in self.param_groups for p in group["params"]]
        stepped = {p for p in params if p.grad is not None}
        finite = {}  # by device, for one wait each
        for g in (_sharded.local(p.grad) for p in params if p in stepped):
            used = g.float() if g.dtype == torch.float64 else g  # it may be too large for fp32
            finite.setdefault(g.device, []).append(torch.isfinite(used).all())
        if _sharded.all_agree(all(bool(torch.stack(flags).all()) for flags in finite.values()), params, stepped):
            self._skipped_in_a_row = 0
            return False
        self.skipped += 1
        self._skipped_in_a_row += 1
        if self._skipped_in_a_row > self.max_skipped:
            raise FloatingPointError(f"gradients were not finite {self._skipped_in_a_row} times in a row; lower lr")
        return True

    def state_dict(self):
        """Where parameters are DTensors, tensors in it are too, and all processes call it together."""
        self._show_all()
        if not hasattr(self, "register_state_dict_post_hook"):  # older PyTorch has no hooks
            return self._completed(super().state_dict())
        first = self.register_state_dict_post_hook(BasisRotation._completed, prepend=True)
        try:
            return super().state_dict()
        finally:
            first.remove()

    def _completed(self, state_dict):
        """The base class's state_dict with all that ours has. Users' hooks look at the result."""
        for group in state_dict["param_groups"]:  # whoever saves keeps states and groups, and often nothing else
            group.update(skipped=self.skipped, skipped_in_a_row=self._skipped_in_a_row)
        kept = [(p, self._travels(p, group)) for group in self.param_groups for p in group["params"]
                if _sharded.is_dtensor(p) and self.state.get(p)]
        divided = self._owners.divided({p: self.state[p] for p, travels in kept if travels})
        divided.update({p: _sharded.divided_as_parameter(self.state[p], p) for p, travels in kept if not travels})
        # In the parameters' order, since who reads this asks all processes for one tensor after the other.
        state = state_dict["state"]
        for number, p in enumerate(p for group in self.param_groups for p in group["params"]):
            if number in state:
                state[number] = divided.get(p, state.pop(number))
        return state_dict

    def load_state_dict(self, state_dict):
        """Loads all of it or, if something in it is wrong, nothing. Where parameters are DTensors, all processes call it together."""
        kept = ("state", "param_groups", "_together", "_alone", "skipped", "_skipped_in_a_row", "_owners")
        before = {name: self.__dict__[name] for name in kept}
        given, hooks = [], []
        try:
            if hasattr(self, "register_load_state_dict_post_hook"):  # older PyTorch has no hooks
                # Users' hooks before may change what is loaded, and those after look at the result.
                hooks = [self.register_load_state_dict_pre_hook(lambda _, changed: given.append(changed)),
                         self.register_load_state_dict_post_hook(lambda _: self._load(given[0]), prepend=True)]
            super().load_state_dict(state_dict)
            if not hooks:
                self._load(state_dict)
        except Exception:
            self.__dict__.update(before)
            raise
        finally:
            for hook in hooks:
                hook.remove()

    def _load(self, state_dict):
        """What the base class has not loaded as it is here."""
        for group in self.param_groups:
            self.skipped, self._skipped_in_a_row = int(group.pop("skipped", 0)), int(group.pop("skipped_in_a_row", 0))
            _check(group)
        self._together, self._alone, self._owners = {}, set(), self._owners.chosen_anew()
        # The base class casts state to the parameter's type. Ours is always fp32, so it is loaded again from state_dict.
        numbers = iter(n for group in state_dict["param_groups"] for n in group["params"])
        here, travelling, groups = {}, {}, {}
        for group in self.param_groups:
            for p in group["params"]:
                number = next(numbers)
                self.state.pop(p, None)
                if number not in state_dict["state"]:
                    continue
                state = state_dict["state"][number]
                if "step" not in state:
                    raise ValueError(f"BasisRotation: the state of parameter {number} has no 'step'; is it another optimizer's?")
                (travelling if self._travels(p, group) else here)[p] = {**state, "step": int(state["step"])}
                groups[p] = group
        self.state.update({p: _sharded.parts_of(state, p) for p, state in here.items()})
        self.state.update(self._owners.whole(travelling))
        error = None
        try:
            for params in (here, *(batch.mine() for batch in self._owners.batches(travelling))):
                for of_group in _of_one_group(params, groups):
                    for alike in self._alike(of_group):
                        self._made_together(alike, groups[alike[0]])
        except Exception as found:
            error = found
        if not _sharded.all_agree(error is None, [p for group in self.param_groups for p in group["params"]]):
            raise error or ValueError("BasisRotation: another process could not load its part of the state; its error says why")

    def _travels(self, p, group):
        """Whether the parameter is rotated and other processes have parts of it. As with rotation's options, its first step decides."""
        if self.state.get(p):
            return p in self._owners
        return _rotates(p, group) and _sharded.is_divided(p)

    def __setstate__(self, state):
        super().__setstate__(state)
        self.__dict__.setdefault("_together", {})
        self.__dict__.setdefault("_alone", set())
        self.__dict__.setdefault("_beside", _side_thread())
        self.__dict__.setdefault("_owners", _sharded.Owners())

    def __getstate__(self):
        """For pickle and copy.deepcopy. The C++ side is made again from the state."""
        self._show_all()
        own = ("_alone", "max_skipped", "skipped", "_skipped_in_a_row", "_looked_at_shapes", "_owners")
        return {**super().__getstate__(), **{name: self.__dict__[name] for name in own}}


class _Together:
    """Parameters of a group that are stepped together, and the C++ side of them."""

    def __init__(self, params, names, group):
        self.params = params
        self.shown = []  # of each, what optimizer.state was given last
        rotate = [_rotates(p, group) for p in params]
        blocks = [_row_blocks(p, group) if rotated else [] for p, rotated in zip(params, rotate)]
        shapes = [list((p if rotated else _sharded.local(p)).shape) for p, rotated in zip(params, rotate)]
        self.core = _core.Parameters(names, shapes, rotate, blocks, str(params[0].device),
                                     _core.rotation_settings(group))

    def load(self, states):
        """Each as in optimizer.state; None: there is none yet."""
        if any(states):
            self.core.load([new if not state else {name: x for name, x in state.items() if name != "step"}
                            for state, new in zip(states, self.core.state())])


def _rotates(p, group):
    return group["rotate"] and p.dim() == 2


def _of_one_group(params, groups):
    """Lists of those for which groups has the same. params: in the order of the groups."""
    return [list(of_group) for _, of_group in itertools.groupby(params, lambda p: id(groups[p]))]


def _in_fp32(p):
    """What the C++ side updates for the parameter. For fp64 it is the change alone, which is added to the decayed weight."""
    part = _sharded.local(p).detach()
    return torch.zeros_like(part, dtype=torch.float32) if p.dtype == torch.float64 else part.float()


def _gradient(p):
    return _sharded.like_parameter(p.grad, p).detach().float()


def _write(p, weight, group):
    """The reverse of _in_fp32."""
    part = _sharded.local(p).detach()
    if p.dtype == torch.float64:
        part.mul_(1 - float(group["lr"]) * float(group["weight_decay"])).add_(weight)
    else:
        part.copy_(weight)


def _advice(name, least):
    """What to use in place of a name; None if no option is as near as `least`, from 0 to 1, or if it is a compound of one."""
    if name in _INSTEAD:
        return f"use {_INSTEAD[name]}"
    near = [key for key in difflib.get_close_matches(name, _KEYS, 1, least) if f"_{key}_" not in f"_{name}_"]
    return f"did you mean {near[0]!r}?" if near else None


def _warn_of_keys(group):
    """Other keys of a group are the frameworks' own (lr_mult, initial_lr) unless they look like an option."""
    for key in sorted(set(group) - {"params", *_KEYS}):
        advice = _advice(key, 0.85)
        if key in ("amsgrad", "maximize") and group[key]:
            advice = "there is no such option"
        if advice:
            warnings.warn(f"BasisRotation: {key!r} in a group has no effect; {advice}", stacklevel=5)


def _check(group):
    for key in _KEYS:
        if key not in group:
            raise ValueError(f"BasisRotation: {key} is missing from a group; is it another optimizer's, or another version's?")
    _core.adam_settings(group)
    for key in ("delay", "mean_delay"):
        if not (isinstance(group[key], Real) and 0 <= group[key] <= _MAX_DELAY):
            raise ValueError(f"BasisRotation: {key}={group[key]!r}; give a number from 0 to {_MAX_DELAY}")
    if group["rotate"] not in (True, False):
        raise ValueError(f"BasisRotation: rotate={group['rotate']!r}; give True or False")
    _core.rotation_settings(group)
    for p in group["params"]:
        if p.requires_grad:  # others are there in models that are frozen in part, and get no gradient
            _check_kind(p)
        if _rotates(p, group):
            _row_blocks(p, group)


def _check_kind(p):
    """Raises TypeError for a parameter that the C++ side would damage or could not update."""
    fault = _sharded.fault(p) if _sharded.is_dtensor(p) else None
    if fault:
        what, remedy = fault
    elif not _sharded.is_dtensor(p) and type(p).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        what, remedy = f"a {type(p).__name__}", "only plain tensors and DTensors can be updated"
    elif p.device.type == "meta":
        what, remedy = "on the meta device", "make the optimizer when the model has its weights"
    elif p.layout != torch.strided:
        what, remedy = p.layout, "make it dense"
    elif p.dtype not in _TYPES:
        what, remedy = p.dtype, "give it to another optimizer; here are float16, bfloat16, float32 and float64"
    else:
        return
    raise TypeError(f"BasisRotation: a parameter of shape {tuple(p.shape)} is {what}; {remedy}")


def _row_blocks(p, group):
    """The number of rows of each of the parameter's matrices; empty if the parameter is one matrix."""
    blocks, rows = group["row_blocks"], p.shape[0]
    if isinstance(blocks, Integral):
        if blocks < 1 or rows % blocks != 0:
            raise ValueError(f"BasisRotation: row_blocks={blocks} does not divide the {rows} rows of a parameter")
        return [] if blocks == 1 else [rows // blocks] * int(blocks)
    if not isinstance(blocks, (list, tuple)) or not all(isinstance(block, Integral) for block in blocks):
        raise ValueError(f"BasisRotation: row_blocks={blocks!r}; give a number of matrices, or a list of their rows")
    blocks = [int(block) for block in blocks]
    if any(block < 1 for block in blocks) or sum(blocks) != rows:
        raise ValueError(f"BasisRotation: row_blocks={blocks} are not the {rows} rows of a parameter, cut into blocks")
    return [] if len(blocks) == 1 else blocks


BasisRotation.__doc__ += "\n    Options, as those of gyre's [optimizer.basis-rotation]:\n" + "".join(
    f"      {key:<20} {meaning} (default {default!r})\n" for key, default, meaning in _OPTIONS)
