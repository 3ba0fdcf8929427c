"""Rows of tables, copied and compared: slices would bring NumPy's errors along, and with them
seconds of compilation.
"""

from kernelstream.core.jit import inner


@inner
def copy_row(source, i, target, j):
    """Row i of ``source`` becomes the beginning of row j of ``target``."""
    for k in range(source.shape[1]):
        target[j, k] = source[i, k]


@inner
def same_row(table, i, j):
    """Whether two rows are equal in every entry."""
    for k in range(table.shape[1]):
        if table[i, k] != table[j, k]:
            return False
    return True
