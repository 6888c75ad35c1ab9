"""The build of velocpy: the Go core and the C++ shim, as commands of setuptools."""
