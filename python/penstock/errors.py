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


class CancelledError(Error):
    code = 1


class UnknownError(Error):
    code = 2


class InvalidArgumentError(Error, ValueError):
    code = 3


class DeadlineExceededError(Error, TimeoutError):
    code = 4


class NotFoundError(Error):
    code = 5


class AlreadyExistsError(Error):
    code = 6


class PermissionDeniedError(Error):
    code = 7


class ResourceExhaustedError(Error):
    code = 8


class FailedPreconditionError(Error):
    code = 9


class AbortedError(Error):
    code = 10


class OutOfRangeError(Error):
    code = 11


class UnimplementedError(Error, NotImplementedError):
    code = 12


class InternalError(Error):
    code = 13


class UnavailableError(Error):
    code = 14


class DataLossError(Error):
    code = 15


class UnauthenticatedError(Error):
    code = 16


_BY_CODE = {kind.code: kind for kind in Error.__subclasses__()}


def of_code(code, message):
    """The exception of that canonical code."""
    return _BY_CODE.get(code, UnknownError)(message)
