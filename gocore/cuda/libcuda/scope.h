// What holds around every call: our context is current, whatever the thread belongs to, and a graph that is being captured
// somewhere else in the process does not notice us. Afterwards the thread is as it was.
#ifndef VELOCPY_LIBCUDA_SCOPE_H
#define VELOCPY_LIBCUDA_SCOPE_H

#include "table.h"

// Added to a result when the context could not be made current: the call itself was not made.
enum { VELOCPY_CUDA_AT_CONTEXT = 1 << 20 };

// While any thread captures in the driver's default mode, calls such as querying an event are refused to all others and break
// that capture, unless the thread that makes them has said that it knows what it does.
enum { RELAXED = 2 };

struct scope {
  int pushed;
  int mode;
};

// context 0 leaves the current one alone: some calls need none.
static inline result enter(struct scope* scope, handle context) {
  handle current = 0;
  scope->pushed = 0;
  if (context != 0) {
    result failed = velocpy_cuda.cuCtxGetCurrent(&current);
    if (failed == 0 && current != context) {
      failed = velocpy_cuda.cuCtxPushCurrent(context);
      scope->pushed = failed == 0;
    }
    if (failed != 0) return failed | VELOCPY_CUDA_AT_CONTEXT;
  }
  scope->mode = RELAXED;
  if (velocpy_cuda.cuThreadExchangeStreamCaptureMode(&scope->mode) != 0) scope->mode = -1;
  return 0;
}

static inline void leave(struct scope* scope) {
  handle ours;
  if (scope->mode >= 0 && scope->mode != RELAXED) velocpy_cuda.cuThreadExchangeStreamCaptureMode(&scope->mode);
  if (scope->pushed) velocpy_cuda.cuCtxPopCurrent(&ours);
}

// The body of a function that makes one call.
#define WITHIN(context, call)               \
  do {                                      \
    struct scope scope;                     \
    result answer = enter(&scope, context); \
    if (answer != 0) return answer;         \
    answer = velocpy_cuda.call;             \
    leave(&scope);                          \
    return answer;                          \
  } while (0)

#endif
