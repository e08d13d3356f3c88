# SPDX-License-Identifier: Apache-2.0
"""Errors: one class for each canonical code, with TensorFlow's names.

InvalidArgumentError is also a ValueError, DeadlineExceededError a TimeoutError, UnimplementedError a
NotImplementedError.
"""


class Error(Exception):
    """The base class of all errors. `code` is the canonical code. `message` names the mistake, its place, and a remedy."""

    code = 2

    def __init__(self, message):
        super().__init__(message)
        self.message = message


OpError = Error  # TensorFlow's name


class VolatileCallWarning(UserWarning):
    """A function of a dataset read a clock or drew a random number while it was traced. The value is the same constant
    for all elements."""


class CancelledError(Error):
    """`stop()` was called, or the job was cancelled."""

    code = 1


class UnknownError(Error):
    """An error whose code has no class here."""

    code = 2


class InvalidArgumentError(Error, ValueError):
    """An argument, a dtype, a shape or a record does not fit. A ValueError."""

    code = 3


class DeadlineExceededError(Error, TimeoutError):
    """A wait took longer than its timeout; no data is lost. A TimeoutError."""

    code = 4


class NotFoundError(Error):
    """A file, a dataset, a function or a protocol of that name does not exist."""

    code = 5


class AlreadyExistsError(Error):
    """The name is already used for something else."""

    code = 6


class PermissionDeniedError(Error):
    """A token, a certificate or a file forbids the operation."""

    code = 7


class ResourceExhaustedError(Error):
    """Memory, slots or a quota are used up; the message names the requested and the available size."""

    code = 8


class FailedPreconditionError(Error):
    """The operation is not possible in this state; the message names the step that must come first."""

    code = 9


class AbortedError(Error):
    """Another operation interfered; try again."""

    code = 10


class OutOfRangeError(Error):
    """The end of a sequence, or a step that does not exist."""

    code = 11


class UnimplementedError(Error, NotImplementedError):
    """A feature that is not built, or not available here. A NotImplementedError."""

    code = 12


class InternalError(Error):
    """A mistake in Penstock; please report it."""

    code = 13


class UnavailableError(Error):
    """A dispatcher, worker or other process cannot be reached; the next call tries again."""

    code = 14


class DataLossError(Error):
    """Data is damaged: the message names the file and offset, or the torn step."""

    code = 15


class UnauthenticatedError(Error):
    """The peer could not authenticate itself."""

    code = 16


_BY_CODE = {kind.code: kind for kind in Error.__subclasses__()}


def of_code(code, message):
    """Returns the exception class of that canonical code."""
    return _BY_CODE.get(code, UnknownError)(message)
