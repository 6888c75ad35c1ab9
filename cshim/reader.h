// Reads the iterables that a history was hinted with, as far ahead as the store looks, and tells the core what they gave.
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <vector>

#include "key.h"
#include "wait.h"

namespace velocpy {

// Hints that were read and that the core is to be told.
class Hints {
 public:
  // item: a key, or one of velocpy.plan's Restore, Last, Drop, Advance. last: keys alone count as Last.
  void add(py::object item, bool last);
  int64_t size() const { return static_cast<int64_t>(raw_.size()); }
  const veloc_hint_item* data() const { return raw_.data(); }
  void clear();

 private:
  std::vector<py::object> items_;  // texts of keys belong to them
  std::deque<Key> keys_;           // a deque: a Key stays where it is
  std::vector<veloc_hint_item> raw_;
};

// The state of one history's reading. The GIL guards it; nobody waits with a lock held, and what Python code runs meanwhile (an iterable, a
// signal handler, a destructor) may call the history: it finds a reader at work, and goes on with what the core knows.
//
// sources is a collections.deque that the Python side owns, so that the cycle collector sees what it holds. Its entries are tuples
// (iterator, last, plan): an iterable, or None and a Plan, whose _parts are a deque of (iterator, last). (None, text, None) stands where an
// iterable was interrupted: what it had left is lost, and a loop over the plan must say so.
class Reader {
 public:
  explicit Reader(int64_t lookahead) : lookahead_(lookahead) {}

  // How far ahead the core knows the plan now.
  void noted(int64_t left) { left_ = left; }
  // Whether it is worth reading on. Filled up when an eighth is used, the core always knows enough to prefetch evenly.
  bool hungry() const { return left_ <= lookahead_ - (lookahead_ > 8 ? lookahead_ / 8 : 1); }
  // The plan was withdrawn: what is being read does not count any more.
  void withdrawn() {
    ++generation_;
    left_ = 0;
  }

  bool reading() const { return thread_ != 0; }
  bool reading_here() const;
  // Grows with everything that the core was told.
  uint64_t told() const { return told_; }

  // Reads until the core knows enough, one hint at least; tell(hints) returns how far ahead that is. What an iterable raises goes to the
  // caller; the hints before it are told. Nothing while anybody reads.
  template <class Tell>
  void read(const py::object& sources, Tell&& tell);

  // Waits until no other thread reads: interruptible, without the GIL. Raises WaitTimeout.
  void wait(const Where& where, const Deadline& deadline) const;

 private:
  class Turn;
  // The next hint of the sources; false when they have none.
  bool next(const py::object& sources, Hints* hints);
  void take(const py::object& sources, py::object item, bool last, Hints* hints);

  int64_t lookahead_;
  int64_t left_ = 0;
  uint64_t generation_ = 0;
  uint64_t told_ = 0;
  std::atomic<unsigned long> thread_{0};  // who reads; 0: nobody
};

// Marks a reader as at work, whatever way the work ends.
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
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();  // the iterable may be C code without an end
    }
  } catch (py::error_already_set&) {
    try {
      tell_all();
    } catch (py::error_already_set&) {  // the first error matters more
    }
    throw;
  }
  tell_all();
}

// Whether (the text of) a source says that an iterable was interrupted; sources must not be empty.
bool interrupted_first(const py::object& sources, py::object* text);
void drop_first(const py::object& sources);

// Puts (iterator, last) behind a plan's parts, and the plan behind the sources of the histories that had read it to its end, in one step.
void extend_plan(py::object plan, py::object iterator, bool last);

}  // namespace velocpy
