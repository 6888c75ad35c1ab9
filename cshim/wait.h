// Waiting outside Go: interruptible by Ctrl-C, bounded by a timeout, with the GIL released.
#pragma once

#include <pybind11/pybind11.h>

#include <chrono>

#include "failure.h"
#include "loader.h"

namespace velocpy {

namespace py = pybind11;

// The moment at which a call gives up.
class Deadline {
 public:
  // None: never. Otherwise seconds; 0 polls once. Raises InvalidArgument for NaN, negative numbers and objects that are not numbers.
  static Deadline from(py::handle timeout);

  bool expired() const;
  // Milliseconds of one sleep: at most a slice, so that a signal that the kernel delivered to a thread of Go is noticed soon.
  int slice() const;
  double seconds() const { return seconds_; }

 private:
  using Clock = std::chrono::steady_clock;
  bool finite_ = false;
  double seconds_ = 0;
  Clock::time_point at_{};
};

// An eventfd of this thread for one live operation. It returns to the thread's pool only when its operation has ended, and is closed
// with the thread. So a number that the core may still write to never refers to another file. A nested use (a signal handler that
// calls the store during a wait) takes another one.
class EventFd {
 public:
  EventFd();
  ~EventFd();
  EventFd(const EventFd&) = delete;
  EventFd& operator=(const EventFd&) = delete;

  int get() const { return fd_; }
  // The core could not be told to stop: this number is never reused.
  void abandon() { fd_ = -1; }
  // Waits for a signal for at most that time, and consumes it. False after the time or an interruption. Call it without the GIL.
  bool wait(int milliseconds) noexcept;

 private:
  int fd_;
};

// Releases the GIL and takes it back. A thread that returns to a finalizing interpreter sleeps for ever, instead of being unwound in
// the middle of C++ frames.
class Nogil {
 public:
  Nogil();
  void end();

 private:
  PyThreadState* state_;  // null in the thread that finalizes the interpreter: it keeps the GIL
};

// Drives an operation that has not ended: returns its last status, OK or an error. On Ctrl-C (any exception of a signal handler) and
// at the deadline it cancels the operation, so that nothing of it remains, and throws. A checkpoint that can no longer be undone
// stays: at the deadline it has succeeded.
int32_t finish(const Core& core, const Where& where, const Deadline& deadline, EventFd& fd, int32_t status, veloc_outcome* out,
               veloc_error* error);

// Starts an operation and drives it to its end; start gets (event_fd, outcome, error) and runs without the GIL.
template <class Start>
void drive(const Core& core, const Where& where, const Deadline& deadline, veloc_outcome* out, veloc_error* error, int32_t* status,
           Start&& start) {
  EventFd fd;
  Nogil nogil;
  *status = start(fd.get(), out, error);
  nogil.end();
  if (*status > 0) *status = finish(core, where, deadline, fd, *status, out, error);
}

}  // namespace velocpy
