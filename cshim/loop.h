// The loop over a plan: an iterator of (key, lease), in C++ so that no interruption comes between a restore and its delivery.
#pragma once

#include <pybind11/pybind11.h>

#include "history.h"

namespace velocpy {

class Loop {
 public:
  // history: the History, which the loop keeps alive. sources: see Reader. into: None, or a dict or tuple for restore_into, as
  // parts; given: the object that into was made from. streams: None, or Store._streams. written, observe: see History. watchers: observe is
  // called while it is not empty.
  Loop(py::object history, py::object sources, bool last, py::object timeout, py::object into, py::object parts, py::object given,
       py::object streams, py::object written, py::object observe, py::object watchers);
  ~Loop() { close(); }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Another for statement over the same loop: an unreferenced earlier lease is released, and its restore is due again.
  void begin() { latest_ = py::object(); }
  // (key, lease or given). The step consumes or releases the earlier lease, as the loop has moved on.
  py::tuple next();
  // Ends the loop. An unused lease of a last restore that no other code holds is released, and its restore is due again.
  void close();

 private:
  py::object owner_;
  History* history_;
  py::object sources_, timeout_, into_, parts_, given_, streams_, written_, observe_, watchers_;
  py::object latest_;  // the latest lease, if it is of a last restore
  bool last_;
  bool open_ = true;
};

}  // namespace velocpy
