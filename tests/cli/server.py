"""What the server from which child processes are forked has ready: imports and machine code."""

import matplotlib  # noqa: F401  an old one warns about a new pyparsing
import pandas  # noqa: F401
import pyarrow.csv  # noqa: F401

import kernelstream.cli.app  # noqa: F401
import tests.cli.child  # noqa: F401
from kernelstream import POLKClassifier

# The machine code is loaded once for all children.
POLKClassifier().partial_fit([[0.0], [1.0]], [0, 1]).predict([[0.0]])
