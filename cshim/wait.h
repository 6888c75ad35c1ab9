// Waiting outside Go, in the open: interruptible by Ctrl-C, bounded by a timeout, with the GIL released.
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
  // None: never. Seconds otherwise; 0 asks once. Raises InvalidArgument on NaN, negative numbers and things that are no numbers.
  static Deadline from(py::handle timeout);

  bool expired() const;
  // Milliseconds to sleep in one go: at most a slice, so that a signal which the kernel gave to a thread of Go is noticed soon.
  int slice() const;
  double seconds() const { return seconds_; }

 private:
  using Clock = std::chrono::steady_clock;
  bool finite_ = false;
  double seconds_ = 0;
  Clock::time_point at_{};
};

// An eventfd of this thread for one live operation. It goes back to the thread's stock only when its operation has ended, and is
// closed with the thread: a number the core may still write to never names another file. Nested use (a signal handler that calls the
// store while a wait is under way) takes another one.
class EventFd {
 public:
  EventFd();
  ~EventFd();
  EventFd(const EventFd&) = delete;
  EventFd& operator=(const EventFd&) = delete;

  int get() const { return fd_; }
  // The core could not be told to stop: the number is never used again.
  void abandon() { fd_ = -1; }
  // True when it was signalled within the time given; takes the signal. False after the time or an interruption. Without the GIL.
  bool wait(int milliseconds) noexcept;

 private:
  int fd_;
};

// Releases the GIL and takes it back. A thread that comes back into a dying interpreter sleeps for ever instead of being torn down in
// the middle of C++ frames.
class Nogil {
 public:
  Nogil();
  void end();

 private:
  PyThreadState* state_;  // null in the thread that ends the interpreter: it keeps the GIL
};

// Drives an operation that has not ended: returns its last status, OK or an error. On Ctrl-C (whatever a signal handler raises) and at
// the deadline it cancels the operation, so that nothing of it is left, and leaves through the exception. A checkpoint that cannot be
// undone any more stays: at the deadline it has succeeded.
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
