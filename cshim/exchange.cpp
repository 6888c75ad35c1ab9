#include "exchange.h"

#include <array>
#include <string>
#include <unordered_map>
#include <vector>

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

struct Managed {
  Version version;
  void* context;
  void (*let_go)(Managed* self);
  uint64_t flags;
  Tensor tensor;
};

struct Table {
  Version version;
  void* older;
  void* allocate;
  void* to_managed;
  int (*from_managed)(Managed* shown, void** object);
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

struct Dtype {
  const char* text;
  uint8_t code, bits;
};

constexpr std::array<Dtype, 10> kDtypes{{
    {"|i1", kInt, 8},
    {"<i2", kInt, 16},
    {"<i4", kInt, 32},
    {"<i8", kInt, 64},
    {"|u1", kUInt, 8},
    {"<f2", kFloat, 16},
    {"<f4", kFloat, 32},
    {"<f8", kFloat, 64},
    {"=bfloat16", kBfloat, 16},
    {"|b1", kBool, 8},
}};

const char* dtype_text(uint8_t code, uint8_t bits) {
  for (const Dtype& known : kDtypes) {
    if (known.code == code && known.bits == bits) return known.text;
  }
  return nullptr;
}

const Dtype* dtype_of(const std::string& text) {
  for (const Dtype& known : kDtypes) {
    if (text == known.text) return &known;
  }
  return nullptr;
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

// What a tensor over memory of ours keeps.
struct Kept {
  Managed managed;
  std::vector<int64_t> shape, strides;
  PyObject* owner;
};

// Called by the library in any thread, with the GIL or without, when the last tensor that shows the memory has gone.
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

py::object tensor_over(py::handle type, py::object owner, const Shown& shown) {
  const Table* shows = table_of(reinterpret_cast<PyTypeObject*>(type.ptr()));
  const Dtype* dtype = dtype_of(*shown.dtype_text);
  if (shows == nullptr || shows->from_managed == nullptr || dtype == nullptr) return py::none();
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
  if (shows->from_managed(&kept->managed, &object) != 0) throw py::error_already_set();  // whose kept is now, nobody says: it stays
  return py::reinterpret_steal<py::object>(static_cast<PyObject*>(object));
}

}  // namespace velocpy
