#include "exchange.h"

#include <array>
#include <string>
#include <unordered_map>

#include "velocpy_abi.h"

namespace velocpy {
namespace {

// DLPack's structs, as far as they are used: dmlc/dlpack, include/dlpack/dlpack.h, version 1.3.
struct Version {
  uint32_t major, minor;
};

struct Tensor {
  void* data;
  int32_t device_type, device_id;
  int32_t ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};

struct Table {
  Version version;
  void* older;
  void* allocate;
  void* to_managed;
  void* from_managed;
  int (*show)(void* object, Tensor* seen);
  void* current_stream;
};

enum { kInt = 0, kUInt = 1, kFloat = 2, kBfloat = 4, kBool = 6 };
enum { kHost = 1, kCuda = 2, kPinned = 3 };
constexpr uint32_t kMajor = 1;

struct Known {
  PyTypeObject* type;
  const Table* table;
};

// The table of a type of torch's own: a subclass may show something else than its memory.
const Table* table_of(PyTypeObject* type) {
  static std::array<Known, 4> known{};
  for (const Known& k : known) {
    if (k.type == type) return k.table;
  }
  const auto of = py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(type));
  const auto module = py::str(of.attr("__module__")).cast<std::string>();
  if (module != "torch" && module != "torch.nn.parameter") return nullptr;
  const Table* table = nullptr;
  const py::object held = py::getattr(of, "__dlpack_c_exchange_api__", py::none());
  if (PyCapsule_IsValid(held.ptr(), "dlpack_exchange_api")) {
    table = static_cast<const Table*>(PyCapsule_GetPointer(held.ptr(), "dlpack_exchange_api"));
    if (table->version.major != kMajor || table->show == nullptr) table = nullptr;
  }
  for (Known& k : known) {
    if (k.type != nullptr) continue;
    Py_INCREF(type);  // the entry is for ever
    k = {type, table};
    break;
  }
  return table;
}

const char* dtype_text(uint8_t code, uint8_t bits) {
  switch (code << 8 | bits) {
    case kInt << 8 | 8:
      return "|i1";
    case kInt << 8 | 16:
      return "<i2";
    case kInt << 8 | 32:
      return "<i4";
    case kInt << 8 | 64:
      return "<i8";
    case kUInt << 8 | 8:
      return "|u1";
    case kFloat << 8 | 16:
      return "<f2";
    case kFloat << 8 | 32:
      return "<f4";
    case kFloat << 8 | 64:
      return "<f8";
    case kBfloat << 8 | 16:
      return "=bfloat16";
    case kBool << 8 | 8:
      return "|b1";
    default:
      return nullptr;
  }
}

// Whether the tensor's own dtype is the one that the table tells: torch has dtypes that DLPack has no words for.
bool means(py::handle object, const char* text) {
  static auto* names = new std::unordered_map<PyObject*, std::string>;  // dtypes of torch live for ever
  static PyObject* name = PyUnicode_InternFromString("dtype");
  const auto dtype = py::reinterpret_steal<py::object>(PyObject_GetAttr(object.ptr(), name));
  if (!dtype) {
    PyErr_Clear();
    return false;
  }
  auto found = names->find(dtype.ptr());
  if (found == names->end()) {
    const py::object said = py::module_::import("velocpy.arrays").attr("torch_text")(dtype);
    found = names->emplace(dtype.inc_ref().ptr(), said.cast<std::string>()).first;
  }
  return found->second == text;
}

bool negated(py::handle object) {
  static PyObject* name = PyUnicode_InternFromString("is_neg");
  const auto answer = py::reinterpret_steal<py::object>(PyObject_CallMethodNoArgs(object.ptr(), name));
  if (!answer) {
    PyErr_Clear();
    return true;
  }
  return answer.ptr() != Py_False;
}

}  // namespace

bool exchange(py::handle object, Exchanged* seen) {
  const Table* shows = table_of(Py_TYPE(object.ptr()));
  if (shows == nullptr || negated(object)) return false;
  Tensor tensor;
  if (shows->show(object.ptr(), &tensor) != 0) {
    PyErr_Clear();
    return false;
  }
  seen->dtype_text = tensor.lanes == 1 ? dtype_text(tensor.code, tensor.bits) : nullptr;
  const bool host = tensor.device_type == kHost || tensor.device_type == kPinned;
  if (seen->dtype_text == nullptr || !means(object, seen->dtype_text) || (!host && tensor.device_type != kCuda)) return false;
  seen->place = host ? VELOC_PLACE_HOST : 1 + tensor.device_id;
  seen->data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  seen->ndim = tensor.ndim;
  seen->shape = tensor.shape;
  seen->strides = tensor.strides;
  seen->itemsize = tensor.bits / 8;
  return tensor.data != nullptr;
}

}  // namespace velocpy
