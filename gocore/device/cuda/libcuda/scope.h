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

// context 0 leaves the current one alone: some calls need none.
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

// The body of a function that puts work into a stream. That is refused to nobody while others capture, and there are several such calls
// for every checkpoint: the context is all that is seen to.
#define QUEUED(context, call)                 \
  do {                                        \
    struct scope scope;                       \
    result answer = step_in(&scope, context); \
    if (answer != 0) return answer;           \
    answer = velocpy_cuda.call;               \
    step_out(&scope);                         \
    return answer;                            \
  } while (0)

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
