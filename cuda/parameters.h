// The parameters of the kernels: one struct per launch, filled by gocore/device/cuda/kernel. The constants below define its layout; a
// test of that package reads them from here.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace velocpy {

// A leaf of the checksum, as gocore/base/checksum defines it.
constexpr uint32_t kLeafBytes = 256 << 10;

// The number of elements that one block of a strided kernel moves without transposing, and the side of the square tile when it
// transposes: for elements of up to 4 bytes, and for larger ones.
constexpr uint32_t kStridedElements = 8192;
constexpr uint32_t kSmallSide = 64;
constexpr uint32_t kLargeSide = 32;

// Threads of a block.
constexpr uint32_t kPackThreads = 256;
constexpr uint32_t kSumThreads = 288;
constexpr uint32_t kStridedThreads = 256;
constexpr uint32_t kCodecThreads = 256;

// A chunk of the codec, as gocore/reduction/codec defines it.
constexpr uint32_t kChunkBytes = 16 << 10;
constexpr uint32_t kLocateChunks = 1 << 10;

// Pieces are dense ranges of bytes, cut into units of `unit` bytes; a block of threads processes one unit. Unit u belongs to the last
// piece whose `first` is not above u. No piece is empty.
template <int N>
struct Pieces {
  uint64_t sums;  // address of an array of 8-byte words, one per unit; ignored by kernels without sums
  uint32_t count;
  uint32_t units;
  uint32_t unit;
  uint32_t reserved;
  uint64_t to[N];
  uint64_t from[N];
  uint64_t bytes[N];
  uint32_t first[N];
  uint32_t sum[N];  // index in sums of the hash of the first unit
};

// Arrays are strided; `slot` is the dense form of each. A layout is the number of its first axis in the pool, | its axes << 16 (1 to
// 8, the last one fastest), | log2 of an element's bytes << 20 (0 to 4), | 1 + the axis to transpose << 24: an axis whose elements
// are adjacent in memory while the last axis's are not; 0 for none. Base, strides and slot are multiples of an element's bytes; an
// array has less than 2^31 elements.
template <int N, int A>
struct Arrays {
  uint32_t count;
  uint32_t units;
  uint64_t slot[N];
  uint64_t mem[N];
  uint32_t elements[N];
  uint32_t first[N];
  uint32_t layout[N];
  int64_t stride[A];  // in bytes
  uint32_t length[A];
};

// A region to encode. The kernel of a kind of elements writes the tables and the payloads of the container; the host adds the header
// (codec.SealTables). One block of threads per chunk. Addresses have any alignment unless stated.
struct Encoding {
  uint64_t plain;
  uint64_t reference;  // the same region in an earlier checkpoint; 0 if there is none
  uint64_t bytes;      // of the region, at least 1
  uint64_t container;  // a multiple of 16, with codec.Bound bytes
  uint64_t state;      // 8 bytes a chunk, a multiple of 8, all zero before the launch
  uint64_t length;     // 8 bytes, a multiple of 8, for the length of the container
  uint32_t modes;      // the set of allowed modes, bit m for mode m
  uint32_t reserved;
};

// Tables of a container whose payloads are located: one block of threads for each kLocateChunks chunks. The host has verified the tables.
struct Locating {
  uint64_t bytes;      // of the region, at least 1
  uint64_t container;  // a multiple of 16
  uint64_t state;      // 8 bytes a block of threads, a multiple of 8, all zero before the launch
  uint64_t offsets;    // the offsets of struct Decoding
};

// Chunks to decode: those from `first` on, one per block of threads. The host has verified the header and the tables.
struct Decoding {
  uint64_t plain;      // the region, of which only these chunks are written
  uint64_t reference;  // as for the encoding
  uint64_t bytes;      // of the region
  uint64_t container;  // a multiple of 16
  uint64_t offsets;    // u64 for each of the region's chunks, a multiple of 16: where its payload begins in the container
  uint64_t faults;     // a byte for each of the region's chunks, which gets one of the values below
  uint32_t first;
  uint32_t reserved;
};

constexpr uint8_t kFaultNone = 0, kFaultMalformed = 1, kFaultHash = 2;

// Containers that are encoded or decoded together, all of one kind of elements and without reference. One block of threads per chunk: block
// b belongs to the last container whose `first` is not above b. To decode, payloads are located first, by one block for each container. No
// byte of a container is trusted then.
constexpr uint32_t kContainers = 126;
struct Containers {
  uint64_t scratch;  // 8 bytes a block, a multiple of 8: to encode, zeros before the launch; to decode, where its payload begins
  uint64_t results;  // 8 bytes a container, a multiple of 8: its length, or 1 if it is damaged
  uint32_t count;
  uint32_t blocks;
  uint32_t modes;  // the set of allowed modes, bit m for mode m
  uint32_t reserved;
  uint64_t plain[kContainers];
  uint64_t container[kContainers];  // a multiple of 16
  uint32_t bytes[kContainers];      // plain ones, at least 1
  uint32_t length[kContainers];     // to decode: nothing behind it is read. It is not below codec.PayloadsAt
  uint32_t first[kContainers];
  uint32_t result[kContainers];  // index in results
};

// Containers that have a reference each: as many bytes as the plain ones, at any address. To decode, that may be the address of the
// plain bytes, which replace the reference then. The kernel that locates payloads takes `containers` alone.
struct Referenced {
  Containers containers;
  uint64_t reference[kContainers];
};

// Words of 8 bytes that are to be zero; a block of threads clears kClearWords of them.
constexpr uint32_t kClearWords = 2048;
struct Clearing {
  uint64_t at;  // a multiple of 8
  uint64_t words;
};

static_assert(sizeof(Encoding) == 56 && sizeof(Decoding) == 56 && sizeof(Locating) == 32, "filled by the callers");
static_assert(sizeof(Containers) == 4064 && sizeof(Clearing) == 16, "filled by the callers");
static_assert(sizeof(Referenced) == 5072, "filled by the callers");
static_assert(offsetof(Containers, count) == 16 && offsetof(Containers, plain) == 32, "Containers");
static_assert(offsetof(Containers, container) == 1040 && offsetof(Containers, bytes) == 2048, "Containers");
static_assert(offsetof(Containers, length) == 2552, "Containers");
static_assert(offsetof(Containers, first) == 3056 && offsetof(Containers, result) == 3560, "Containers");
static_assert(offsetof(Referenced, containers) == 0 && offsetof(Referenced, reference) == 4064, "Referenced");

// Two sizes of each struct, as the driver copies the whole struct at every launch.
constexpr int kMany = 1020, kFew = 28;
constexpr int kManyArrays = 448, kManyAxes = 1680, kFewArrays = 16, kFewAxes = 64;

using ManyPieces = Pieces<kMany>;
using FewPieces = Pieces<kFew>;
using ManyArrays = Arrays<kManyArrays, kManyAxes>;
using FewArrays = Arrays<kFewArrays, kFewAxes>;

// The constants of a struct in its two sizes, many and few.
#define VELOCPY_SIZE(type, many, few)                        \
  static_assert(sizeof(Many##type) == (many), "Many" #type); \
  static_assert(sizeof(Few##type) == (few), "Few" #type)
#define VELOCPY_OFFSET(type, member, many, few)                                    \
  static_assert(offsetof(Many##type, member) == (many), "Many" #type "." #member); \
  static_assert(offsetof(Few##type, member) == (few), "Few" #type "." #member)

VELOCPY_SIZE(Pieces, 32664, 920);
VELOCPY_OFFSET(Pieces, sums, 0, 0);
VELOCPY_OFFSET(Pieces, count, 8, 8);
VELOCPY_OFFSET(Pieces, units, 12, 12);
VELOCPY_OFFSET(Pieces, unit, 16, 16);
VELOCPY_OFFSET(Pieces, to, 24, 24);
VELOCPY_OFFSET(Pieces, from, 8184, 248);
VELOCPY_OFFSET(Pieces, bytes, 16344, 472);
VELOCPY_OFFSET(Pieces, first, 24504, 696);
VELOCPY_OFFSET(Pieces, sum, 28584, 808);

VELOCPY_SIZE(Arrays, 32712, 1224);
VELOCPY_OFFSET(Arrays, count, 0, 0);
VELOCPY_OFFSET(Arrays, units, 4, 4);
VELOCPY_OFFSET(Arrays, slot, 8, 8);
VELOCPY_OFFSET(Arrays, mem, 3592, 136);
VELOCPY_OFFSET(Arrays, elements, 7176, 264);
VELOCPY_OFFSET(Arrays, first, 8968, 328);
VELOCPY_OFFSET(Arrays, layout, 10760, 392);
VELOCPY_OFFSET(Arrays, stride, 12552, 456);
VELOCPY_OFFSET(Arrays, length, 25992, 968);

}  // namespace velocpy
