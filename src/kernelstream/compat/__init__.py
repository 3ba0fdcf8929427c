"""Models of this package in the words of others: ``compat.river``, ``compat.mlflow``."""
