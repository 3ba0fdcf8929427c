"""Models of this package in the words of others: ``kernelstream.compat.river``."""
