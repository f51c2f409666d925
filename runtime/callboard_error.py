"""The root of all errors of callboard, and how any error is put into words."""

from __future__ import annotations


def describe(error: BaseException) -> str:
    """What an error of anybody's says, with its type, as text that can always be recorded; of a group, what all say."""
    try:
        text = str(error)
    except Exception:  # an error that cannot even say what it is must not break what reports it
        text = "it cannot say what it is"
    said = f"{type(error).__name__}: {text}" if text else type(error).__name__
    if isinstance(error, BaseExceptionGroup):
        said = f"{said}: {'; '.join(dict.fromkeys(map(describe, error.exceptions)))}"
    return said.encode("utf-8", "backslashreplace").decode()


class CallboardError(Exception):
    """The root: catch it for everything that callboard raises of its own."""


class CausedError(CallboardError):
    """An error whose cause is half of what it says: pickle and copy, where exceptions lose it, keep it."""

    def __init__(self, *said: object, cause: BaseException | None = None) -> None:
        super().__init__(*said)
        if cause is not None:
            self.__cause__ = cause

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (*self.args, self.__cause__)

    def because(self, said: str) -> str:
        """What is said, with what the cause says."""
        return said if self.__cause__ is None else f"{said}: {describe(self.__cause__)}"
