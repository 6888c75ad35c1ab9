// Checks whether raw memory that a caller names is mapped.
#pragma once

#include <cstdint>

namespace velocpy {

// False if some page of [address, address + nbytes) is not mapped or its ends cannot be read. True proves nothing about ownership:
// memory that was freed but not returned to the system looks valid. Touches no byte; needs no GIL.
bool readable(uint64_t address, int64_t nbytes);

// False if some page of it may not be written. Reads the process's memory map, which takes tens of microseconds and more.
bool writable(uint64_t address, int64_t nbytes);

}  // namespace velocpy
