// The codec of gocore/reduction/codec: kernels that write the same bytes (docs/reduction-format.md), and read them.
//
// A block of threads encodes or decodes one chunk, which its registers hold. Encoding stages the payload in shared memory, so that it
// leaves in whole vectors once the block knows its place. The blocks find their places by look-back, in the same pass. Decoding stages the
// payload as well, so that a malformed one cannot cause reads elsewhere.
#pragma once

#include <type_traits>

#include "codec_chunk.cuh"
#include "codec_diff.cuh"
#include "codec_exponent.cuh"
#include "codec_words.cuh"
#include "codec_xor.cuh"
#include "lookback.cuh"
#include "machine.cuh"
#include "parameters.h"

namespace velocpy {

constexpr uint32_t kChunkVectors = kChunkBytes / 16;
constexpr uint32_t kNever = ~0u;  // a size that no chunk has

// Which warp does what alone. Without a reference the warps of kStep and of the reference's hash look for codes too.
constexpr uint32_t kPlacingWarp = 0, kStepWarp = 2, kCodesWarp = 4, kReferenceWarp = 6, kHashWarp = 7;  // each up to the next one

// The shared memory of a block that encodes.
template <class K, bool R>
struct EncodeRoom {
  Vector payload[kChunkVectors + 1];
  Vector planes[R ? kChunkVectors : 1];
  Sums sums;
  std::conditional_t<R, Sums, uint64_t> reference_sums;
  Vector last[R ? 2 : 1][kCodecWarps];  // the last vector of each warp: of the chunk, of the reference
  Blocks diff[2];                       // by order
  Blocks step[R ? 2 : 1];
  uint64_t first;  // the first 8 bytes
  uint64_t reference_hash;
  Ranges ranges;
  uint32_t sizes[kModes], second[2];  // second: of order 2, for kDiff and kStep
  uint32_t plane_counts[kCodecWarps], escape_counts[kCodecWarps];
  uint64_t before;  // bytes of payloads of the chunks before
};

// The exponents are counted where the payload is written later.
template <class K, bool R>
VELOCPY_DEVICE uint32_t* exponent_counts(EncodeRoom<K, R>& room) {
  static_assert(sizeof room.payload >= sizeof(uint32_t) << K::kExponent, "it has space for them");
  return reinterpret_cast<uint32_t*>(room.payload);
}

// Where a block puts its chunk.
struct Target {
  uint64_t container, state;  // state is that of the container's first block
  uint64_t length;            // for the length of the container
  uint64_t chunks;            // of the container
  uint32_t number;            // of the chunk
};

// One block's encoding.
template <class K, bool R>
struct Encoder {
  static constexpr uint32_t S = K::kSize;
  EncodeRoom<K, R>& room;
  Chunk chunk;
  uint32_t blocks, tail, allowed;
  Share x, reference;
  Marks marks;

  VELOCPY_DEVICE bool allows(uint32_t mode) const { return allowed >> mode & 1; }

  // The differences of kDiff or kStep.
  VELOCPY_DEVICE Differences<K, R> differences(uint32_t mode) const {
    Differences<K, R> d = {x, reference, chunk.words, mode == kStep ? ~0u : 0, {}};
    d.set_edge(room.last[0], room.last[R ? 1 : 0]);
    return d;
  }

  // Reads the chunk.
  VELOCPY_DEVICE void begin() {
    load_share<K>(x, chunk.plain, chunk.words, room.payload);
    if (R) load_share<K>(reference, chunk.reference, chunk.words, room.payload);
    if (allows(kExp))
      for (uint32_t i = thread_index(); i < 1u << K::kExponent; i += kCodecThreads) exponent_counts(room)[i] = 0;
    if (thread_index() < kMostCodeBits) room.ranges[thread_index()] = 0;
    if (lane_index() == 31) {
      room.last[0][warp_index()] = x.pass[kPasses - 1];
      if (R) room.last[R ? 1 : 0][warp_index()] = reference.pass[kPasses - 1];
    }
    if (thread_index() == 0) room.first = low_half(x.pass[0]);
    sync_block();
  }

  // Whether the thread has a word that is not the first.
  VELOCPY_DEVICE bool differs() const {
    Vector first = repeated<S>(room.first);
    uint32_t different = 0;
#pragma unroll
    for (uint32_t pass = 0; pass < kPasses; pass++) {
      Vector mask = {{~0u, ~0u, ~0u, ~0u}};
      if (chunk.words != K::kChunkWords) mask = words_mask<S>(valid_words<K>(chunk.words, pass));
#pragma unroll
      for (uint32_t i = 0; i < 4; i++) different |= (x.pass[pass].word[i] ^ first.word[i]) & mask.word[i];
    }
    return different != 0;
  }

  // Fills in the sizes of the allowed modes. Has barriers.
  VELOCPY_DEVICE void measure(const Target& p) {
    sum_chunk(x, chunk.bytes == kChunkBytes, room.sums);
    if constexpr (R) {
      if (allows(kXrz) || allows(kStep)) sum_chunk(reference, chunk.bytes == kChunkBytes, room.reference_sums);
    }
    if constexpr (K::kExponent != 0) {
      if (allows(kExp)) count_exponents<K>(x, chunk.words, exponent_counts(room));
    }
#pragma unroll 1
    for (uint32_t mode = kDiff; mode <= (R ? kStep : kDiff); mode += kStep - kDiff)
      if (allows(mode)) measure_widths(mode == kDiff ? room.diff : room.step, differences(mode));
    if (R && allows(kXrz)) {
#pragma unroll
      for (uint32_t pass = 0; pass < kPasses; pass++) {
        Vector d;
#pragma unroll
        for (uint32_t i = 0; i < 4; i++) d.word[i] = x.pass[pass].word[i] ^ reference.pass[pass].word[i];
        store_planes<K>(reinterpret_cast<uint8_t*>(room.planes), pass, d);
      }
    }
    bool different = sync_any(allows(kConst) && differs());
    uint32_t warp = warp_index();
    if (warp == kHashWarp) {
      uint64_t hash = hash_chunk(room.sums, chunk.plain, chunk.bytes);
      if (lane_index() == 0) reinterpret_cast<uint64_t*>(tables(p.container, p.chunks).hashes)[p.number] = hash;
    }
    if (allows(kDiff) && (warp == kPlacingWarp || warp == kPlacingWarp + 1)) {
      uint32_t n = place_blocks<K>(room.diff[warp - kPlacingWarp], blocks) + tail;
      if (lane_index() == 0) (warp == kPlacingWarp ? room.sizes[kDiff] : room.second[0]) = n;
    }
    if constexpr (K::kExponent != 0) {
      constexpr uint32_t kFrom = R ? kCodesWarp : kStepWarp, kTo = R ? kReferenceWarp : kHashWarp;
      if (kFrom <= warp && warp < kTo && allows(kExp)) find_ranges<K>(room.ranges, exponent_counts(room), warp - kFrom, kTo - kFrom);
    }
    if constexpr (R) {
      if (warp == kReferenceWarp && (allows(kXrz) || allows(kStep))) {
        uint64_t hash = hash_chunk(room.reference_sums, chunk.reference, chunk.bytes);
        if (lane_index() == 0) room.reference_hash = hash;
      }
    }
    if (R && allows(kStep) && (warp == kStepWarp || warp == kStepWarp + 1)) {
      uint32_t n = kReferenceHead + place_blocks<K>(room.step[R ? warp - kStepWarp : 0], blocks) + tail;
      if (lane_index() == 0) (warp == kStepWarp ? room.sizes[kStep] : room.second[1]) = n;
    }
    if (R && allows(kXrz)) measure_planes<K>(marks, reinterpret_cast<const uint8_t*>(room.planes), room.plane_counts);
    if (thread_index() == 0) room.sizes[kConst] = different ? kNever : S + tail;
    sync_block();
  }

  // Returns the mode with the smallest payload, of equal ones the first, and its size.
  VELOCPY_DEVICE uint32_t choose(uint32_t& size, Forms& forms, Codes& codes) const {
    if (R && allows(kXrz)) forms = choose_forms<K>(room.plane_counts, chunk.words);
    uint32_t exp = kNever;
    if constexpr (K::kExponent != 0) {
      if (allows(kExp)) {
        codes = choose_codes<K>(room.ranges, chunk.words);
        exp = exp_bytes<K>(codes, (chunk.words + 31) / 32) + tail;
      }
    }
    uint32_t best = kRaw;
    size = chunk.bytes;
#pragma unroll
    for (uint32_t mode = kConst; mode < kModes; mode++) {
      if (!allows(mode)) continue;
      uint32_t n = R && mode == kXrz ? kReferenceHead + forms.bytes + tail : mode == kExp ? exp : room.sizes[mode];
      if (mode == kDiff || mode == kStep) n = smaller(n, room.second[mode == kStep]);
      if (n >= size) continue;
      size = n;
      best = mode;
    }
    return best;
  }

  // Stages a payload. Has barriers, but none at the end. That of a whole chunk in kRaw is not staged: see run.
  VELOCPY_DEVICE void write(uint32_t mode, uint32_t size, const Forms& forms, const Codes& codes) {
    auto* payload = reinterpret_cast<uint8_t*>(room.payload);
    if (thread_index() < round_up(size, 16) - size) payload[size + thread_index()] = 0;
    if (mode == kRaw) {
      if (chunk.bytes == kChunkBytes) return;
#pragma unroll
      for (uint32_t pass = 0; pass < kPasses; pass++) store(&room.payload[vector_index(pass)], x.pass[pass]);
      if (tail != 0) sync_block();
    }
    if (thread_index() < tail)
      payload[size - tail + thread_index()] = reinterpret_cast<const uint8_t*>(chunk.plain)[chunk.words * S + thread_index()];
    if (mode == kConst && thread_index() < S) payload[thread_index()] = static_cast<uint8_t>(room.first >> 8 * thread_index());
    uint32_t order = (mode == kDiff || mode == kStep) && room.second[mode == kStep] < room.sizes[mode] ? 2 : 1;
    if constexpr (K::kExponent != 0) {
      if (mode == kExp) write_exp<K>(payload, x, chunk.words, codes, room.escape_counts);
    }
    uint32_t head = mode >= kXrz ? kReferenceHead : 0;
    if (R && head != 0 && thread_index() == 0) {
      room.payload[0].word[0] = static_cast<uint32_t>(room.reference_hash);
      room.payload[0].word[1] = 0;
    }
    uint8_t* body = payload + head;
    if (R && mode == kXrz) write_xor<K>(body, reinterpret_cast<const uint8_t*>(room.planes), marks, forms, room.plane_counts, chunk.words);
    if (mode == kDiff || mode == kStep) {
      const Blocks* list = mode == kDiff ? room.diff : room.step;
      write_diff<K>(body, list[order - 1], order, size - tail - head, differences(mode));
    }
  }

  // Encodes the chunk and writes its part of the container.
  VELOCPY_DEVICE void run(const Target& p) {
    auto* state = reinterpret_cast<uint64_t*>(p.state);
    begin();
    measure(p);
    uint32_t size;
    Forms forms = {};
    Codes codes = {};
    uint32_t mode = choose(size, forms, codes), rounded = round_up(size, 16);
    if (thread_index() == 0) publish_own(state, p.number, rounded);
    write(mode, size, forms, codes);
    if (warp_index() == kPlacingWarp) {
      uint64_t before = sum_of_blocks(state, p.number, rounded);
      if (lane_index() == 0) room.before = before;
    }
    sync_block();
    Tables t = tables(p.container, p.chunks);
    uint64_t to = t.payloads + room.before;
    if (mode == kRaw && chunk.bytes == kChunkBytes) {
#pragma unroll
      for (uint32_t pass = 0; pass < kPasses; pass++) store(reinterpret_cast<Vector*>(to) + vector_index(pass), x.pass[pass]);
    } else {
      for (uint32_t v = thread_index(); v < rounded / 16; v += kCodecThreads) store(reinterpret_cast<Vector*>(to) + v, room.payload[v]);
    }
    if (thread_index() != 0) return;
    reinterpret_cast<uint16_t*>(t.lengths)[p.number] = static_cast<uint16_t>(size);
    reinterpret_cast<uint8_t*>(t.modes)[p.number] = static_cast<uint8_t>(mode);
    if (p.number + 1 == p.chunks) *reinterpret_cast<uint64_t*>(p.length) = to + rounded - p.container;
  }
};

template <class K, bool R>
VELOCPY_DEVICE void encode_to(const Target& to, const Chunk& chunk, uint32_t modes) {
  VELOCPY_SHARED EncodeRoom<K, R> room;
  uint32_t allowed = chunk.words == 0 ? 0 : modes & ((1 << kModes) - 1);
  if (K::kExponent == 0) allowed &= ~(1u << kExp);
  if (!R) allowed &= ~(1u << kXrz | 1u << kStep);
  Encoder<K, R> encoder = {room, chunk, blocks_of<K>(chunk.words), chunk.bytes % K::kSize, allowed, {}, {}, {}};
  encoder.run(to);
}

template <class K, bool R>
VELOCPY_DEVICE void encode_chunk(const Encoding& p) {
  Target to = {p.container, p.state, p.length, (p.bytes - 1) / kChunkBytes + 1, block_index()};
  encode_to<K, R>(to, chunk_of(p.plain, p.reference, p.bytes, to.number, K::kSize), p.modes);
}

// The containers of a launch, and the reference of one of them, which is 0 at compile time for a launch without references.
VELOCPY_DEVICE const Containers& containers_of(const Containers& p) { return p; }
VELOCPY_DEVICE const Containers& containers_of(const Referenced& p) { return p.containers; }
VELOCPY_DEVICE uint64_t reference_of(const Containers&, uint32_t) { return 0; }
VELOCPY_DEVICE uint64_t reference_of(const Referenced& p, uint32_t i) { return p.reference[i]; }

// Encodes one chunk of several containers.
template <class K, class P>
VELOCPY_DEVICE void encode_containers(const P& launch) {
  const Containers& p = containers_of(launch);
  uint32_t i = find(p.first, p.count, block_index()), first = p.first[i];
  Target to = {p.container[i], p.scratch + 8 * first, p.results + 8 * p.result[i], (p.bytes[i] - 1) / kChunkBytes + 1,
               block_index() - first};
  Chunk chunk = chunk_of(p.plain[i], reference_of(launch, i), p.bytes[i], to.number, K::kSize);
  encode_to<K, std::is_same<P, Referenced>::value>(to, chunk, p.modes);
}

// The shared memory of a block that decodes.
struct DecodeRoom {
  Vector payload[kChunkVectors + 2];  // reads of up to 16 bytes behind a payload are harmless
  Vector planes[kChunkVectors];       // of kXrz
  Sums sums;
  Blocks blocks;
  Rows rows;
  uint64_t totals[kCodecWarps];
  PlaneStart starts[8];
  uint32_t counts[kCodecWarps];
  bool found;  // the planes of kXrz
};

// One block's decoding.
template <class K>
struct Decoder {
  static constexpr uint32_t S = K::kSize;
  DecodeRoom& room;
  Chunk chunk;
  uint32_t mode, bytes;  // of the payload
  Share x;

  // Whether the payload is the whole chunk: its vectors are read where they are written.
  VELOCPY_DEVICE bool direct() const { return mode == kRaw && bytes == kChunkBytes && chunk.bytes == kChunkBytes; }

  // Stages the payload. Behind it follow zeros up to a whole vector.
  VELOCPY_DEVICE void stage(uint64_t from) {
#pragma unroll
    for (uint32_t i = 0; i < kPasses; i++) {
      uint32_t v = i * kCodecThreads + thread_index();
      if (v < (bytes + 15) / 16) room.payload[v] = load(reinterpret_cast<const Vector*>(from) + v);
    }
    sync_block();
  }

  // Each of these reads the words of a body and returns whether the thread found it malformed. They have barriers.
  VELOCPY_DEVICE bool read_diff(uint32_t head, uint32_t body_bytes) {
    auto* body = reinterpret_cast<const uint8_t*>(room.payload) + head;
    auto* words = reinterpret_cast<const uint32_t*>(body);
    uint32_t planes, order = words[S == 8 ? 2 : 1];
    if (read_widths<K>(room.blocks, room.rows, blocks_of<K>(chunk.words), body, body_bytes, planes) || order < 1 || order > 2) return true;
    read_planes<K>(x, room.blocks, body + planes);
    uint64_t base = S == 8 ? pair(words[0], words[1]) : words[0];
#pragma unroll 1
    for (uint32_t n = order; n > 0; n--) sum_chunk_words<K>(x, n == 1 ? base : 0, room.totals);
    return false;
  }

  VELOCPY_DEVICE bool read_xor(uint32_t head, uint32_t body_bytes) {
    auto* payload = reinterpret_cast<const uint8_t*>(room.payload);
    auto* planes = reinterpret_cast<uint8_t*>(room.planes);
    if (warp_index() == kPlacingWarp) {
      bool found = find_planes<K>(room.starts, payload + head, body_bytes, chunk.words);
      if (lane_index() == 0) room.found = found;
    }
    sync_block();
    if (!room.found) return true;
    bool bad = read_planes_of_bytes<K>(planes, payload, head, room.starts, chunk.words, room.counts);
#pragma unroll
    for (uint32_t pass = 0; pass < kPasses; pass++) x.pass[pass] = load_planes<K>(planes, pass);
    return bad;
  }

  // Reads the words of the payload. Returns whether the thread found it malformed. All threads return at the same barrier.
  VELOCPY_DEVICE bool read() {
    uint32_t tail = chunk.bytes % S, head = mode >= kXrz ? kReferenceHead : 0;
    auto* payload = reinterpret_cast<const uint8_t*>(room.payload);
    if (mode >= kModes) return true;
    if (mode == kRaw) {
#pragma unroll
      for (uint32_t pass = 0; pass < kPasses; pass++) x.pass[pass] = room.payload[vector_index(pass)];
      return bytes != chunk.bytes;
    }
    if (chunk.words == 0 || bytes < tail + head || (mode >= kXrz && chunk.reference == 0)) return true;
    uint32_t body_bytes = bytes - tail - head;
    if (head != 0 && reinterpret_cast<const uint32_t*>(payload)[1] != 0) return true;
    if (mode == kConst) {
      Vector v = repeated<S>(word_at<S>(reinterpret_cast<uint64_t>(payload)));
#pragma unroll
      for (uint32_t pass = 0; pass < kPasses; pass++) x.pass[pass] = v;
      return body_bytes != S;
    }
    if (mode == kExp) {
      if constexpr (K::kExponent == 0)
        return true;
      else
        return read_exp<K>(x, payload, body_bytes, chunk.words, room.counts);
    }
    return mode == kXrz ? read_xor(head, body_bytes) : read_diff(head, body_bytes);
  }

  // Applies the reference to what kXrz and kStep have read.
  //
  // The reference may be at the address of the plain bytes. That is safe, as the block reads each byte of it before it writes that byte. If
  // a chunk is whole and at a multiple of 16, the same thread reads a vector and writes it later. The reference of any other chunk passes
  // through shared memory, and the barriers of load_share are behind its reads. No other code reads the reference: a wrong one gives a
  // chunk with a wrong hash, so the reference's hash in the payload is not needed.
  //
  // If the address is not a multiple of 16, stage_chunk also loads up to 15 bytes beside the chunk, which other blocks may be writing. It
  // drops them.
  VELOCPY_DEVICE void apply_reference() {
    Share reference;
    load_share<K>(reference, chunk.reference, chunk.words, room.payload);
#pragma unroll
    for (uint32_t pass = 0; pass < kPasses; pass++) {
      Vector& v = x.pass[pass];
      const Vector &r = reference.pass[pass], sum = add<S>(v, r);
#pragma unroll
      for (uint32_t i = 0; i < 4; i++) v.word[i] = mode == kStep ? sum.word[i] : v.word[i] ^ r.word[i];
    }
  }

  // Decodes the chunk and returns its fault to the warp of the hash.
  VELOCPY_DEVICE uint8_t run(uint64_t payload, uint64_t hash) {
    uint32_t tail = chunk.bytes % S;
    uint8_t end = 0;
    if (direct()) {
#pragma unroll
      for (uint32_t pass = 0; pass < kPasses; pass++) x.pass[pass] = load(reinterpret_cast<const Vector*>(payload) + vector_index(pass));
    } else {
      bool fits = bytes <= chunk.bytes;
      if (fits) stage(payload);
      uint32_t at = bytes - tail + thread_index();
      if (fits && bytes >= tail && thread_index() < tail) end = reinterpret_cast<const uint8_t*>(room.payload)[at];
      if (sync_any(!fits || read())) return kFaultMalformed;
      if (mode >= kXrz) apply_reference();
    }
    store_share<K>(chunk.plain, x, chunk.words, room.payload);
    if (thread_index() < tail) reinterpret_cast<uint8_t*>(chunk.plain)[chunk.words * S + thread_index()] = end;
    sum_chunk(x, chunk.bytes == kChunkBytes, room.sums);
    sync_block();
    if (warp_index() != kHashWarp) return kFaultNone;
    return hash_chunk(room.sums, chunk.plain, chunk.bytes) == hash ? kFaultNone : kFaultHash;
  }
};

// Decodes a chunk of a payload of a length, which may be any number. Returns the fault to the warp of the hash.
template <class K>
VELOCPY_DEVICE uint8_t decode_from(uint64_t payload, uint32_t bytes, uint32_t mode, uint64_t hash, const Chunk& chunk) {
  VELOCPY_SHARED DecodeRoom room;
  Decoder<K> decoder = {room, chunk, mode, bytes, {}};
  return decoder.run(payload, hash);
}

template <class K>
VELOCPY_DEVICE void decode_chunk(const Decoding& p) {
  uint32_t number = p.first + block_index();
  Chunk chunk = chunk_of(p.plain, p.reference, p.bytes, number, K::kSize);
  Tables t = tables(p.container, (p.bytes - 1) / kChunkBytes + 1);
  uint32_t mode = reinterpret_cast<const uint8_t*>(t.modes)[number], bytes = reinterpret_cast<const uint16_t*>(t.lengths)[number];
  uint64_t payload = p.container + reinterpret_cast<const uint64_t*>(p.offsets)[number];
  uint8_t fault = decode_from<K>(payload, bytes, mode, reinterpret_cast<const uint64_t*>(t.hashes)[number], chunk);
  if (thread_index() == kHashWarp * 32) reinterpret_cast<uint8_t*>(p.faults)[number] = fault;
}

// Decodes one chunk of several containers. A payload that is not within its container counts as malformed.
template <class K, class P>
VELOCPY_DEVICE void decode_containers(const P& launch) {
  const Containers& p = containers_of(launch);
  uint32_t i = find(p.first, p.count, block_index()), number = block_index() - p.first[i];
  Chunk chunk = chunk_of(p.plain[i], reference_of(launch, i), p.bytes[i], number, K::kSize);
  Tables t = tables(p.container[i], (p.bytes[i] - 1) / kChunkBytes + 1);
  uint32_t mode = reinterpret_cast<const uint8_t*>(t.modes)[number], bytes = reinterpret_cast<const uint16_t*>(t.lengths)[number];
  uint64_t at = reinterpret_cast<const uint64_t*>(p.scratch)[block_index()];
  if (mode >= kModes || (p.modes >> mode & 1) == 0 || at + round_up(bytes, 16) > p.length[i]) bytes = kNever;
  uint8_t fault = decode_from<K>(p.container[i] + at, bytes, mode, reinterpret_cast<const uint64_t*>(t.hashes)[number], chunk);
  if (thread_index() == kHashWarp * 32 && fault != kFaultNone) reinterpret_cast<uint64_t*>(p.results)[p.result[i]] = 1;
}

// The kinds that have kernels.
using Bytes = Kind<1, 0>;
using Float16 = Kind<2, 5>;
using BFloat16 = Kind<2, 8>;
using Float32 = Kind<4, 8>;
using Float64 = Kind<8, 11>;

}  // namespace velocpy
