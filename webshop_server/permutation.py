"""A pseudorandom permutation that needs no list.

* `Permutation` - a permutation of the numbers below a size
"""

from __future__ import annotations

import hashlib

_ROUNDS = 4


class Permutation:
    """A pseudorandom permutation of the numbers 0 to size - 1, computed on access.

    It is a Feistel network (Luby and Rackoff, 1988) over the next power of four; a result outside the range is
    permuted again until it is inside ("cycle walking", Black and Rogaway, 2002).

    Args:
        size: the number of elements, at least 1.
        seed: selects the permutation.

    Example:
        >>> order = Permutation(1000, seed=7)
        >>> sorted(order[i] for i in range(1000)) == list(range(1000)), order.index(order[3])
        (True, 3)
    """

    def __init__(self, size: int, seed: int) -> None:
        self._size = size
        self._bits = max((size - 1).bit_length() + 1, 2) // 2  # of each half
        self._mask = (1 << self._bits) - 1
        self._keys = [f"{seed}/{size}/{number}".encode() for number in range(_ROUNDS)]

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, position: int) -> int:
        """Return the element at a position, 0 to size - 1."""
        while True:
            left, right = position >> self._bits, position & self._mask
            for key in self._keys:
                left, right = right, left ^ self._hash(key, right)
            position = left << self._bits | right
            if position < self._size:
                return position

    def index(self, element: int) -> int:
        """Return the position of an element."""
        while True:
            left, right = element >> self._bits, element & self._mask
            for key in reversed(self._keys):
                left, right = right ^ self._hash(key, left), left
            element = left << self._bits | right
            if element < self._size:
                return element

    def _hash(self, key: bytes, half: int) -> int:
        digest = hashlib.blake2b(half.to_bytes(8, "big"), key=key, digest_size=8).digest()
        return int.from_bytes(digest, "big") & self._mask
