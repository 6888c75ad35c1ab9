// Copies between strided arrays and their dense form.
#pragma once

#include "machine.cuh"
#include "parameters.h"

namespace velocpy {

// The side of the square tile that is transposed in shared memory.
VELOCPY_DEVICE constexpr uint32_t side(uint32_t element_bytes) { return element_bytes <= 4 ? kSmallSide : kLargeSide; }

struct Layout {
  const int64_t* stride;
  const uint32_t* length;
  uint32_t axes;
};

VELOCPY_DEVICE int64_t place(const Layout& layout, uint32_t element) {
  int64_t offset = 0;
#pragma unroll 1  // unrolled, the code would be five times as long, and no faster
  for (uint32_t a = layout.axes; a-- > 0;) {
    uint32_t n = layout.length[a], rest = element / n;
    offset += static_cast<int64_t>(element - rest * n) * layout.stride[a];
    element = rest;
  }
  return offset;
}

// Copies elements in dense order, several in flight at a time.
template <bool Scatter, typename T>
VELOCPY_DEVICE void straight(uint64_t slot, uint64_t mem, const Layout& layout, uint32_t elements, uint32_t unit) {
  constexpr uint32_t kAtOnce = 4;
  uint32_t begin = unit * kStridedElements;
  uint32_t end = elements - begin < kStridedElements ? elements : begin + kStridedElements;
  auto* dense = reinterpret_cast<T*>(slot);
  for (uint32_t e = begin + thread_index(); e < end; e += kAtOnce * kStridedThreads) {
    T* at[kAtOnce];
    T held[kAtOnce];
#pragma unroll
    for (uint32_t i = 0; i < kAtOnce; i++) {
      uint32_t element = e + i * kStridedThreads;
      if (element >= end) continue;
      at[i] = reinterpret_cast<T*>(mem + place(layout, element));
      held[i] = Scatter ? dense[element] : *at[i];
    }
#pragma unroll
    for (uint32_t i = 0; i < kAtOnce; i++) {
      uint32_t element = e + i * kStridedThreads;
      if (element >= end) continue;
      (Scatter ? *at[i] : dense[element]) = held[i];
    }
  }
}

// The position of a tile: its corner in the array and in the dense form, and its size.
struct Square {
  uint64_t mem, slot;
  int64_t column_stride;  // in the array, where neighbours of a row are adjacent
  uint64_t row_stride;    // in the dense form, where neighbours of a column are adjacent
  uint32_t rows, columns;
};

VELOCPY_DEVICE Square square_at(uint64_t slot, uint64_t mem, const Layout& layout, uint32_t turned, uint32_t bytes, uint32_t unit) {
  uint32_t last = layout.axes - 1, edge = side(bytes);
  uint32_t rows = layout.length[turned], columns = layout.length[last];
  uint32_t across = (columns + edge - 1) / edge, down = (rows + edge - 1) / edge;
  uint32_t column = unit % across * edge, row = unit / across % down * edge, rest = unit / across / down;
  uint64_t weight = static_cast<uint64_t>(columns) * bytes, row_stride = weight;
  int64_t offset = column * layout.stride[last] + row * layout.stride[turned];
  uint64_t dense = static_cast<uint64_t>(column) * bytes;
#pragma unroll 1
  for (uint32_t a = last; a-- > 0; weight *= layout.length[a]) {
    if (a == turned) {
      row_stride = weight;
      dense += row * weight;
      continue;
    }
    uint32_t index = rest % layout.length[a];
    rest /= layout.length[a];
    offset += index * layout.stride[a];
    dense += index * weight;
  }
  return {mem + offset,
          slot + dense,
          layout.stride[last],
          row_stride,
          rows - row < edge ? rows - row : edge,
          columns - column < edge ? columns - column : edge};
}

// Goes through shared memory, so that both sides are accessed contiguously.
template <bool Scatter, typename T>
VELOCPY_DEVICE void turn(const Square& s, uint8_t* scratch) {
  constexpr uint32_t kSide = side(sizeof(T)), kLines = kStridedThreads / kSide;
  auto* tile = reinterpret_cast<T(*)[kSide + 1]>(scratch);  // by column; the extra element avoids bank conflicts
  uint32_t x = thread_index() % kSide, y = thread_index() / kSide;
  auto in_mem = [&](uint32_t row, uint32_t column) { return reinterpret_cast<T*>(s.mem + column * s.column_stride) + row; };
  auto in_slot = [&](uint32_t row, uint32_t column) { return reinterpret_cast<T*>(s.slot + row * s.row_stride) + column; };
  if (Scatter) {
    for (uint32_t row = y; row < s.rows; row += kLines)
      if (x < s.columns) tile[x][row] = *in_slot(row, x);
    sync_block();
    for (uint32_t column = y; column < s.columns; column += kLines)
      if (x < s.rows) *in_mem(x, column) = tile[column][x];
  } else {
    for (uint32_t column = y; column < s.columns; column += kLines)
      if (x < s.rows) tile[column][x] = *in_mem(x, column);
    sync_block();
    for (uint32_t row = y; row < s.rows; row += kLines)
      if (x < s.columns) *in_slot(row, x) = tile[x][row];
  }
}

template <bool Scatter, int N, int A>
VELOCPY_DEVICE void strided(const Arrays<N, A>& p) {
  constexpr uint32_t kScratch = kLargeSide * (kLargeSide + 1) * sizeof(Vector);
  static_assert(kScratch >= kSmallSide * (kSmallSide + 1) * sizeof(uint32_t), "the largest square fits");
  alignas(16) VELOCPY_SHARED uint8_t scratch[kScratch];
  uint32_t array = find(p.first, p.count, block_index()), unit = block_index() - p.first[array];
  uint32_t code = p.layout[array], turned = code >> 24;
  Layout layout = {p.stride + (code & 0xffff), p.length + (code & 0xffff), code >> 16 & 15};
  uint64_t slot = p.slot[array], mem = p.mem[array];
  auto with = [&](auto element) {
    using T = decltype(element);
    if (turned == 0)
      straight<Scatter, T>(slot, mem, layout, p.elements[array], unit);
    else
      turn<Scatter, T>(square_at(slot, mem, layout, turned - 1, sizeof(T), unit), scratch);
  };
  switch (code >> 20 & 15) {
    case 0:
      return with(uint8_t{});
    case 1:
      return with(uint16_t{});
    case 2:
      return with(uint32_t{});
    case 3:
      return with(uint64_t{});
    default:
      return with(Vector{});
  }
}

}  // namespace velocpy
