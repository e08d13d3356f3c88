# SPDX-License-Identifier: Apache-2.0
"""Elements as jax.Arrays, on the elements' own memory or divided among local devices, with a position that can be
saved.

    loader = ps.jax.DataLoader(dataset, devices=jax.local_devices())
    for batch in loader:
        state = step(state, batch)

Only this module imports JAX. `ps.jax` imports this module at first use.
"""

import jax
import numpy as np

from . import loader, nest

_ON_CPU = 1  # kDLCPU, the type of a device in DLPack


class DataLoader(loader.Loader):
    """Yields the elements of `dataset`: the same nests, which are pytrees, with jax.Arrays for leaves.

    `devices`: local devices that divide each leaf by rows, in their order. `sharding`: a jax.sharding.Sharding over
    local devices, for all leaves or as a nest (None: not divided). With neither, all leaves are on JAX's default
    device. `seed` and `commit` are as in ps.torch.DataLoader. Each iter() is a pass; the position is that of the latest
    pass.

    On a CPU device an array, or the device's part of it, is in the element's slot. The slot is returned when the last
    array of the element is destroyed. JAX copies arrays that do not begin at a multiple of 64 bytes, and 64-bit values
    unless jax_enable_x64 is set. Penstock copies parts that are not whole rows.
    """

    def __init__(self, dataset, *, sharding=None, devices=None, seed=None, commit=None):
        super().__init__(dataset, seed=seed, commit=commit)
        loader.refuse_parts(dataset, "JAX")
        loader.refuse_strings(dataset, "JAX")
        if sharding is not None and devices is not None:
            raise ValueError("pass either sharding or devices, not both: sharding already names its devices")
        if devices is not None:
            sharding = _by_rows(devices, dataset.element_spec)
        self._shardings = _of_leaves(sharding, dataset.element_spec)
        for (name, leaf), of in zip(nest.named_leaves(dataset.element_spec), self._shardings):
            if of is not None and leaf.shape is not None and None not in leaf.shape:
                _check_shape(of, leaf.shape, name)

    def _leaves(self, leaves):
        return [None if leaf is None else _divided(leaf, of) for leaf, of in zip(leaves, self._shardings)]


def array(tensor, device=None):
    """Returns `tensor` as a jax.Array on `device` (None: the default device). On a CPU device the array uses the
    tensor's own memory."""
    return _on(tensor, device if device is not None else _default_device())


def _default_device():
    device = jax.config.jax_default_device
    if device is None or isinstance(device, str):
        return jax.local_devices(backend=device)[0]
    return device


def _divided(tensor, sharding):
    if sharding is None:
        return array(tensor)
    _check_shape(sharding, tensor.shape, "")
    indices = sharding.addressable_devices_indices_map(tensor.shape)
    parts = [_part(tensor, index, device) for device, index in indices.items()]
    return jax.make_array_from_single_device_arrays(tensor.shape, sharding, parts)


def _part(tensor, index, device):
    """Returns the part `index`, a tuple of slices, of `tensor` on `device`."""
    if not index:
        return _on(tensor, device)
    begin, end, _ = index[0].indices(tensor.shape[0])
    rows = tensor._rows(begin, end)
    rest = index[1:]
    if all(i.indices(size) == (0, size, 1) for i, size in zip(rest, tensor.shape[1:])):
        return _on(rows, device)
    return jax.device_put(np.ascontiguousarray(rows.numpy()[(slice(None), *rest)]), device)


def _on(tensor, device):
    if device.platform == "cpu":
        return jax.dlpack.from_dlpack(_OnCpu(tensor, device.local_hardware_id))
    # Copies through a JAX array on the CPU, which the copy releases. JAX would release a NumPy array only at the next
    # call of JAX.
    return jax.device_put(jax.dlpack.from_dlpack(_OnCpu(tensor, 0)), device)


class _OnCpu:
    """Presents a tensor to jax.dlpack as a tensor of the CPU device with that number. JAX never writes to memory that it
    did not allocate, not even if an array is donated."""

    def __init__(self, tensor, number):
        self._tensor = tensor
        self._number = number

    def __dlpack_device__(self):
        return _ON_CPU, self._number

    def __dlpack__(self, **_):
        return self._tensor._to_reader()


def _by_rows(devices, element_spec):
    """Returns a nest of shardings that divide rows among `devices`. A leaf without rows is on all of them."""
    devices = list(devices)
    if not devices:
        raise ValueError("devices is empty; it must contain one or more of jax.local_devices()")
    mesh = jax.sharding.Mesh(np.array(devices), ("batch",))
    rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("batch"))
    whole = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    return nest.map_leaves(lambda leaf: whole if leaf.shape == () else rows, element_spec)


def _of_leaves(sharding, element_spec):
    """Returns the sharding of each leaf; None if the leaf is not divided."""
    if sharding is None or isinstance(sharding, jax.sharding.Sharding):
        shardings = [sharding] * len(nest.leaves(element_spec))
    else:
        nest.assert_same(sharding, element_spec, "sharding and element_spec")
        shardings = nest.leaves(sharding)
    for of in shardings:
        if of is not None and not isinstance(of, jax.sharding.Sharding):
            raise TypeError(f"sharding must be a jax.sharding.Sharding or a nest of them, not {type(of).__name__}")
        if of is not None and not of.is_fully_addressable:
            raise ValueError(
                "sharding contains devices of other processes; it must contain local devices only. Make global arrays "
                "of the local parts with jax.make_array_from_process_local_data"
            )
    return shardings


def _check_shape(sharding, shape, name):
    try:
        sharding.shard_shape(shape)
    except ValueError as error:
        raise ValueError(
            f"element{name} of shape {shape} cannot be divided evenly over its {len(sharding.device_set)} devices; "
            f"batch with drop_remainder=True and a batch size that is a multiple of their number ({error})"
        ) from error
