#include "calls.h"

#include <string.h>

#include "scope.h"

enum { ON_DEVICE = 1, PINNED_ALLOCATION = 1, READ_AND_WRITE = 3, MINIMAL = 0 };
enum { IN_EVERY_CONTEXT = 1, REACHABLE_BY_KERNELS = 2 };
enum { BESIDE_THE_DEFAULT_STREAM = 1 };
enum { BLOCKS_THE_THREAD = 1, WITHOUT_TIMES = 2 };

static result device_of(int ordinal, int* device) { return velocpy_cuda.cuDeviceGet(device, ordinal); }

result velocpy_devices(int* count) { return velocpy_cuda.cuDeviceGetCount(count); }

result velocpy_device_name(int ordinal, char* name, int capacity) {
  int device;
  result failed = device_of(ordinal, &device);
  return failed ? failed : velocpy_cuda.cuDeviceGetName(name, capacity, device);
}

result velocpy_device_uuid(int ordinal, unsigned char uuid[16]) {
  int device;
  result failed = device_of(ordinal, &device);
  return failed ? failed : velocpy_cuda.cuDeviceGetUuid(uuid, device);
}

result velocpy_device_attribute(int attribute, int ordinal, int* value) {
  int device;
  result failed = device_of(ordinal, &device);
  return failed ? failed : velocpy_cuda.cuDeviceGetAttribute(value, attribute, device);
}

result velocpy_retain_primary(int ordinal, handle* context) {
  int device;
  result failed = device_of(ordinal, &device);
  if (failed) return failed;
  WITHIN(0, cuDevicePrimaryCtxRetain(context, device));
}

result velocpy_release_primary(int ordinal) {
  int device;
  result failed = device_of(ordinal, &device);
  if (failed) return failed;
  WITHIN(0, cuDevicePrimaryCtxRelease(device));
}

result velocpy_memory_info(handle context, size_t* free, size_t* total) { WITHIN(context, cuMemGetInfo(free, total)); }

static struct property memory_of(int device) {
  struct property property;
  memset(&property, 0, sizeof property);
  property.type = PINNED_ALLOCATION;
  property.location.type = ON_DEVICE;
  property.location.id = device;
  return property;
}

result velocpy_granularity(int ordinal, size_t* bytes) {
  int device;
  result failed = device_of(ordinal, &device);
  if (failed) return failed;
  struct property property = memory_of(device);
  return velocpy_cuda.cuMemGetAllocationGranularity(bytes, &property, MINIMAL);
}

result velocpy_reserve(size_t bytes, size_t align, address* at) { WITHIN(0, cuMemAddressReserve(at, bytes, align, 0, 0)); }

result velocpy_free_address(address at, size_t bytes) { WITHIN(0, cuMemAddressFree(at, bytes)); }

result velocpy_create_memory(handle context, int ordinal, size_t bytes, unsigned long long* memory) {
  int device;
  result failed = device_of(ordinal, &device);
  if (failed) return failed;
  struct property property = memory_of(device);
  WITHIN(context, cuMemCreate(memory, bytes, &property, 0));
}

result velocpy_release_memory(unsigned long long memory) { WITHIN(0, cuMemRelease(memory)); }

result velocpy_map(address at, size_t bytes, unsigned long long memory) { WITHIN(0, cuMemMap(at, bytes, 0, memory, 0)); }

result velocpy_unmap(address at, size_t bytes) { WITHIN(0, cuMemUnmap(at, bytes)); }

result velocpy_set_access(address at, size_t bytes, int ordinal) {
  int device;
  result failed = device_of(ordinal, &device);
  if (failed) return failed;
  struct access access = {{ON_DEVICE, device}, READ_AND_WRITE};
  WITHIN(0, cuMemSetAccess(at, bytes, &access, 1));
}

result velocpy_register(handle context, uintptr_t at, size_t bytes) {
  WITHIN(context, cuMemHostRegister((void*)at, bytes, IN_EVERY_CONTEXT | REACHABLE_BY_KERNELS));
}

result velocpy_unregister(handle context, uintptr_t at) { WITHIN(context, cuMemHostUnregister((void*)at)); }

result velocpy_allocate_host(handle context, size_t bytes, void** at) {
  WITHIN(context, cuMemHostAlloc(at, bytes, IN_EVERY_CONTEXT | REACHABLE_BY_KERNELS));
}

result velocpy_free_host(handle context, uintptr_t at) { WITHIN(context, cuMemFreeHost((void*)at)); }

result velocpy_create_stream(handle context, int priority, handle* stream) {
  WITHIN(context, cuStreamCreateWithPriority(stream, BESIDE_THE_DEFAULT_STREAM, priority));
}

result velocpy_priorities(handle context, int* least, int* greatest) { WITHIN(context, cuCtxGetStreamPriorityRange(least, greatest)); }

result velocpy_destroy_stream(handle context, handle stream) { WITHIN(context, cuStreamDestroy(stream)); }

result velocpy_is_capturing(handle context, handle stream, int* status) { QUEUED(context, cuStreamIsCapturing(stream, status)); }

result velocpy_wait_event(handle context, handle stream, handle event) { QUEUED(context, cuStreamWaitEvent(stream, event, 0)); }

result velocpy_create_event(handle context, handle* event, int blocking) {
  WITHIN(context, cuEventCreate(event, (blocking ? BLOCKS_THE_THREAD : 0) | WITHOUT_TIMES));
}

result velocpy_create_timer(handle context, handle* event) { WITHIN(context, cuEventCreate(event, 0)); }

result velocpy_elapsed_time(handle context, handle from, handle to, float* milliseconds) {
  WITHIN(context, cuEventElapsedTime(milliseconds, from, to));
}

result velocpy_destroy_event(handle context, handle event) { WITHIN(context, cuEventDestroy(event)); }

result velocpy_record_event(handle context, handle event, handle stream) { QUEUED(context, cuEventRecord(event, stream)); }

result velocpy_query_event(handle context, handle event) { WITHIN(context, cuEventQuery(event)); }

result velocpy_synchronize_event(handle context, handle event) { WITHIN(context, cuEventSynchronize(event)); }

result velocpy_copy(handle context, address to, address from, size_t bytes, handle stream) {
  QUEUED(context, cuMemcpyAsync(to, from, bytes, stream));
}

// A call for more copies than these leaves the copy engine idle for some µs between any two of them, as single calls do (H200, driver 580).
enum { COPIES_OF_A_CALL = 64 };

static result copy_batch(const struct move* all, size_t count, handle stream) {
  enum { IN_STREAM_ORDER = 1 };
  address to[COPIES_OF_A_CALL], from[COPIES_OF_A_CALL];
  size_t bytes[COPIES_OF_A_CALL], first = 0;
  struct copying copying;
  memset(&copying, 0, sizeof copying);
  copying.order = IN_STREAM_ORDER;
  copying.from.type = copying.to.type = ON_DEVICE;
  for (size_t i = 0; i < count; i++) {
    to[i] = all[i].to;
    from[i] = all[i].from;
    bytes[i] = (size_t)all[i].bytes;
  }
  return velocpy_cuda.cuMemcpyBatchAsync(to, from, bytes, count, &copying, &first, 1, stream);
}

// What a driver refuses to copy by one call is copied by one each, and again where it was queued already: the bytes are the same.
result velocpy_copy_all(handle context, const struct move* all, size_t count, handle stream) {
  struct scope scope;
  result answer = step_in(&scope, context);
  if (answer != 0) return answer;
  for (size_t from = 0; from < count && answer == 0; from += COPIES_OF_A_CALL) {
    size_t n = count - from < COPIES_OF_A_CALL ? count - from : COPIES_OF_A_CALL;
    if (n > 1 && copy_batch(all + from, n, stream) == 0) continue;
    for (size_t i = from; i < from + n && answer == 0; i++)
      answer = velocpy_cuda.cuMemcpyAsync(all[i].to, all[i].from, (size_t)all[i].bytes, stream);
  }
  step_out(&scope);
  return answer;
}

result velocpy_load_module(handle context, const void* image, handle* module) { WITHIN(context, cuModuleLoadData(module, image)); }

result velocpy_unload_module(handle context, handle module) { WITHIN(context, cuModuleUnload(module)); }

result velocpy_function(handle context, handle module, const char* name, handle* function) {
  WITHIN(context, cuModuleGetFunction(function, module, name));
}

// The driver reads as many bytes as the kernel's parameter has, however many the caller passed. So they come from a buffer that is always
// long enough.
result velocpy_launch(handle context, handle function, unsigned blocks, unsigned threads, unsigned shared, handle stream,
                      const void* parameter, size_t bytes) {
  unsigned char copy[VELOCPY_PARAMETER_BYTES] __attribute__((aligned(16)));
  void* parameters[] = {copy};
  if (bytes > sizeof copy) return 1;  // invalid value
  memcpy(copy, parameter, bytes);
  QUEUED(context, cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, shared, stream, parameters, NULL));
}

// In the driver's default mode, which other calls break most easily.
result velocpy_begin_capture(handle context, handle stream) {
  enum { SEEN_BY_ALL_THREADS = 0 };
  WITHIN(context, cuStreamBeginCapture(stream, SEEN_BY_ALL_THREADS));
}

result velocpy_end_capture(handle context, handle stream) {
  handle graph = 0;
  struct scope scope;
  result answer = enter(&scope, context);
  if (answer != 0) return answer;
  answer = velocpy_cuda.cuStreamEndCapture(stream, &graph);
  if (graph != 0) velocpy_cuda.cuGraphDestroy(graph);
  leave(&scope);
  return answer;
}

result velocpy_current(handle* context) { return velocpy_cuda.cuCtxGetCurrent(context); }

result velocpy_push(handle context) { return velocpy_cuda.cuCtxPushCurrent(context); }

result velocpy_pop(void) {
  handle context;
  return velocpy_cuda.cuCtxPopCurrent(&context);
}
