"""``python -m kernelstream``: the same as the command ``kernelstream``."""

from kernelstream.cli import main

main()
