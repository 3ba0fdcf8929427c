"""Compiled loops: arrays in, arrays out.

Every function here has a slow, obvious twin in ``tests/naive``. Nothing in this package
knows about estimators, labels or files.
"""
