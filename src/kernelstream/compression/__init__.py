"""Compressions: how a function with too many points becomes one with fewer."""
