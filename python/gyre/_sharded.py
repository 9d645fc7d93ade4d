"""Parameters that FSDP2 or tensor parallelism divides among processes: where their parts are, and how whole matrices travel.

A matrix is rotated as a whole, in one process of its group, its owner. Owners get the parts of weights and gradients from all processes
and send back the parts of new weights, each in one all-to-all. The optimizer's state of a matrix is in its owner; in a state_dict it is
divided by rows, so that checkpoints do not depend on the number of processes.
"""

import torch

try:
    from torch.distributed.tensor import DTensor, Replicate, Shard
except ImportError:  # PyTorch before 2.5; a DTensor is then refused like any other class of tensors
    DTensor = None

# Elements of whole tensors that an owner gets at a time, in fp32; a larger tensor is alone.
_SENT_TOGETHER = 1 << 26


def is_dtensor(x):
    return DTensor is not None and isinstance(x, DTensor)


def fault(p):
    """Why a DTensor cannot be updated, and what to do; None if it can."""
    kinds = [type(placement) for placement in p.placements]
    if not set(kinds) <= {Shard, Replicate}:
        return f"placed as {p.placements}", "only Shard and Replicate can be updated"
    if kinds.count(Shard) > 1:
        return f"placed as {p.placements}", "divide it along one dimension of the mesh: by FSDP2 or tensor parallelism, not both"
    return None


@torch.no_grad()
def local(x):
    """The part that is in this process; for a plain tensor, all of it."""
    if not is_dtensor(x):
        return x
    part = x.to_local()
    return part.wait() if hasattr(part, "wait") else part  # it may be the result of a collective that is under way


@torch.no_grad()
def like_parameter(x, p):
    """The part of x in this process, divided as p is. x: a DTensor; or a plain tensor, which is whole."""
    if not is_dtensor(x):
        layout = Layout.of(p)
        return x if layout is None else layout.part(x, layout.rank)
    return local(x if x.placements == p.placements else x.redistribute(p.device_mesh, p.placements))


class Layout:
    """How tensors lie in the processes of a group: cut along one dimension, as torch.chunk does it."""

    def __init__(self, group, device, dim=0):
        self.group, self.device, self.dim = group, device, dim
        self.rank, self.size = group.rank(), group.size()

    @staticmethod
    def of(p):
        """The layout of a parameter; None if this process has all of it."""
        for number, placement in enumerate(p.placements if is_dtensor(p) else ()):
            if isinstance(placement, Shard) and p.device_mesh.size(number) > 1:
                return Layout(p.device_mesh.get_group(number), p.device, placement.dim % p.dim())
        return None

    def part(self, x, rank):
        """The part of a whole tensor that a process has."""
        return x.narrow(self.dim, *self._range(x.shape[self.dim], rank))

    def part_shape(self, shape, rank):
        return torch.Size((*shape[:self.dim], self._range(shape[self.dim], rank)[1], *shape[self.dim + 1:]))

    def _range(self, whole, rank):
        """The begin and the length of a process's part of a dimension."""
        each = -(-whole // self.size)
        begin = min(rank * each, whole)
        return begin, min(each, whole - begin)


class Batch:
    """Tensors that travel together: of one layout, each with an owner."""

    def __init__(self, layout):
        self.layout = layout
        self.items, self.shapes, self.owners = [], [], []  # shapes: of the whole tensors. owners: ranks of the group
        self.owned = [0] * layout.size  # elements, by owner

    def add(self, item, shape, owner):
        self.items.append(item)
        self.shapes.append(torch.Size(shape))
        self.owners.append(owner)
        self.owned[owner] += self.shapes[-1].numel()

    def mine(self):
        return self._by_owner(self.items)[self.layout.rank]

    def of_others(self):
        return [item for item, owner in zip(self.items, self.owners) if owner != self.layout.rank]

    def to_owners(self, parts):
        """Each process gives its part of every tensor. Returns the whole tensors, in fp32, and None for those that others own."""
        layout = self.layout
        mine = self._by_owner(range(len(self.items)))[layout.rank]
        expected = [[layout.part_shape(self.shapes[number], rank) for number in mine] for rank in range(layout.size)]
        received = self._all_to_all(self._by_owner(parts), expected)
        whole = dict(zip(mine, (torch.cat(of_one, layout.dim) for of_one in zip(*received))))
        return [whole.get(number) for number in range(len(self.items))]

    def from_owners(self, whole):
        """The reverse. Returns the parts of this process, in fp32."""
        layout = self.layout
        mine = self._by_owner(whole)[layout.rank]
        sent = [[layout.part(x, rank) for x in mine] for rank in range(layout.size)]
        expected = self._by_owner(layout.part_shape(shape, layout.rank) for shape in self.shapes)
        parts_of = [iter(parts) for parts in self._all_to_all(sent, expected)]
        return [next(parts_of[owner]) for owner in self.owners]

    def _by_owner(self, values):
        lists = [[] for _ in range(self.layout.size)]
        for value, owner in zip(values, self.owners):
            lists[owner].append(value)
        return lists

    def _all_to_all(self, sent, shapes):
        """sent: tensors by receiver. shapes: by sender, of what comes from it. Returns tensors by sender."""
        nothing = torch.empty(0, device=self.layout.device)
        flat = torch.cat([nothing, *(x.to(nothing).reshape(-1) for tensors in sent for x in tensors)])
        sizes = [[shape.numel() for shape in of_sender] for of_sender in shapes]
        received = nothing.new_empty(sum(map(sum, sizes)))
        torch.distributed.all_to_all_single(received, flat, [sum(of_sender) for of_sender in sizes],
                                            [sum(x.numel() for x in tensors) for tensors in sent], group=self.layout.group)
        parts = iter(received.split([size for of_sender in sizes for size in of_sender]))
        return [[next(parts).view(shape) for shape in of_sender] for of_sender in shapes]


def _batches(tensors):
    """tensors: (item, layout, shape, owner) of each. Returns the same batches in all processes."""
    batches = {}  # by what the layouts have in common
    for item, layout, shape, owner in tensors:
        alike = batches.setdefault((id(layout.group), layout.device, layout.dim), [])
        if not alike or alike[-1].owned[owner] + torch.Size(shape).numel() > _SENT_TOGETHER:
            alike.append(Batch(layout))
        alike[-1].add(item, shape, owner)
    return [batch for alike in batches.values() for batch in alike]


class Owners:
    """Which process of its group rotates each matrix. All processes find the same, without messages."""

    def __init__(self):
        self._ranks = {}  # by parameter

    def batches(self, params):
        """Batches of matrices that have layouts. New ones get owners: the most work first, each where there is least so far."""
        load = {}  # by group, the work of each process
        layouts = {p: Layout.of(p) for p in {**self._ranks, **dict.fromkeys(params)}}
        for p, layout in layouts.items():
            load.setdefault(id(layout.group), [0] * layout.size)
        for p, rank in self._ranks.items():
            load[id(layouts[p].group)][rank] += _work(p)
        for p in sorted((p for p in params if p not in self._ranks), key=_work, reverse=True):
            of_group = load[id(layouts[p].group)]
            self._ranks[p] = of_group.index(min(of_group))
            of_group[self._ranks[p]] += _work(p)
        return _batches((p, layouts[p], p.shape, self._ranks[p]) for p in params)

    @torch.no_grad()
    def divided(self, states):
        """State as it is saved. states: by parameter, of all matrices that have layouts. Tensors are in their owners, others everywhere."""
        states = {p: dict(state) for p, state in states.items()}
        for matrices in self.batches(states):
            group, owners = matrices.layout.group, dict(zip(matrices.items, matrices.owners))
            own = [{name: x.shape for name, x in states[p].items() if torch.is_tensor(x)} for p in matrices.items]
            shapes = [None] * group.size()
            torch.distributed.all_gather_object(shapes, own, group=group)
            layout = Layout(group, matrices.layout.device)
            for batch in _batches(((p, name), layout, shape, owners[p]) for number, p in enumerate(matrices.items)
                                  for name, shape in shapes[owners[p]][number].items()):
                parts = batch.from_owners([states[p].get(name) for p, name in batch.items])
                for (p, name), shape, part in zip(batch.items, batch.shapes, parts):
                    states[p][name] = _as_dtensor(part, p, shape, _by_rows(p))
        return states

    @torch.no_grad()
    def whole(self, states):
        """The reverse of divided. Tensors that are no DTensors are whole already, as in the state_dict of one process."""
        kept = {p: {name: x for name, x in state.items() if not torch.is_tensor(x)} for p, state in states.items()}
        for matrices in self.batches(states):
            owners = dict(zip(matrices.items, matrices.owners))
            rank, layout = matrices.layout.rank, Layout(matrices.layout.group, matrices.layout.device)
            tensors = [(p, name, x) for p in matrices.items for name, x in states[p].items() if torch.is_tensor(x)]
            for batch in _batches(((p, name, x), layout, x.shape, owners[p]) for p, name, x in tensors if is_dtensor(x)):
                parts = [local(x if x.placements == _by_rows(p) else x.redistribute(p.device_mesh, _by_rows(p)))
                         for p, _, x in batch.items]
                for (p, name, _), x in zip(batch.items, batch.to_owners(parts)):
                    if x is not None:
                        kept[p][name] = x
            for p, name, x in tensors:
                if not is_dtensor(x) and owners[p] == rank:
                    kept[p][name] = x
        return kept


def divided_as_parameter(state, p):
    """State of a parameter that is updated in parts, as it is saved."""
    shape = local(p).shape
    return {name: _as_dtensor(x, p, p.shape, p.placements) if torch.is_tensor(x) and x.shape == shape else x
            for name, x in state.items()}


def parts_of(state, p):
    """The reverse."""
    return {name: like_parameter(x, p) if torch.is_tensor(x) and x.shape == p.shape else x for name, x in state.items()}


def _as_dtensor(part, p, shape, placements):
    stride = torch.empty(shape, device="meta").stride()
    return DTensor.from_local(part, p.device_mesh, placements, run_check=False, shape=torch.Size(shape), stride=stride)


def _by_rows(p):
    return tuple(Shard(0) if isinstance(placement, Shard) else placement for placement in p.placements)


def _work(p):
    """In proportion to the multiplications of a matrix's update."""
    rows, columns = p.shape
    return rows * columns * (rows + columns)


def all_agree(here, params):
    """Whether `here` is true in all processes that have one of the parameters, or a part of it."""
    groups = {}
    for p in params:
        for number in range(p.device_mesh.ndim if is_dtensor(p) else 0):
            group = p.device_mesh.get_group(number)
            if group.size() > 1:
                groups[id(group)] = group, p.device
    for group, device in groups.values():
        flag = torch.tensor(float(here), device=device)
        torch.distributed.all_reduce(flag, torch.distributed.ReduceOp.MIN, group=group)
        here = bool(flag)
    return here
