#include "failure.h"

#include <algorithm>

#include "layout.h"

namespace velocpy {
namespace {

[[noreturn]] void raise_object(const py::object& exception) {
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
  throw py::error_already_set();
}

py::object or_none(py::handle value) { return value ? py::reinterpret_borrow<py::object>(value) : py::none(); }

[[noreturn]] void raise_as(const char* name, const std::string& text) {
  raise_object(py::module_::import("velocpy.errors").attr(name)(text));
}

}  // namespace

void raise(const veloc_error& error, const Where& where) {
  const auto length = std::clamp<int32_t>(error.text_len, 0, static_cast<int32_t>(sizeof error.text));
  PyObject* text = PyUnicode_DecodeUTF8(error.text, length, "replace");
  if (text == nullptr) throw py::error_already_set();
  py::object region = py::none();
  if (where.layout != nullptr && error.region >= 0) {
    region = where.layout->region_label(static_cast<size_t>(error.region));
  } else if (error.region >= 0) {
    region = py::int_(error.region);
  }
  raise_object(py::module_::import("velocpy.errors")
                   .attr("from_core")(error.status, py::reinterpret_steal<py::object>(text), error.os_errno, error.tier, region,
                                      or_none(where.history), or_none(where.key)));
}

void raise_forked() { raise_object(py::module_::import("velocpy.errors").attr("forked")()); }

void raise_unavailable(const std::string& text) { raise_as("CoreUnavailable", text); }

void raise_timeout(const Where& where, double seconds) {
  raise_object(py::module_::import("velocpy.errors")
                   .attr("timed_out")(seconds, or_none(where.history), or_none(where.key), where.awaits, where.tier));
}

void raise_invalid(const std::string& text) { raise_as("InvalidArgument", text); }

void raise_wrong_type(const std::string& text) { raise_as("InvalidType", text); }

std::string type_name(py::handle obj) { return Py_TYPE(obj.ptr())->tp_name; }

}  // namespace velocpy
