// Opening the driver: once for the process, and never closed.
#ifndef VELOCPY_LIBCUDA_OPEN_H
#define VELOCPY_LIBCUDA_OPEN_H

#include <stddef.h>

// How far opening came.
enum {
  VELOCPY_CUDA_OPEN,
  VELOCPY_CUDA_NO_LIBRARY,   // libcuda.so.1 is nowhere
  VELOCPY_CUDA_UNLOADABLE,   // it is there, and the loader refuses it
  VELOCPY_CUDA_NO_FUNCTION,  // it is there, and lacks one
  VELOCPY_CUDA_OLD,          // it says that it is older than what we need
  VELOCPY_CUDA_REFUSED,      // cuInit failed
};

// velocpy_cuda_open fills the table and starts the driver, and returns how far it came. text receives what the loader said or the
// function's name, number the driver's version or, if it was refused, cuInit's result. Not to be called again once it succeeded.
int velocpy_cuda_open(int oldest, char* text, size_t capacity, int* number);

// What the driver itself reads to choose the devices that it shows; NULL when that is not set.
const char* velocpy_cuda_visible_devices(void);

// The driver's words for a result; "" when it has none, or is not there.
const char* velocpy_cuda_name(int number);
const char* velocpy_cuda_text(int number);

#endif
