#include "lease.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <deque>
#include <optional>

#include "capsule.h"
#include "exchange.h"
#include "failure.h"
#include "streams.h"
#include "wait.h"

namespace velocpy {
namespace {

constexpr size_t kFailuresKept = 100;

// From this size on, releasing a lease without the GIL pays off: its own memory takes a while to unmap, and a debugging store reads
// the bytes again. For less it takes microseconds in host memory. On a device a debugging store waits for the caller's streams.
constexpr int64_t kLarge = 1 << 20;

// Guarded by the GIL, which destructors of Python objects hold.
std::deque<std::string>& release_failures() {
  static auto* failures = new std::deque<std::string>;
  return *failures;
}

py::array array_over(py::object base, const py::dtype& dtype, const std::vector<int64_t>& shape, const std::vector<int64_t>& strides,
                     const char* data, bool writable) {
  py::array array(dtype, shape, strides, data, std::move(base));
  if (!writable) py::detail::array_proxy(array.ptr())->flags &= ~py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
  return array;
}

}  // namespace

LeaseMemory::LeaseMemory(const veloc_outcome& outcome, const std::vector<uint64_t>& streams)
    : handle_(outcome.lease),
      base_(static_cast<char*>(outcome.base)),
      slot_bytes_(outcome.slot_bytes),
      meta_length_(outcome.meta_len),
      flags_(outcome.flags),
      place_(outcome.place),
      untaken_((outcome.flags & VELOC_OUT_LAST) != 0) {
  for (uint64_t stream : streams) streams_.add(stream);
}

void LeaseMemory::describe(std::shared_ptr<const Layout> layout, std::vector<int32_t> select) {
  layout_ = std::move(layout);
  select_ = std::move(select);
}

LeaseMemory::~LeaseMemory() {
  const Core* core = core_if_usable();
  if (core == nullptr) return;
  if (place_ != VELOC_PLACE_HOST) streams_.add(Streams::current(place_));
  veloc_error error;
  std::optional<Nogil> nogil;
  if (slot_bytes_ >= kLarge || place_ != VELOC_PLACE_HOST) nogil.emplace();
  const int32_t status = core->lease_release(handle_, streams_.data(), streams_.size(), &error);
  if (nogil) nogil->end();
  if (untaken_ && due_) due_->undo(*core);
  if (status == VELOC_OK) return;
  if (release_failures().size() >= kFailuresKept) release_failures().pop_front();
  const auto length = std::clamp<int32_t>(error.text_len, 0, static_cast<int32_t>(sizeof error.text));
  release_failures().emplace_back(error.text, static_cast<size_t>(length));
}

void LeaseMemory::take() {
  if (!untaken_) return;
  const Core* core = core_if_usable();
  if (core == nullptr) return;  // a forked child may read the arrays that it has; it consumes nothing
  veloc_error error;
  Nogil nogil;
  const int32_t status = core->lease_take(handle_, &error);
  nogil.end();
  if (status < 0) raise(error, {});
  untaken_ = false;
}

void LeaseMemory::used_on(uint64_t stream) {
  take();
  veloc_error error;
  const Core& table = core();
  Nogil nogil;  // a driver call may wait while another thread registers memory
  const int32_t status = table.lease_use(handle_, stream, &error);
  nogil.end();
  if (status < 0) raise(error, {});
  streams_.add(stream);
}

bool LeaseMemory::restored(int32_t region) const { return std::binary_search(select_.begin(), select_.end(), region); }

py::list LeaseMemory::labels() {
  take();
  return names();
}

py::list LeaseMemory::names() const {
  py::list labels;
  for (int32_t region : select_) labels.append(layout_->region_label(static_cast<size_t>(region)));
  return labels;
}

int32_t LeaseMemory::find(py::handle label) {
  take();
  int32_t region = -1;
  if (!layout_->sequence && PyUnicode_Check(label.ptr())) {
    Py_ssize_t size = 0;
    const char* name = PyUnicode_AsUTF8AndSize(label.ptr(), &size);
    if (name == nullptr) {
      PyErr_Clear();
      for (size_t i = 0; i < layout_->regions.size(); ++i) {
        if (layout_->regions[i].name.equal(label)) region = static_cast<int32_t>(i);
      }
    } else {
      const auto found = layout_->index.find(std::string(name, static_cast<size_t>(size)));
      if (found != layout_->index.end()) region = found->second;
    }
  } else if (layout_->sequence && PyIndex_Check(label.ptr())) {
    Py_ssize_t number = PyNumber_AsSsize_t(label.ptr(), PyExc_IndexError);
    if (number == -1 && PyErr_Occurred()) throw py::error_already_set();
    if (number < 0) number += static_cast<Py_ssize_t>(layout_->regions.size());
    if (number >= 0 && number < static_cast<Py_ssize_t>(layout_->regions.size())) region = static_cast<int32_t>(number);
  }
  if (region >= 0 && restored(region)) return region;
  if (layout_->sequence) throw py::index_error("the lease holds no region " + py::repr(label).cast<std::string>());
  PyErr_SetObject(PyExc_KeyError, label.ptr());
  throw py::error_already_set();
}

uint64_t LeaseMemory::address(int32_t region) const {
  return reinterpret_cast<uint64_t>(data(layout_->regions[static_cast<size_t>(region)]));
}

py::array LeaseMemory::fetched(int32_t region) const {
  const RegionLayout& shown = layout_->regions[static_cast<size_t>(region)];
  py::array_t<uint8_t> bytes(shown.nbytes);
  veloc_error error;
  uint8_t* to = bytes.mutable_data();
  const Core& table = core();
  Nogil nogil;
  const int32_t status = table.lease_read(handle_, shown.offset, shown.nbytes, to, &error);
  nogil.end();
  if (status < 0) raise(error, {});
  return bytes;
}

py::tuple LeaseMemory::description(int32_t region) const {
  const RegionLayout& described = layout_->regions[static_cast<size_t>(region)];
  return py::make_tuple(described.dtype_text, described.itemsize, py::tuple(py::cast(described.shape)),
                        py::tuple(py::cast(described.strides)));
}

py::array LeaseMemory::array(py::object self, int32_t region) {
  const auto& lease = self.cast<const LeaseMemory&>();
  const RegionLayout& shown = lease.layout_->regions[static_cast<size_t>(region)];
  const auto dtype = py::reinterpret_borrow<py::dtype>(dtype_of_region(shown));
  return array_over(std::move(self), dtype, shown.shape, shown.strides, lease.data(shown), lease.owned());
}

py::array LeaseMemory::raw(py::object self, int32_t region) {
  const auto& lease = self.cast<const LeaseMemory&>();
  const RegionLayout& shown = lease.layout_->regions[static_cast<size_t>(region)];
  return array_over(std::move(self), py::dtype::of<uint8_t>(), {shown.nbytes}, {1}, lease.data(shown), true);
}

py::object LeaseMemory::tensor(py::object self, int32_t region, py::handle type) {
  const auto& lease = self.cast<const LeaseMemory&>();
  const RegionLayout& shown = lease.layout_->regions[static_cast<size_t>(region)];
  if (shown.nbytes == 0) return py::none();
  return tensor_over(type, std::move(self), {lease.data(shown), lease.place_, &shown.dtype_text, &shown.shape, &shown.strides});
}

py::object LeaseMemory::at_home(py::object self, int32_t region) {
  static PyObject* const tensor_name = PyUnicode_InternFromString("Tensor");
  const auto& lease = self.cast<const LeaseMemory&>();
  const bool on_host = lease.place_ == VELOC_PLACE_HOST;
  if (on_host != (lease.home(region) == VELOC_PLACE_HOST)) return py::none();
  const Library library = lease.library(region);
  if (on_host) return library == Library::torch ? py::object(py::none()) : array(std::move(self), region);
  const py::handle torch = library == Library::torch ? torch_in_use() : py::handle();
  if (!torch) return py::none();
  const auto type = py::reinterpret_steal<py::object>(PyObject_GetAttr(torch.ptr(), tensor_name));
  if (!type) throw py::error_already_set();
  return tensor(std::move(self), region, type);
}

py::object LeaseMemory::capsule(py::object self, int32_t region, bool versioned) {
  auto& lease = self.cast<LeaseMemory&>();
  const RegionLayout& shown = lease.layout_->regions[static_cast<size_t>(region)];
  char* data = shown.nbytes == 0 ? nullptr : lease.data(shown);
  return capsule_over(std::move(self), {data, lease.place_, &shown.dtype_text, &shown.shape, &shown.strides}, versioned, !lease.writable());
}

py::object LeaseMemory::meta() {
  take();
  if (meta_length_ == 0) return py::none();
  std::string bytes(static_cast<size_t>(meta_length_), '\0');
  int64_t length = 0;
  veloc_error error;
  const int32_t status = core().lease_meta(handle_, bytes.data(), meta_length_, &length, &error);
  if (status < 0) raise(error, {});
  return py::bytes(bytes.data(), static_cast<size_t>(std::min(length, meta_length_)));
}

py::object LeaseMemory::structure() {
  take();
  if (!layout_->structure) return py::none();
  return py::bytes(*layout_->structure);
}

std::vector<std::string> take_release_failures() {
  std::vector<std::string> taken(release_failures().begin(), release_failures().end());
  release_failures().clear();
  return taken;
}

}  // namespace velocpy
