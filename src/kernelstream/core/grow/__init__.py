"""How a sample becomes part of the function: one file a rule."""

#: Any sample becomes a point; or only what the points do not span, and the factor grows along.
APPEND, SPAN = range(2)
