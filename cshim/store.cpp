#include "store.h"

#include "failure.h"

namespace velocpy {
namespace {

constexpr int kSlicesForSources = 50;
constexpr int kSliceMilliseconds = 100;

// Whether the status of a close means that the store is closed: its error then is about earlier calls.
bool has_closed(int32_t status) {
  switch (status) {
    case VELOC_OK:
    case VELOC_E_CLOSED:
    case VELOC_E_STALE:
    case VELOC_E_BELATED:
    case VELOC_E_IO:
      return true;
    default:
      return false;
  }
}

}  // namespace

Store::Store(const std::string& config) {
  const Core& table = core();
  veloc_error error;
  Nogil nogil;
  const int32_t status = table.open(config.data(), static_cast<int64_t>(config.size()), &handle_, &error);
  nogil.end();
  if (status < 0) raise(error, {});
}

Store::~Store() {
  const Core* table = core_if_usable();
  if (table == nullptr || handle_ == 0) {
    sources_.leak();
    return;
  }
  try {
    EventFd fd;
    veloc_outcome out{};
    veloc_error error;
    int32_t status = table->close(handle_, fd.get(), &out, &error);
    const uint64_t op = out.op;
    // Waits, for a limited time, only for arrays lent with copy=False.
    for (int slice = 0; status > 0 && sources_.size() > 0 && slice < kSlicesForSources; ++slice) {
      Nogil nogil;
      fd.wait(kSliceMilliseconds);
      status = table->step(op, &out, &error);
      nogil.end();
    }
    if (status > 0) table->cancel(op, nullptr, &error);
    table->abandon(handle_, &error);
    if (!has_closed(status)) sources_.leak();
  } catch (const py::error_already_set&) {
    sources_.leak();  // no descriptor is left: the store ends with the process
  }
}

void Store::close(py::handle timeout) {
  const Core& table = core();
  const Deadline deadline = Deadline::from(timeout);
  veloc_outcome out{};
  veloc_error error;
  int32_t status;
  drive(table, Where{}.waiting_for("end"), deadline, &out, &error, &status,
        [&](int fd, veloc_outcome* o, veloc_error* e) { return table.close(handle_, fd, o, e); });
  if (status < 0 && !has_closed(status)) raise(error, {});
  sources_.release_all();
  if (status == VELOC_E_BELATED || status == VELOC_E_IO) raise(error, {});
}

void Store::wait(const Where& where, uint64_t history, uint64_t ticket, int32_t tier, py::handle timeout) {
  const Core& table = core();
  const Deadline deadline = Deadline::from(timeout);
  veloc_outcome out{};
  veloc_error error;
  int32_t status;
  drive(table, where.waiting_for("promise", tier), deadline, &out, &error, &status,
        [&](int fd, veloc_outcome* o, veloc_error* e) { return table.wait(handle_, history, ticket, tier, fd, o, e); });
  if (status < 0) raise(error, where);
  sources_.drain_all(table, handle_);
}

int64_t Store::resize(const std::string& budgets, py::handle timeout) {
  const Core& table = core();
  const Deadline deadline = Deadline::from(timeout);
  veloc_outcome out{};
  veloc_error error;
  int32_t status;
  drive(table, Where{}.waiting_for("memory"), deadline, &out, &error, &status, [&](int fd, veloc_outcome* o, veloc_error* e) {
    return table.resize(handle_, budgets.data(), static_cast<int64_t>(budgets.size()), fd, o, e);
  });
  if (status < 0) raise(error, {});
  return out.slot_bytes;
}

py::bytes Store::stats() {
  const Core& table = core();
  return py::bytes(filled([&](char* buffer, int64_t capacity, int64_t* length, veloc_error* error) {
    return table.stats(handle_, buffer, capacity, length, error);
  }));
}

py::bytes Store::timeline(bool clear) {
  const Core& table = core();
  return py::bytes(filled([&](char* buffer, int64_t capacity, int64_t* length, veloc_error* error) {
    return table.timeline(handle_, clear ? 1 : 0, buffer, capacity, length, error);
  }));
}

py::tuple Store::ticket(uint64_t ticket) {
  veloc_ticket_state state{};
  veloc_error error;
  const Core& table = core();
  Nogil nogil;
  const int32_t status = table.ticket(handle_, ticket, &state, &error);
  nogil.end();
  if (status < 0) raise(error, {});
  return py::make_tuple(state.flags, state.durable, state.failed);
}

void Store::raise(const veloc_error& error, const Where& where) const {
  if (error.status == VELOC_E_BELATED) raise_belated(error, [this](uint64_t id) { return layouts_.find(id); });
  velocpy::raise(error, where);
}

std::shared_ptr<const Layout> Store::layout(uint64_t id, int64_t slot_bytes, const Where& where) {
  if (auto known = layouts_.find(id)) return known;
  const Core& table = core();
  bool gone = false;
  veloc_error failure{};
  const std::string bytes = filled([&](char* buffer, int64_t capacity, int64_t* length, veloc_error* error) {
    const int32_t status = table.layout(handle_, id, buffer, capacity, length, error);
    gone = status == VELOC_E_NOT_FOUND;
    if (status == VELOC_E_CORRUPT) failure = *error;
    return gone || status == VELOC_E_CORRUPT ? VELOC_OK : status;
  });
  if (gone) return nullptr;
  if (failure.status == VELOC_E_CORRUPT) velocpy::raise(failure, where);
  auto layout = read_layout(bytes.data(), bytes.size());
  check_layout(*layout, slot_bytes);  // the layout may come from a file
  layouts_.put(id, layout);
  return layout;
}

}  // namespace velocpy
