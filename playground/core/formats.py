"""How numbers are stored: plainly, or few bits each in groups that share a scale and a zero.

Knows vectors by their length alone.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Format:
    """`bits` a number; every `group` numbers of a vector share `group_bytes` more (0: nothing is shared)."""

    name: str
    bits: int
    group: int = 0
    group_bytes: int = 0

    def vector_bytes(self, numbers: int) -> int:
        """Bytes of a vector of so many numbers, begun groups and bytes counted whole."""
        groups = -(-numbers // self.group) if self.group else 0
        return -(-numbers * self.bits // 8) + groups * self.group_bytes

    @property
    def bits_with_overhead(self) -> float:
        """Bits a number of a long vector takes with its part of what is shared."""
        return self.bits + (8 * self.group_bytes / self.group if self.group else 0.0)


INT4 = Format("int4", 4, group=64, group_bytes=4)
"""Four bits and, for every 64 numbers, a 16-bit scale and a 16-bit zero: the groups of transformers'
quantised cache (`QuantizedLayer`, q_group_size 64, after KIVI, Liu et al. 2024, arXiv:2402.02750)."""

FORMATS = {
    found.name: found
    for found in (
        Format("float32", 32), Format("bfloat16", 16), Format("float16", 16),
        Format("float8_e4m3fn", 8), Format("float8_e5m2", 8), Format("int8", 8), INT4,
    )
}  # fmt: skip
