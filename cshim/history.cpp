#include "history.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <iterator>
#include <numeric>

#include "failure.h"
#include "key.h"
#include "regions.h"
#include "streams.h"

namespace velocpy {
namespace {

// A lookup fails only if another thread rewrites the key with another layout meanwhile. A program that causes so many failures has a
// livelock of its own.
constexpr int kLookups = 100;

// Listing more keys takes longer than a restore, and callers may try keys until one exists.
constexpr int64_t kKeysTold = 1000;

// Checkpoints of one call into the core, which reads the arguments of all of them first.
constexpr size_t kManyAtOnce = 1024;

const int32_t kNothing = 0;  // target of an empty selection: a null pointer would select all

// The error of a restore that lost that race every time.
veloc_error changing() {
  veloc_error error{};
  const std::string text = "the checkpoint kept changing its regions";
  error.status = VELOC_E_CHANGED;
  error.tier = VELOC_TIER_NONE;
  error.region = -1;
  error.text_len = static_cast<int32_t>(text.copy(error.text, sizeof error.text));
  return error;
}

}  // namespace

// A key in the core's encoding; its text follows.
struct KeyHead {
  int32_t kind;
  int32_t text_length;
  int64_t number;
};

// The selected regions of a restore, and their destinations.
struct History::Choice {
  std::vector<int32_t> select;  // ascending
  std::vector<py::object> into;
  std::vector<py::object> parts;  // what of each region is wanted, null for all of it; empty: whole regions

  void choose_parts(const Layout& layout, py::handle given);
};

// What the caller gave for one checkpoint, and what its arguments point to.
struct History::Given {
  Given(py::handle key, py::handle regions, py::handle meta, py::handle structure, py::handle stream)
      : named(key, true), sources(regions, structure, stream), streams(sources.list.streams(stream)) {
    if (meta.is_none()) return;
    char* bytes;
    Py_ssize_t length;
    if (PyBytes_AsStringAndSize(meta.ptr(), &bytes, &length) != 0) throw py::error_already_set();
    note = {bytes, static_cast<size_t>(length)};
  }

  veloc_checkpoint_args args(bool copy, int32_t tier, bool patient) {
    veloc_checkpoint_args args{};
    args.key = *named.get();
    args.regions = sources.list.seal();
    args.n_regions = static_cast<int64_t>(sources.list.size());
    args.layout = sources.layout.bytes().data();
    args.layout_len = static_cast<int64_t>(sources.layout.bytes().size());
    args.slot_bytes = sources.layout.slot_bytes();
    args.streams = streams.data();
    args.n_streams = streams.size();
    args.meta = note.data();
    args.meta_len = static_cast<int64_t>(note.size());
    args.flags = (copy ? 0 : VELOC_CP_SOURCE_STAYS) | (patient ? VELOC_CP_PATIENT : 0);
    args.tier = tier;
    return args;
  }

  const Key named;
  Sources sources;
  const Streams streams;
  std::string_view note;
};

History::History(std::shared_ptr<Store> store, py::str name, py::object lease_type, bool debug, int64_t lookahead,
                 std::vector<int32_t> places)
    : store_(std::move(store)),
      name_(std::move(name)),
      lease_type_(std::move(lease_type)),
      debug_(debug),
      places_(std::move(places)),
      reader_(lookahead) {
  const Core& table = core();
  std::string own;
  const char* text;
  int64_t length;
  utf8(name_, &own, &text, &length);
  veloc_error error;
  Nogil nogil;
  const int32_t status = table.history(store_->handle(), text, length, &handle_, &error);
  nogil.end();
  if (status < 0) raise(error, where());
}

py::tuple History::checkpoint(py::handle key, py::handle regions, bool copy, py::handle meta, int32_t tier, py::handle timeout,
                              py::handle stream, py::handle structure) {
  const Core& table = core();
  if (store_->sources().size() > 0) store_->sources().drain(table, store_->handle());
  const Deadline deadline = Deadline::from(timeout);
  Given given(key, regions, meta, structure, stream);
  veloc_checkpoint_args args = given.args(copy, tier, !timeout.is_none());
  veloc_outcome out{};
  veloc_error error;
  int32_t status;
  drive(table, where(key).waiting_for("room"), deadline, &out, &error, &status, [&](int fd, veloc_outcome* o, veloc_error* e) {
    args.event_fd = fd;
    return table.checkpoint(handle_, &args, o, e);
  });
  if (status < 0) raise(error, where(key));
  return captured(&given, copy, out);
}

py::tuple History::captured(Given* given, bool copy, const veloc_outcome& out) {
  // device memory is read later, ordered after the work in its stream
  if (!copy || given->streams.size() > 0) store_->sources().keep(out.ticket, std::move(given->sources.list.owners()));
  reader_.noted(out.hints_left);
  return py::make_tuple(out.ticket, given->named.chosen_by_store() ? py::object(py::int_(out.key_number)) : py::object(py::none()));
}

void History::checkpoint_many(py::list items, bool copy, int32_t tier, py::handle timeout, py::handle stream, py::list captured) {
  const Core& table = core();
  if (store_->sources().size() > 0) store_->sources().drain(table, store_->handle());
  const Deadline deadline = Deadline::from(timeout);
  std::deque<Given> given;  // keeps them in place
  std::vector<veloc_checkpoint_args> args;
  EventFd fd;
  for (py::handle item : items) {
    const auto parts = py::reinterpret_borrow<py::tuple>(item);
    given.emplace_back(parts[0], parts[1], parts[2], parts[3], stream);
    args.push_back(given.back().args(copy, tier, !timeout.is_none()));
    args.back().event_fd = fd.get();
  }
  std::vector<veloc_outcome> outs(args.size());
  size_t done = 0;
  const auto take = [&](int64_t count) {
    for (; count > 0; --count, ++done) captured.append(this->captured(&given[done], copy, outs[done]));
  };
  while (done < args.size()) {
    veloc_error error;
    int64_t count = 0;
    Nogil nogil;
    const size_t most = std::min(args.size() - done, kManyAtOnce);
    int32_t status = table.checkpoint_many(handle_, &args[done], static_cast<int64_t>(most), &outs[done], &count, &error);
    nogil.end();
    take(count);
    const py::object key = done < args.size() ? py::object(py::reinterpret_borrow<py::tuple>(items[done])[0]) : py::none();
    if (status > 0) {
      status = finish(table, where(key).waiting_for("room"), deadline, fd, status, &outs[done], &error);
      if (status == VELOC_OK) take(1);
    }
    if (status < 0) raise(error, where(key));
    if (done < args.size() && PyErr_CheckSignals() != 0) throw py::error_already_set();
  }
}

namespace {

void require_once(std::vector<int32_t>* select, const Layout& layout) {
  const auto twice = std::adjacent_find(select->begin(), select->end());
  if (twice != select->end()) {
    raise_invalid("region " + py::repr(layout.region_label(static_cast<size_t>(*twice))).cast<std::string>() + " is named twice.");
  }
}

// Sorts regions and their destinations by their order in the slot.
void sort_together(std::vector<int32_t>* select, std::vector<py::object>* into) {
  std::vector<size_t> order(select->size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return (*select)[a] < (*select)[b]; });
  std::vector<int32_t> sorted;
  std::vector<py::object> sorted_into;
  for (size_t i : order) {
    sorted.push_back((*select)[i]);
    if (!into->empty()) sorted_into.push_back((*into)[i]);
  }
  select->swap(sorted);
  into->swap(sorted_into);
}

}  // namespace

namespace {

// The destinations by name, without the entries that are marked as not an array.
py::dict arrays_among(const Layout& layout, py::handle into) {
  const auto all = py::reinterpret_borrow<py::dict>(into);
  const auto is_marked = [](const auto& item) { return item.second.ptr() == Py_Ellipsis && PyUnicode_Check(item.first.ptr()); };
  if (std::none_of(all.begin(), all.end(), is_marked)) return all;
  py::dict arrays;
  for (auto item : all) {
    if (!is_marked(item)) {
      arrays[item.first] = item.second;
      continue;
    }
    std::string own;
    const char* name;
    int64_t length;
    utf8(item.first, &own, &name, &length);
    if (layout.index.count(std::string(name, static_cast<size_t>(length))) > 0)
      raise_invalid("into= has something else than an array where the checkpoint has region " + py::repr(item.first).cast<std::string>() +
                    ".");
  }
  return arrays;
}

}  // namespace

void History::choose(const Layout& layout, py::handle regions, py::handle given, Choice* choice) const {
  const bool by_name = PyDict_Check(given.ptr());
  const py::object into = by_name ? py::object(arrays_among(layout, given)) : py::reinterpret_borrow<py::object>(given);
  if (!regions.is_none()) {
    for (py::handle label : regions) choice->select.push_back(layout.find(label));
  } else if (by_name) {
    for (auto item : py::reinterpret_borrow<py::dict>(into)) choice->select.push_back(layout.find(item.first));
  } else {
    choice->select.resize(layout.regions.size());
    std::iota(choice->select.begin(), choice->select.end(), 0);
  }
  if (by_name) {
    const auto destinations = py::reinterpret_borrow<py::dict>(into);
    if (destinations.size() != choice->select.size()) raise_invalid("into= and regions name different regions.");
    std::vector<py::object> found(choice->select.size());
    for (auto item : destinations) {
      const int32_t region = layout.find(item.first);
      const auto at = std::find(choice->select.begin(), choice->select.end(), region);
      if (at == choice->select.end())
        raise_invalid("into= names region " + py::repr(item.first).cast<std::string>() + ", regions does not.");
      found[static_cast<size_t>(at - choice->select.begin())] = py::reinterpret_borrow<py::object>(item.second);
    }
    choice->into = std::move(found);
  } else if (!into.is_none()) {
    for (py::handle array : into) choice->into.push_back(py::reinterpret_borrow<py::object>(array));
    if (choice->into.size() != choice->select.size()) {
      raise_invalid("into= has " + std::to_string(choice->into.size()) + " arrays for " + std::to_string(choice->select.size()) +
                    " regions.");
    }
  }
  sort_together(&choice->select, &choice->into);
  require_once(&choice->select, layout);
  for (const py::object& array : choice->into) {
    if (!array) raise_invalid("into= names one region twice.");
  }
}

void History::Choice::choose_parts(const Layout& layout, py::handle given) {
  if (given.is_none()) return;
  std::vector<py::object> found(select.size());
  if (PyTuple_Check(given.ptr())) {
    if (select.size() != 1) {
      raise_invalid("parts= has the indices of one region, and into= " + std::to_string(select.size()) +
                    " arrays; give a mapping of names to indices.");
    }
    found[0] = py::reinterpret_borrow<py::object>(PyTuple_GET_ITEM(given.ptr(), 0));
  } else {
    for (auto item : py::reinterpret_borrow<py::dict>(given)) {
      const auto at = std::lower_bound(select.begin(), select.end(), layout.find(item.first));
      if (at == select.end() || *at != layout.find(item.first))
        raise_invalid("parts= names region " + py::repr(item.first).cast<std::string>() + ", into= has no array for it.");
      found[static_cast<size_t>(at - select.begin())] = py::reinterpret_borrow<py::object>(item.second);
    }
  }
  if (std::any_of(found.begin(), found.end(), [](const py::object& part) { return bool(part); })) parts = std::move(found);
}

py::object History::restore(py::handle key, py::handle regions, bool last, bool peek, py::handle timeout, py::handle stream,
                            py::handle observe) {
  const Streams streams = Streams::reading(stream, peek ? std::vector<int32_t>() : places_);
  const int32_t flags = (last ? VELOC_RS_LAST : 0) | (peek ? VELOC_RS_PEEK : 0) | (loops_ > 0 ? VELOC_RS_LOOPED : 0);
  py::object lease = lease_of(restored(key, regions, flags, timeout, streams.handles()), key);
  if (!observe.is_none()) observe(key);
  return lease;
}

py::object History::lease_of(std::unique_ptr<LeaseMemory> memory, py::handle key) const {
  auto* type = reinterpret_cast<PyTypeObject*>(lease_type_.ptr());
  const py::tuple nothing;
  auto lease = py::reinterpret_steal<py::object>(type->tp_new(type, nothing.ptr(), nullptr));
  if (!lease) throw py::error_already_set();
  static PyObject* const names[] = {PyUnicode_InternFromString("_memory"), PyUnicode_InternFromString("_history"),
                                    PyUnicode_InternFromString("_key"),    PyUnicode_InternFromString("_arrays"),
                                    PyUnicode_InternFromString("_meta"),   PyUnicode_InternFromString("_mark")};
  const py::object values[] = {py::cast(std::move(memory)),
                               name_,
                               py::reinterpret_borrow<py::object>(key),
                               py::dict(),
                               py::ellipsis(),
                               debug_ ? py::object(py::ellipsis()) : py::object(py::none())};
  for (size_t i = 0; i < std::size(names); ++i) {
    if (PyObject_SetAttr(lease.ptr(), names[i], values[i].ptr()) != 0) throw py::error_already_set();
  }
  return lease;
}

std::unique_ptr<LeaseMemory> History::restored(py::handle key, py::handle regions, int32_t flags, py::handle timeout,
                                               const std::vector<uint64_t>& streams) {
  const Core& table = core();
  const Deadline deadline = Deadline::from(timeout);
  const Key named(key);
  veloc_restore_args args{};
  args.key = *named.get();
  args.flags = flags | (timeout.is_none() ? 0 : VELOC_RS_PATIENT);
  args.streams = streams.data();
  args.n_streams = static_cast<int32_t>(streams.size());
  veloc_outcome out{};
  veloc_error error = changing();
  int32_t status = VELOC_E_CHANGED;
  Choice choice;
  for (int lookup = 0; lookup < kLookups && status == VELOC_E_CHANGED; ++lookup) {
    if (!regions.is_none()) {
      const auto layout = look_up(table, named, key, &args.expected_layout);
      if (!layout) continue;
      choice = {};
      choose(*layout, regions, py::none(), &choice);
      args.select = choice.select.empty() ? &kNothing : choice.select.data();
      args.n_select = static_cast<int64_t>(choice.select.size());
    }
    drive(table, where(key).waiting_for("bytes"), deadline, &out, &error, &status, [&](int fd, veloc_outcome* o, veloc_error* e) {
      args.event_fd = fd;
      return table.restore(handle_, &args, o, e);
    });
  }
  if (status < 0) fail(table, named, key, error);
  auto memory = std::make_unique<LeaseMemory>(out, streams);
  auto layout = store_->layout(out.layout, out.slot_bytes);
  if (!layout) raise_invalid("the core forgot the layout of a lease.");
  if (regions.is_none()) {
    choice.select.resize(layout->regions.size());
    std::iota(choice.select.begin(), choice.select.end(), 0);
  }
  memory->describe(std::move(layout), std::move(choice.select));
  if ((flags & VELOC_RS_PEEK) == 0) reader_.noted(out.hints_left);
  return memory;
}

void History::restore_into(py::handle key, py::handle regions, py::handle into, py::handle parts, bool last, py::handle timeout,
                           py::handle stream, py::handle written, py::handle observe, bool peek) {
  bool begun = false;
  const int32_t flags = (last ? VELOC_RS_LAST : 0) | (peek ? VELOC_RS_PEEK : 0) | (loops_ > 0 ? VELOC_RS_LOOPED : 0);
  try {
    copied(key, regions, into, parts, flags, timeout, stream, &begun);
  } catch (py::error_already_set&) {
    if (begun) written(into);
    throw;
  }
  written(into);
  if (!observe.is_none()) observe(key);
}

void History::copied(py::handle key, py::handle regions, py::handle into, py::handle parts, int32_t flags, py::handle timeout,
                     py::handle stream, bool* begun) {
  const Core& table = core();
  const Deadline deadline = Deadline::from(timeout);
  const Key named(key);
  veloc_outcome out{};
  veloc_error error = changing();
  int32_t status = VELOC_E_CHANGED;
  for (int lookup = 0; lookup < kLookups && status == VELOC_E_CHANGED; ++lookup) {
    veloc_restore_args args{};
    const auto layout = look_up(table, named, key, &args.expected_layout);
    if (!layout) continue;
    Choice choice;
    choose(*layout, regions, into, &choice);
    choice.choose_parts(*layout, parts);
    RegionList list = destinations(*layout, choice.select, choice.into, stream, choice.parts);
    static const veloc_region nowhere{};
    args.key = *named.get();
    args.select = choice.select.empty() ? &kNothing : choice.select.data();
    args.n_select = static_cast<int64_t>(choice.select.size());
    args.into = list.size() == 0 ? &nowhere : list.seal();
    args.n_into = static_cast<int64_t>(list.size());
    args.parts = list.seal_parts();
    const Streams streams = list.streams(stream);
    args.streams = streams.data();
    args.n_streams = streams.size();
    args.flags = flags | (timeout.is_none() ? 0 : VELOC_RS_PATIENT);
    *begun = true;  // also after an interruption: some of the bytes may have been written
    drive(table, where(key).waiting_for("bytes"), deadline, &out, &error, &status, [&](int fd, veloc_outcome* o, veloc_error* e) {
      args.event_fd = fd;
      return table.restore(handle_, &args, o, e);
    });
  }
  *begun = status != VELOC_E_BELATED && status != VELOC_E_INVALID && status != VELOC_E_NOT_FOUND && status != VELOC_E_CLOSED;
  if (status < 0) fail(table, named, key, error);
  if ((flags & VELOC_RS_PEEK) == 0) reader_.noted(out.hints_left);
}

namespace {

// A writable, contiguous buffer of the caller's.
class Buffer {
 public:
  explicit Buffer(py::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_CONTIG) != 0) throw py::error_already_set();
  }
  ~Buffer() { PyBuffer_Release(&view_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* data() const { return view_.buf; }
  int64_t size() const { return view_.len; }

 private:
  Py_buffer view_;
};

}  // namespace

void History::read(py::handle key, uint64_t layout, int32_t region, int64_t offset, py::handle to, py::handle timeout) {
  const Core& table = core();
  const Deadline deadline = Deadline::from(timeout);
  const Key named(key);
  const Buffer buffer(to);
  veloc_region destination{};
  destination.data = buffer.data();
  destination.nbytes = buffer.size();
  destination.itemsize = 1;
  veloc_part part{};
  part.offset = offset;
  part.itemsize = buffer.size();
  veloc_restore_args args{};
  args.key = *named.get();
  args.select = &region;
  args.n_select = 1;
  args.into = &destination;
  args.n_into = 1;
  args.parts = &part;
  args.expected_layout = layout;
  args.flags = VELOC_RS_PEEK | (timeout.is_none() ? 0 : VELOC_RS_PATIENT) | (loops_ > 0 ? VELOC_RS_LOOPED : 0);
  veloc_outcome out{};
  veloc_error error;
  int32_t status;
  drive(table, where(key).waiting_for("bytes"), deadline, &out, &error, &status, [&](int fd, veloc_outcome* o, veloc_error* e) {
    args.event_fd = fd;
    return table.restore(handle_, &args, o, e);
  });
  if (status < 0) fail(table, named, key, error);
}

std::shared_ptr<const Layout> History::look_up(const Core& table, const Key& named, py::handle key, uint64_t* id) const {
  veloc_info info;
  veloc_error error;
  Nogil nogil;
  const int32_t status = table.lookup(handle_, named.get(), &info, &error);
  nogil.end();
  if (status == VELOC_E_NOT_FOUND) raise_not_found(key);
  if (status < 0) raise(error, where(key));
  *id = info.layout;
  return store_->layout(info.layout, info.slot_bytes, where(key));
}

py::tuple History::known() const {
  const int64_t count = size();
  return py::make_tuple(count > kKeysTold ? py::list() : keys(), count);
}

void History::raise_not_found(py::handle key) const {
  const py::tuple there = known();
  raise_object(py::module_::import("velocpy.errors").attr("not_found")(name_, key, there[0], there[1]));
}

void History::fail(const Core& table, const Key& named, py::handle key, const veloc_error& error) const {
  if (error.status == VELOC_E_NOT_FOUND) raise_not_found(key);
  Where failed = where(key);
  std::shared_ptr<const Layout> layout;
  veloc_info info;
  veloc_error ignored;
  if (error.region >= 0 && table.lookup(handle_, named.get(), &info, &ignored) == VELOC_OK)
    layout = store_->layout(info.layout, info.slot_bytes);
  failed.layout = layout.get();
  store_->raise(error, failed);
}

bool History::drop(py::handle key) {
  const Key named(key);
  const Core* table = core_if_usable();
  if (table == nullptr) return false;  // a forked child has no checkpoint to drop, and destructors call this
  veloc_error error;
  Nogil nogil;
  const int32_t status = table->drop(handle_, named.get(), &error);
  nogil.end();
  if (status == VELOC_E_NOT_FOUND || status == VELOC_E_CLOSED || status == VELOC_E_STALE) return false;
  if (status < 0) raise(error, where(key));
  return true;
}

void History::clear(const py::object& sources) { withdraw(sources, &Core::history_clear); }

namespace {

// Keys in the core's form; named owns the memory that they point to.
std::vector<veloc_key> raw_keys(py::sequence keys, std::deque<Key>* named) {  // a deque keeps its Keys in place
  std::vector<veloc_key> raw;
  for (py::handle key : keys) {
    named->emplace_back(key);
    raw.push_back(*named->back().get());
  }
  return raw;
}

}  // namespace

void History::retain(int64_t last, int64_t every, bool named, py::sequence keys, int64_t best, py::sequence by, bool largest) {
  const Core& table = core();
  std::deque<Key> kept, names;
  const std::vector<veloc_key> raw = raw_keys(keys, &kept), path = raw_keys(by, &names);
  veloc_retention rule{};
  rule.last = last;
  rule.every = every;
  rule.named = named;
  rule.keys = raw.data();
  rule.n_keys = static_cast<int64_t>(raw.size());
  rule.best = best;
  rule.by = path.data();
  rule.n_by = static_cast<int64_t>(path.size());
  rule.largest = largest;
  veloc_error error;
  Nogil nogil;
  const int32_t status = table.retain(handle_, &rule, &error);
  nogil.end();
  if (status < 0) raise(error, where());
}

void History::reduce(const std::string& json) {
  const Core& table = core();
  veloc_error error;
  Nogil nogil;
  const int32_t status = table.reduce(handle_, json.data(), static_cast<int64_t>(json.size()), &error);
  nogil.end();
  if (status < 0) raise(error, where());
}

std::string History::course() const {
  const Core& table = core();
  return filled([&](char* buffer, int64_t capacity, int64_t* length, veloc_error* error) {
    return table.course(handle_, buffer, capacity, length, error);
  });
}

int64_t History::size() const {
  int64_t count = 0;
  veloc_error error;
  const Core& table = core();
  Nogil nogil;  // another thread's clear() of a million checkpoints may hold the lock for a while
  const int32_t status = table.history_len(handle_, &count, &error);
  nogil.end();
  if (status < 0) raise(error, where());
  return count;
}

py::list History::keys() const {
  const Core& table = core();
  const std::string bytes = filled([&](char* buffer, int64_t capacity, int64_t* length, veloc_error* error) {
    return table.keys(handle_, buffer, capacity, length, error);
  });
  py::list keys;
  for (size_t at = 0; at + sizeof(KeyHead) <= bytes.size();) {
    KeyHead head;
    bytes.copy(reinterpret_cast<char*>(&head), sizeof head, at);
    at += sizeof head;
    if (head.kind == VELOC_KEY_STR) {
      keys.append(text_from(bytes.data() + at, static_cast<size_t>(head.text_length)));
      at += static_cast<size_t>(head.text_length);
    } else {
      keys.append(py::int_(head.number));
    }
  }
  return keys;
}

py::object History::lookup(py::handle key) const {
  const Core& table = core();
  const Key named(key);
  veloc_info info;
  veloc_error error;
  Nogil nogil;
  const int32_t status = table.lookup(handle_, named.get(), &info, &error);
  nogil.end();
  if (status == VELOC_E_NOT_FOUND) return py::none();
  if (status < 0) raise(error, where(key));
  return py::make_tuple(info.payload_bytes, info.slot_bytes, info.meta_len, info.tiers, info.ready != 0, info.ticket, info.captured_ns);
}

namespace {

// Reads the core's description of a version, whose lengths the core vouches for.
class Description {
 public:
  explicit Description(const std::string& bytes) : left_(bytes) {}

  uint64_t number() {
    uint64_t value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }

  std::string_view take(size_t length) {
    const std::string_view taken = left_.substr(0, length);
    left_.remove_prefix(length);
    return taken;
  }

  // count checksums, each with the hashes of leaves behind it.
  py::list sums(uint64_t count) {
    py::list all;
    for (; count > 0; --count) {
      const uint64_t sum = number();
      const std::string_view leaves = take(static_cast<size_t>(number()) * sizeof(uint64_t));
      all.append(py::make_tuple(sum, py::bytes(leaves.data(), leaves.size())));
    }
    return all;
  }

 private:
  std::string_view left_;
};

py::tuple numbers_of(const std::vector<int64_t>& numbers) {
  py::tuple all(numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) all[i] = numbers[i];
  return all;
}

py::list described(const Layout& layout) {
  py::list regions;
  for (size_t i = 0; i < layout.regions.size(); ++i) {
    const RegionLayout& region = layout.regions[i];
    regions.append(py::make_tuple(layout.region_label(i), region.dtype_text, region.itemsize, numbers_of(region.shape),
                                  numbers_of(region.strides), region.nbytes));
  }
  return regions;
}

}  // namespace

py::tuple History::describe(py::handle key) const {
  const Core& table = core();
  const Key named(key);
  for (int lookup = 0; lookup < kLookups; ++lookup) {
    bool found = true;
    const std::string bytes = filled([&](char* buffer, int64_t capacity, int64_t* length, veloc_error* error) {
      const int32_t status = table.describe(handle_, named.get(), buffer, capacity, length, error);
      found = status != VELOC_E_NOT_FOUND;
      return found ? status : VELOC_OK;
    });
    if (!found) raise_not_found(key);
    Description read(bytes);
    const uint64_t ticket = read.number(), serial = read.number(), id = read.number(), slot = read.number();
    const uint64_t sums = read.number(), meta = read.number();
    const auto layout = store_->layout(id, static_cast<int64_t>(slot), where(key));
    if (!layout) continue;  // the checkpoint went meanwhile
    const py::list checksums = read.sums(sums);
    const std::string_view note = read.take(static_cast<size_t>(meta));
    return py::make_tuple(ticket, serial, id, layout->sequence,
                          layout->structure ? py::object(py::bytes(*layout->structure)) : py::object(py::none()), described(*layout),
                          sums == 0 ? py::object(py::none()) : py::object(checksums),
                          note.empty() ? py::object(py::none()) : py::object(py::bytes(note.data(), note.size())));
  }
  raise(changing(), where(key));
}

void History::withdraw(const py::object& sources, int32_t (*Core::*call)(uint64_t, veloc_error*)) {
  const py::object kept = sources.attr("copy")();  // destructors of these may call the history, so they run afterwards
  sources.attr("clear")();
  reader_.withdrawn();
  const Core* table = core_if_usable();
  if (table == nullptr) return;  // a forked child has no plan, and destructors call this
  veloc_error error;
  Nogil nogil;
  const int32_t status = (table->*call)(handle_, &error);
  nogil.end();
  if (status < 0 && status != VELOC_E_CLOSED && status != VELOC_E_STALE) raise(error, where());
}

int64_t History::tell(const Hints& hints) {
  const Core& table = core();
  int64_t queued = 0;
  veloc_error error;
  Nogil nogil;
  const int32_t status = table.hint(handle_, hints.data(), hints.size(), &queued, &error);
  nogil.end();
  if (status < 0) raise(error, where());
  return queued;
}

void History::read_hints(const py::object& sources) {
  core();
  if (reader_.hungry()) reader_.read(sources, [this](const Hints& hints) { return tell(hints); });
}

void History::hint_clear(const py::object& sources) { withdraw(sources, &Core::hint_clear); }

void History::hint_anew() {
  const Core& table = core();
  veloc_error error;
  Nogil nogil;
  const int32_t status = table.hint_clear(handle_, &error);
  nogil.end();
  if (status < 0) raise(error, where());
  reader_.noted(0);
}

std::optional<DueRestore> History::take_due() {
  const Core& table = core();
  veloc_plan_restore taken{};
  const std::string bytes = filled([&](char* buffer, int64_t capacity, int64_t* length, veloc_error* error) {
    return table.plan_next(handle_, buffer, capacity, length, &taken, error);
  });
  if (bytes.empty()) return std::nullopt;
  KeyHead head;
  bytes.copy(reinterpret_cast<char*>(&head), sizeof head);
  return DueRestore{handle_, taken.number, taken.last != 0, head.kind, head.number, bytes.substr(sizeof head)};
}

bool History::read_on(const py::object& sources, uint64_t told, const Deadline& deadline) {
  if (reader_.reading_here()) raise_plan_unfinished("it is being read by the call that this one was made from", where());
  if (reader_.reading()) {
    reader_.wait(where().waiting_for("bytes"), deadline);
    return true;
  }
  if (told != reader_.told()) return true;
  if (py::len(sources) == 0) return false;
  py::object text;
  if (interrupted_first(sources, &text)) {
    drop_first(sources);
    raise_plan_unfinished(py::cast<std::string>(text) + " interrupted what it is read from", where());
  }
  reader_.read(sources, [this](const Hints& hints) { return tell(hints); });
  return true;
}

void History::prefetch() {
  const Core& table = core();
  veloc_error error;
  Nogil nogil;
  const int32_t status = table.prefetch(handle_, &error);
  nogil.end();
  if (status < 0) raise(error, where());
}

void History::wait(int32_t tier, py::handle timeout) { store_->wait(where(), handle_, 0, tier, timeout); }

void History::wait_ticket(uint64_t ticket, py::handle key, int32_t tier, py::handle timeout) {
  store_->wait(where(key), handle_, ticket, tier, timeout);
}

void History::corrupt(py::handle key, int32_t tier, int64_t offset) {
  const Key named(key);
  veloc_error error;
  if (core().test_corrupt(handle_, named.get(), tier, offset, &error) < 0) raise(error, where(key));
}

}  // namespace velocpy
