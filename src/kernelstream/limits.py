"""How large a number may be."""

#: Larger entries are refused: their squares, summed, would overflow.
LARGEST_ENTRY = 1e150
