#include "tree.h"

#include <pybind11/numpy.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_set>

#include "exchange.h"

namespace velocpy {
namespace {

constexpr int kDepth = 100;                            // velocpy.tree.DEPTH
constexpr size_t kLargestStructure = size_t{4} << 20;  // velocpy.tree.STRUCTURE_LIMIT

PyTypeObject* ordered_dict() {
  static auto* const type = new py::object(py::module_::import("collections").attr("OrderedDict"));
  return reinterpret_cast<PyTypeObject*>(type->ptr());
}

bool is_dict(PyObject* node) { return PyDict_CheckExact(node) || Py_TYPE(node) == ordered_dict(); }

bool is_list(PyObject* node) { return PyList_CheckExact(node) || PyTuple_CheckExact(node); }

bool is_value(PyObject* node) {
  return node == Py_None || PyBool_Check(node) || PyLong_CheckExact(node) || PyFloat_CheckExact(node) || PyUnicode_CheckExact(node);
}

bool is_numpy(PyObject* node) { return Py_TYPE(node) == py::detail::npy_api::get().PyArray_Type_; }

// A copy: code of torch that looks at a tensor may let another thread change the container.
py::tuple items_of(PyObject* list) {
  PyObject* items = PySequence_Tuple(list);
  if (items == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::tuple>(items);
}

// Pairs of keys and nodes in the order of the dict, likewise.
py::list pairs_of(PyObject* dict) {
  PyObject* pairs = PyMapping_Items(dict);
  if (pairs == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::list>(pairs);
}

// The characters of an ASCII text; without data if it is none.
std::string_view ascii(PyObject* text) {
  if (!PyUnicode_IS_COMPACT_ASCII(text)) return {};
  return {reinterpret_cast<const char*>(PyUnicode_1BYTE_DATA(text)), static_cast<size_t>(PyUnicode_GET_LENGTH(text))};
}

bool needs_escape(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) { return c < ' ' || c > '~' || c == '"' || c == '\\'; });
}

class Flattening {
 public:
  // False if the tree is not a usual one.
  bool root(PyObject* tree) {
    return (is_dict(tree) || is_list(tree)) && node(tree) && py::len(regions_) == arrays_ && structure_.size() <= kLargestStructure;
  }

  py::tuple parts() const { return py::make_tuple(regions_, py::bytes(structure_), values_); }

 private:
  bool node(PyObject* node) {
    if (is_dict(node)) return container(PyDict_CheckExact(node) ? "dict" : "ordered", [&] { return pairs(node); });
    if (is_list(node)) return container(PyList_CheckExact(node) ? "list" : "tuple", [&] { return items(node); });
    if (is_value(node)) return value(node);
    return (is_numpy(node) || is_torch(node)) && array(node);
  }

  template <class Walk>
  bool container(const char* kind, Walk children) {
    if (depth_ >= kDepth) return false;
    ++depth_;
    structure_.append("[\"").append(kind).append("\"");
    const bool usual = children();
    structure_ += ']';
    --depth_;
    return usual;
  }

  bool pairs(PyObject* dict) {
    for (py::handle pair : pairs_of(dict)) {
      PyObject* key = PyTuple_GET_ITEM(pair.ptr(), 0);
      structure_ += ',';
      if (!(PyUnicode_CheckExact(key) ? text_key(key) : number_key(key))) return false;
      structure_ += ',';
      if (!below(PyTuple_GET_ITEM(pair.ptr(), 1))) return false;
    }
    return true;
  }

  bool text_key(PyObject* key) {
    const std::string_view text = ascii(key);
    if (text.data() == nullptr || needs_escape(text)) return false;
    structure_.append("\"").append(text).append("\"");
    step_ = text;
    return true;
  }

  bool number_key(PyObject* key) {
    if (!PyLong_CheckExact(key)) return false;
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(key, &overflow);
    step_ = std::to_string(number);
    structure_ += step_;
    return overflow == 0;
  }

  bool items(PyObject* list) {
    size_t number = 0;
    for (py::handle item : items_of(list)) {
      structure_ += ',';
      step_ = std::to_string(number++);
      if (!below(item.ptr())) return false;
    }
    return true;
  }

  // A node below the present one, by the last step.
  bool below(PyObject* child) {
    const size_t length = path_.size();
    if (depth_ > 1) path_ += '.';
    path_ += step_;
    const bool usual = node(child);
    path_.resize(length);
    return usual;
  }

  bool value(PyObject* node) {
    if (PyUnicode_CheckExact(node) && ascii(node).data() == nullptr) return false;
    structure_ += "\"value\"";
    values_.append(py::handle(node));
    return true;
  }

  // Arrays of one name are fewer regions than arrays in the end.
  bool array(PyObject* node) {
    structure_ += "\"array\"";
    regions_[py::str(path_)] = py::handle(node);
    ++arrays_;
    return true;
  }

  py::dict regions_;
  std::string structure_;
  py::list values_;
  std::string path_, step_;
  size_t arrays_ = 0;
  int depth_ = 0;
};

// Whether all nodes of a state stay as they are.
class Written {
 public:
  bool node(PyObject* node, int depth) {
    if (depth > kDepth) return false;
    if (is_dict(node)) return dict(node, depth);
    if (is_list(node)) {
      const py::tuple items = items_of(node);
      return std::all_of(items.begin(), items.end(), [&](py::handle item) { return this->node(item.ptr(), depth + 1); });
    }
    return is_value(node) || is_numpy(node) || (is_torch(node) && tensor(node));
  }

 private:
  bool dict(PyObject* dict, int depth) {
    static auto* const marker = new py::object(py::module_::import("velocpy.training.encoding").attr("KIND"));
    const int marked = PyDict_Contains(dict, marker->ptr());
    if (marked < 0) throw py::error_already_set();
    if (marked > 0) return false;
    const py::list pairs = pairs_of(dict);
    return std::all_of(pairs.begin(), pairs.end(), [&](py::handle pair) { return node(PyTuple_GET_ITEM(pair.ptr(), 1), depth + 1); });
  }

  // A tensor that is none of a graph, and does not share its memory with one before.
  bool tensor(PyObject* node) {
    static PyObject* const name = PyUnicode_InternFromString("requires_grad");
    Exchanged seen;
    if (!is_plain_tensor(node) || !exchange(node, &seen)) return false;
    const auto requires_grad = py::reinterpret_steal<py::object>(PyObject_GetAttr(node, name));
    if (!requires_grad) throw py::error_already_set();
    return requires_grad.ptr() == Py_False && addresses_.insert(seen.data).second;
  }

  std::unordered_set<const char*> addresses_;
};

}  // namespace

py::object flatten(py::handle tree) {
  Flattening flattening;
  return flattening.root(tree.ptr()) ? py::object(flattening.parts()) : py::object(py::none());
}

bool is_written_as_it_is(py::handle state) { return Written().node(state.ptr(), 0); }

}  // namespace velocpy
