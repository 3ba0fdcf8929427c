"""Speed and error of kernelstream beside other programs, on the same stream in one run."""
