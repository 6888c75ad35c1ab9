// Opens the driver: once per process, and never closes it.
#ifndef VELOCPY_LIBCUDA_OPEN_H
#define VELOCPY_LIBCUDA_OPEN_H

#include <stddef.h>

// The result of opening.
enum {
  VELOCPY_CUDA_OPEN,
  VELOCPY_CUDA_NO_LIBRARY,   // libcuda.so.1 was not found
  VELOCPY_CUDA_UNLOADABLE,   // it exists, and the loader refuses it
  VELOCPY_CUDA_NO_FUNCTION,  // it exists, and lacks a function
  VELOCPY_CUDA_OLD,          // its version is older than required
  VELOCPY_CUDA_REFUSED,      // cuInit failed
};

// velocpy_cuda_open fills the table, initialises the driver, and returns the result. text receives the loader's message or the missing
// function's name. number receives the driver's version or, if it was refused, cuInit's result. It must not be called again after
// success.
int velocpy_cuda_open(int oldest, char* text, size_t capacity, int* number);

// The variable by which the driver itself chooses the visible devices; NULL if it is not set.
const char* velocpy_cuda_visible_devices(void);

// The driver's texts for a result; "" if it has none, or is absent.
const char* velocpy_cuda_name(int number);
const char* velocpy_cuda_text(int number);

#endif
