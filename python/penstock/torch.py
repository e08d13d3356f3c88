# SPDX-License-Identifier: Apache-2.0
"""Elements as torch's tensors, on the elements' own memory, with a position that is saved beside the model.

    loader = ps.torch.DataLoader(dataset)
    for batch in loader:
        ...
    torch.save({"model": model.state_dict(), "data": loader.state_dict()}, path)

torch is imported here and nowhere else: `ps.torch` imports this module when it is first named.
"""

import base64
import collections
import json
import uuid

import torch
import torch.distributed
import torch.utils.data

from . import dataset as datasets
from . import iterator as iterators
from . import nest, spec

_KEY = "penstock"  # of a state_dict()


class DataLoader(torch.utils.data.IterableDataset):
    """Gives the elements of `dataset`: the same nests with tensors for leaves, and lists of bytes for strings.

    A tensor in host memory lies in its element's slot, which is given back when the last tensor of it is gone.

    `device`: tensors are copied there. `read_only`: what is done with an element that others read too: "clone" (the
    default), "refuse" (RuntimeError), or "share", for who never writes; torch knows no read-only tensor. `seed`: for what
    the dataset leaves open. `commit`: "previous" commits a state when the next but one is taken, for jobs with
    keep=COMMITTED whose states are stored at once, each before the next but one is taken; None leaves it to `commit()`.

    Waiting needs neither the interpreter nor a process: inside torch.utils.data.DataLoader it stands with
    `batch_size=None, num_workers=0`. Each iter() is a pass; the position is that of the last one begun.
    """

    def __init__(self, dataset, *, device=None, read_only="clone", seed=None, commit=None):
        super().__init__()
        if not isinstance(dataset, datasets.Dataset):
            raise TypeError(f"dataset must be a penstock.Dataset, not {type(dataset).__name__}")
        if read_only not in ("clone", "refuse", "share"):
            raise ValueError(f"read_only must be 'clone', 'refuse' or 'share', not {read_only!r}")
        if commit not in (None, "previous"):
            raise ValueError(f"commit must be None or 'previous', not {commit!r}")
        for leaf in nest.leaves(dataset.element_spec):
            if isinstance(leaf, (spec.RaggedTensorSpec, spec.SparseTensorSpec)):
                raise TypeError(
                    f"{leaf} has no tensor in torch; make it dense before (padded_batch, or a map), or read the dataset "
                    "itself, whose elements have the parts"
                )
        self.dataset = dataset
        self._device = None if device is None or torch.device(device).type == "cpu" else torch.device(device)
        self._read_only = read_only
        self._seed = seed
        self._commits_previous = commit == "previous"
        self._taken = collections.deque()  # states that wait to be committed
        self._iterator = None
        self._restored = None  # by the next iter()

    def __iter__(self):
        if torch.utils.data.get_worker_info() is not None:
            raise RuntimeError(
                "this loader stands in a worker process of torch.utils.data.DataLoader: give that num_workers=0 "
                "(elements are prepared by Penstock's workers and threads; a second process would only copy them)"
            )
        self._begin()
        return _Tensors(self._iterator, self._leaf)

    def __len__(self):
        elements = self.dataset.cardinality()
        if elements < 0:
            raise TypeError(f"{type(self).__name__}: how many elements the dataset has is not known before")
        return int(elements)

    def state_dict(self):
        """The position behind the last element given, to be stored beside the model: a dict of one bytes object."""
        state = {_KEY: self._position()}
        if self._commits_previous and self._iterator is not None:
            self._taken.append(state)
            if len(self._taken) > 2:
                self.commit(self._taken.popleft())
        return state

    def load_state_dict(self, state):
        """The next iter() goes on behind `state`."""
        try:
            self._restored = bytes(state[_KEY])
        except (KeyError, TypeError) as error:
            raise ValueError("this is no state_dict() of a penstock.torch.DataLoader") from error
        self._iterator = None
        self._taken.clear()

    def commit(self, state):
        """Declares a state of this loader durable: what it contains is never given again, to anyone."""
        if self._iterator is None:
            raise RuntimeError("nothing was read yet: a state is committed by the loader that reads on behind it")
        self._iterator.commit(state[_KEY])

    def stop(self):
        """Ends reading."""
        if self._iterator is not None:
            self._iterator.stop()

    def _begin(self):
        self._iterator = self.dataset.iterator(self._seed)
        self._taken.clear()
        if self._restored is not None:
            self._iterator.restore(self._restored)
            self._restored = None

    def _position(self):
        if self._restored is not None:
            return self._restored
        if self._iterator is None:
            # The beginning is that of a pass which the next iter() takes up.
            self._begin()
            self._restored = self._iterator.save()
            return self._restored
        return self._iterator.save()

    def _leaf(self, leaf):
        if leaf is None:
            return None
        if leaf.dtype.name == "string":
            return _strings(leaf._strings(), leaf.shape)
        if leaf.writable or self._read_only == "share":
            tensor = torch.from_dlpack(leaf)
        elif self._read_only == "clone":
            tensor = torch.from_dlpack(leaf).clone()
        else:
            raise RuntimeError(
                "others read this element too, and a tensor could write into it; read_only='clone' copies it, "
                "read_only='share' gives it as it is"
            )
        return tensor if self._device is None else tensor.to(self._device)


class AllRanks:
    """The positions of the loaders of all ranks as one state, which any number of ranks takes up.

    For torch.distributed.checkpoint, which calls it as it does a model: `dcp.save({"data": AllRanks(loader)})`. Each
    method but commit() is called by all ranks of `group` (None: the default one).
    """

    def __init__(self, loader, group=None):
        self.loader = loader
        self._group = group
        self._own = None  # the last of state_dict()

    def state_dict(self):
        self._own = self.loader.state_dict()
        states = [None] * torch.distributed.get_world_size(self._group)
        torch.distributed.all_gather_object(states, self._own[_KEY], group=self._group)
        # One object, since ranks that take it up may be more or fewer.
        return {"ranks": json.dumps([base64.b64encode(state).decode() for state in states]).encode()}

    def load_state_dict(self, state):
        from . import of_all_ranks

        launch = [str(uuid.uuid4())]
        first = 0 if self._group is None else torch.distributed.get_global_rank(self._group, 0)
        torch.distributed.broadcast_object_list(launch, src=first, group=self._group)
        states = [base64.b64decode(text) for text in json.loads(bytes(state["ranks"]))]
        self.loader.load_state_dict({_KEY: of_all_ranks(states, run_id=launch[0])})

    def commit(self):
        """Declares this rank's part of the last state_dict() durable."""
        if self._own is None:
            raise RuntimeError("no state was taken yet")
        self.loader.commit(self._own)


def distribute(dataset, processing_mode, service, job_name, *, coordinated=False, group=None, **options):
    """The part of `dataset` that this rank of torch.distributed reads, by `service`: of one job that all ranks share,
    or, `coordinated`, as the consumer of that number in rounds. `options` as in Dataset.distribute."""
    if not job_name:
        raise ValueError("job_name must be given: it is what all ranks read together")
    if coordinated:
        options["consumer_index"] = torch.distributed.get_rank(group)
        options["num_consumers"] = torch.distributed.get_world_size(group)
    return dataset.distribute(processing_mode, service, job_name=job_name, **options)


class _Tensors:
    def __init__(self, iterator, leaf):
        self._iterator = iterator
        self._core = iterator._core
        self._leaf = leaf
        self._pack = iterators.element_packer(iterator.element_spec)

    def __iter__(self):
        return self

    def __next__(self):
        leaves = self._core.next()
        if leaves is None:
            raise StopIteration
        return self._pack([self._leaf(leaf) for leaf in leaves])


def _strings(values, shape):
    """The same values as lists in lists; a tensor without dimensions is one bytes object."""
    if not shape:
        return values[0]
    for length in reversed(shape[1:]):
        values = [values[i : i + length] for i in range(0, len(values), length)] if length else [[] for _ in range(shape[0])]
    return values
