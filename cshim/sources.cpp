#include "sources.h"

namespace velocpy {
namespace {

constexpr size_t kAsked = 4;  // per checkpoint, which adds one: so a backlog of captured sources shrinks fast

}  // namespace

void KeptSources::keep(uint64_t ticket, std::vector<py::object> owners) { kept_.push_back({ticket, std::move(owners)}); }

KeptSources::Oldest KeptSources::ask(const Core& core, uint64_t store, std::vector<Entry>* released) {
  veloc_ticket_state state;
  veloc_error error;
  const int32_t status = core.ticket(store, kept_.front().ticket, &state, &error);
  if (status == VELOC_E_CLOSED || status == VELOC_E_POISONED) return Oldest::unknown;  // transfers in flight may still read
  const bool unread = status != VELOC_OK || (state.flags & (VELOC_TICKET_CAPTURED | VELOC_TICKET_GONE)) != 0;
  // Captures complete out of order: the oldest may wait long while later ones are done.
  if (unread) {
    released->push_back(std::move(kept_.front()));
  } else {
    kept_.push_back(std::move(kept_.front()));
  }
  kept_.pop_front();
  return unread ? Oldest::released : Oldest::read;
}

void KeptSources::drain(const Core& core, uint64_t store) {
  std::vector<Entry> released;
  while (released.size() < kAsked && !kept_.empty() && ask(core, store, &released) == Oldest::released) {
  }
}

void KeptSources::drain_all(const Core& core, uint64_t store) {
  std::vector<Entry> released;
  for (size_t left = kept_.size(); left > 0 && ask(core, store, &released) != Oldest::unknown; --left) {
  }
}

void KeptSources::leak() {
  if (!kept_.empty()) new std::deque<Entry>(std::move(kept_));
}

void KeptSources::release_all() {
  std::deque<Entry> released;
  released.swap(kept_);
}

}  // namespace velocpy
