// The loop over a plan: an iterator of (key, lease), in C++ so that no interruption comes between a restore and its delivery.
#pragma once

#include <pybind11/pybind11.h>

#include "history.h"

namespace velocpy {

class Loop {
 public:
  // history: the History, which it keeps. sources: see Reader. into: None, or a dict or tuple for restore_into, given as what it was
  // made from. streams: None, or Store._streams. written, observe: see History.
  // watchers: observe is called while it holds something.
  Loop(py::object history, py::object sources, bool last, py::object timeout, py::object into, py::object given, py::object streams,
       py::object written, py::object observe, py::object watchers);
  ~Loop() { close(); }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Another for statement over the same loop: a lease given before that nobody has is given back, and its restore is due again.
  void begin() { latest_ = py::object(); }
  // (key, lease or given). The lease before is used by that, or given back: the loop has moved on.
  py::tuple next();
  // Ends the loop. A lease for the last time that was never used, and that nobody else holds, gives its checkpoint back, and its restore
  // is due again.
  void close();

 private:
  py::object owner_;
  History* history_;
  py::object sources_, timeout_, into_, given_, streams_, written_, observe_, watchers_;
  py::object latest_;  // the lease given last, when that was for the last time
  bool last_;
  bool open_ = true;
};

}  // namespace velocpy
