#include "exchange.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "dlpack.h"
#include "velocpy_abi.h"

namespace velocpy {
namespace {

using dlpack::kBfloat;
using dlpack::kBool;
using dlpack::kCuda;
using dlpack::kFloat;
using dlpack::kHost;
using dlpack::kInt;
using dlpack::kMajor;
using dlpack::kPinned;
using dlpack::kUInt;
using dlpack::Managed;
using dlpack::Tensor;
using dlpack::Version;

// DLPackExchangeAPI.
struct Table {
  Version version;
  void* older;
  void* allocate;
  void* to_managed;
  int (*from_managed)(Managed* shown, void** object);
  int (*show)(void* object, Tensor* seen);
  void* current_stream;
};

// A tensor type; kept for the rest of the process.
struct Known {
  PyTypeObject* type;
  bool plain;  // no parameter
  const Table* shows;
  PyCFunction is_neg;
};

const Table* table_behind(py::handle type) {
  const py::object held = py::getattr(type, "__dlpack_c_exchange_api__", py::none());
  if (!PyCapsule_IsValid(held.ptr(), "dlpack_exchange_api")) return nullptr;
  const auto* table = static_cast<const Table*>(PyCapsule_GetPointer(held.ptr(), "dlpack_exchange_api"));
  return table->version.major == kMajor && table->show != nullptr ? table : nullptr;
}

// The C function behind a method without arguments, as a direct call takes two thirds of the time; null for anything else.
PyCFunction function_behind(py::handle method) {
  if (Py_TYPE(method.ptr()) != &PyMethodDescr_Type) return nullptr;
  const PyMethodDef* defined = reinterpret_cast<PyMethodDescrObject*>(method.ptr())->d_method;
  return defined->ml_flags == METH_NOARGS ? defined->ml_meth : nullptr;
}

// Null for all but torch's own types: the values of a subclass may differ from its memory.
const Known* known(PyTypeObject* type) {
  static std::array<Known, 4> met{};  // more than torch has
  for (const Known& k : met) {
    if (k.type == type) return &k;
  }
  const py::handle of(reinterpret_cast<PyObject*>(type));
  const auto module = py::str(of.attr("__module__")).cast<std::string>();
  if (module != "torch" && module != "torch.nn.parameter") return nullptr;
  const Table* table = table_behind(of);
  const PyCFunction is_neg = function_behind(py::getattr(of, "is_neg", py::none()));
  const auto room = std::find_if(met.begin(), met.end(), [](const Known& k) { return k.type == nullptr; });
  if (table == nullptr || is_neg == nullptr || room == met.end()) return nullptr;
  *room = {type, module == "torch", table, is_neg};
  of.inc_ref();
  return &*room;
}

struct Dtype {
  const char* text;
  uint8_t code, bits;
  bool shared;  // torch has dtypes of fewer bits in the same words
};

constexpr std::array<Dtype, 10> kDtypes{{
    {"|i1", kInt, 8, true},
    {"<i2", kInt, 16, false},
    {"<i4", kInt, 32, false},
    {"<i8", kInt, 64, false},
    {"|u1", kUInt, 8, true},
    {"<f2", kFloat, 16, false},
    {"<f4", kFloat, 32, false},
    {"<f8", kFloat, 64, false},
    {"=bfloat16", kBfloat, 16, false},
    {"|b1", kBool, 8, false},
}};

const Dtype* dtype_shown(const Tensor& tensor) {
  if (tensor.lanes != 1) return nullptr;
  for (const Dtype& dtype : kDtypes) {
    if (dtype.code == tensor.code && dtype.bits == tensor.bits) return &dtype;
  }
  return nullptr;
}

const Dtype* dtype_of(const std::string& text) {
  for (const Dtype& known : kDtypes) {
    if (text == known.text) return &known;
  }
  return nullptr;
}

// Whether the tensor's own dtype is the one that the table reports. Queries it only for dtypes that share their words.
bool means(py::handle object, const Dtype& told) {
  static std::array<PyObject*, kDtypes.size()> meant{};  // dtypes of torch are immortal
  static PyObject* name = PyUnicode_InternFromString("dtype");
  if (!told.shared) return true;
  const auto dtype = py::reinterpret_steal<py::object>(PyObject_GetAttr(object.ptr(), name));
  if (!dtype) {
    PyErr_Clear();
    return false;
  }
  PyObject*& known = meant[static_cast<size_t>(&told - kDtypes.data())];
  if (dtype.ptr() == known) return true;
  if (py::module_::import("velocpy.arrays").attr("torch_text")(dtype).cast<std::string>() != told.text) return false;
  known = dtype.inc_ref().ptr();
  return true;
}

// Any tensor may be negated, also one of integers.
bool negated(py::handle object, PyCFunction is_neg) {
  const auto answer = py::reinterpret_steal<py::object>(is_neg(object.ptr(), nullptr));
  if (!answer) {
    PyErr_Clear();
    return true;
  }
  return answer.ptr() != Py_False;
}

// The state of an exported tensor: it keeps the owner of the memory alive.
struct Kept {
  Managed managed;
  std::vector<int64_t> shape, strides;
  PyObject* owner;
};

// The library calls it in any thread, with or without the GIL, when the last tensor over the memory is gone.
void let_go(Managed* managed) {
  auto* kept = static_cast<Kept*>(managed->context);
  if (Py_IsInitialized()) {
    const PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF(kept->owner);
    PyGILState_Release(state);
  }
  delete kept;
}

}  // namespace

bool is_torch(py::handle object) { return known(Py_TYPE(object.ptr())) != nullptr; }

bool is_plain_tensor(py::handle object) {
  const Known* type = known(Py_TYPE(object.ptr()));
  return type != nullptr && type->plain;
}

bool exchange(py::handle object, Exchanged* seen) {
  const Known* type = known(Py_TYPE(object.ptr()));
  if (type == nullptr || negated(object, type->is_neg)) return false;
  Tensor tensor;
  if (type->shows->show(object.ptr(), &tensor) != 0) {
    PyErr_Clear();
    return false;
  }
  const Dtype* dtype = dtype_shown(tensor);
  const bool host = tensor.device_type == kHost || tensor.device_type == kPinned;
  if (dtype == nullptr || !means(object, *dtype) || (!host && tensor.device_type != kCuda)) return false;
  seen->dtype_text = dtype->text;
  seen->place = host ? VELOC_PLACE_HOST : 1 + tensor.device_id;
  seen->data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  seen->ndim = tensor.ndim;
  seen->shape = tensor.shape;
  seen->strides = tensor.strides;
  seen->itemsize = tensor.bits / 8;
  return tensor.data != nullptr;
}

py::object tensor_over(py::handle type, py::object owner, const Shown& shown) {
  const Known* of = known(reinterpret_cast<PyTypeObject*>(type.ptr()));
  const Dtype* dtype = dtype_of(*shown.dtype_text);
  if (of == nullptr || of->shows->from_managed == nullptr || dtype == nullptr) return py::none();
  auto* kept = new Kept{};
  kept->shape = *shown.shape;
  for (int64_t bytes : *shown.strides) kept->strides.push_back(bytes * 8 / dtype->bits);
  kept->owner = owner.release().ptr();
  Tensor tensor{};
  tensor.data = shown.data;
  tensor.device_type = shown.place == VELOC_PLACE_HOST ? kHost : kCuda;
  tensor.device_id = shown.place == VELOC_PLACE_HOST ? 0 : shown.place - 1;
  tensor.ndim = static_cast<int32_t>(kept->shape.size());
  tensor.code = dtype->code;
  tensor.bits = dtype->bits;
  tensor.lanes = 1;
  tensor.shape = kept->shape.data();
  tensor.strides = kept->strides.data();
  kept->managed = {{kMajor, 0}, kept, let_go, 0, tensor};
  void* object = nullptr;
  if (of->shows->from_managed(&kept->managed, &object) != 0) throw py::error_already_set();  // the owner of kept is unknown now: it leaks
  return py::reinterpret_steal<py::object>(static_cast<PyObject*>(object));
}

}  // namespace velocpy
