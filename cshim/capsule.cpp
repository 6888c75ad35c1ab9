#include "capsule.h"

#include <array>
#include <memory>

#include "dlpack.h"
#include "failure.h"
#include "velocpy_abi.h"

namespace velocpy {
namespace {

using dlpack::Managed;
using dlpack::Tensor;
using dlpack::Unversioned;

constexpr int kMostAxes = 64;  // NumPy's limit, and the shim's

template <class Held>
Held* held(PyObject* capsule, const char* name) {
  return static_cast<Held*>(PyCapsule_GetPointer(capsule, name));
}

// Destructor of the owner of an imported tensor: releases it to its producer.
template <class Held>
void give_back(PyObject* owner) {
  py::error_scope kept;  // a destructor may run while an exception is pending
  auto* tensor = static_cast<Held*>(PyCapsule_GetPointer(owner, nullptr));
  if (tensor != nullptr && tensor->let_go != nullptr) tensor->let_go(tensor);
}

// Renames the capsule, which marks its tensor as taken in DLPack, and returns the new owner.
template <class Held>
py::object take_over(const py::object& capsule, const char* fresh, const char* used) {
  auto* tensor = held<Held>(capsule.ptr(), fresh);
  if (tensor == nullptr) throw py::error_already_set();
  py::object owner = py::reinterpret_steal<py::object>(PyCapsule_New(tensor, nullptr, nullptr));
  if (!owner || PyCapsule_SetName(capsule.ptr(), used) != 0) throw py::error_already_set();
  PyCapsule_SetDestructor(owner.ptr(), give_back<Held>);
  return owner;
}

struct Word {
  const char* text;
  uint8_t code, bits;
};

// Names of dtypes: see velocpy.arrays.dtype_text and torch_text.
constexpr std::array<Word, 23> kWords{{
    {"|i1", dlpack::kInt, 8},      {"<i2", dlpack::kInt, 16},       {"<i4", dlpack::kInt, 32},     {"<i8", dlpack::kInt, 64},
    {"|u1", dlpack::kUInt, 8},     {"<u2", dlpack::kUInt, 16},      {"<u4", dlpack::kUInt, 32},    {"<u8", dlpack::kUInt, 64},
    {"<f2", dlpack::kFloat, 16},   {"<f4", dlpack::kFloat, 32},     {"<f8", dlpack::kFloat, 64},   {"=bfloat16", dlpack::kBfloat, 16},
    {"=float8_e3m4", 7, 8},        {"=float8_e4m3", 8, 8},          {"=float8_e4m3b11fnuz", 9, 8}, {"=float8_e4m3fn", 10, 8},
    {"=float8_e4m3fnuz", 11, 8},   {"=float8_e5m2", 12, 8},         {"=float8_e5m2fnuz", 13, 8},   {"=float8_e8m0fnu", 14, 8},
    {"<c8", dlpack::kComplex, 64}, {"<c16", dlpack::kComplex, 128}, {"|b1", dlpack::kBool, 8},
}};

const Word* word_for(const std::string& text) {
  for (const Word& word : kWords) {
    if (text == word.text) return &word;
  }
  return nullptr;
}

const Word& word_shown(const Tensor& tensor) {
  for (const Word& word : kWords) {
    if (tensor.lanes == 1 && tensor.code == word.code && tensor.bits == word.bits) return word;
  }
  raise_wrong_type("its elements are of DLPack's type " + std::to_string(tensor.code) + " with " + std::to_string(tensor.bits) +
                   " bits and " + std::to_string(tensor.lanes) + " lanes, which cannot be kept.");
}

py::tuple numbers(const int64_t* from, int count) {
  py::tuple all(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) all[static_cast<size_t>(i)] = py::int_(from[i]);
  return all;
}

py::tuple described(py::object owner, const Tensor& tensor, bool writable) {
  if (tensor.ndim < 0 || tensor.ndim > kMostAxes)
    raise_wrong_type("the tensor has " + std::to_string(tensor.ndim) + " axes; 0 to " + std::to_string(kMostAxes) + " can be kept.");
  if (tensor.ndim > 0 && tensor.shape == nullptr) raise_wrong_type("the tensor has axes and no shape.");
  const Word& word = word_shown(tensor);
  const auto at = py::int_(reinterpret_cast<uintptr_t>(tensor.data)) + py::int_(tensor.byte_offset);  // Python integers cannot wrap around
  const py::object strides = tensor.strides == nullptr ? py::object(py::none()) : py::object(numbers(tensor.strides, tensor.ndim));
  return py::make_tuple(std::move(owner), at, tensor.device_type, tensor.device_id, word.text, word.bits / 8,
                        numbers(tensor.shape, tensor.ndim), strides, writable);
}

// The contents of an exported capsule: one of the two structs is in use.
struct Lent {
  Managed managed;
  Unversioned unversioned;
  std::vector<int64_t> shape, strides;
  py::handle owner;
};

// The consumer calls it in any thread, with or without the GIL, when it no longer needs the memory.
template <class Held>
void let_go(Held* tensor) {
  auto* lent = static_cast<Lent*>(tensor->context);
  if (Py_IsInitialized()) {
    const PyGILState_STATE state = PyGILState_Ensure();
    lent->owner.dec_ref();
    PyGILState_Release(state);
  }
  delete lent;
}

// Destructor of an exported capsule whose tensor no consumer has taken.
template <class Held>
void never_taken(PyObject* capsule) {
  py::error_scope kept;
  const char* name = PyCapsule_GetName(capsule);
  const bool fresh = name == dlpack::kNew || name == dlpack::kNewUnversioned;
  if (!fresh) return;
  auto* tensor = held<Held>(capsule, name);
  if (tensor != nullptr) tensor->let_go(tensor);
}

template <class Held>
py::object wrapped(Held* tensor, const char* name) {
  PyObject* capsule = PyCapsule_New(tensor, name, never_taken<Held>);
  if (capsule != nullptr) return py::reinterpret_steal<py::object>(capsule);
  tensor->let_go(tensor);
  throw py::error_already_set();
}

}  // namespace

py::tuple open_capsule(const py::object& capsule) {
  if (PyCapsule_IsValid(capsule.ptr(), dlpack::kNew)) {
    const auto* tensor = held<Managed>(capsule.ptr(), dlpack::kNew);
    const uint32_t major = tensor->version.major;
    py::object owner = take_over<Managed>(capsule, dlpack::kNew, dlpack::kUsed);
    if (major != dlpack::kMajor) raise_wrong_type("the tensor is of version " + std::to_string(major) + " of DLPack, not of version 1.");
    const bool writable = (tensor->flags & (dlpack::kReadOnly | dlpack::kCopied)) == 0;
    return described(std::move(owner), tensor->tensor, writable);
  }
  if (PyCapsule_IsValid(capsule.ptr(), dlpack::kNewUnversioned)) {
    const auto* tensor = held<Unversioned>(capsule.ptr(), dlpack::kNewUnversioned);
    return described(take_over<Unversioned>(capsule, dlpack::kNewUnversioned, dlpack::kUsedUnversioned), tensor->tensor, false);
  }
  raise_wrong_type("__dlpack__ returned a " + type_name(capsule) + " that holds no tensor of DLPack, or one that was taken already.");
}

py::object capsule_over(py::object owner, const Shown& shown, bool versioned, bool read_only) {
  const Word* word = word_for(*shown.dtype_text);
  if (word == nullptr) return py::none();
  auto lent = std::make_unique<Lent>();
  lent->shape = *shown.shape;
  for (int64_t bytes : *shown.strides) lent->strides.push_back(bytes * 8 / word->bits);
  Tensor tensor{};
  tensor.data = shown.data;
  tensor.device_type = shown.place == VELOC_PLACE_HOST ? dlpack::kHost : dlpack::kCuda;
  tensor.device_id = shown.place == VELOC_PLACE_HOST ? 0 : shown.place - 1;
  tensor.ndim = static_cast<int32_t>(lent->shape.size());
  tensor.code = word->code;
  tensor.bits = word->bits;
  tensor.lanes = 1;
  tensor.shape = lent->shape.data();
  tensor.strides = lent->strides.data();
  lent->owner = owner.release();
  Lent* kept = lent.release();
  if (versioned) {
    kept->managed = {{dlpack::kMajor, 0}, kept, let_go<Managed>, read_only ? dlpack::kReadOnly : 0, tensor};
    return wrapped(&kept->managed, dlpack::kNew);
  }
  kept->unversioned = {tensor, kept, let_go<Unversioned>};
  return wrapped(&kept->unversioned, dlpack::kNewUnversioned);
}

}  // namespace velocpy
