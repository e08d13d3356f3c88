# SPDX-License-Identifier: Apache-2.0
"""Elements as torch tensors, on the elements' own memory, with a position to save with the model.

    loader = ps.torch.DataLoader(dataset)
    for batch in loader:
        ...
    torch.save({"model": model.state_dict(), "data": loader.state_dict()}, path)

Only this module imports torch. `ps.torch` imports this module at first use.
"""

import base64
import json
import threading
import uuid

import torch
import torch.distributed
import torch.utils.data

from . import _core, errors, loader
from .lost_consumers import OnLostConsumer


_ABORT_WITHIN = 10.0  # seconds for which the end of the `with` block waits for the abort of the group


class DataLoader(loader.Loader, torch.utils.data.IterableDataset):
    """Yields the elements of `dataset`: the same nests with tensors for leaves, and lists of bytes for strings.

    A tensor in host memory is in its element's slot. The slot is returned when the last tensor of the element is
    destroyed.

    `device`: the device of the tensors. If Penstock was built with CUDA, the next two elements are copied to a CUDA
    device while one is used, on a stream of Penstock's own. Hold at most one element when you request the next; if you
    hold more, elements are copied only when they are returned. Only loaders with a CUDA device can then restore the
    states.
    `read_only`: how an element is returned that other readers share: "clone" (the default), "refuse" (RuntimeError), or
    "share", for a trainer that never writes, because torch has no read-only tensors. `seed`: the seed of all nodes for
    which the dataset sets no seed. `commit`: "previous" commits a state when the next element but one is taken. Use it
    for jobs with ack_mode=ON_COMMIT if you store each state before you take the next element but one. With None, call
    `commit()` yourself.

    Waiting needs neither the interpreter lock nor a separate process: inside torch.utils.data.DataLoader use
    `batch_size=None, num_workers=0`. Each iter() is a pass; the position is that of the latest pass.
    """

    def __init__(self, dataset, *, device=None, read_only="clone", seed=None, commit=None):
        super().__init__(dataset, seed=seed, commit=commit)
        if read_only not in ("clone", "refuse", "share"):
            raise ValueError(f"read_only must be 'clone', 'refuse' or 'share', not {read_only!r}")
        loader.refuse_parts(dataset, "torch")
        self._device = None if device is None or torch.device(device).type == "cpu" else torch.device(device)
        self._read_only = read_only
        if self._device is not None and self._device.type == "cuda":
            index = torch.cuda.current_device() if self._device.index is None else self._device.index
            if index < _core.count_gpus():
                self._gpu = index

    def __iter__(self):
        if torch.utils.data.get_worker_info() is not None:
            raise RuntimeError(
                "this loader runs in a worker process of torch.utils.data.DataLoader; pass num_workers=0 to that "
                "DataLoader (Penstock's workers and threads prepare the elements; another process would only copy them)"
            )
        return super().__iter__()

    def _leaf(self, leaf):
        if leaf.dtype.name == "string":
            return _strings(leaf._strings(), leaf.shape)
        if leaf.device.startswith("GPU"):
            return torch.from_dlpack(leaf)  # torch's stream waits for the copy
        if not leaf.writable and self._read_only == "refuse":
            raise RuntimeError(
                "other readers share this element, and its tensor could be written to; use read_only='clone' to copy "
                "it, or read_only='share' to get it without a copy"
            )
        tensor = torch.from_dlpack(leaf._to_reader())  # a capsule: torch before 2.9 asks for no DLPack 1.0
        if not leaf.writable and self._read_only == "clone":
            tensor = tensor.clone()
        return tensor if self._device is None else tensor.to(self._device)


class AllRanks:
    """The positions of the loaders of all ranks as one state, which any number of ranks can restore.

    It is for torch.distributed.checkpoint, which calls it like a model: `dcp.save({"data": AllRanks(loader)})`. All
    ranks of `group` (None: the default group) must call each method except commit().
    """

    def __init__(self, loader, group=None):
        self.loader = loader
        self._group = group
        self._own = None  # the last result of state_dict()

    def state_dict(self):
        self._own = self.loader.state_dict()
        states = [None] * torch.distributed.get_world_size(self._group)
        torch.distributed.all_gather_object(states, loader.position_of(self._own), group=self._group)
        # One object, because more or fewer ranks may restore it.
        return {"ranks": json.dumps([base64.b64encode(state).decode() for state in states]).encode()}

    def load_state_dict(self, state):
        from . import merge_rank_states

        launch = [str(uuid.uuid4())]
        first = 0 if self._group is None else torch.distributed.get_global_rank(self._group, 0)
        torch.distributed.broadcast_object_list(launch, src=first, group=self._group)
        states = [base64.b64decode(text) for text in json.loads(bytes(state["ranks"]))]
        self.loader.load_state_dict(loader.state_of(merge_rank_states(states, run_id=launch[0])))

    def commit(self):
        """Declares this rank's part of the last state_dict() durable."""
        if self._own is None:
            raise RuntimeError("there is no state to commit; call state_dict() before commit()")
        self.loader.commit(self._own)


class AbortOnLoss:
    """Prevents ranks from waiting for ever in a collective when a consumer of a coordinated read is lost:

        with ps.torch.AbortOnLoss(loader, job_name="train"):
            for batch in loader:
                step(batch)

    A consumer is lost when its connection to the dispatcher has ended and it is not back within `grace` seconds, or
    when it is declared dead. Then `group` (None: the default group) is aborted and the loaders are stopped. Calls that
    wait in them raise, and the block raises errors.UnavailableError, which names the consumer. The group can no longer
    be used: let the error end the process, and restart all ranks from states of the same step. Do not use states of the
    current step, because the result of an aborted collective is wrong. Gloo's abort does not end a running collective;
    with Gloo a rank raises when the rank that it waits for has ended. `job_name`: the job whose consumers count; None
    means all jobs that this process reads.
    """

    def __init__(self, *loaders, group=None, job_name=None, grace=1.0):
        self._loaders = loaders
        self._group = group
        self._job_name = job_name
        self._grace = grace
        self._changed = threading.Condition()
        self._ended = {}  # (loss, timer) by job and consumer, for consumers that may return
        self._lost = None
        self._closed = False
        self._aborted = threading.Event()
        self._on_lost = None

    def __enter__(self):
        group = self._group_now()
        if not hasattr(group, "abort"):
            raise RuntimeError(f"a {type(group).__name__} cannot be aborted; AbortOnLoss needs torch 2.6 or later")
        self._on_lost = OnLostConsumer(self._hear)
        return self

    def __exit__(self, _, error, __):
        with self._changed:
            if isinstance(error, RuntimeError):
                # Errors of Gloo and NCCL may come before the dispatcher reports the loss.
                self._changed.wait_for(lambda: self._lost or self._ended, timeout=self._grace)
            named = next((loss for loss, _ in self._ended.values()), None)
        if isinstance(error, RuntimeError) and named is not None:
            self._abort(named)
        with self._changed:
            self._closed = True
            for _, timer in self._ended.values():
                timer.cancel()
        self._on_lost.close()
        if self._lost is None or not (error is None or isinstance(error, Exception)):
            return False
        self._aborted.wait(_ABORT_WITHIN)  # before the group is destroyed
        raise errors.UnavailableError(
            f"{self._lost}; the process group was aborted; restart all ranks from states of the same step"
        ) from error

    def _group_now(self):
        return torch.distributed.group.WORLD if self._group is None else self._group

    def _hear(self, loss):
        if self._job_name is not None and loss.job != self._job_name:
            return
        key = loss.job, loss.consumer
        with self._changed:
            _, timer = self._ended.pop(key, (None, None))
            if timer is not None:
                timer.cancel()
            if loss.state == "ended" and not self._closed:
                timer = threading.Timer(self._grace, self._abort_unless_back, (key, loss))
                timer.daemon = True
                self._ended[key] = loss, timer
                self._changed.notify_all()
                timer.start()
        if loss.state == "dead":
            self._abort(loss)

    def _abort_unless_back(self, key, loss):
        with self._changed:
            if self._ended.get(key, (None, None))[0] is not loss:
                return
        self._abort(loss)

    def _abort(self, loss):
        with self._changed:
            if self._lost is not None or self._closed:
                return
            self._lost = loss
            self._changed.notify_all()
        # In parallel, because each stop may take seconds, and an error in one must not prevent the others.
        for each in self._loaders:
            threading.Thread(target=each.stop, daemon=True).start()
        try:
            self._group_now().abort()
        finally:
            self._aborted.set()


def check_step(loader, group=None):
    """Checks that all ranks of `group` (None: the default group) are at the same step: the last element that `loader`
    returned to each of them is from the same round of the same read. Without rounds, it only checks that each rank has
    got the same number of elements since the pass began. If the check fails, all ranks raise errors.DataLossError with
    the steps of all. All ranks must call it, after a step. It reduces 16 bytes."""
    round_, consumer, steps, hash_ = loader.step_token()
    mark = hash_ >> 1  # 63 bits, so that its negative is a valid number too
    device = "cuda" if torch.distributed.get_backend(group) == "nccl" else "cpu"
    least = torch.tensor([mark, -mark], dtype=torch.int64, device=device)
    torch.distributed.all_reduce(least, op=torch.distributed.ReduceOp.MIN, group=group)
    least, minus_most = least.tolist()
    if least == -minus_most:
        return
    places = [None] * torch.distributed.get_world_size(group)
    torch.distributed.all_gather_object(places, (round_, consumer, steps), group=group)
    said = "; ".join(
        f"rank {rank} has taken {steps} elements"
        + (f", the last one in round {round_} as consumer {consumer}" if round_ >= 0 else "")
        for rank, (round_, consumer, steps) in enumerate(places)
    )
    raise errors.DataLossError(f"the ranks are not at the same step: {said}")


def distribute(dataset, processing_mode, service, job_name, *, coordinated=False, group=None, **options):
    """Returns the part of `dataset` that this rank of torch.distributed reads from `service`: its share of one job of
    all ranks, or, with `coordinated`, the rounds of the consumer with the rank's number. `options` are those of
    Dataset.distribute."""
    if not job_name:
        raise ValueError("job_name is empty; pass the name of the job that all ranks share")
    if coordinated:
        options["consumer_index"] = torch.distributed.get_rank(group)
        options["num_consumers"] = torch.distributed.get_world_size(group)
    return dataset.distribute(processing_mode, service, job_name=job_name, **options)


def _strings(values, shape):
    """Returns a tensor of strings as nested lists, or as one bytes object if it has no dimensions."""
    if not shape:
        return values[0]
    for length in reversed(shape[1:]):
        values = [values[i : i + length] for i in range(0, len(values), length)] if length else [[] for _ in range(shape[0])]
    return values
