// The scope of every call. Our context is current, whichever context the thread has otherwise, and the call does not break a graph that
// another thread captures. Afterwards the state of the thread is restored.
#ifndef VELOCPY_LIBCUDA_SCOPE_H
#define VELOCPY_LIBCUDA_SCOPE_H

#include "table.h"

// Added to a result if the context could not be made current: the call itself was not made.
enum { VELOCPY_CUDA_AT_CONTEXT = 1 << 20 };

// While any thread captures in the driver's default mode, the driver refuses calls such as querying an event to all other threads, and
// they break that capture. The exception is a thread in the relaxed capture mode.
enum { RELAXED = 2 };

struct scope {
  int pushed;
  int mode;
};

static inline result step_in(struct scope* scope, handle context) {
  handle current = 0;
  scope->pushed = 0;
  result failed = velocpy_cuda.cuCtxGetCurrent(&current);
  if (failed == 0 && current != context) {
    failed = velocpy_cuda.cuCtxPushCurrent(context);
    scope->pushed = failed == 0;
  }
  return failed == 0 ? 0 : failed | VELOCPY_CUDA_AT_CONTEXT;
}

static inline void step_out(struct scope* scope) {
  handle ours;
  if (scope->pushed) velocpy_cuda.cuCtxPopCurrent(&ours);
}

// context 0 leaves the current one unchanged: some calls need none.
static inline result enter(struct scope* scope, handle context) {
  scope->pushed = 0;
  result failed = context == 0 ? 0 : step_in(scope, context);
  if (failed != 0) return failed;
  scope->mode = RELAXED;
  if (velocpy_cuda.cuThreadExchangeStreamCaptureMode(&scope->mode) != 0) scope->mode = -1;
  return 0;
}

static inline void leave(struct scope* scope) {
  if (scope->mode >= 0 && scope->mode != RELAXED) velocpy_cuda.cuThreadExchangeStreamCaptureMode(&scope->mode);
  step_out(scope);
}

// The body of a function that queues work in a stream. The driver never refuses such calls during a capture, and there are several per
// checkpoint. So it sets only the context.
#define QUEUED(context, call)                 \
  do {                                        \
    struct scope scope;                       \
    result answer = step_in(&scope, context); \
    if (answer != 0) return answer;           \
    answer = velocpy_cuda.call;               \
    step_out(&scope);                         \
    return answer;                            \
  } while (0)

// The body of a function that makes any other call.
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
