"""Compiled parts of the automatic model: experts that predict and learn row by row, and mixtures.

Every pass takes rows in order and may be cut anywhere: the result is the same, bit for bit.
"""
