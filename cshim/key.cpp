#include "key.h"

#include "failure.h"

namespace velocpy {

void utf8(py::handle text, std::string* own, const char** data, int64_t* length) {
  Py_ssize_t size = 0;
  const char* bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (bytes == nullptr) {
    PyErr_Clear();
    auto encoded = py::reinterpret_steal<py::bytes>(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogatepass"));
    if (!encoded) throw py::error_already_set();
    *own = encoded;
    bytes = own->data();
    size = static_cast<Py_ssize_t>(own->size());
  }
  *data = bytes;
  *length = size;
}

py::object text_from(const char* data, size_t length) {
  PyObject* text = PyUnicode_DecodeUTF8(data, static_cast<Py_ssize_t>(length), "surrogatepass");
  if (text == nullptr) {
    PyErr_Clear();
    text = PyUnicode_DecodeUTF8(data, static_cast<Py_ssize_t>(length), "surrogateescape");  // a name that Python has not written
  }
  if (text == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(text);
}

namespace {

// Truth values of other libraries count as integers, too: scalars of NumPy and torch, arrays and tensors of one element.
bool is_truth_value(py::handle key) {
  if (PyLong_Check(key.ptr())) return false;
  const py::object dtype = py::getattr(key, "dtype", py::none());
  if (dtype.is_none()) return false;
  const auto name = py::str(dtype).cast<std::string>();
  return name == "bool" || name == "torch.bool";
}

}  // namespace

Key::Key(py::handle key, bool may_be_none) {
  PyObject* obj = key.ptr();
  if (PyUnicode_Check(obj)) {
    raw_.kind = VELOC_KEY_STR;
    utf8(key, &own_, &raw_.text, &raw_.text_len);
    return;
  }
  if (may_be_none && key.is_none()) {
    raw_.kind = VELOC_KEY_AUTO;
    return;
  }
  if (PyBool_Check(obj) || !PyIndex_Check(obj) || is_truth_value(key))
    raise_wrong_type("a key is an int or a str, not " + type_name(key) + ".");
  auto number = py::reinterpret_steal<py::object>(PyNumber_Index(obj));
  if (!number) {
    PyErr_Clear();
    raise_wrong_type("a key is an int or a str, not " + type_name(key) + ".");
  }
  int overflow = 0;
  raw_.kind = VELOC_KEY_INT;
  raw_.number = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow != 0)
    raise_invalid("an integer key has 64 bits with a sign; " + py::str(number).cast<std::string>().substr(0, 40) + " does not fit.");
}

}  // namespace velocpy
