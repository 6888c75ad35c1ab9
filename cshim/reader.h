// Reads the iterables of a history's hints, as far as the store looks ahead, and passes their items to the core.
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <vector>

#include "key.h"
#include "wait.h"

namespace velocpy {

// Hints that were read and that the core has not got yet.
class Hints {
 public:
  // item: a key, or one of velocpy.plan's Restore, Last, Drop, Advance. last: plain keys count as Last.
  void add(py::object item, bool last);
  int64_t size() const { return static_cast<int64_t>(raw_.size()); }
  const veloc_hint_item* data() const { return raw_.data(); }
  void clear();

 private:
  std::vector<py::object> items_;  // own the texts of keys
  std::deque<Key> keys_;           // a deque keeps its Keys in place
  std::vector<veloc_hint_item> raw_;
};

// The state of one history's reading, guarded by the GIL. No thread waits with a lock held. Python code that runs meanwhile (an
// iterable, a signal handler, a destructor) may call the history: it finds a reader at work, and continues with the hints that the
// core has.
//
// sources is a collections.deque owned by the Python side, so that the cycle collector sees its content. Its entries are tuples
// (iterator, last, plan): an iterable, or None and a Plan, whose _parts are a deque of (iterator, last). (None, text, None) marks an
// interrupted iterable: its remaining items are lost, and a loop over the plan must report that.
class Reader {
 public:
  explicit Reader(int64_t lookahead) : lookahead_(lookahead) {}

  // Records how far ahead the core knows the plan now.
  void noted(int64_t left) { left_ = left; }
  // Whether to read on. A refill once an eighth is used up keeps enough hints in the core for even prefetching.
  bool hungry() const { return left_ <= lookahead_ - (lookahead_ > 8 ? lookahead_ / 8 : 1); }
  // The plan was withdrawn: items of a read in progress no longer count.
  void withdrawn() {
    ++generation_;
    left_ = 0;
  }

  bool reading() const { return thread_ != 0; }
  bool reading_here() const;
  // Grows with every item that the core gets.
  uint64_t told() const { return told_; }

  // Reads until the core has enough, at least one hint; tell(hints) returns how far ahead that is. An exception of an iterable goes
  // to the caller, after the hints before it were told. Does nothing while any thread reads.
  template <class Tell>
  void read(const py::object& sources, Tell&& tell);

  // Waits until no other thread reads: interruptible, without the GIL. Raises WaitTimeout.
  void wait(const Where& where, const Deadline& deadline) const;

 private:
  class Turn;
  // The next hint of the sources; false if there is none.
  bool next(const py::object& sources, Hints* hints);
  void take(const py::object& sources, py::object item, bool last, Hints* hints);

  int64_t lookahead_;
  int64_t left_ = 0;
  uint64_t generation_ = 0;
  uint64_t told_ = 0;
  std::atomic<unsigned long> thread_{0};  // id of the reading thread; 0: none
};

// Marks a reader as at work until the end of the scope.
class Reader::Turn {
 public:
  explicit Turn(Reader* reader);
  ~Turn() { reader_->thread_ = 0; }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  Reader* reader_;
};

template <class Tell>
void Reader::read(const py::object& sources, Tell&& tell) {
  if (reading()) return;
  Turn turn(this);
  Hints hints;
  const uint64_t generation = generation_;
  const auto tell_all = [&] {
    if (hints.size() == 0 || generation != generation_) return;
    noted(tell(hints));
    ++told_;
  };
  try {
    const int64_t room = left_ < lookahead_ ? lookahead_ - left_ : 1;
    while (hints.size() < room && generation == generation_ && next(sources, &hints)) {
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();  // the iterable may be endless C code
    }
  } catch (py::error_already_set&) {
    try {
      tell_all();
    } catch (py::error_already_set&) {  // the first error is the one to report
    }
    throw;
  }
  tell_all();
}

// Whether the first source is an interrupted iterable, with its text; sources must not be empty.
bool interrupted_first(const py::object& sources, py::object* text);
void drop_first(const py::object& sources);

// Appends (iterator, last) to a plan's parts, and the plan to the sources of the histories that had read it to its end, in one step.
void extend_plan(py::object plan, py::object iterator, bool last);

}  // namespace velocpy
