"""Rules without a factor, where a step has left more points than the cap: which one leaves."""

from kernelstream.core.jit import inline
from kernelstream.core.reduce import (
    FORGET,
    MERGE,
    RANDOM,
    SMALLEST,
    TO_NEIGHBOURS,
    TO_NEWEST,
    UNIFORM,
    WEIGHTED,
    WINDOW,
)
from kernelstream.core.reduce.forget import shrink_and_forget
from kernelstream.core.reduce.merging import merge_two
from kernelstream.core.reduce.removal import remove_oldest, remove_random
from kernelstream.core.reduce.replacement import find_neighbours, note_replaced, replace_one
from kernelstream.core.reduce.smallest import remove_smallest
from kernelstream.core.reduce.unbiased import remove_unbiased


@inline
def remove_one(state, rule, eta, program, point, work, values, norms):
    """One point leaves. The arguments are those of a pass."""
    if rule.reduce == RANDOM:
        remove_random(state)
    elif rule.reduce == WINDOW:
        remove_oldest(state)
    elif rule.reduce == SMALLEST:
        remove_smallest(state)
    elif rule.reduce == UNIFORM or rule.reduce == WEIGHTED:
        remove_unbiased(state, rule, eta, work)
    elif rule.reduce == FORGET:
        shrink_and_forget(state, rule, program, point, work, values, norms)


@inline
def replace(state, rule, program, point, work, values, neighbours, extra):
    """One point leaves, and others change in its stead."""
    if rule.reduce == TO_NEWEST:
        replace_one(state, rule.outputs, values, neighbours)
    elif rule.reduce == TO_NEIGHBOURS:
        find_neighbours(state, program, point, work, neighbours)
        place = replace_one(state, rule.outputs, values, neighbours)
        note_replaced(state, program, point, work, neighbours, place)
    elif rule.reduce == MERGE:
        merge_two(state, rule, program, point, work, extra)
