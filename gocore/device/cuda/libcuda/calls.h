// One function per method of cuda.Driver, for calls from Go. Each returns the driver's result. A context is current only for the duration
// of the call. No function keeps a pointer that it was given.
#ifndef VELOCPY_LIBCUDA_CALLS_H
#define VELOCPY_LIBCUDA_CALLS_H

#include "table.h"

result velocpy_devices(int* count);
result velocpy_device_name(int ordinal, char* name, int capacity);
result velocpy_device_uuid(int ordinal, unsigned char uuid[16]);
result velocpy_device_attribute(int attribute, int ordinal, int* value);

result velocpy_retain_primary(int ordinal, handle* context);
result velocpy_release_primary(int ordinal);
result velocpy_memory_info(handle context, size_t* free, size_t* total);

result velocpy_granularity(int ordinal, size_t* bytes);
result velocpy_reserve(size_t bytes, size_t align, address* at);
result velocpy_free_address(address at, size_t bytes);
result velocpy_create_memory(handle context, int ordinal, size_t bytes, unsigned long long* memory);
result velocpy_release_memory(unsigned long long memory);
result velocpy_map(address at, size_t bytes, unsigned long long memory);
result velocpy_unmap(address at, size_t bytes);
result velocpy_set_access(address at, size_t bytes, int ordinal);

result velocpy_register(handle context, uintptr_t at, size_t bytes);
result velocpy_unregister(handle context, uintptr_t at);
result velocpy_allocate_host(handle context, size_t bytes, void** at);
result velocpy_free_host(handle context, uintptr_t at);

result velocpy_create_stream(handle context, int priority, handle* stream);
result velocpy_priorities(handle context, int* least, int* greatest);
result velocpy_destroy_stream(handle context, handle stream);
result velocpy_is_capturing(handle context, handle stream, int* status);
result velocpy_wait_event(handle context, handle stream, handle event);

result velocpy_create_event(handle context, handle* event, int blocking);
result velocpy_create_timer(handle context, handle* event);
result velocpy_elapsed_time(handle context, handle from, handle to, float* milliseconds);
result velocpy_destroy_event(handle context, handle event);
result velocpy_record_event(handle context, handle event, handle stream);
result velocpy_query_event(handle context, handle event);
result velocpy_synchronize_event(handle context, handle event);

result velocpy_copy(handle context, address to, address from, size_t bytes, handle stream);
result velocpy_copy_all(handle context, const struct move* all, size_t count, handle stream);

result velocpy_load_module(handle context, const void* image, handle* module);
result velocpy_unload_module(handle context, handle module);
result velocpy_function(handle context, handle module, const char* name, handle* function);
enum { VELOCPY_PARAMETER_BYTES = 32764 };
result velocpy_launch(handle context, handle function, unsigned blocks, unsigned threads, unsigned shared, handle stream,
                      const void* parameter, size_t bytes);

// For tests of calls beside other users of the driver: graphs that these capture, contexts that they made current.
result velocpy_begin_capture(handle context, handle stream);
result velocpy_end_capture(handle context, handle stream);
result velocpy_current(handle* context);
result velocpy_push(handle context);
result velocpy_pop(void);

#endif
