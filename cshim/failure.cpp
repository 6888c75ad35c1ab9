#include "failure.h"

#include <algorithm>

#include "layout.h"

namespace velocpy {
namespace {

py::object or_none(py::handle value) { return value ? py::reinterpret_borrow<py::object>(value) : py::none(); }

py::object text_of(const veloc_error& error) {
  const auto length = std::clamp<int32_t>(error.text_len, 0, static_cast<int32_t>(sizeof error.text));
  PyObject* text = PyUnicode_DecodeUTF8(error.text, length, "replace");
  if (text == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(text);
}

// Name or number of the region in question, or None.
py::object region_of(const veloc_error& error, const Layout* layout) {
  if (error.region < 0) return py::none();
  const auto index = static_cast<size_t>(error.region);
  return layout != nullptr && index < layout->regions.size() ? layout->region_label(index) : py::int_(error.region);
}

[[noreturn]] void raise_as(const char* name, const std::string& text) {
  raise_object(py::module_::import("velocpy.errors").attr(name)(text));
}

}  // namespace

void raise_object(const py::object& exception) {
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
  throw py::error_already_set();
}

void raise(const veloc_error& error, const Where& where) {
  raise_object(py::module_::import("velocpy.errors")
                   .attr("from_core")(error.status, text_of(error), error.os_errno, error.tier, region_of(error, where.layout),
                                      or_none(where.history), or_none(where.key)));
}

void raise_belated(const veloc_error& error, const std::function<std::shared_ptr<const Layout>(uint64_t)>& layouts) {
  const py::dict about = py::module_::import("json").attr("loads")(text_of(error));
  const auto layout = layouts(about["layout"].cast<uint64_t>());
  raise_object(
      py::module_::import("velocpy.errors")
          .attr("belated")(about["history"], about["key"], region_of(error, layout.get()), error.tier, about.attr("get")("unverified")));
}

void raise_forked() { raise_object(py::module_::import("velocpy.errors").attr("forked")()); }

void raise_unavailable(const std::string& text) { raise_as("CoreUnavailable", text); }

void raise_timeout(const Where& where, double seconds) {
  raise_object(py::module_::import("velocpy.errors")
                   .attr("timed_out")(seconds, or_none(where.history), or_none(where.key), where.awaits, where.tier));
}

void raise_plan_unfinished(const std::string& why, const Where& where) {
  raise_object(py::module_::import("velocpy.errors").attr("plan_unfinished")(why, or_none(where.history)));
}

void raise_invalid(const std::string& text) { raise_as("InvalidArgument", text); }

void raise_wrong_type(const std::string& text) { raise_as("InvalidType", text); }

std::string type_name(py::handle obj) { return Py_TYPE(obj.ptr())->tp_name; }

}  // namespace velocpy
