// The extension module: the shim's interface to Python. Importing it starts no thread.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "capsule.h"
#include "failure.h"
#include "fork.h"
#include "history.h"
#include "layout.h"
#include "lease.h"
#include "loader.h"
#include "loop.h"
#include "probe.h"
#include "store.h"
#include "streams.h"
#include "tree.h"

namespace velocpy {
namespace {

py::bytes core_build_info() {
  const Core& table = core();
  return py::bytes(filled([&](char* buffer, int64_t capacity, int64_t* length, veloc_error* error) {
    return table.build_info(buffer, capacity, length, error);
  }));
}

py::bytes core_in_use() {
  const Core& table = core();
  return py::bytes(filled(
      [&](char* buffer, int64_t capacity, int64_t* length, veloc_error* error) { return table.in_use(buffer, capacity, length, error); }));
}

py::bytes core_log() {
  const Core& table = core();
  return py::bytes(filled([&](char* buffer, int64_t capacity, int64_t* length, veloc_error* error) {
    return table.drain_log(buffer, capacity, length, error);
  }));
}

py::bytes simulate(const std::string& request) {
  const Core& table = core();
  return py::bytes(filled([&](char* buffer, int64_t capacity, int64_t* length, veloc_error* error) {
    return table.simulate(request.data(), static_cast<int64_t>(request.size()), buffer, capacity, length, error);
  }));
}

py::bytes doctor(const std::string& request) {
  const Core& table = core();
  return py::bytes(filled([&](char* buffer, int64_t capacity, int64_t* length, veloc_error* error) {
    return table.doctor(request.data(), static_cast<int64_t>(request.size()), buffer, capacity, length, error);
  }));
}

// The core's minimum: some thousand lines, which make the overhead of a page negligible, and still fit a cache.
constexpr Py_ssize_t kInspectRoom = Py_ssize_t{1} << 20;

py::bytes inspect(const std::string& request, const py::object& data) {
  const Core& table = core();
  py::buffer_info bytes;
  if (!data.is_none()) {
    bytes = py::buffer(data).request(true);
    if (bytes.itemsize != 1 || bytes.ndim != 1 || bytes.strides[0] != 1)
      throw py::type_error("data must be writable bytes, one behind the other");
  }
  PyObject* answer = PyBytes_FromStringAndSize(nullptr, kInspectRoom);
  if (answer == nullptr) throw py::error_already_set();
  int64_t length = 0;
  veloc_error error;
  Nogil nogil;
  const int32_t status = table.inspect(request.data(), static_cast<int64_t>(request.size()), bytes.ptr, static_cast<int64_t>(bytes.size),
                                       PyBytes_AS_STRING(answer), kInspectRoom, &length, &error);
  nogil.end();
  if (status < 0) {
    Py_DECREF(answer);
    raise(error, {});
  }
  if (_PyBytes_Resize(&answer, static_cast<Py_ssize_t>(length)) != 0) throw py::error_already_set();
  return py::reinterpret_steal<py::bytes>(answer);
}

// The regions in the description of a checkpoint, for callers without an open store.
py::list regions_of(const py::bytes& text, int64_t slot) {
  const std::string_view bytes = text;
  const auto layout = read_layout(bytes.data(), bytes.size());
  check_layout(*layout, slot);
  py::list all;
  for (size_t i = 0; i < layout->regions.size(); ++i) {
    const RegionLayout& region = layout->regions[i];
    py::tuple shape(region.shape.size());
    for (size_t axis = 0; axis < region.shape.size(); ++axis) shape[axis] = region.shape[axis];
    all.append(py::make_tuple(layout->sequence ? py::object(py::int_(i)) : region.name, region.dtype_text, shape, region.offset,
                              region.nbytes, static_cast<int>(region.library), region.place));
  }
  return all;
}

// The structure of a tree in such a description; None for a mapping or a sequence.
py::object structure_of(const py::bytes& text) {
  const std::string_view bytes = text;
  const auto layout = read_layout(bytes.data(), bytes.size());
  if (!layout->structure) return py::none();
  return py::bytes(*layout->structure);
}

void test_panic(int where) {
  veloc_error error;
  if (core().test_panic(where, &error) < 0) raise(error, {});
}

py::dict shim_info() {
  py::dict info;
  info["abi_version"] = VELOC_ABI_VERSION;
  info["compiler"] = __VERSION__;
  info["pybind11"] =
      PYBIND11_TOSTRING(PYBIND11_VERSION_MAJOR) "." PYBIND11_TOSTRING(PYBIND11_VERSION_MINOR) "." PYBIND11_TOSTRING(PYBIND11_VERSION_PATCH);
  info["python"] = PY_VERSION;
  return info;
}

py::dict status_codes() {
  py::dict codes;
  codes["OK"] = static_cast<int>(VELOC_OK);
  codes["PENDING"] = static_cast<int>(VELOC_PENDING);
  codes["AGAIN"] = static_cast<int>(VELOC_AGAIN);
  codes["INVALID"] = static_cast<int>(VELOC_E_INVALID);
  codes["NOT_FOUND"] = static_cast<int>(VELOC_E_NOT_FOUND);
  codes["CLOSED"] = static_cast<int>(VELOC_E_CLOSED);
  codes["STALE"] = static_cast<int>(VELOC_E_STALE);
  codes["TIER_FULL"] = static_cast<int>(VELOC_E_TIER_FULL);
  codes["IO"] = static_cast<int>(VELOC_E_IO);
  codes["CORRUPT"] = static_cast<int>(VELOC_E_CORRUPT);
  codes["DROPPED"] = static_cast<int>(VELOC_E_DROPPED);
  codes["CHANGED"] = static_cast<int>(VELOC_E_CHANGED);
  codes["POISONED"] = static_cast<int>(VELOC_E_POISONED);
  codes["FORKED"] = static_cast<int>(VELOC_E_FORKED);
  codes["TIMEOUT"] = static_cast<int>(VELOC_E_TIMEOUT);
  codes["UNAVAILABLE"] = static_cast<int>(VELOC_E_UNAVAILABLE);
  codes["INTERNAL"] = static_cast<int>(VELOC_E_INTERNAL);
  codes["DURABILITY"] = static_cast<int>(VELOC_E_DURABILITY);
  codes["DEVICE_LOST"] = static_cast<int>(VELOC_E_DEVICE_LOST);
  codes["BELATED"] = static_cast<int>(VELOC_E_BELATED);
  codes["LOCKED"] = static_cast<int>(VELOC_E_LOCKED);
  codes["NO_STORE"] = static_cast<int>(VELOC_E_NO_STORE);
  codes["LATER"] = static_cast<int>(VELOC_E_LATER);
  codes["DAMAGED"] = static_cast<int>(VELOC_E_DAMAGED);
  codes["READ_ONLY"] = static_cast<int>(VELOC_E_READ_ONLY);
  codes["LOST"] = static_cast<int>(VELOC_E_LOST);
  return codes;
}

void bind_functions(py::module_& m) {
  m.def("load", &load, py::arg("path"), py::arg("config"));
  m.def("startable_threads", &startable_threads, py::arg("count"));
  m.def("loaded", &loaded);
  m.def("loaded_from", &loaded_from);
  m.def("forked", &forked);
  m.def("core_build_info", &core_build_info);
  m.def("core_in_use", &core_in_use);
  m.def("core_log", &core_log);
  m.def("simulate", &simulate, py::arg("request"));
  m.def("doctor", &doctor, py::arg("request"));
  m.def("inspect", &inspect, py::arg("request"), py::arg("data") = py::none());
  m.def("regions_of", &regions_of, py::arg("layout"), py::arg("slot_bytes"));
  m.def("structure_of", &structure_of, py::arg("layout"));
  m.def("release_failures", &take_release_failures);
  m.def("test_panic", &test_panic, py::arg("where"));
  m.def("shim_info", &shim_info);
  m.def("status_codes", &status_codes);
  m.def("open_capsule", &open_capsule, py::arg("capsule"));
  m.def("extend_plan", &extend_plan, py::arg("plan"), py::arg("iterator"), py::arg("last"));
  m.def("flatten", &flatten, py::arg("tree"));
  m.def("is_written_as_it_is", &is_written_as_it_is, py::arg("state"));
  m.def(
      "streams_reading",
      [](py::handle stream, const std::vector<int32_t>& places) { return py::tuple(py::cast(Streams::reading(stream, places).handles())); },
      py::arg("stream"), py::arg("places"));
  m.def("readable", &readable, py::arg("address"), py::arg("nbytes"));
}

void bind_store(py::module_& m) {
  py::class_<Store, std::shared_ptr<Store>>(m, "Store")
      .def(py::init<const std::string&>(), py::arg("config"))
      .def("close", &Store::close, py::arg("timeout"))
      .def(
          "wait", [](Store& store, int32_t tier, py::handle timeout) { store.wait({}, 0, 0, tier, timeout); }, py::arg("tier"),
          py::arg("timeout"))
      .def("resize", &Store::resize, py::arg("budgets"), py::arg("timeout"))
      .def("stats", &Store::stats)
      .def("timeline", &Store::timeline, py::arg("clear"))
      .def("ticket", &Store::ticket, py::arg("ticket"))
      .def(
          "history",
          [](std::shared_ptr<Store> store, py::str name, py::object lease_type, bool debug, int64_t lookahead,
             std::vector<int32_t> places) {
            return std::make_unique<History>(std::move(store), std::move(name), std::move(lease_type), debug, lookahead, std::move(places));
          },
          py::arg("name"), py::arg("lease_type"), py::arg("debug"), py::arg("lookahead"), py::arg("places"))
      .def("kept_sources", [](Store& store) { return store.sources().size(); });
}

void bind_history(py::module_& m) {
  py::class_<History>(m, "History")
      .def("checkpoint", &History::checkpoint, py::arg("key"), py::arg("regions"), py::arg("copy"), py::arg("meta"), py::arg("tier"),
           py::arg("timeout"), py::arg("stream") = py::none(), py::arg("structure") = py::none())
      .def("checkpoint_many", &History::checkpoint_many, py::arg("items"), py::arg("copy"), py::arg("tier"), py::arg("timeout"),
           py::arg("stream"), py::arg("captured"))
      .def("restore", &History::restore, py::arg("key"), py::arg("regions"), py::arg("last"), py::arg("peek"), py::arg("timeout"),
           py::arg("stream") = py::none(), py::arg("observe") = py::none())
      .def("restore_into", &History::restore_into, py::arg("key"), py::arg("regions"), py::arg("into"), py::arg("parts"), py::arg("last"),
           py::arg("timeout"), py::arg("stream"), py::arg("written"), py::arg("observe"), py::arg("peek") = false)
      .def("read", &History::read, py::arg("key"), py::arg("layout"), py::arg("region"), py::arg("offset"), py::arg("to"),
           py::arg("timeout"))
      .def("drop", &History::drop, py::arg("key"))
      .def("clear", &History::clear, py::arg("sources"))
      .def("retain", &History::retain, py::arg("last"), py::arg("every"), py::arg("named"), py::arg("keys"), py::arg("best"), py::arg("by"),
           py::arg("largest"))
      .def("reduce", &History::reduce, py::arg("json"))
      .def("course", &History::course)
      .def("size", &History::size)
      .def("keys", &History::keys)
      .def("known", &History::known)
      .def("lookup", &History::lookup, py::arg("key"))
      .def("describe", &History::describe, py::arg("key"))
      .def("read_hints", &History::read_hints, py::arg("sources"))
      .def("hint_clear", &History::hint_clear, py::arg("sources"))
      .def("hint_anew", &History::hint_anew)
      .def("prefetch", &History::prefetch)
      .def("wait", &History::wait, py::arg("tier"), py::arg("timeout"))
      .def("wait_ticket", &History::wait_ticket, py::arg("ticket"), py::arg("key"), py::arg("tier"), py::arg("timeout"))
      .def("corrupt", &History::corrupt, py::arg("key"), py::arg("tier"), py::arg("offset"));
}

void bind_lease(py::module_& m) {
  py::class_<LeaseMemory>(m, "LeaseMemory")
      .def("take", &LeaseMemory::take)
      .def_property_readonly("writable", &LeaseMemory::writable)
      .def("labels", &LeaseMemory::labels)
      .def("names", &LeaseMemory::names)
      .def("find", &LeaseMemory::find, py::arg("label"))
      .def(
          "library", [](const LeaseMemory& lease, int32_t region) { return static_cast<int>(lease.library(region)); }, py::arg("region"))
      .def("description", &LeaseMemory::description, py::arg("region"))
      .def(
          "array", [](py::object self, int32_t region) { return LeaseMemory::array(std::move(self), region); }, py::arg("region"))
      .def(
          "raw", [](py::object self, int32_t region) { return LeaseMemory::raw(std::move(self), region); }, py::arg("region"))
      .def(
          "tensor", [](py::object self, int32_t region, py::handle kind) { return LeaseMemory::tensor(std::move(self), region, kind); },
          py::arg("region"), py::arg("kind"))
      .def(
          "capsule",
          [](py::object self, int32_t region, bool versioned) { return LeaseMemory::capsule(std::move(self), region, versioned); },
          py::arg("region"), py::arg("versioned"))
      .def(
          "at_home", [](py::object self, int32_t region) { return LeaseMemory::at_home(std::move(self), region); }, py::arg("region"))
      .def_property_readonly("place", &LeaseMemory::place)
      .def("home", &LeaseMemory::home, py::arg("region"))
      .def("used_on", &LeaseMemory::used_on, py::arg("stream"))
      .def("address", &LeaseMemory::address, py::arg("region"))
      .def("nbytes", &LeaseMemory::nbytes, py::arg("region"))
      .def("fetched", &LeaseMemory::fetched, py::arg("region"))
      .def("meta", &LeaseMemory::meta)
      .def("structure", &LeaseMemory::structure)
      .def_property_readonly("sequence", &LeaseMemory::sequence)
      .def("regions", &LeaseMemory::restored_regions);
}

void bind_loop(py::module_& m) {
  py::class_<Loop>(m, "Loop")
      .def(py::init<py::object, py::object, bool, py::object, py::object, py::object, py::object, py::object, py::object, py::object,
                    py::object>(),
           py::arg("history"), py::arg("sources"), py::arg("last"), py::arg("timeout"), py::arg("into"), py::arg("parts"), py::arg("given"),
           py::arg("streams"), py::arg("written"), py::arg("observe"), py::arg("watchers"))
      .def("__iter__",
           [](py::object self) {
             self.cast<Loop&>().begin();
             return self;
           })
      .def("__next__", &Loop::next)
      .def("close", &Loop::close);
}

constexpr const char* kOneInterpreter =
    "velocpy works in the main interpreter alone, not in a sub-interpreter: the runtime of its core belongs to the whole process. Use "
    "threads, or processes started with the method 'spawn' or 'forkserver'.";

bool in_main_interpreter() { return PyInterpreterState_Get() == PyInterpreterState_Main(); }

}  // namespace
}  // namespace velocpy

namespace py = pybind11;

// pybind11's entry hangs in a sub-interpreter of Python 3.11 and earlier, so this one checks first, and is the exported one.
#undef PYBIND11_EXPORT
#define PYBIND11_EXPORT
PYBIND11_MODULE(core_of_main_interpreter, m) {
  // Python 3.13 and later call the entry in the main interpreter, whichever interpreter imports.
  if (!velocpy::in_main_interpreter()) throw py::import_error(velocpy::kOneInterpreter);
  velocpy::watch_forks();
  velocpy::bind_functions(m);
  velocpy::bind_store(m);
  velocpy::bind_history(m);
  velocpy::bind_lease(m);
  velocpy::bind_loop(m);
}

extern "C" __attribute__((visibility("default"))) PyObject* PyInit__core() {
  if (velocpy::in_main_interpreter()) return PyInit_core_of_main_interpreter();
  PyErr_SetString(PyExc_ImportError, velocpy::kOneInterpreter);
  return nullptr;
}
