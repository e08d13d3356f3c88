# SPDX-License-Identifier: Apache-2.0
"""What goes wrong, one class for each canonical code, with the names that TensorFlow gives them.

A bad argument is a ValueError too, a deadline that passed a TimeoutError, what is not built a NotImplementedError.
"""


class Error(Exception):
    """The base of all. `code` is the canonical code, `message` what was wrong, where, and what to do."""

    code = 2

    def __init__(self, message):
        super().__init__(message)
        self.message = message


OpError = Error  # TensorFlow's name


class VolatileCallWarning(UserWarning):
    """A function of a dataset read a clock or drew a random number while it was traced: one constant for all elements."""


class CancelledError(Error):
    """`stop()` was called, or the job was cancelled."""

    code = 1


class UnknownError(Error):
    """An error whose code is none of these."""

    code = 2


class InvalidArgumentError(Error, ValueError):
    """An argument, a dtype, a shape or a record does not fit. A ValueError."""

    code = 3


class DeadlineExceededError(Error, TimeoutError):
    """A wait took longer than its timeout; nothing is lost. A TimeoutError."""

    code = 4


class NotFoundError(Error):
    """A file, a dataset, a function or a protocol that is not there, by name."""

    code = 5


class AlreadyExistsError(Error):
    """A name that is taken by something else."""

    code = 6


class PermissionDeniedError(Error):
    """A token, a certificate or a file forbids it."""

    code = 7


class ResourceExhaustedError(Error):
    """No memory, slot or quota for it, with both sizes."""

    code = 8


class FailedPreconditionError(Error):
    """It cannot be done in this state: the message says what comes first."""

    code = 9


class AbortedError(Error):
    """Another one came in between; it may be tried again."""

    code = 10


class OutOfRangeError(Error):
    """The end of a sequence, or a step that is not there."""

    code = 11


class UnimplementedError(Error, NotImplementedError):
    """What is not built, or not where it stands. A NotImplementedError."""

    code = 12


class InternalError(Error):
    """A mistake in Penstock: please report it."""

    code = 13


class UnavailableError(Error):
    """A dispatcher, worker or other process cannot be reached; the next call tries again."""

    code = 14


class DataLossError(Error):
    """Data is damaged: file and offset, or the step that is torn."""

    code = 15


class UnauthenticatedError(Error):
    """The other side could not show who it is."""

    code = 16


_BY_CODE = {kind.code: kind for kind in Error.__subclasses__()}


def of_code(code, message):
    """The exception of that canonical code."""
    return _BY_CODE.get(code, UnknownError)(message)
