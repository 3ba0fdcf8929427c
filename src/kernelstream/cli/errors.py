"""What went wrong, in one line with the cure."""


class UserError(Exception):
    """Something the user can put right: what is wrong, and what to do about it."""

    def __init__(self, problem: str, cure: str = "") -> None:
        super().__init__(f"{problem}; {cure}" if cure else problem)
