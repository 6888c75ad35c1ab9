#include "open.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"

struct driver_table velocpy_cuda;

typedef result (*describe)(int, const char**);
static describe name_of, text_of;

static const char* described(describe function, int number) {
  const char* text = NULL;
  if (function == NULL || function(number, &text) != 0 || text == NULL) return "";
  return text;
}

const char* velocpy_cuda_name(int number) { return described(name_of, number); }
const char* velocpy_cuda_text(int number) { return described(text_of, number); }

// This is C's environment, not Go's copy: Python's changes arrive here, and the driver reads it.
const char* velocpy_cuda_visible_devices(void) { return getenv("CUDA_VISIBLE_DEVICES"); }

static void say(char* text, size_t capacity, const char* what) { snprintf(text, capacity, "%s", what == NULL ? "" : what); }

// These functions are as old as the driver's interface, so every driver has them.
static int version_of(void* library, int* number) {
  result (*version)(int*);
  *(void**)&version = dlsym(library, "cuDriverGetVersion");
  *(void**)&name_of = dlsym(library, "cuGetErrorName");
  *(void**)&text_of = dlsym(library, "cuGetErrorString");
  return version != NULL && version(number) == 0;
}

static const char* fill(void* library, struct driver_table* table) {
#define VELOCPY_DRIVER_LOOKUP(name, symbol, arguments) \
  *(void**)&table->name = dlsym(library, symbol);      \
  if (table->name == NULL) return symbol;
  VELOCPY_DRIVER_FUNCTIONS(VELOCPY_DRIVER_LOOKUP)
#undef VELOCPY_DRIVER_LOOKUP
  return NULL;
}

// The handle stays open for the life of the process: threads of the driver run in the library.
static void* library;

int velocpy_cuda_open(int oldest, char* text, size_t capacity, int* number) {
  if (library == NULL) library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    say(text, capacity, dlerror());
    return strstr(text, "No such file") != NULL ? VELOCPY_CUDA_NO_LIBRARY : VELOCPY_CUDA_UNLOADABLE;
  }
  if (!version_of(library, number)) {
    say(text, capacity, "cuDriverGetVersion");
    return VELOCPY_CUDA_NO_FUNCTION;
  }
  if (*number < oldest) return VELOCPY_CUDA_OLD;
  struct driver_table table;
  const char* missing = fill(library, &table);
  if (missing != NULL) {
    say(text, capacity, missing);
    return VELOCPY_CUDA_NO_FUNCTION;
  }
  result answer = table.cuInit(0);
  if (answer != 0) {
    *number = answer;
    return VELOCPY_CUDA_REFUSED;
  }
  velocpy_cuda = table;
  return VELOCPY_CUDA_OPEN;
}
