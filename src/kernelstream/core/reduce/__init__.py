"""What makes room: one file a rule.

Rules that keep a factor of the Gram matrix act after every step, the others where a step has left
more points than the cap.
"""

NOTHING, KOMP, RANDOM, WINDOW, FORGET = range(5)
#: One leaves, by chance, and the others grow in its stead; the least one leaves; the least one
#: leaves or, by chance, none.
UNIFORM, WEIGHTED, SMALLEST, GROWING = range(5, 9)
#: Projection on the other points: of those that they span, and of one more where there are too
#: many: the smallest, or the cheapest but the newest.
SPANNED, PROJECT_SMALLEST, PROJECT_CHEAPEST = range(9, 12)
#: One of the old points goes to the newest; or to that and to its own nearest neighbour.
TO_NEWEST, TO_NEIGHBOURS = range(12, 14)
#: Half of them are projected on the others.
HALVE = 14
#: Two become one between them.
MERGE = 15
