"""What makes room: one file a rule.

Rules that keep a factor of the Gram matrix act after every step, the others where a step has left
more points than the cap.
"""

NOTHING, KOMP, RANDOM, WINDOW, FORGET = range(5)
#: Projection on the other points: of those that they span, and of one more where there are too
#: many: the smallest, or the cheapest but the newest.
SPANNED, PROJECT_SMALLEST, PROJECT_CHEAPEST = range(20, 23)
#: One of the old points goes to the newest; or to that and to its own nearest neighbour.
TO_NEWEST, TO_NEIGHBOURS = range(23, 25)
#: Half of them are projected on the others.
HALVE = 25
#: Two become one between them, found by a search or in a table.
MERGE, MERGE_BY_TABLE = range(26, 28)
