"""What a user hears of the compilation of kernels."""
