// A history of the core: checkpoints in, leases out.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>

#include "key.h"
#include "lease.h"
#include "store.h"

namespace velocpy {

class History {
 public:
  History(std::shared_ptr<Store> store, py::str name);

  // regions: a dict or a tuple of the caller's own making. meta: bytes or None. tier: VELOC_TIER_*.
  // Returns (ticket, hints left, key or None where the caller named it).
  // stream: see Streams::of.
  py::tuple checkpoint(py::handle key, py::handle regions, bool copy, py::handle meta, int32_t tier, py::handle timeout, py::handle stream);

  // regions: None or a tuple of labels. Returns (LeaseMemory, hints left).
  // streams: handles of those that will read the lease, if it lies on a device.
  py::tuple restore(py::handle key, py::handle regions, bool last, bool peek, py::handle timeout, const std::vector<uint64_t>& streams);
  // into: dict of labels to arrays, or a tuple of arrays for the regions named, or for all. Returns hints left.
  int64_t restore_into(py::handle key, py::handle regions, py::handle into, bool last, py::handle timeout, py::handle stream);

  // False when there was nothing to drop.
  bool drop(py::handle key);
  void clear();
  void retain(int64_t last, int64_t every, bool named, py::sequence keys);
  int64_t size() const;
  py::list keys() const;
  // (payload bytes, slot bytes, meta bytes, tiers, ready, ticket), or None.
  py::object lookup(py::handle key) const;

  // items: sequence of (VELOC_HINT_*, key or number). Returns the restores queued now.
  int64_t hint(py::sequence items);
  void hint_clear();
  void prefetch();
  void wait(int32_t tier, py::handle timeout);
  void wait_ticket(uint64_t ticket, py::handle key, int32_t tier, py::handle timeout);

  void corrupt(py::handle key, int32_t tier, int64_t offset);

  uint64_t handle() const { return handle_; }

 private:
  Where where(py::handle key = {}) const { return {name_, key, nullptr}; }
  struct Choice;
  // The layout of a key and its id; null when it went meanwhile. Raises when there is no such checkpoint.
  std::shared_ptr<const Layout> look_up(const Core& table, const Key& named, py::handle key, uint64_t* id) const;
  [[noreturn]] void fail(const Core& table, const Key& named, py::handle key, const veloc_error& error) const;
  void choose(const Layout& layout, py::handle regions, py::handle into, Choice* choice) const;

  std::shared_ptr<Store> store_;
  py::str name_;
  uint64_t handle_ = 0;
};

}  // namespace velocpy
