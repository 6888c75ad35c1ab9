// Converts status codes of the core and errors of the shim to exceptions of velocpy.errors: the only place that makes them.
#pragma once

#include <pybind11/pybind11.h>

#include <functional>
#include <memory>
#include <string>

#include "velocpy_abi.h"

namespace velocpy {

namespace py = pybind11;

struct Layout;

// The subject of a call; the known parts go into the exception.
struct Where {
  py::handle history;  // name
  py::handle key;
  const Layout* layout = nullptr;  // maps the index of a region to its name
  const char* awaits = "";         // the purpose of a wait, one of velocpy.errors.AWAITED
  int32_t tier = VELOC_TIER_NONE;  // the tier whose promise it waits for

  Where waiting_for(const char* awaited, int32_t promised = VELOC_TIER_NONE) const {
    Where waiting = *this;
    waiting.awaits = awaited;
    waiting.tier = promised;
    return waiting;
  }
};

// All of these functions need the GIL and throw a Python exception.
[[noreturn]] void raise(const veloc_error& error, const Where& where);
// For VELOC_E_BELATED; layouts returns the layout of an id, or null.
[[noreturn]] void raise_belated(const veloc_error& error, const std::function<std::shared_ptr<const Layout>(uint64_t)>& layouts);
[[noreturn]] void raise_object(const py::object& exception);
[[noreturn]] void raise_forked();
[[noreturn]] void raise_unavailable(const std::string& text);
[[noreturn]] void raise_timeout(const Where& where, double seconds);
[[noreturn]] void raise_plan_unfinished(const std::string& why, const Where& where);
[[noreturn]] void raise_invalid(const std::string& text);     // a wrong value
[[noreturn]] void raise_wrong_type(const std::string& text);  // a wrong type

// The name of obj's type, for messages.
std::string type_name(py::handle obj);

}  // namespace velocpy
