#include "reader.h"

#include <pythread.h>
#include <time.h>

#include "failure.h"

namespace velocpy {
namespace {

constexpr long kLookMilliseconds = 2;  // between checks whether another thread still reads

// The hints' types, looked up once. They live as long as the interpreter.
struct Types {
  PyObject* restore;
  PyObject* last;
  PyObject* drop;
  PyObject* advance;
};

const Types& types() {
  static const Types found = [] {
    const auto plan = py::module_::import("velocpy.plan");
    const auto keep = [&](const char* name) { return plan.attr(name).cast<py::object>().release().ptr(); };
    return Types{keep("Restore"), keep("Last"), keep("Drop"), keep("Advance")};
  }();
  return found;
}

bool is(const py::object& item, PyObject* type) {
  if (reinterpret_cast<PyObject*>(Py_TYPE(item.ptr())) == type) return true;
  const int instance = PyObject_IsInstance(item.ptr(), type);
  if (instance < 0) throw py::error_already_set();
  return instance != 0;
}

py::object checked(PyObject* object) {
  if (object == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(object);
}

py::object first_of(const py::object& queue) { return checked(PySequence_GetItem(queue.ptr(), 0)); }

// Removes entry if it is still the first: code that ran meanwhile may have removed it.
void pop(const py::object& queue, const py::object& entry) {
  if (py::len(queue) > 0 && first_of(queue).is(entry)) drop_first(queue);
}

// Registers the sources with a plan that has been read to its end: extend_plan appends the plan to them again.
void await_extension(const py::object& plan, const py::object& sources) {
  py::list feeds = plan.attr("_feeds");
  for (py::handle feed : feeds) {
    if (feed.is(sources)) return;
  }
  feeds.append(sources);
}

void put_first(const py::object& queue, py::object iterator, py::object last) {
  queue.attr("appendleft")(py::make_tuple(std::move(iterator), std::move(last), py::none()));
}

}  // namespace

void Hints::add(py::object item, bool last) {
  veloc_hint_item hint{};
  const Types& known = types();
  py::object key = item;
  if (PyLong_CheckExact(item.ptr()) || PyUnicode_CheckExact(item.ptr())) {
    hint.op = last ? VELOC_HINT_LAST : VELOC_HINT_RESTORE;
  } else if (is(item, known.restore)) {
    hint.op = VELOC_HINT_RESTORE;
    key = item.attr("key");
  } else if (is(item, known.last)) {
    hint.op = VELOC_HINT_LAST;
    key = item.attr("key");
  } else if (is(item, known.drop)) {
    hint.op = VELOC_HINT_DROP;
    key = item.attr("key");
  } else if (is(item, known.advance)) {
    hint.op = VELOC_HINT_ADVANCE;
    key = item.attr("steps");
  } else {
    hint.op = last ? VELOC_HINT_LAST : VELOC_HINT_RESTORE;
  }
  keys_.emplace_back(key);
  hint.key = *keys_.back().get();
  items_.push_back(std::move(key));
  raw_.push_back(hint);
}

void Hints::clear() {
  raw_.clear();
  keys_.clear();
  items_.clear();
}

Reader::Turn::Turn(Reader* reader) : reader_(reader) { reader_->thread_ = PyThread_get_thread_ident(); }

bool Reader::reading_here() const { return thread_ == PyThread_get_thread_ident(); }

void Reader::wait(const Where& where, const Deadline& deadline) const {
  while (reading() && !reading_here()) {
    Nogil nogil;
    const timespec moment{0, kLookMilliseconds * 1000000};
    ::nanosleep(&moment, nullptr);
    nogil.end();
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    if (deadline.expired()) raise_timeout(where, deadline.seconds());
  }
}

bool Reader::next(const py::object& sources, Hints* hints) {
  while (py::len(sources) > 0) {
    const py::object entry = first_of(sources);
    const auto source = py::reinterpret_borrow<py::tuple>(entry);
    const py::object plan = source[2];
    py::object queue = sources, part = entry, iterator = source[0], last = source[1];
    if (!plan.is_none()) {
      queue = plan.attr("_parts");
      if (py::len(queue) == 0) {
        await_extension(plan, sources);
        pop(sources, entry);
        continue;
      }
      part = first_of(queue);
      iterator = part[py::int_(0)];
      last = part[py::int_(1)];
    } else if (iterator.is_none()) {
      return false;
    }
    const uint64_t generation = generation_;
    PyObject* raw = PyIter_Next(iterator.ptr());
    if (raw != nullptr) {
      auto item = py::reinterpret_steal<py::object>(raw);
      if (generation != generation_) return false;
      if (!plan.is_none()) plan.attr("_given") = py::object(plan.attr("_given")) + py::int_(1);
      take(sources, std::move(item), last.cast<bool>(), hints);
      return true;
    }
    if (PyErr_Occurred() == nullptr) {
      pop(queue, part);
      continue;
    }
    py::error_already_set raised;
    if (generation != generation_) throw raised;
    if (raised.matches(PyExc_Exception)) {
      sources.attr("clear")();
    } else {
      pop(queue, part);
      put_first(sources, py::none(), py::str(raised.type().attr("__name__")));
    }
    throw raised;
  }
  return false;
}

void Reader::take(const py::object& sources, py::object item, bool last, Hints* hints) {
  try {
    hints->add(item, last);
  } catch (py::error_already_set& raised) {
    if (raised.matches(PyExc_Exception)) {
      sources.attr("clear")();
    } else {  // the interruption is unrelated to the item: it is read again
      put_first(sources, py::iter(py::make_tuple(item)), py::bool_(last));
    }
    throw;
  }
}

bool interrupted_first(const py::object& sources, py::object* text) {
  const auto source = py::reinterpret_borrow<py::tuple>(first_of(sources));
  *text = source[1];
  return py::object(source[0]).is_none() && py::object(source[2]).is_none();
}

void drop_first(const py::object& sources) { sources.attr("popleft")(); }

void extend_plan(py::object plan, py::object iterator, bool last) {
  const py::list feeds = plan.attr("_feeds");
  plan.attr("_parts").attr("append")(py::make_tuple(std::move(iterator), last));
  for (py::handle feed : feeds) feed.attr("append")(py::make_tuple(py::none(), false, plan));
  feeds.attr("clear")();
}

}  // namespace velocpy
