# SPDX-License-Identifier: Apache-2.0
"""Makes Markdown pages of the Python package from its docstrings and signatures, with a heading for each class or function."""
import dataclasses
import functools
import importlib
import importlib.machinery
import importlib.util
import inspect
import re
import sys
import types


FRAMEWORKS = ("torch", "jax", "keras")


class Absent(types.ModuleType):
    """Replaces a module of a framework that is not installed. Each of its attributes is an empty class."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


class AbsentFrameworks:
    """Finds modules of the frameworks that no other finder has found."""

    def find_spec(self, name, path=None, target=None):
        ours = name.split(".")[0] in FRAMEWORKS
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if ours else None

    def create_module(self, spec):
        return Absent(spec.name)

    def exec_module(self, module):
        pass


sys.meta_path.append(AbsentFrameworks())


@dataclasses.dataclass(frozen=True)
class Page:
    """`names`: the names of `module` that the page describes; None: all names that no other page has."""

    name: str
    title: str
    module: str
    names: str = None

    def members(self):
        """Returns (name, object), in the order of `names`, or in alphabetical order."""
        module = importlib.import_module(self.module)
        if self.names is not None:
            return [(name, getattr(module, name)) for name in self.names.split()]
        taken = {name for page in PAGES if page.module == self.module for name in (page.names or "").split()}
        return [
            (name, value)
            for name, value in sorted(vars(module).items())
            if (inspect.isclass(value) or inspect.isroutine(value))
            and not name.startswith("_")
            and name not in taken
            and (getattr(value, "__module__", None) or "penstock").startswith("penstock")
        ]

    def markdown(self):
        """Returns (page, names of classes and Python functions without a docstring). Members of classes that have no
        docstring are left out of the page."""
        prefix = "ps" + self.module.removeprefix("penstock")
        lines, undocumented = [f"# {self.title}", ""], []
        if self.names is None and self.module != "penstock":
            lines += [_prose((importlib.import_module(self.module).__doc__ or "").strip()), ""]
        for name, value in self.members():
            of_operation = inspect.isbuiltin(value)  # docs/expressions.md describes the operations
            if not _doc(value) and not of_operation:
                undocumented.append(f"{prefix}.{name}")
            lines += _class(prefix, name, value) if inspect.isclass(value) else _function(2, f"{prefix}.{name}", value)
        return "\n".join(lines), undocumented


PAGES = (
    Page("dataset", "Datasets", "penstock"),
    Page("reading", "Reading", "penstock", "Iterator Tensor RaggedTensor SparseTensor merge_rank_states"),
    Page("looking", "Looking at data", "penstock", "show Picture progress"),
    Page("spec", "Specs and dtypes", "penstock",
         "TensorSpec RaggedTensorSpec SparseTensorSpec OptionalSpec DType as_dtype"),
    Page("expr", "Traced tensors", "penstock", "Expr"),
    Page("ops", "Operations", "penstock.ops"),
    Page("service", "The data service", "penstock.data.service"),
    Page("distribute", "Replicas", "penstock.distribute"),
    Page("errors", "Errors", "penstock.errors"),
    *(
        Page(name, f"With {name}", f"penstock.{name}")
        for name in FRAMEWORKS
        if importlib.util.find_spec(f"penstock.{name}")
    ),
)


def _class(prefix, name, value):
    lines = [f"## {prefix}.{name}", ""]
    if _is_enum(value):
        lines += [_prose(_doc(value)), "", "One of " + ", ".join(f"`{member}`" for member in value.__members__) + ".", ""]
        return lines
    bases = [base.__name__ for base in value.__bases__ if _has_a_place(base)]
    initialiser = _signature(name, value)
    if initialiser:
        lines += ["```python", f"{prefix}.{initialiser}", "```", ""]
    if bases:
        lines += ["Of " + ", ".join(f"`{base}`" for base in bases) + ".", ""]
    lines += [_prose(_doc(value)), ""]
    for member, what in _own(value).items():
        if not _doc(what):
            continue
        if isinstance(what, property):
            lines += [f"### {name}.{member}", "", _prose(_doc(what)), ""]
        else:
            lines += _function(3, f"{name}.{member}", what)
    return lines


def _own(value):
    """Returns the public members of a class and of its bases that are on no page: first those of the bases, each in the
    order of the source."""
    found = {}
    for base in value.__bases__:
        if base.__module__.startswith("penstock") and not _has_a_place(base):
            found.update(_own(base))
    for name, what in vars(value).items():
        if not name.startswith("_"):
            found[name] = what if isinstance(what, property) else getattr(value, name)
    return {name: what for name, what in found.items() if isinstance(what, property) or inspect.isroutine(what)}


@functools.cache
def _has_a_place(of):
    """Returns whether a class is on one of the pages, or is one of Python's own classes that users know."""
    if not of.__module__.startswith("penstock"):
        return of.__name__ not in ("object", "pybind11_object")
    return any(of is value for page in PAGES for _, value in page.members())


def _function(level, name, value):
    signature = _signature(name.rsplit(".", 1)[-1], value)
    lines = [f"{'#' * level} {name}", ""]
    if signature:
        lines += ["```python", signature, "```", ""]
    return [*lines, _prose(_doc(value)), ""]


def _signature(name, value):
    """Returns the signature of a call; "" if users do not call it."""
    overloads = re.findall(rf"^\d+\. ({name}\(.*)", inspect.getdoc(value) or "", re.M)
    if overloads:
        return "\n".join(map(_as_python, overloads))
    of_core = re.match(rf"{name}\((?:self: [\w.]+(?:, )?)?(.*)", inspect.getdoc(value) or "")
    if of_core and not isinstance(value, types.FunctionType) and not inspect.isclass(value):
        return _as_python(f"{name}({of_core[1]}")
    if inspect.isclass(value) and value.__init__ is object.__init__:
        return ""
    try:
        signature = inspect.signature(value)
    except (ValueError, TypeError):
        return ""
    if "core" in signature.parameters:  # made by functions of the package, not by users
        return ""
    parameters = [p.replace(annotation=p.empty) for p in signature.parameters.values()
                  if p.name != "self" and not p.name.startswith("_")]
    whole = f"{name}{signature.replace(parameters=parameters, return_annotation=signature.empty)}"
    return whole if len(whole) <= 100 else f"{name}(\n" + "".join(f"    {p},\n" for p in parameters) + ")"


def _as_python(signature):
    """Returns a signature that pybind11 wrote, with the names that users see."""
    return re.sub(r"penstock\._core\.(?:ops\.)?|typing\.", "", signature)


def _doc(value):
    """Returns the docstring without pybind11's signature at its start; "" if it is inherited or generated."""
    text = inspect.getdoc(value) or "" if not inspect.isclass(value) else inspect.cleandoc(value.__doc__ or "")
    if dataclasses.is_dataclass(value) and text.startswith(f"{value.__name__}("):
        return ""
    if _is_enum(value):
        return text.split("Members:")[0].strip()
    name = getattr(value, "__name__", None)
    if name and not isinstance(value, types.FunctionType) and not inspect.isclass(value):
        text = re.sub(rf"\A{name}\(.*\n*", "", text)
        text = "" if text.startswith("Overloaded function.") else text
    return text.strip()


def _is_enum(value):
    return inspect.isclass(value) and isinstance(getattr(value, "__members__", None), dict)


def _prose(text):
    """Returns a docstring as Markdown. Special characters outside code and backticks are escaped."""
    def line(words):
        if words.startswith("    "):
            return words
        parts = re.split(r"(`[^`]*`)", words)
        return "".join(part if part.startswith("`") else re.sub(r"([*_<\[\]])", r"\\\1", part) for part in parts)

    return "\n".join(map(line, text.splitlines()))
