"""Slow, obvious twins of the compiled loops, written straight from the papers."""
