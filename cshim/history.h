// A history of the core: it captures checkpoints and returns leases.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <optional>

#include "key.h"
#include "lease.h"
#include "reader.h"
#include "store.h"

namespace velocpy {

class History {
 public:
  // lease_type: velocpy.lease.Lease. lookahead: the number of restores of the plan that the core should know. places: of the store's
  // devices.
  History(std::shared_ptr<Store> store, py::str name, py::object lease_type, bool debug, int64_t lookahead, std::vector<int32_t> places);

  // regions: a dict or a tuple that no other code refers to. meta: bytes or None. tier: VELOC_TIER_*. Returns (ticket, key or None if
  // the caller chose it). stream: see Streams::of. structure: see Sources.
  py::tuple checkpoint(py::handle key, py::handle regions, bool copy, py::handle meta, int32_t tier, py::handle timeout, py::handle stream,
                       py::handle structure);

  // Captures several checkpoints in their order. items: tuples (key, regions, meta, structure), as for checkpoint. captured: a list that
  // gets (ticket, key or None) of each as it is captured, also if a later one fails. Nothing is captured if an item cannot be read.
  void checkpoint_many(py::list items, bool copy, int32_t tier, py::handle timeout, py::handle stream, py::list captured);

  // regions: None or a tuple of labels. Returns a Lease: except observe, no Python code runs between the restore and the return.
  // stream: what will read the lease, if it is on a device: see Streams::reading. observe: None, or called with the key afterwards.
  py::object restore(py::handle key, py::handle regions, bool last, bool peek, py::handle timeout, py::handle stream, py::handle observe);
  // into: a dict of labels to arrays, or a tuple of arrays for the named regions, or for all. In the dict, ... marks an entry that is
  // not an array, and whose label no region may have. written: called with into if its bytes may have changed, also when the restore
  // fails. parts: None for whole regions; or what of them is wanted, tuples as Part takes them: a dict by label, or a tuple with that of
  // the only region.
  void restore_into(py::handle key, py::handle regions, py::handle into, py::handle parts, bool last, py::handle timeout, py::handle stream,
                    py::handle written, py::handle observe, bool peek);
  // Fills a contiguous buffer with bytes of a region, from byte offset on, in the order of the slot; it does not advance the plan.
  // layout: the id that describe() returned. Raises CheckpointDropped if the checkpoint has another one.
  void read(py::handle key, uint64_t layout, int32_t region, int64_t offset, py::handle to, py::handle timeout);

  // False if there was no such checkpoint.
  bool drop(py::handle key);
  // sources: see Reader.
  void clear(const py::object& sources);
  // by: names, from the meta inward, if best is not 0.
  void retain(int64_t last, int64_t every, bool named, py::sequence keys, int64_t best, py::sequence by, bool largest);
  // json: see veloc_reduce.
  void reduce(const std::string& json);
  // Text: see veloc_course.
  std::string course() const;
  int64_t size() const;
  py::list keys() const;
  // The keys and their number, for an error; no keys if they are too many to list.
  py::tuple known() const;
  // (payload bytes, slot bytes, meta bytes, tiers, ready, ticket), or None.
  py::object lookup(py::handle key) const;
  // (ticket, serial, layout, sequence, structure or None, regions, checksums or None, meta or None). Per region (label, dtype text,
  // element bytes, shape, strides in the slot, bytes); per checksum (checksum, bytes of the hashes of leaves). Raises CheckpointNotFound.
  py::tuple describe(py::handle key) const;

  // Reads on in sources if the core knows too little of the plan, and no other thread reads.
  void read_hints(const py::object& sources);
  // Withdraws the plan, and the rest of its sources.
  void hint_clear(const py::object& sources);
  // Withdraws the core's part of the plan, not its sources: they give other hints from now on.
  void hint_anew();
  void prefetch();
  void wait(int32_t tier, py::handle timeout);
  void wait_ticket(uint64_t ticket, py::handle key, int32_t tier, py::handle timeout);

  void corrupt(py::handle key, int32_t tier, int64_t offset);

  uint64_t handle() const { return handle_; }

 private:
  friend class Loop;

  int64_t tell(const Hints& hints);
  // The next due restore of the plan, if any.
  std::optional<DueRestore> take_due();
  // Reads on because no restore is due any more; false if the plan has ended.
  bool read_on(const py::object& sources, uint64_t told, const Deadline& deadline);
  py::object lease_of(std::unique_ptr<LeaseMemory> memory, py::handle key) const;
  std::unique_ptr<LeaseMemory> restored(py::handle key, py::handle regions, int32_t flags, py::handle timeout,
                                        const std::vector<uint64_t>& streams);
  void copied(py::handle key, py::handle regions, py::handle into, py::handle parts, int32_t flags, py::handle timeout, py::handle stream,
              bool* begun);
  // Withdraws the plan by a call of the core; does nothing if the core or the store cannot be reached.
  void withdraw(const py::object& sources, int32_t (*Core::*call)(uint64_t, veloc_error*));

  Where where(py::handle key = {}) const { return {name_, key, nullptr}; }
  struct Choice;
  struct Given;
  // (ticket, key or None) of a checkpoint that was captured. Keeps the arrays that are still read.
  py::tuple captured(Given* given, bool copy, const veloc_outcome& out);
  // The layout of a key and its id; null if the checkpoint went meanwhile. Raises if there is none.
  std::shared_ptr<const Layout> look_up(const Core& table, const Key& named, py::handle key, uint64_t* id) const;
  // Raises CheckpointNotFound, with the existing keys.
  [[noreturn]] void raise_not_found(py::handle key) const;
  [[noreturn]] void fail(const Core& table, const Key& named, py::handle key, const veloc_error& error) const;
  void choose(const Layout& layout, py::handle regions, py::handle given, Choice* choice) const;

  std::shared_ptr<Store> store_;
  py::str name_;
  uint64_t handle_ = 0;
  py::object lease_type_;
  bool debug_;
  std::vector<int32_t> places_;
  Reader reader_;
  int loops_ = 0;  // number of running loops over the plan
};

}  // namespace velocpy
