#include "loader.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "failure.h"
#include "fork.h"

namespace velocpy {
namespace {

Core g_core;
bool g_loaded = false;
std::string g_path;

// The threads of a probe wait here until all of them have been started.
struct Gate {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
};

void* pass(void* gate) {
  pthread_mutex_t* mutex = &static_cast<Gate*>(gate)->mutex;
  pthread_mutex_lock(mutex);
  pthread_mutex_unlock(mutex);
  return nullptr;
}

std::string loader_error() {
  const char* text = dlerror();
  return text ? text : "no reason given";
}

[[noreturn]] void raise_not_opened(const std::string& path, const std::string& reason) {
  std::string text = "the core cannot be opened: " + reason + ".";
  if (access(path.c_str(), R_OK) != 0) {
    text += " There is no readable file at " + path +
            ": the package was installed without its core. Reinstall it, or point VELOCPY_CORE at a prebuilt core.";
  } else if (reason.find("TLS") != std::string::npos) {
    text += " Other libraries have used up the static TLS block: import velocpy and open a store earlier in the program.";
  } else if (std::getenv("LD_BIND_NOW") != nullptr) {
    text += " LD_BIND_NOW is set, and the core needs lazy binding: start Python without it.";
  }
  raise_unavailable(text);
}

Core table_of(void* library, const std::string& path) {
  Core table;
#define VELOC_FETCH(name)                                                              \
  table.name = reinterpret_cast<decltype(table.name)>(dlsym(library, "veloc_" #name)); \
  if (table.name == nullptr) raise_unavailable(path + " is no core of velocpy: " + loader_error() + ".");
  VELOC_FUNCTIONS(VELOC_FETCH)
#undef VELOC_FETCH
  return table;
}

void require_version(const Core& table, const std::string& path) {
  const uint32_t version = table.abi_version();
  if (version != VELOC_ABI_VERSION) {
    raise_unavailable("the core at " + path + " speaks version " + std::to_string(version) + " of the contract, this package version " +
                      std::to_string(VELOC_ABI_VERSION) +
                      ". Install both from one release; in a notebook, restart the kernel after an upgrade.");
  }
}

}  // namespace

void load(const std::string& path, const std::string& config) {
  if (forked()) raise_forked();
  if (!g_loaded) {
    core_lives_here();
    // Lazy: the core may name symbols of libraries that this machine lacks. Local: two Go libraries must not see each other's
    // symbols.
    void* library = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) raise_not_opened(path, loader_error());
    Core table = table_of(library, path);
    require_version(table, path);
    g_core = table;
    g_path = path;
  }
  veloc_error error;
  const int32_t status = g_core.init(config.data(), static_cast<int64_t>(config.size()), &error);
  if (status < 0) raise(error, {});
  g_loaded = true;
}

int startable_threads(int count) {
  Gate gate;
  std::vector<pthread_t> threads;
  threads.reserve(static_cast<size_t>(std::max(count, 0)));
  pthread_mutex_lock(&gate.mutex);
  for (pthread_t thread; static_cast<int>(threads.size()) < count && pthread_create(&thread, nullptr, pass, &gate) == 0;)
    threads.push_back(thread);
  pthread_mutex_unlock(&gate.mutex);
  for (pthread_t thread : threads) pthread_join(thread, nullptr);
  return static_cast<int>(threads.size());
}

bool loaded() noexcept { return g_loaded; }

const std::string& loaded_from() { return g_path; }

const Core& core() {
  if (__builtin_expect(forked(), 0)) raise_forked();
  if (__builtin_expect(!g_loaded, 0)) raise_unavailable("the core has not been loaded: open a store first.");
  return g_core;
}

const Core* core_if_usable() noexcept { return g_loaded && !forked() ? &g_core : nullptr; }

}  // namespace velocpy
