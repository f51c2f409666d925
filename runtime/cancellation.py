"""Cancellation: what an error that was raised says about it."""

from __future__ import annotations

import trio


def single_error(error: Exception) -> Exception:
    """A group of one is that one; what failed together stays together."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def while_cancelled(error: BaseException) -> bool:
    """Raised while a Cancelled was on its way: a by-product of the cut, such as a clean-up that failed."""
    seen: set[int] = set()
    above: BaseException | None = error
    while above is not None and id(above) not in seen:
        if isinstance(above, trio.Cancelled):
            return True
        if isinstance(above, BaseExceptionGroup) and any(map(while_cancelled, above.exceptions)):
            return True
        seen.add(id(above))
        above = above.__cause__ or above.__context__
    return False
