"""The orders of the demo, made up: `python -m callboard.service.make_orders` writes them to orders.csv again.

The rule to know: the text depends on nothing but this module, so a test holds the file to it. Birch improves and Alder
gets worse, so that the answer for one year differs from that for both.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

PATH = Path(__file__).with_name("orders.csv")
"""Where the orders lie."""
HEADER = "date,order,supplier,category,quantity,price,late"
ROWS = 3000
FIRST = date(2024, 1, 1)
DAYS = 731
CATEGORIES = {"bearings": 1840, "cables": 690, "pumps": 21900, "seals": 310, "valves": 5450}
"""Each with the price of a piece, in cents, about which prices move."""
LATE = {"Alder": (4, 19), "Birch": (24, 7), "Cedar": (12, 13), "Dogwood": (15, 14), "Elm": (9, 10)}
"""How many of a hundred deliveries are late: in 2024 and in 2025."""


def orders() -> str:
    """The whole file."""
    return "\n".join([HEADER, *_rows()]) + "\n"


def _rows() -> Iterator[str]:
    draw = _numbers(2025)
    suppliers, categories = list(LATE), list(CATEGORIES)
    for number in range(ROWS):
        day = FIRST + timedelta(days=number * DAYS // ROWS)
        supplier = suppliers[next(draw) % len(suppliers)]
        category = categories[next(draw) % len(categories)]
        quantity = 1 + next(draw) % 40
        cents = CATEGORIES[category] * (80 + next(draw) % 41) // 100
        late = next(draw) % 100 < LATE[supplier][day.year - FIRST.year]
        price = f"{cents // 100}.{cents % 100:02}"
        yield f"{day},{10001 + number},{supplier},{category},{quantity},{price},{'yes' if late else 'no'}"


def _numbers(seed: int) -> Iterator[int]:
    """Pseudo-random numbers that are the same in every version of Python; of a 64-bit state the upper half."""
    state = seed
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        yield state >> 32


if __name__ == "__main__":
    PATH.write_text(orders(), encoding="utf-8", newline="\n")
