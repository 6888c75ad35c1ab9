// The parameter of the kernels of de-duplication: regions of a checkpoint, and where the results go.
#pragma once

#include <stdint.h>

namespace velocpy {
namespace dedup {

// A block of a region's checksum (digest.SumBytes), which one block of threads reads, and a block with a digest of its own.
constexpr uint32_t kTileBytes = 16 << 10;
constexpr uint32_t kBlockBytes = 4 << 10;
constexpr uint32_t kThreads = 256;
constexpr uint32_t kMarkWords = 256;  // words that one block of threads of velocpy_dedup_list reads
constexpr uint32_t kGatherBytes = 16 << 10;
constexpr uint32_t kRegions = 64;  // of a launch

// Chunks are marked in 32-bit words, by tile: a tile has kTileBytes / C bits, in one word or several, in ascending order from the lowest
// bit on. Longer chunks than 512 bytes leave the upper bits of the only word 0. The number of a mark is 32 * word + bit; all marks are less
// than 2^32.
//
// Addresses are multiples of 16 unless stated. All addresses are of memory on the device. Memory of a checkpoint before that the kernels
// overwrite is that of the trees: a failed checkpoint leaves them changed.
struct Regions {
  uint32_t count, tiles;                     // of regions, and of their tiles together
  uint32_t shift;                            // log2 of the chunk length C
  uint32_t blocks;                           // of threads of the launch of velocpy_dedup_gather
  uint64_t leaf_seed, sum_seed, block_seed;  // of full chunks, of checksums, of full blocks

  uint64_t marks;   // multiple of 4: written by a scan
  uint64_t list;    // multiple of 4: the marks of changed chunks, ascending, as 32-bit numbers; room for all chunks
  uint64_t state;   // multiple of 8: a word for each kMarkWords words of marks, zero before velocpy_dedup_list
  uint64_t totals;  // multiple of 8: three words: the changed chunks, the bytes that they are shorter than C together, and where their data
                    // begins
  uint64_t before;  // the totals of the launch before for the same checkpoint, or 0: the data begins where that one's ends
  uint64_t lost;    // multiple of 4: a 32-bit word per region: the bytes that changed chunks of earlier regions are shorter than C together
  uint64_t changed;  // multiple of 4: the bitmap of the method Basic, zero before the first launch, in whole words of 32 bits; or 0
  uint64_t data;     // the first occurrences of the checkpoint
  uint64_t key[16];  // the first words of the secret of leaf_seed: see cuda/xxh3_seeded.h

  // By region. None is empty.
  uint64_t from[kRegions];  // the bytes
  uint64_t bytes[kRegions];
  uint64_t leaves[kRegions];       // digests of the chunks: those of the checkpoint before, which the scan replaces
  uint64_t comparable[kRegions];   // number of leaves that are there and were made from as many bytes as now
  uint64_t sums[kRegions];         // multiple of 8: hashes of the tiles, for the checksum
  uint64_t digests[kRegions];      // of blocks, replaced too; not used by a scan without blocks
  uint64_t old_digests[kRegions];  // number of them that are there
  uint64_t position[kRegions];     // of the first chunk
  uint64_t tail_seed[kRegions];    // of the last chunk, if it is shorter than C
  uint64_t end_seed[kRegions];     // of the last block, if it is shorter than kBlockBytes
  uint32_t first[kRegions];        // number of the first tile
};

static_assert(sizeof(Regions) == 16 + 3 * 8 + 8 * 8 + 16 * 8 + kRegions * (10 * 8 + 4), "filled by the callers");

}  // namespace dedup
}  // namespace velocpy
