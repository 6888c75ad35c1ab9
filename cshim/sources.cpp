#include "sources.h"

namespace velocpy {

void KeptSources::keep(uint64_t ticket, std::vector<py::object> owners) { kept_.push_back({ticket, std::move(owners)}); }

void KeptSources::drain(const Core& core, uint64_t store, size_t most) {
  std::vector<Entry> released;  // destroyed last: destructors of arrays may run code that comes back here
  for (size_t asked = 0; asked < most && !kept_.empty(); ++asked) {
    veloc_ticket_state state;
    veloc_error error;
    const int32_t status = core.ticket(store, kept_.front().ticket, &state, &error);
    if (status == VELOC_E_CLOSED || status == VELOC_E_POISONED) return;  // transfers in flight may still read
    const bool unread = status != VELOC_OK || (state.flags & (VELOC_TICKET_CAPTURED | VELOC_TICKET_GONE)) != 0;
    released.reserve(most);
    if (unread) {
      released.push_back(std::move(kept_.front()));
    } else {
      // Captures overtake each other: the oldest may wait long behind others that are done.
      kept_.push_back(std::move(kept_.front()));
    }
    kept_.pop_front();
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
