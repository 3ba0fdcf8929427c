"""What can go wrong while learning, as types to catch."""


class DivergenceError(ArithmeticError):
    """The step size is too large for the data: the weights would overflow.

    The model still holds what it had learned before the offending sample.
    """


class IllConditionedError(ArithmeticError):
    """The kernel matrix of the stored points cannot be factorised in double precision."""


class CapWarning(UserWarning):
    """A cap on points or bytes costs accuracy."""
