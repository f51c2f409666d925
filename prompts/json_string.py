"""JSON string: what stands in one, and what its escapes stand for."""

from __future__ import annotations

import re

IN_STRING = re.compile(r'(?:[^"\\\x00-\x1f\ud800-\udfff]++|\\["\\/bfnrt]|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4})*+')
"""What stands for itself, and escapes that are whole."""
HALF_ESCAPE = re.compile(r"(?:\\(?:u[0-9a-fA-F]{0,3})?)?")
"""Nothing, or the beginning of an escape of one unit."""
_ESCAPE = re.compile(r"\\(?:u(....)|(.))")
_HEX = re.compile("[0-9a-fA-F]{4}")
_SIGNS = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def unescaped(part: str) -> str:
    """What a part of a string says that `IN_STRING` matches."""
    return _ESCAPE.sub(_sign, part) if "\\" in part else part


def _sign(escape: re.Match[str]) -> str:
    return _SIGNS[escape[2]] if escape[2] else chr(int(escape[1], 16))


def sign_of(escape: str) -> str | None:
    """What it stands for; None while it is not whole. Raises ValueError for what is none, at its first such sign."""
    sign = _SIGNS.get(escape[1]) if len(escape) == 2 else None
    if sign is not None or escape == "\\u":
        return sign
    codes = [int(digits, 16) if _HEX.fullmatch(digits) else -1 for digits in (escape[2:6], escape[8:12])]
    match len(escape), codes:
        case (6, [code, _]) if code >= 0 and not 0xD800 <= code < 0xE000:
            return chr(code)
        case (12, [high, low]) if 0xDC00 <= low < 0xE000:
            return chr(0x10000 + ((high - 0xD800) << 10) + low - 0xDC00)
        case (2 | 6, [code, _]) if not 0xD800 <= code < 0xDC00:
            raise ValueError("half a surrogate pair" if code >= 0xDC00 else f"there is no escape {escape}")
        case (12, _):
            raise ValueError("half a surrogate pair")
    if len(escape) in (7, 8) and not "\\u".startswith(escape[6:]):
        raise ValueError("half a surrogate pair")
    return None


def end_of(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Where a pattern that may be empty ends."""
    found = pattern.match(text, at)
    return found.end() if found is not None else at
