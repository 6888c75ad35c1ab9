// The driver functions that velocpy calls, with our own prototypes. Handles are pointers in the driver and uintptr_t here; device
// addresses have 64 bits in both. A function whose meaning has changed is looked up under the name of the newer version.
#ifndef VELOCPY_LIBCUDA_TABLE_H
#define VELOCPY_LIBCUDA_TABLE_H

#include <stddef.h>
#include <stdint.h>

typedef int result;
typedef uintptr_t handle;
typedef unsigned long long address;

// The location of memory, or of a device that may access it.
struct location {
  int type;
  int id;
};

// The properties for cuMemCreate.
struct property {
  int type;
  int exported_as;
  struct location location;
  void* windows_only;
  unsigned char compression;
  unsigned char remote_access;
  unsigned short usage;
  unsigned char reserved[4];
};

// The access for cuMemSetAccess.
struct access {
  struct location location;
  int flags;
};

// How the copies of cuMemcpyBatchAsync are carried out. The locations are hints for managed memory.
struct copying {
  int order;
  struct location from, to;
  unsigned flags;
};

// A copy, as device.Move has it.
struct move {
  address to, from;
  long long bytes;
};

_Static_assert(sizeof(struct copying) == 24, "copying");
_Static_assert(sizeof(struct move) == 24, "move");
_Static_assert(sizeof(struct location) == 8, "location");
_Static_assert(sizeof(struct property) == 32 && offsetof(struct property, windows_only) == 16, "property");
_Static_assert(sizeof(struct access) == 12, "access");
_Static_assert(sizeof(size_t) == 8 && sizeof(void*) == 8 && sizeof(address) == 8, "64 bits");

#define VELOCPY_DRIVER_FUNCTIONS(F)                                                                                \
  F(cuInit, "cuInit", (unsigned))                                                                                  \
  F(cuDeviceGetCount, "cuDeviceGetCount", (int*))                                                                  \
  F(cuDeviceGet, "cuDeviceGet", (int*, int))                                                                       \
  F(cuDeviceGetName, "cuDeviceGetName", (char*, int, int))                                                         \
  F(cuDeviceGetUuid, "cuDeviceGetUuid_v2", (void*, int))                                                           \
  F(cuDeviceGetAttribute, "cuDeviceGetAttribute", (int*, int, int))                                                \
  F(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (handle*, int))                                          \
  F(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (int))                                              \
  F(cuCtxGetCurrent, "cuCtxGetCurrent", (handle*))                                                                 \
  F(cuCtxPushCurrent, "cuCtxPushCurrent_v2", (handle))                                                             \
  F(cuCtxPopCurrent, "cuCtxPopCurrent_v2", (handle*))                                                              \
  F(cuCtxGetStreamPriorityRange, "cuCtxGetStreamPriorityRange", (int*, int*))                                      \
  F(cuThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode", (int*))                                \
  F(cuMemGetInfo, "cuMemGetInfo_v2", (size_t*, size_t*))                                                           \
  F(cuMemGetAllocationGranularity, "cuMemGetAllocationGranularity", (size_t*, const struct property*, int))        \
  F(cuMemAddressReserve, "cuMemAddressReserve", (address*, size_t, size_t, address, unsigned long long))           \
  F(cuMemAddressFree, "cuMemAddressFree", (address, size_t))                                                       \
  F(cuMemCreate, "cuMemCreate", (unsigned long long*, size_t, const struct property*, unsigned long long))         \
  F(cuMemRelease, "cuMemRelease", (unsigned long long))                                                            \
  F(cuMemMap, "cuMemMap", (address, size_t, size_t, unsigned long long, unsigned long long))                       \
  F(cuMemUnmap, "cuMemUnmap", (address, size_t))                                                                   \
  F(cuMemSetAccess, "cuMemSetAccess", (address, size_t, const struct access*, size_t))                             \
  F(cuMemHostRegister, "cuMemHostRegister_v2", (void*, size_t, unsigned))                                          \
  F(cuMemHostUnregister, "cuMemHostUnregister", (void*))                                                           \
  F(cuMemHostAlloc, "cuMemHostAlloc", (void**, size_t, unsigned))                                                  \
  F(cuMemFreeHost, "cuMemFreeHost", (void*))                                                                       \
  F(cuStreamCreateWithPriority, "cuStreamCreateWithPriority", (handle*, unsigned, int))                            \
  F(cuStreamDestroy, "cuStreamDestroy_v2", (handle))                                                               \
  F(cuStreamIsCapturing, "cuStreamIsCapturing", (handle, int*))                                                    \
  F(cuStreamWaitEvent, "cuStreamWaitEvent", (handle, handle, unsigned))                                            \
  F(cuEventCreate, "cuEventCreate", (handle*, unsigned))                                                           \
  F(cuEventDestroy, "cuEventDestroy_v2", (handle))                                                                 \
  F(cuEventElapsedTime, "cuEventElapsedTime", (float*, handle, handle))                                            \
  F(cuEventRecord, "cuEventRecord", (handle, handle))                                                              \
  F(cuEventQuery, "cuEventQuery", (handle))                                                                        \
  F(cuEventSynchronize, "cuEventSynchronize", (handle))                                                            \
  F(cuMemcpyAsync, "cuMemcpyAsync", (address, address, size_t, handle))                                            \
  F(cuMemcpyBatchAsync, "cuMemcpyBatchAsync_v2",                                                                   \
    (const address*, const address*, const size_t*, size_t, const struct copying*, const size_t*, size_t, handle)) \
  F(cuModuleLoadData, "cuModuleLoadData", (handle*, const void*))                                                  \
  F(cuModuleUnload, "cuModuleUnload", (handle))                                                                    \
  F(cuModuleGetFunction, "cuModuleGetFunction", (handle*, handle, const char*))                                    \
  F(cuLaunchKernel, "cuLaunchKernel",                                                                              \
    (handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle, void**, void**))        \
  F(cuStreamBeginCapture, "cuStreamBeginCapture_v2", (handle, int))                                                \
  F(cuStreamEndCapture, "cuStreamEndCapture", (handle, handle*))                                                   \
  F(cuGraphDestroy, "cuGraphDestroy", (handle))

// One pointer per function, set by velocpy_cuda_open and never changed again.
struct driver_table {
#define VELOCPY_DRIVER_MEMBER(name, symbol, arguments) result(*name) arguments;
  VELOCPY_DRIVER_FUNCTIONS(VELOCPY_DRIVER_MEMBER)
#undef VELOCPY_DRIVER_MEMBER
};

extern struct driver_table velocpy_cuda;

#endif
