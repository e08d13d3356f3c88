# SPDX-License-Identifier: Apache-2.0
"""Writes a pipeline's results as lines of expected.txt, for elements of TensorFlow and of Penstock alike."""
import numpy as np


def scalar(value):
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, (float, np.floating)):
        return f"{value:g}"
    return str(value)


def nested(value):
    if isinstance(value, (list, np.ndarray)):
        if isinstance(value, np.ndarray) and value.ndim == 0:
            return scalar(value.item())
        return "[" + ", ".join(nested(v) for v in value) + "]"
    return scalar(value)


def text(element):
    if isinstance(element, dict):
        return "{" + ", ".join(f"{k}: {text(element[k])}" for k in sorted(element)) + "}"
    if isinstance(element, tuple):
        return "(" + ", ".join(text(e) for e in element) + ")"
    if hasattr(element, "to_list"):  # a RaggedTensor
        return nested(element.to_list())
    return nested(element.numpy())


def lines_of(name, dataset, any_order):
    """Returns the line of the pipeline, and one for each element."""
    elements = [text(element) for element in dataset]
    if any_order:
        elements.sort()
    assert not any("\n" in element for element in elements), name
    head = f"{name} cardinality={int(dataset.cardinality())}{' any_order' if any_order else ''}"
    return [head, *("  " + element for element in elements)]


def spec_text(spec):
    """Returns a nest of specs: dtype and shape of each leaf, * if unknown."""
    if isinstance(spec, dict):
        return "{" + ", ".join(f"{k}: {spec_text(spec[k])}" for k in sorted(spec)) + "}"
    if isinstance(spec, tuple):
        return "(" + ", ".join(map(spec_text, spec)) + ")"
    kind = "ragged " if "Ragged" in type(spec).__name__ else ""
    rank = getattr(spec.shape, "rank", 0 if spec.shape is None else len(spec.shape))
    dims = "*" if rank is None or spec.shape is None else list(spec.shape)
    return f"{kind}{spec.dtype.name}{dims}".replace("None", "*")
