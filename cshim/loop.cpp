#include "loop.h"

#include <pybind11/stl.h>

#include <utility>

#include "failure.h"

namespace velocpy {
namespace {

// A restore that a loop has taken. It is due again unless it has happened.
class Taken {
 public:
  explicit Taken(DueRestore due) : due_(std::move(due)) {}
  ~Taken() {
    const Core* table = core_if_usable();
    if (!done_ && table != nullptr) due_.undo(*table);
  }
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;

  const DueRestore& due() const { return due_; }
  void done() { done_ = true; }

 private:
  DueRestore due_;
  bool done_ = false;
};

}  // namespace

Loop::Loop(py::object history, py::object sources, bool last, py::object timeout, py::object into, py::object parts, py::object given,
           py::object streams, py::object written, py::object observe, py::object watchers)
    : owner_(std::move(history)),
      history_(owner_.cast<History*>()),
      sources_(std::move(sources)),
      timeout_(std::move(timeout)),
      into_(std::move(into)),
      parts_(std::move(parts)),
      given_(std::move(given)),
      streams_(std::move(streams)),
      written_(std::move(written)),
      observe_(std::move(observe)),
      watchers_(std::move(watchers)),
      last_(last) {
  ++history_->loops_;
}

void Loop::close() {
  if (open_) --history_->loops_;
  open_ = false;
  latest_ = py::object();
}

py::tuple Loop::next() {
  if (latest_) {
    const py::object memory = std::exchange(latest_, py::object()).attr("_memory");
    if (!memory.is_none()) memory.cast<LeaseMemory&>().take();
  }
  if (!open_) throw py::stop_iteration();
  const Deadline deadline = Deadline::from(timeout_);
  while (true) {
    history_->read_hints(sources_);
    std::vector<uint64_t> streams;
    if (!streams_.is_none()) streams = streams_(py::none()).cast<std::vector<uint64_t>>();
    const uint64_t told = history_->reader_.told();
    auto due = history_->take_due();
    if (!due) {
      if (history_->read_on(sources_, told, deadline)) continue;
      close();
      throw py::stop_iteration();
    }
    Taken taken(std::move(*due));
    const DueRestore& due_now = taken.due();
    const py::object key = due_now.kind == VELOC_KEY_STR ? text_from(due_now.key_text.data(), due_now.key_text.size())
                                                         : py::object(py::int_(due_now.key_number));
    const int32_t flags = (last_ || due_now.last ? VELOC_RS_LAST : 0) | VELOC_RS_LOOPED;
    py::object result = given_;  // no step happens before its result can be returned
    if (into_.is_none()) {
      auto memory = history_->restored(key, py::none(), flags, timeout_, streams);
      memory->give_due(due_now);
      result = history_->lease_of(std::move(memory), key);
    } else {
      bool begun = false;
      try {
        history_->copied(key, py::none(), into_, parts_, flags, timeout_, py::none(), &begun);
      } catch (py::error_already_set&) {
        if (begun) written_(into_);
        throw;
      }
      if ((flags & VELOC_RS_LAST) != 0) taken.done();  // the checkpoint is gone
      written_(into_);
    }
    if (py::len(watchers_) > 0) observe_(key);
    py::tuple delivered = py::make_tuple(key, result);
    taken.done();
    if (into_.is_none() && (flags & VELOC_RS_LAST) != 0) latest_ = result;
    return delivered;
  }
}

}  // namespace velocpy
