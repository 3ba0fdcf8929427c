"""How a sample becomes part of the function: one file a rule."""

#: Any sample becomes a point; or only what the points do not span, and the factor grows along; or
#: only what is far enough from their span.
APPEND, SPAN, NOVELTY = range(3)
