// Whether raw memory that a caller names is there at all.
#pragma once

#include <cstdint>

namespace velocpy {

// False when some page of [address, address + nbytes) is not mapped or its ends cannot be read. True proves nothing about ownership:
// memory that was freed but not given back to the system still looks fine. Touches no byte; needs no GIL.
bool readable(uint64_t address, int64_t nbytes);

// False when some page of it may not be written. Reads the process's map, which takes tens of microseconds and more.
bool writable(uint64_t address, int64_t nbytes);

}  // namespace velocpy
