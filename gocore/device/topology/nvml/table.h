#ifndef VELOCPY_NVML_TABLE_H
#define VELOCPY_NVML_TABLE_H

/* Opens the library and fills in every function that it has; how many, or -1 when there is no such library. */
int velocpy_nvml_bind(const char *library);

#endif
