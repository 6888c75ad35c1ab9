#include "wait.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <vector>

namespace velocpy {
namespace {

constexpr int kSliceMilliseconds = 50;                           // a quarter of the promised Ctrl-C latency, as machines are busy
constexpr auto kSignalInterval = std::chrono::milliseconds(40);  // between checks for signals while an operation never waits
constexpr auto kStepAnyway = std::chrono::seconds(1);            // makes a lost wake-up a delay instead of a hang

struct Stock {
  std::vector<int> fds;
  ~Stock() {
    for (int fd : fds) ::close(fd);
  }
};

thread_local Stock t_stock;

bool interpreter_is_ending() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing();
#else
  return _Py_IsFinalizing();
#endif
}

}  // namespace

Deadline Deadline::from(py::handle timeout) {
  Deadline deadline;
  if (timeout.is_none()) return deadline;
  // NumPy converts an array of one element to a float.
  const bool array = !PyFloat_Check(timeout.ptr()) && !PyLong_Check(timeout.ptr()) && py::hasattr(timeout, "__dlpack__");
  if (array || PyBool_Check(timeout.ptr()) || !PyNumber_Check(timeout.ptr())) {
    raise_wrong_type("timeout is " + type_name(timeout) + "; give seconds, or None to wait as long as it takes.");
  }
  const double seconds = PyFloat_AsDouble(timeout.ptr());
  if (seconds == -1.0 && PyErr_Occurred()) {
    const bool too_large = PyErr_ExceptionMatches(PyExc_OverflowError);
    if (!too_large && !PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_ValueError)) throw py::error_already_set();
    PyErr_Clear();
    if (too_large) raise_invalid("timeout is a number too large for seconds; give None to wait as long as it takes.");
    raise_wrong_type("timeout is " + type_name(timeout) + "; give seconds, or None to wait as long as it takes.");
  }
  if (std::isnan(seconds) || seconds < 0) {
    raise_invalid("timeout is " + py::repr(timeout).cast<std::string>() + "; give seconds from 0 up, or None.");
  }
  deadline.seconds_ = seconds;
  constexpr double kForever = 1e9;  // thirty years; more would overflow the clock
  if (seconds < kForever) {
    deadline.finite_ = true;
    deadline.at_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }
  return deadline;
}

bool Deadline::expired() const { return finite_ && Clock::now() >= at_; }

int Deadline::slice() const {
  if (!finite_) return kSliceMilliseconds;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(at_ - Clock::now()).count();
  return static_cast<int>(std::clamp<long>(left, 0, kSliceMilliseconds));
}

EventFd::EventFd() {
  if (!t_stock.fds.empty()) {
    fd_ = t_stock.fds.back();
    t_stock.fds.pop_back();
    return;
  }
  fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd_ < 0) {
    veloc_error error{};
    const std::string text = "no file descriptor left to wait on; raise ulimit -n or close files";
    error.status = VELOC_E_IO;
    error.os_errno = errno;
    error.tier = VELOC_TIER_NONE;
    error.region = -1;
    error.text_len = static_cast<int32_t>(text.copy(error.text, sizeof error.text));
    raise(error, {});
  }
}

EventFd::~EventFd() {
  if (fd_ >= 0) t_stock.fds.push_back(fd_);
}

bool EventFd::wait(int milliseconds) noexcept {
  pollfd entry{fd_, POLLIN, 0};
  // After EINTR the caller checks for signals, whichever thread they were for, and calls again.
  if (::poll(&entry, 1, milliseconds) <= 0) return false;
  uint64_t count;
  return ::read(fd_, &count, sizeof count) == sizeof count;
}

Nogil::Nogil() : state_(interpreter_is_ending() ? nullptr : PyEval_SaveThread()) {}

void Nogil::end() {
  if (state_ == nullptr) return;
  while (interpreter_is_ending()) ::pause();
  PyEval_RestoreThread(state_);
}

int32_t finish(const Core& core, const Where& where, const Deadline& deadline, EventFd& fd, int32_t status, veloc_outcome* out,
               veloc_error* error) {
  using Clock = std::chrono::steady_clock;
  const uint64_t op = out->op;
  auto looked = Clock::now();
  auto stepped = looked;
  const auto cancel = [&] {
    veloc_error ignored;
    veloc_outcome taken{};
    const int32_t cancelled = core.cancel(op, &taken, &ignored);
    if (cancelled != VELOC_OK && cancelled != VELOC_E_STALE) fd.abandon();
    if (taken.ticket == 0) return false;
    *out = taken;
    return true;
  };
  while (true) {
    bool due = true;
    Nogil nogil;
    if (status == VELOC_PENDING) due = fd.wait(deadline.slice()) || Clock::now() - stepped >= kStepAnyway;
    // Not after an interruption or a slice without a signal: on a busy machine a call into Go may take longer than a Ctrl-C may wait.
    if (due) {
      status = core.step(op, out, error);
      stepped = Clock::now();
    }
    nogil.end();
    if (status <= 0) break;
    const auto now = Clock::now();
    if (!due || now - looked >= kSignalInterval) {
      looked = now;
      if (PyErr_CheckSignals() != 0) {
        py::error_already_set interruption;  // fetched before cancel(), which must not run with an exception set
        cancel();
        throw interruption;
      }
    }
    if (deadline.expired()) {
      if (cancel()) return VELOC_OK;
      raise_timeout(where, deadline.seconds());
    }
  }
  return status;
}

}  // namespace velocpy
