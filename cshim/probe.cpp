#include "probe.h"

#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>

namespace velocpy {
namespace {

// Lets the kernel copy one byte, which gives an error instead of a fault.
bool byte_readable(uint64_t address) {
  char byte;
  const iovec here{&byte, 1};
  const iovec there{reinterpret_cast<void*>(address), 1};
  const ssize_t copied = process_vm_readv(getpid(), &here, 1, &there, 1, 0);
  return copied == 1 || (copied < 0 && errno != EFAULT);  // some sandboxes forbid the call: the answer is unknown then
}

}  // namespace

bool readable(uint64_t address, int64_t nbytes) {
  if (nbytes <= 0) return true;
  const auto last = address + static_cast<uint64_t>(nbytes) - 1;
  if (address == 0 || last < address) return false;
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t first_page = address / page * page;
  // On Linux MS_ASYNC only checks that every page is mapped.
  if (msync(reinterpret_cast<void*>(first_page), last - first_page + 1, MS_ASYNC) != 0 && errno == ENOMEM) return false;
  return byte_readable(address) && byte_readable(last);
}

bool writable(uint64_t address, int64_t nbytes) {
  if (nbytes <= 0) return true;
  std::FILE* map = std::fopen("/proc/self/maps", "re");
  if (map == nullptr) return true;  // unknown
  const uint64_t end = address + static_cast<uint64_t>(nbytes);
  uint64_t first, behind;
  char rights[5];
  // The map is sorted: each line that contains the address advances it, until the end or a hole.
  while (address < end && std::fscanf(map, "%" SCNx64 "-%" SCNx64 " %4s%*[^\n]", &first, &behind, rights) == 3) {
    if (behind <= address) continue;
    if (first > address || rights[1] != 'w') break;
    address = behind;
  }
  std::fclose(map);
  return address >= end;
}

}  // namespace velocpy
