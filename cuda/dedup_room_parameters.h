// The parameters of the kernels that prepare the memory of a de-duplication, and that put its results together.
#pragma once

#include <stdint.h>

namespace velocpy {
namespace dedup {

// Words of 64 bits that get a value.
struct Filling {
  uint64_t at;  // multiple of 8
  uint64_t words, value;
  uint32_t blocks, unused;  // of threads
};

static_assert(sizeof(Filling) == 4 * 8, "filled by the callers");

// What a checkpoint has in common with those before it. The first occurrences lie at `to`. Behind them, from the next multiple of 8 on, the
// kernel puts the hashes of the tiles, the bitmap, the entries of first occurrences and those of shifted duplicates.
struct Consolidated {
  uint64_t counts;                        // Counts, or 0: then the totals of the launches say what was found
  uint64_t totals;                        // multiple of 8: those of all launches that list changed chunks, in order
  uint32_t launches, shift;               // of them; log2 of the chunk length
  uint64_t to;                            // multiple of 16
  uint64_t sums, sum_words;               // multiple of 8
  uint64_t changed, changed_words;        // multiple of 8: the bitmap, in words of 64 bits
  uint64_t first_entries, shift_entries;  // multiples of 8: as many as are counted
  uint64_t recorded;                      // multiple of 8: the number of entries of the record, or 0 if there is none
  uint64_t results;                       // multiple of 8: Results
  uint32_t adds, blocks;                  // 1: the record has as many entries as are counted; blocks of threads
};

static_assert(sizeof(Consolidated) == 13 * 8, "filled by the callers");

// What the host gets.
struct Results {
  uint64_t changed, bytes, first_entries, shift_entries, recorded;
};

}  // namespace dedup
}  // namespace velocpy
