"""What makes room: one file a rule.

Rules that keep a factor of the Gram matrix act after every step, the others where a step has left
more points than the cap.
"""

NOTHING, KOMP, RANDOM, WINDOW, FORGET = range(5)
#: One leaves, by chance, and the others grow in its stead; the least one leaves; the least one
#: leaves or, by chance, none.
UNIFORM, WEIGHTED, SMALLEST, GROWING = range(5, 9)
