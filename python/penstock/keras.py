# SPDX-License-Identifier: Apache-2.0
"""Input for the `fit`, `evaluate` and `predict` of Keras 3, from a dataset of batches.

    data = ps.keras.dataset(ds)               # x, (x, y) or (x, y, sample_weight)
    model.fit(data, epochs=10)

Only this module imports Keras. `ps.keras` imports this module at first use, and so also the framework that Keras uses.
"""

import keras

from . import loader

try:
    from keras.src.trainers.data_adapters.data_adapter import DataAdapter
except ImportError as error:
    raise ImportError(f"ps.keras needs Keras 3 (tested with 3.15), but found {keras.__version__}") from error

# Keras looks at the first batch to build a model; JAX's backend on an accelerator looks at the second too. Then Keras
# starts again from the first batch.
_LOOKED_AT = 2


def dataset(dataset, *, seed=None, commit=None):
    """Returns a Keras data adapter for `dataset`, whose elements are batches: x, or a tuple of x, y and sample
    weights.

    Each epoch is a pass. Batches are tensors of Keras's backend, torch or JAX, as ps.torch and ps.jax make them. The
    number of batches that a reader of a named job gets is not known in advance; an epoch ends when the pass ends.
    """
    return _Adapter(dataset, seed, commit)


class _Adapter(DataAdapter):
    def __init__(self, dataset, seed, commit):
        self._loader = _loader_of(keras.backend.backend())(dataset, seed=seed, commit=commit)
        loader.refuse_strings(dataset, "Keras")
        self._begun = None  # a pass whose first batches may be requested again
        self._gave_some = False

    def state_dict(self):
        """Returns the position after the last batch that Keras took. A callback can store it with the model."""
        return self._loader.state_dict()

    def load_state_dict(self, state):
        """Makes the next epoch continue after `state`."""
        self._loader.load_state_dict(state)
        self._begun = None

    def commit(self, state):
        """Declares a state durable: no reader gets the elements that it contains again."""
        self._loader.commit(state)

    def stop(self):
        """Ends reading."""
        self._loader.stop()

    def get_torch_dataloader(self):
        return self._batches()

    def get_jax_iterator(self):
        return self._batches()

    @property
    def num_batches(self):
        # 0 means unknown. Not None: Keras would then use the first epoch's number of batches for all epochs, so that the
        # remaining batches of longer epochs would not be read.
        return max(self._loader.dataset.cardinality(), 0)

    @property
    def batch_size(self):
        return None

    def _batches(self):
        """Yields the batches of a pass, which begins when its first batch is requested. If Keras has only
        looked at the first batches of a pass, the pass is read again from its start, so no batch of a job is lost."""
        if self._begun is None:
            self._begun = _Begun(iter(self._loader))
        begun = self._begun
        yield from tuple(begun.batches)
        for batch in begun.rest:
            self._gave_some = True
            if begun is self._begun:
                begun.batches.append(batch)
                if len(begun.batches) > _LOOKED_AT or len(begun.batches) == self.num_batches:
                    begun.batches.clear()
                    self._begun = None
            yield batch
        if begun is self._begun:
            self._begun = None
        if not self._gave_some:
            raise ValueError("the pass has no batch: the dataset is empty, or other readers of its job have read it")


class _Begun:
    def __init__(self, rest):
        self.batches = []
        self.rest = rest


def _loader_of(backend):
    if backend == "torch":
        from . import torch

        return torch.DataLoader
    if backend == "jax":
        from . import jax

        return jax.DataLoader
    raise NotImplementedError(
        f"ps.keras supports the backends torch and jax, not {backend}; set KERAS_BACKEND to one of them, or pass Keras "
        "a generator over as_numpy_iterator()"
    )
