"""Parameters that FSDP2 or tensor parallelism divides among processes: where their parts are, and how whole matrices travel.

A matrix is rotated as a whole, in one process of its mesh, its owner. Owners get the parts of weights and gradients from all processes
and send back the parts of new weights, each in one all-to-all. The optimizer's state of a matrix is in its owner; in a state_dict it is
divided by rows, so that checkpoints do not depend on the number of processes.
"""

import math
import sys
import zlib

import torch

# Elements of whole tensors that an owner gets at a time, in fp32; a larger tensor is alone. On a GPU many make a stack. On a CPU
# few stay in memory that the process has, where many would get new pages from the system at each step.
_SENT_TOGETHER = 1 << 26
_SENT_TOGETHER_ON_A_CPU = 1 << 21


def is_dtensor(x):
    """False in PyTorch before 2.5, where a DTensor is refused like any other class of tensors."""
    loaded = sys.modules.get("torch.distributed.tensor")  # importing it takes a second, and without it there is no DTensor
    return hasattr(loaded, "DTensor") and isinstance(x, loaded.DTensor)


def fault(p):
    """Why a DTensor cannot be updated, and what to do; None if it can."""
    if p.device_mesh.get_coordinate() is None:
        return "on a mesh without this process", "leave it out here"
    for number, placement in enumerate(p.placements):
        if type(placement).__name__ not in ("Shard", "Replicate", "_StridedShard"):
            return f"placed as {p.placements}", "only what is divided or replicated can be updated"
        if _is_strided(placement) and placement.split_factor != math.prod(
                p.device_mesh.size(later) for later in range(number + 1, p.device_mesh.ndim)
                if _cuts(p.placements[later]) and p.placements[later].dim == placement.dim):
            return f"placed as {p.placements}", "of strided placements there is only FSDP2's, of what tensor parallelism has divided"
    return None


def is_divided(p):
    """Whether other processes have parts of the parameter that are not here."""
    return is_dtensor(p) and any(_cuts(placement) and p.device_mesh.size(number) > 1
                                 for number, placement in enumerate(p.placements))


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
    if is_dtensor(x):
        return local(x if x.placements == p.placements else x.redistribute(p.device_mesh, p.placements))
    return _part(x, _box(x.shape, p.device_mesh, p.placements, p.device_mesh.get_coordinate())) if is_dtensor(p) else x


def _cuts(placement):
    return not placement.is_replicate()


def _is_strided(placement):
    """Whether it cuts what later dimensions of the mesh have cut already. The class is private to PyTorch."""
    return type(placement).__name__ == "_StridedShard"


def _box(shape, mesh, placements, coordinate):
    """The part of a tensor that a process has, as (begin, length) of each dimension. Cut as torch.chunk does it."""
    box = [(0, length) for length in shape]
    # FSDP2 cuts what tensor parallelism has cut, so what is strided comes last.
    for number in sorted(range(mesh.ndim), key=lambda number: _is_strided(placements[number])):
        if _cuts(placements[number]):
            dim = placements[number].dim
            begin, length = box[dim]
            each = -(-length // mesh.size(number))
            skipped = min(each * coordinate[number], length)
            box[dim] = begin + skipped, min(each, length - skipped)
    return tuple(box)


def _part(x, box):
    return x[tuple(slice(begin, begin + length) for begin, length in box)]


class Layout:
    """How tensors lie in the processes of a mesh. `group`: of all these processes."""

    def __init__(self, mesh, placements, group):
        self.mesh, self.placements, self.group = mesh, placements, group
        self.rank, self.size = group.rank(), group.size()
        in_mesh = {int(process): tuple(map(int, torch.nonzero(mesh.mesh == process)[0])) for process in mesh.mesh.flatten()}
        self._coordinates = [in_mesh[process] for process in sorted(in_mesh)]  # groups are in this order
        self._boxes, self._senders = {}, {}  # by shape

    def boxes(self, shape):
        """[rank]: what the process has of a tensor."""
        if shape not in self._boxes:
            self._boxes[shape] = [_box(shape, self.mesh, self.placements, at) for at in self._coordinates]
        return self._boxes[shape]

    def senders(self, shape):
        """[rank]: whether the process sends its part to the owner. Of several that have the same one, the first does."""
        if shape not in self._senders:
            first = {}  # by box
            self._senders[shape] = [first.setdefault(box, rank) == rank for rank, box in enumerate(self.boxes(shape))]
        return self._senders[shape]


class Batch:
    """Tensors that travel together: of one layout and device, each with an owner."""

    def __init__(self, layout, device):
        self.layout, self.device = layout, device
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

    def shapes_at_owners(self, states):
        """Of each tensor in order, the shapes of the tensors in its owner's state, by name. states: by item."""
        own = [{name: x.shape for name, x in states[item].items() if torch.is_tensor(x)} for item in self.items]
        everyones = _everyones(own, self.layout)
        return [everyones[owner][number] for number, owner in enumerate(self.owners)]

    def to_owners(self, parts):
        """Each process gives its part of every tensor. Returns the whole tensors, in fp32, and None for those that others own."""
        rank = self.layout.rank
        sends = [self.layout.senders(shape) for shape in self.shapes]
        mine = self._by_owner(range(len(self.items)))[rank]
        sent = self._by_owner(part if senders[rank] else None for part, senders in zip(parts, sends))
        boxes = [[self.layout.boxes(self.shapes[number])[sender] if sends[number][sender] else None for number in mine]
                 for sender in range(self.layout.size)]
        whole = [None] * len(self.items)
        for number in mine:
            whole[number] = torch.empty(self.shapes[number], dtype=torch.float32, device=self.device)
        for received, of_sender in zip(self._all_to_all(sent, boxes), boxes):
            for number, part, box in zip(mine, received, of_sender):
                if box is not None:
                    _part(whole[number], box).copy_(part)
        return whole

    def from_owners(self, whole):
        """The reverse. Returns the parts of this process, in fp32."""
        mine = list(zip(self._by_owner(whole)[self.layout.rank], self._by_owner(self.shapes)[self.layout.rank]))
        sent = [[_part(x, self.layout.boxes(shape)[rank]) for x, shape in mine] for rank in range(self.layout.size)]
        boxes = self._by_owner(self.layout.boxes(shape)[self.layout.rank] for shape in self.shapes)
        parts_of = [iter(parts) for parts in self._all_to_all(sent, boxes)]
        return [next(parts_of[owner]) for owner in self.owners]

    def _by_owner(self, values):
        lists = [[] for _ in range(self.layout.size)]
        for value, owner in zip(values, self.owners):
            lists[owner].append(value)
        return lists

    def _all_to_all(self, sent, boxes):
        """sent: tensors by receiver. boxes: by sender, of what comes from it. Returns tensors by sender. None is not sent."""
        shapes = [[None if box is None else tuple(length for _, length in box) for box in of_sender] for of_sender in boxes]
        sizes = [[0 if shape is None else math.prod(shape) for shape in of_sender] for of_sender in shapes]
        sent = [[x for x in tensors if x is not None] for tensors in sent]
        nothing = torch.empty(0, dtype=torch.float32, device=self.device)
        flat = torch.cat([nothing, *(x.to(nothing).reshape(-1) for tensors in sent for x in tensors)])
        received = nothing.new_empty(sum(map(sum, sizes)))
        torch.distributed.all_to_all_single(received, flat, [sum(of_sender) for of_sender in sizes],
                                            [sum(x.numel() for x in tensors) for tensors in sent], group=self.layout.group)
        parts = iter(received.split([size for of_sender in sizes for size in of_sender]))
        return [[None if shape is None else part.view(shape) for shape, part in zip(of_sender, parts)] for of_sender in shapes]


@getattr(torch, "_disable_dynamo", lambda function: function)  # torch.compile cannot follow it; torch.optim uses this too
def _everyones(x, layout):
    """What each process of the mesh gives."""
    everyones = [None] * layout.size
    torch.distributed.all_gather_object(everyones, x, group=layout.group)
    return everyones


def _batches(tensors):
    """tensors: (item, layout, device, shape, owner) of each. Returns the same batches in all processes."""
    batches = {}
    for item, layout, device, shape, owner in tensors:
        alike = batches.setdefault((layout, device), [])
        most = _SENT_TOGETHER_ON_A_CPU if device.type == "cpu" else _SENT_TOGETHER
        if not alike or alike[-1].owned[owner] + torch.Size(shape).numel() > most:
            alike.append(Batch(layout, device))
        alike[-1].add(item, shape, owner)
    return [batch for alike in batches.values() for batch in alike]


class Owners:
    """Which process of its mesh rotates each matrix. All processes find the same, without messages."""

    def __init__(self):
        self._ranks = {}  # by parameter
        self._layouts = {}  # by mesh and placements
        self._groups = {}  # by mesh

    def __getstate__(self):
        return {"_ranks": self._ranks, "_layouts": {}, "_groups": {}}  # groups of processes cannot be copied

    def __contains__(self, p):
        return p in self._ranks

    def chosen_anew(self):
        """With no matrices, and the same groups: these stay until the program ends."""
        owners = Owners()
        owners._layouts, owners._groups = self._layouts, self._groups
        return owners

    def batches(self, params):
        """Batches of matrices that are divided."""
        self._choose([p for p in params if p not in self._ranks])
        return _batches((p, self._layout(p, p.placements), p.device, p.shape, self._ranks[p]) for p in params)

    def _choose(self, params):
        """Gives owners to parameters that have none: the most work first, each to who has least of its mesh so far."""
        load = {}  # by mesh, of each process
        for p in (*self._ranks, *params) if params else ():
            load.setdefault(p.device_mesh, [0] * p.device_mesh.size())
            if p in self._ranks:
                load[p.device_mesh][self._ranks[p]] += _work(p)
        for p in sorted(params, key=_work, reverse=True):
            of_mesh = load[p.device_mesh]
            self._ranks[p] = of_mesh.index(min(of_mesh))
            of_mesh[self._ranks[p]] += _work(p)

    def _layout(self, p, placements):
        mesh = p.device_mesh
        if mesh not in self._groups:
            self._groups[mesh] = mesh.get_group() if mesh.ndim == 1 else torch.distributed.new_group(
                mesh.mesh.flatten().tolist(), use_local_synchronization=True)
        if (mesh, placements) not in self._layouts:
            self._layouts[mesh, placements] = Layout(mesh, placements, self._groups[mesh])
        return self._layouts[mesh, placements]

    @torch.no_grad()
    def divided(self, states):
        """State as it is saved. states: by parameter, of all divided matrices. Tensors are in their owners, others everywhere."""
        saved = {p: _without_tensors(state) for p, state in states.items()}
        for matrices in self.batches(states):
            shapes = matrices.shapes_at_owners(states)
            for batch in _batches(((p, name), self._layout(p, _by_rows(p)), p.device, shape, owner)
                                  for p, owner, of_one in zip(matrices.items, matrices.owners, shapes)
                                  for name, shape in of_one.items()):
                parts = batch.from_owners([states[p].get(name) for p, name in batch.items])
                for (p, name), shape, part in zip(batch.items, batch.shapes, parts):
                    saved[p][name] = _as_dtensor(part, p, shape, _by_rows(p))
        return saved

    @torch.no_grad()
    def whole(self, states):
        """The reverse of divided. Tensors that are no DTensors are whole already, as in the state_dict of one process."""
        kept = {p: {**state, **names_alone(state.keys() - _without_tensors(state), p)} for p, state in states.items()}
        for matrices in self.batches(states):
            tensors = [(p, name, x, owner) for p, owner in zip(matrices.items, matrices.owners)
                       for name, x in sorted(states[p].items()) if torch.is_tensor(x)]
            divided = [((p, name, x), self._layout(p, _by_rows(p)), p.device, x.shape, owner)
                       for p, name, x, owner in tensors if is_dtensor(x)]
            number_of = {p: number for number, p in enumerate(matrices.items)}
            own = [(number_of[p], name, shape) for (p, name, _), _, _, shape, _ in divided]
            if any(others != own for others in _everyones(own, matrices.layout)):
                raise ValueError("BasisRotation: the state of a matrix is divided into other tensors in one process than in another")
            for batch in _batches(divided):
                parts = [local(x if x.placements == _by_rows(p) else x.redistribute(p.device_mesh, _by_rows(p)))
                         for p, _, x in batch.items]
                for (p, name, _), x in zip(batch.items, batch.to_owners(parts)):
                    if x is not None:
                        kept[p][name] = x
            for p, name, x, owner in tensors:
                if not is_dtensor(x) and owner == matrices.layout.rank:
                    kept[p][name] = x
        return kept


def names_alone(names, p):
    """What other processes than the owner have of a matrix's state. PyTorch looks there for names if it loads a flat state_dict."""
    return dict.fromkeys(names, torch.empty(0, dtype=torch.float32, device=p.device))


def _without_tensors(state):
    return {name: x for name, x in state.items() if not torch.is_tensor(x)}


def divided_as_parameter(state, p):
    """State of a parameter that is updated in parts, as it is saved."""
    shape = local(p).shape
    return {name: _as_dtensor(x, p, p.shape, p.placements) if torch.is_tensor(x) and x.shape == shape else x
            for name, x in state.items()}


def parts_of(state, p):
    """The reverse."""
    return {name: like_parameter(x, p) if torch.is_tensor(x) and x.shape == p.shape else x for name, x in state.items()}


def _as_dtensor(part, p, shape, placements):
    from torch.distributed.tensor import DTensor
    if part.untyped_storage().nbytes() > part.nbytes:
        part = part.clone()  # torch.save and copy.deepcopy fail for a DTensor of a part of a storage
    stride = torch.empty(shape, device="meta").stride()
    return DTensor.from_local(part, p.device_mesh, placements, run_check=False, shape=torch.Size(shape), stride=stride)


def _by_rows(p):
    from torch.distributed.tensor import Shard
    return tuple(Shard(0) if _cuts(placement) else placement for placement in p.placements)


def _work(p):
    """In proportion to the multiplications of a matrix's update."""
    rows, columns = p.shape
    return rows * columns * (rows + columns)


def all_agree(here, params, stepped=()):
    """Whether `here` is true in all processes that have one of the parameters, or a part of it. Raises if they do not step the same."""
    of_meshes = {}
    for p in (p for p in params if is_dtensor(p) and p.device_mesh.get_coordinate() is not None):
        of_meshes.setdefault(p.device_mesh, []).append(p)
    for mesh, of_mesh in of_meshes.items():
        which = zlib.crc32(bytes(p in stepped for p in of_mesh)) & 0xFFFFFF  # exact in fp32
        least = torch.tensor([float(here), which, -which], dtype=torch.float32, device=of_mesh[0].device)
        for number in range(mesh.ndim):
            torch.distributed.all_reduce(least, torch.distributed.ReduceOp.MIN, group=mesh.get_group(number))
        here, which, most = least.tolist()
        if which != -most:
            raise RuntimeError("BasisRotation: a parameter has a gradient in one process and none in another; give it one in all or none")
    return bool(here)
