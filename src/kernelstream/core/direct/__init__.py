"""Which coefficients a sample gets: one file a rule.

A rule for single samples (``core/loop.py: sample_pass``) is a function of what the model says of
the sample and of its target; one for blocks (``block_pass``) of all samples of a step.
"""

#: Rules for single samples ...
GRADIENT, PASSIVE_AGGRESSIVE, PASSIVE_AGGRESSIVE_SQUARED = range(3)
#: ... and for blocks, of which the first is the same.
QUASI_GRADIENT, TRANSITION, PULL = range(3, 6)
#: ... and one more for single samples.
ADAPTIVE_MARGIN = 6
