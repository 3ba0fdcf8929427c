"""What makes room: one file a rule.

Rules that keep a factor of the Gram matrix act after every step, the others where a step has left
more points than the cap.
"""

NOTHING, KOMP, RANDOM, WINDOW, FORGET = range(5)
