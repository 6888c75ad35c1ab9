// A libcuda.so.1 for tests: it holds every call against what velocpy should have passed, by the driver's documentation, and answers
// 1 (invalid value) where that differs. VERSION, INIT and COUNT are what it claims; LACKING leaves a function out.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifndef VERSION
#define VERSION 13000
#endif
#ifndef INIT
#define INIT 0
#endif
#ifndef COUNT
#define COUNT 2
#endif

#define API __attribute__((visibility("default"))) int
#define EXPECT(condition) \
  if (!(condition)) return 1
// The calls that need one: ours is current, and the thread has said that it may disturb no capture.
#define CURRENT(context) EXPECT((context) == CONTEXT && depth > 0 && stack[depth - 1] == CONTEXT)
#define INSIDE(context) EXPECT((context) == CONTEXT && depth > 0 && stack[depth - 1] == CONTEXT && mode == 2)

enum { DEVICE = 40 };  // of ordinal 0
#define CONTEXT 0x77665544332211ull
#define STREAM 0x12345678900ull
#define EVENT 0x22345678900ull
#define MODULE 0x32345678900ull
#define FUNCTION 0x42345678900ull
#define MEMORY 0xfedcba9876543210ull
#define ADDRESS 0x7f0012340000ull

static __thread uintptr_t stack[8];
static __thread int depth, mode;
static int retained;

struct location {
  int type, id;
};
struct property {
  int type, handles;
  struct location location;
  void* windows;
  unsigned char rest[8];
};
struct access {
  struct location location;
  int flags;
};

API cuGetErrorName(int e, const char** s) {
  *s = e == 1 ? "FAKE_INVALID" : "FAKE_OTHER";
  return e == 12345 ? 1 : 0;
}
API cuGetErrorString(int e, const char** s) {
  *s = e == 1 ? "not as expected" : "something else";
  return 0;
}
API cuDriverGetVersion(int* v) {
  *v = VERSION;
  return 0;
}
API cuInit(unsigned flags) { return flags == 0 ? INIT : 1; }
API cuDeviceGetCount(int* n) {
  *n = COUNT;
  return 0;
}
API cuDeviceGet(int* d, int i) {
  *d = DEVICE + i;
  return i >= 0 && i < COUNT ? 0 : 101;
}
API cuDeviceGetName(char* s, int n, int d) {
  EXPECT(n >= 100 && d == DEVICE);
  strcpy(s, "Fake 3000");
  return 0;
}
API cuDeviceGetUuid_v2(void* u, int d) {
  EXPECT(d == DEVICE);
  for (int i = 0; i < 16; i++) ((char*)u)[i] = (char)(i + 0xA0);
  return 0;
}
API cuDeviceGetAttribute(int* v, int a, int d) {
  EXPECT(d == DEVICE);
  *v = a == 134 ? -1 : 1000 + a;
  return 0;
}
API cuDevicePrimaryCtxRetain(uintptr_t* c, int d) {
  EXPECT(d == DEVICE);
  retained++;
  *c = CONTEXT;
  return 0;
}
API cuDevicePrimaryCtxRelease_v2(int d) {
  EXPECT(d == DEVICE && retained-- > 0);
  return 0;
}
API cuCtxGetCurrent(uintptr_t* c) {
  *c = depth ? stack[depth - 1] : 0;
  return 0;
}
API cuCtxPushCurrent_v2(uintptr_t c) {
  if (c == 0xBAD) return 201;
  stack[depth++] = c;
  return 0;
}
API cuCtxPopCurrent_v2(uintptr_t* c) {
  EXPECT(depth > 0);
  *c = stack[--depth];
  return 0;
}
API cuThreadExchangeStreamCaptureMode(int* m) {
  int old = mode;
  mode = *m;
  *m = old;
  return 0;
}
API cuCtxGetStreamPriorityRange(int* l, int* g) {
  INSIDE(CONTEXT);
  *l = 0;
  *g = -5;
  return 0;
}
API cuMemGetInfo_v2(size_t* f, size_t* t) {
  INSIDE(CONTEXT);
  *f = 3ull << 33;
  *t = 5ull << 33;
  return 0;
}

static int proper(const struct property* p) {
  static const unsigned char none[8];
  return p->type == 1 && p->handles == 0 && p->location.type == 1 && p->location.id == DEVICE && p->windows == NULL &&
         !memcmp(p->rest, none, 8);
}

API cuMemGetAllocationGranularity(size_t* n, const struct property* p, int option) {
  EXPECT(proper(p) && option == 0);
  *n = 2 << 20;
  return 0;
}
API cuMemAddressReserve(unsigned long long* a, size_t n, size_t align, unsigned long long hint, unsigned long long flags) {
  EXPECT(n == 1ull << 41 && align == 2 << 20 && hint == 0 && flags == 0);
  *a = ADDRESS;
  return 0;
}
API cuMemAddressFree(unsigned long long a, size_t n) {
  EXPECT(a == ADDRESS && n == 1ull << 41);
  return 0;
}
API cuMemCreate(unsigned long long* m, size_t n, const struct property* p, unsigned long long flags) {
  INSIDE(CONTEXT);
  EXPECT(n == 5ull << 32 && proper(p) && flags == 0);
  *m = MEMORY;
  return 0;
}
API cuMemRelease(unsigned long long m) {
  EXPECT(m == MEMORY);
  return 0;
}
API cuMemMap(unsigned long long a, size_t n, size_t offset, unsigned long long m, unsigned long long flags) {
  EXPECT(a == ADDRESS && n == 5ull << 32 && offset == 0 && m == MEMORY && flags == 0);
  return 0;
}
API cuMemUnmap(unsigned long long a, size_t n) {
  EXPECT(a == ADDRESS && n == 5ull << 32);
  return 0;
}
API cuMemSetAccess(unsigned long long a, size_t n, const struct access* d, size_t count) {
  EXPECT(a == ADDRESS && n == 5ull << 32 && count == 1 && d->location.type == 1 && d->location.id == DEVICE && d->flags == 3);
  return 0;
}
static void* registered;
API cuMemHostRegister_v2(void* p, size_t n, unsigned flags) {
  INSIDE(CONTEXT);
  EXPECT(n == 6ull << 32 && flags == 3);
  registered = p;
  return 0;
}
API cuMemHostUnregister(void* p) {
  INSIDE(CONTEXT);
  EXPECT(p == registered);
  return 0;
}
API cuMemHostAlloc(void** p, size_t n, unsigned flags) {
  INSIDE(CONTEXT);
  EXPECT(n == 4096 && flags == 3);
  *p = malloc(n);
  return 0;
}
API cuMemFreeHost(void* p) {
  INSIDE(CONTEXT);
  free(p);
  return 0;
}
API cuStreamCreateWithPriority(uintptr_t* s, unsigned flags, int priority) {
  INSIDE(CONTEXT);
  EXPECT(flags == 1 && priority == -3);
  *s = STREAM;
  return 0;
}
API cuStreamDestroy_v2(uintptr_t s) {
  INSIDE(CONTEXT);
  EXPECT(s == STREAM);
  return 0;
}
API cuStreamIsCapturing(uintptr_t s, int* status) {
  CURRENT(CONTEXT);
  if (s == 1) return 906;
  *status = s == STREAM;
  return 0;
}
API cuStreamWaitEvent(uintptr_t s, uintptr_t e, unsigned flags) {
  CURRENT(CONTEXT);
  EXPECT(s == STREAM && e == EVENT && flags == 0);
  return 0;
}
API cuEventCreate(uintptr_t* e, unsigned flags) {
  INSIDE(CONTEXT);
  EXPECT(flags == 3 || flags == 2 || flags == 0);
  *e = flags == 3 ? EVENT : flags == 2 ? EVENT + 1 : EVENT + 2;
  return 0;
}
API cuEventElapsedTime(float* took, uintptr_t from, uintptr_t to) {
  INSIDE(CONTEXT);
  EXPECT(to == EVENT + 2);
  if (from == EVENT) return 600;
  EXPECT(from == EVENT + 2);
  *took = 1.5f;
  return 0;
}
API cuEventDestroy_v2(uintptr_t e) {
  INSIDE(CONTEXT);
  EXPECT(e == EVENT);
  return 0;
}
API cuEventRecord(uintptr_t e, uintptr_t s) {
  CURRENT(CONTEXT);
  EXPECT(e == EVENT && s == STREAM);
  return 0;
}
API cuEventQuery(uintptr_t e) {
  INSIDE(CONTEXT);
  EXPECT(e == EVENT);
  return 600;
}
API cuEventSynchronize(uintptr_t e) {
  INSIDE(CONTEXT);
  EXPECT(e == EVENT);
  return 0;
}
API cuMemcpyAsync(unsigned long long to, unsigned long long from, size_t n, uintptr_t s) {
  CURRENT(CONTEXT);
  EXPECT(to == ADDRESS && from == ADDRESS + 1 && n == 7ull << 33 && s == STREAM);
  return 0;
}
// REFUSING refuses copies of several ranges by one call.
API cuMemcpyBatchAsync_v2(const unsigned long long* to, const unsigned long long* from, const size_t* bytes, size_t n, const void* copying,
                          const size_t* first, size_t kinds, uintptr_t s) {
  CURRENT(CONTEXT);
  const int* words = copying;
#ifdef REFUSING
  return 801;
#endif
  EXPECT(n <= 64 && kinds == 1 && *first == 0 && words[0] == 1 && words[5] == 0 && s == STREAM);
  for (size_t i = 0; i < n; i++) EXPECT(to[i] == ADDRESS && from[i] == ADDRESS + 1 && bytes[i] == 7ull << 33);
  return 0;
}
API cuModuleLoadData(uintptr_t* m, const void* image) {
  INSIDE(CONTEXT);
  EXPECT(!strcmp(image, "kernels"));
  *m = MODULE;
  return 0;
}
API cuModuleUnload(uintptr_t m) {
  INSIDE(CONTEXT);
  EXPECT(m == MODULE);
  return 0;
}
API cuModuleGetFunction(uintptr_t* f, uintptr_t m, const char* name) {
  INSIDE(CONTEXT);
  EXPECT(m == MODULE && !strcmp(name, "kernel"));
  *f = FUNCTION;
  return 0;
}
#ifndef LACKING
API cuLaunchKernel(uintptr_t f, unsigned x, unsigned y, unsigned z, unsigned tx, unsigned ty, unsigned tz, unsigned shared, uintptr_t s,
                   void** parameters, void** extra) {
  CURRENT(CONTEXT);
  EXPECT(f == FUNCTION && x == 1 << 30 && y == 1 && z == 1 && tx == 256 && ty == 1 && tz == 1 && shared == 1024 && s == STREAM &&
         extra == NULL);
  const unsigned char* p = parameters[0];
  EXPECT(((uintptr_t)p & 15) == 0);
  for (int i = 0; i < 32764; i++) EXPECT(p[i] == (unsigned char)(i * 7));
  return 0;
}
#endif
API cuStreamBeginCapture_v2(uintptr_t s, int m) {
  INSIDE(CONTEXT);
  EXPECT(s == STREAM && m == 0);
  return 0;
}
API cuStreamEndCapture(uintptr_t s, uintptr_t* g) {
  INSIDE(CONTEXT);
  EXPECT(s == STREAM);
  *g = 9;
  return 0;
}
API cuGraphDestroy(uintptr_t g) {
  EXPECT(g == 9);
  return 0;
}
