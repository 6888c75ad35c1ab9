/* The table behind the forwarding functions: errors until bind fills in what the installed library has. */
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "table.h"

enum { kFunctionNotFound = 13 }; /* NVML_ERROR_FUNCTION_NOT_FOUND */

static int absent(void) { return kFunctionNotFound; }
static const char *absent_text(int code) {
  (void)code;
  return "NVIDIA's management library is not there, or lacks this function";
}

static const char *const names[] = {
#define NVML_FUNCTION(name) #name,
#include "names.h"
#undef NVML_FUNCTION
};

enum { kFunctions = sizeof names / sizeof names[0] };

__attribute__((visibility("hidden"))) void *velocpy_nvml_table[kFunctions] = {
#define NVML_FUNCTION(name) (void *)absent,
#include "names.h"
#undef NVML_FUNCTION
};

/* nvmlErrorString returns a text, not a number. */
__attribute__((constructor)) static void prepare(void) {
  for (size_t i = 0; i < kFunctions; ++i) {
    if (strcmp(names[i], "nvmlErrorString") == 0) velocpy_nvml_table[i] = (void *)absent_text;
  }
}

int velocpy_nvml_bind(const char *library) {
  void *handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
  if (handle == NULL) return -1;
  int found = 0;
  for (size_t i = 0; i < kFunctions; ++i) {
    void *function = dlsym(handle, names[i]);
    if (function == NULL) continue;
    velocpy_nvml_table[i] = function;
    ++found;
  }
  return found; /* the library stays open for as long as the process: the table points into it */
}
