"""The build of velocpy: the Go core, the GPU kernels and the C++ shim, as commands of setuptools."""
