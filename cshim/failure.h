// Status codes and findings of the shim as exceptions of velocpy.errors: the one place where they are made.
#pragma once

#include <pybind11/pybind11.h>

#include <functional>
#include <memory>
#include <string>

#include "velocpy_abi.h"

namespace velocpy {

namespace py = pybind11;

struct Layout;

// What a call was about; whatever is known goes into the exception.
struct Where {
  py::handle history;  // name
  py::handle key;
  const Layout* layout = nullptr;  // turns the index of a region into its name
  const char* awaits = "";         // what a wait is for, one of velocpy.errors.AWAITED
  int32_t tier = VELOC_TIER_NONE;  // whose promise it waits for

  Where waiting_for(const char* awaited, int32_t promised = VELOC_TIER_NONE) const {
    Where waiting = *this;
    waiting.awaits = awaited;
    waiting.tier = promised;
    return waiting;
  }
};

// All of them need the GIL and leave through a Python exception.
[[noreturn]] void raise(const veloc_error& error, const Where& where);
// VELOC_E_BELATED; layouts gives the layout of an id, or null.
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
