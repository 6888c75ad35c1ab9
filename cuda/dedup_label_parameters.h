// The parameter of the kernels that label the changed chunks of a checkpoint, and the memory that they share.
#pragma once

#include <stdint.h>

#include "dedup_parameters.h"

namespace velocpy {
namespace dedup {

constexpr uint32_t kPartChunks = 4 * kThreads;  // of a list that one block of threads reads
constexpr uint32_t kLevels = 40;

// A region of a checkpoint, in a table in the order of positions. None is empty. Addresses as in Regions.
struct Region {
  uint64_t from, bytes;
  uint64_t leaves;    // digests of the chunks
  uint64_t position;  // of the first chunk
};

// What the kernels have counted. All is zero before the first of them.
struct Counts {
  uint64_t changed;  // chunks
  uint64_t firsts;   // chunks that are first occurrences
  uint64_t bytes;    // of them
  uint64_t first_entries, shift_entries;
  uint64_t recorded;                 // entries of the record
  uint64_t first_nodes[kLevels];     // nodes that are first occurrences, by level
  uint64_t shift_nodes[kLevels];     // … shifted duplicates
  uint64_t joined_nodes[kLevels];    // first occurrences with two children
  uint64_t recorded_nodes[kLevels];  // those of them that are new to the record; level 0: chunks
};

// What was counted up to the end of a cut of the checkpoint.
struct CutEnd {
  uint64_t changed, firsts, bytes;
};

// A shifted duplicate, and where its bytes are.
struct Shift {
  uint64_t entry;  // position << 24 | level
  uint64_t checkpoint, offset;
};

// The record is a hash table with open addressing. A slot that has no entry is all ones.
struct Slot {
  uint64_t digest[2];
  uint64_t offset_bytes;      // offset in the first occurrences of the checkpoint; from bit 48 on the low 16 bits of the length
  uint64_t bytes_checkpoint;  // from bit 32 on the high bits of the length, below them the checkpoint
};

// A changed chunk is called by its number in the list of changed chunks. A node all of whose chunks have changed is called by the number of
// its first chunk, and a node with two children also by that of the first chunk of its right child, which no other node is called by.
//
// Up to velocpy_dedup_gather_firsts a launch works on one cut of the checkpoint, and the cuts follow each other: so the first occurrences
// of one can be copied while the next is labelled. A cut is a range of words of the bitmap.
//
// Addresses are multiples of 16 unless stated. Arrays without a length have an element for each changed chunk: all chunks may have changed.
// All positions are less than 2^32, and at most 2^31 chunks have changed.
//
// If oldest is not 0, velocpy_dedup_sweep removes the entries of checkpoints before it: before all of these launches, or after
// velocpy_dedup_list_shifts. The launches behind it get the record that it has made: else the digests of those entries would not be new to
// the record.
struct Labels {
  uint32_t regions, shift;         // log2 of the chunk length C
  uint32_t checkpoint, oldest;     // places in the record of checkpoints before the oldest are not used
  uint32_t level;                  // of the nodes that a wave reads
  uint32_t tree;                   // 1: chunks are joined to nodes
  uint32_t mask;                   // the slots of each of the two tables, less 1: at least twice the changed chunks, and a power of two
  uint32_t blocks;                 // of threads of a launch that does not read parts
  uint32_t cut, reserved;          // number of the cut
  uint64_t first_word, words;      // of the bitmap: those before the cut, and those of it
  uint64_t node_seed, key[4];      // the first words of its secret
  uint64_t slots, capacity;        // of the record; there are more slots than its capacity, or none
  uint64_t table;                  // Region[regions]
  uint64_t changed;                // the bitmap of all positions
  uint64_t counts;                 // Counts
  uint64_t ends;                   // multiple of 8: CutEnd of what is before the first cut, which is zero, and of each cut
  uint64_t before;                 // multiple of 8: the number of entries of the record before this checkpoint
  uint64_t state;                  // multiple of 8: two words for each block of threads, zero before the launch
  uint64_t list;                   // multiple of 4: the positions of the changed chunks, as 32-bit numbers
  uint64_t firsts, shifts;         // multiple of 4: numbers of the changed chunks that are first occurrences, and of the others
  uint64_t from, to, spare;        // multiple of 4: nodes of the wave that is read, of the next one, and of that behind it
  uint64_t sources;                // multiple of 8: see source_of
  uint64_t flags, extent, joined;  // bytes
  uint64_t nodes;                  // digests of nodes with two children, by their right one
  uint64_t chunk_table;            // multiple of 4: 32-bit numbers of changed chunks, all ones before
  uint64_t node_table;             // … of nodes with two children
  uint64_t record;                 // Slot[slots]
  uint64_t data;                   // the first occurrences
  uint64_t first_entries;          // multiple of 8: position << 24 | level
  uint64_t shift_entries;          // multiple of 8: Shift
};

static_assert(sizeof(Labels) == 10 * 4 + 9 * 8 + 23 * 8, "filled by the callers");

// A record that is copied to another one, without the entries of some checkpoints.
struct Sweep {
  uint64_t record, slots;   // Slot[slots]
  uint64_t to, to_slots;    // has no entries
  uint64_t recorded;        // multiple of 8: counts the entries that are copied
  uint64_t forgotten;       // multiple of 4: checkpoints, ascending, as 32-bit numbers
  uint32_t count, oldest;   // of them; no entry of a checkpoint before the oldest is copied
  uint32_t blocks, unused;  // of threads
};

static_assert(sizeof(Sweep) == 8 * 8, "filled by the callers");

}  // namespace dedup
}  // namespace velocpy
