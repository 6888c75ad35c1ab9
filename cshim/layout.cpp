#include "layout.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "failure.h"
#include "key.h"

namespace velocpy {
namespace {

constexpr char kMagic = 'L';
constexpr uint8_t kVersion = 2;
// Kinds of a description: docs/format.md.
constexpr uint8_t kMapping = 0;
constexpr uint8_t kSequence = 1;
constexpr uint8_t kTree = 2;
constexpr size_t kHead = 7;     // bytes before the first region
constexpr size_t kRegion = 39;  // bytes of a region without its name, dtype, extents and listed axes
constexpr int64_t kSmallRegion = 64 << 10;
constexpr int64_t kCacheLine = 64;
constexpr int64_t kPage = 4096;
constexpr int64_t kLargestSlot = int64_t{1} << 62;
constexpr size_t kLayoutsKept = 4096;

// Writes into preallocated memory.
class Writer {
 public:
  explicit Writer(char* at) : at_(at) {}

  template <class T>
  void put(T value) {
    put(&value, sizeof value);
  }

  void put(const void* data, size_t length) {
    if (length == 0) return;  // data may be null then
    std::memcpy(at_, data, length);
    at_ += length;
  }

 private:
  char* at_;
};

class Reader {
 public:
  Reader(const char* data, size_t length) : at_(data), end_(data + length) {}

  template <class T>
  T take() {
    T value;
    std::memcpy(&value, advance(sizeof value), sizeof value);
    return value;
  }

  size_t left() const { return static_cast<size_t>(end_ - at_); }

  const char* advance(size_t length) {
    if (static_cast<size_t>(end_ - at_) < length) raise_invalid("the description of a checkpoint ends too early.");
    const char* at = at_;
    at_ += length;
    return at;
  }

 private:
  const char* at_;
  const char* end_;
};

int64_t aligned(int64_t offset, int64_t nbytes) {
  const int64_t alignment = nbytes < kSmallRegion ? kCacheLine : kPage;
  return (offset + alignment - 1) / alignment * alignment;
}

std::vector<uint8_t> read_order(Reader* reader, int ndim) {
  std::vector<uint8_t> order(static_cast<size_t>(ndim));
  switch (static_cast<AxisOrder>(reader->take<uint8_t>())) {
    case AxisOrder::c:
      for (int i = 0; i < ndim; ++i) order[i] = static_cast<uint8_t>(i);
      break;
    case AxisOrder::fortran:
      for (int i = 0; i < ndim; ++i) order[i] = static_cast<uint8_t>(ndim - 1 - i);
      break;
    case AxisOrder::listed:
      std::memcpy(order.data(), reader->advance(order.size()), order.size());
      for (int i = 0; i < ndim; ++i) {
        if (std::find(order.begin(), order.end(), i) == order.end()) raise_invalid("the description of a checkpoint leaves an axis out.");
      }
      break;
    default:
      raise_invalid("the description of a checkpoint has an unknown order of axes.");
  }
  return order;
}

std::vector<int64_t> dense_strides(const RegionLayout& region) {
  std::vector<int64_t> strides(region.shape.size());
  auto stride = static_cast<uint64_t>(region.itemsize);  // check_layout rejects an overflow
  for (size_t i = region.order.size(); i-- > 0;) {
    const auto axis = region.order[i];
    strides[axis] = static_cast<int64_t>(stride);
    if (region.shape[axis] > 1) stride *= static_cast<uint64_t>(region.shape[axis]);
  }
  return strides;
}

RegionLayout read_region(Reader* reader, bool sequence) {
  RegionLayout region;
  const auto name_length = reader->take<uint32_t>();
  const char* name = reader->advance(name_length);
  region.name = sequence ? py::object(py::none()) : text_from(name, name_length);
  region.library = static_cast<Library>(reader->take<uint8_t>());
  region.place = reader->take<int32_t>();
  const auto text_length = reader->take<uint32_t>();
  region.dtype_text.assign(reader->advance(text_length), text_length);
  const bool ascii =
      std::all_of(region.dtype_text.begin(), region.dtype_text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  if (!ascii) raise_invalid("the description of a checkpoint names a dtype that is no ASCII.");
  region.itemsize = reader->take<int64_t>();
  const int ndim = reader->take<uint8_t>();
  for (int i = 0; i < ndim; ++i) region.shape.push_back(reader->take<int64_t>());
  region.order = read_order(reader, ndim);
  region.offset = reader->take<int64_t>();
  region.nbytes = reader->take<int64_t>();
  region.strides = dense_strides(region);
  return region;
}

}  // namespace

Label Layout::label(size_t region) const {
  if (sequence || region >= regions.size()) return {{}, region};
  return {regions[region].name, region};
}

int32_t Layout::find(py::handle name) const {
  if (!sequence && PyUnicode_Check(name.ptr())) {
    std::string own;
    const char* data;
    int64_t length;
    utf8(name, &own, &data, &length);
    const auto found = index.find(std::string(data, static_cast<size_t>(length)));
    if (found != index.end()) return found->second;
  }
  const auto count = static_cast<Py_ssize_t>(regions.size());
  if (structure && PyLong_CheckExact(name.ptr())) {  // a key of a dict; the region's name is its text
    const auto found = index.find(py::str(name).cast<std::string>());
    if (found != index.end()) return found->second;
  }
  if (sequence && PyIndex_Check(name.ptr()) && !PyBool_Check(name.ptr())) {
    Py_ssize_t number = PyNumber_AsSsize_t(name.ptr(), PyExc_IndexError);
    if (number == -1 && PyErr_Occurred()) throw py::error_already_set();
    if (number < 0) number += count;
    if (number >= 0 && number < count) return static_cast<int32_t>(number);
  }
  py::list names;
  for (size_t i = 0; i < regions.size() && i < 20; ++i) names.append(region_label(i));
  raise_invalid("the checkpoint has no region " + py::repr(name).cast<std::string>() + "; it has " + std::to_string(count) + ": " +
                py::repr(names).cast<std::string>() + (regions.size() > 20 ? " and more." : "."));
}

LayoutWriter::LayoutWriter(bool sequence, bool tree, size_t regions) {
  bytes_.reserve(kHead + 96 * regions);
  bytes_.resize(kHead);
  Writer writer(bytes_.data());
  writer.put(kMagic);
  writer.put(kVersion);
  writer.put(tree ? kTree : sequence ? kSequence : kMapping);
  writer.put(static_cast<uint32_t>(regions));
}

int64_t LayoutWriter::add(const char* name, int64_t name_length, Library library, int32_t place, std::string_view dtype_text,
                          int64_t itemsize, int ndim, const int64_t* shape, AxisOrder kind, const uint8_t* order, int64_t nbytes) {
  const int64_t offset = aligned(end_, nbytes);
  if (nbytes > kLargestSlot - offset) raise_invalid("the regions of one checkpoint add up to more than 2^62 bytes.");
  end_ = offset + nbytes;
  const auto axes = static_cast<size_t>(ndim);
  const size_t listed = kind == AxisOrder::listed ? axes : 0;
  const size_t at = bytes_.size();
  bytes_.resize(at + kRegion + static_cast<size_t>(name_length) + dtype_text.size() + sizeof(int64_t) * axes + listed);
  Writer writer(bytes_.data() + at);
  writer.put(static_cast<uint32_t>(name_length));
  writer.put(name, static_cast<size_t>(name_length));
  writer.put(static_cast<uint8_t>(library));
  writer.put(place);
  writer.put(static_cast<uint32_t>(dtype_text.size()));
  writer.put(dtype_text.data(), dtype_text.size());
  writer.put(itemsize);
  writer.put(static_cast<uint8_t>(ndim));
  writer.put(shape, sizeof(int64_t) * axes);
  writer.put(static_cast<uint8_t>(kind));
  writer.put(order, listed);
  writer.put(offset);
  writer.put(nbytes);
  return offset;
}

std::shared_ptr<const Layout> read_layout(const char* data, size_t length) {
  Reader reader(data, length);
  auto layout = std::make_shared<Layout>();
  if (reader.take<char>() != kMagic || reader.take<uint8_t>() != kVersion) raise_invalid("these bytes do not describe a checkpoint.");
  const auto kind = reader.take<uint8_t>();
  if (kind > kTree) raise_invalid("the description of a checkpoint is that of no mapping, sequence or tree.");
  layout->sequence = kind == kSequence;
  const auto count = reader.take<uint32_t>();
  if (count > reader.left() / kRegion)
    raise_invalid("the description of a checkpoint has no room for its " + std::to_string(count) + " regions.");
  for (uint32_t i = 0; i < count; ++i) {
    layout->regions.push_back(read_region(&reader, layout->sequence));
    if (layout->sequence) continue;
    std::string own;
    const char* name;
    int64_t name_length;
    utf8(layout->regions.back().name, &own, &name, &name_length);
    if (!layout->index.emplace(std::string(name, static_cast<size_t>(name_length)), static_cast<int32_t>(i)).second)
      raise_invalid("the description of a checkpoint gives two regions one name.");
  }
  if (kind == kTree) {
    const size_t rest = reader.left();
    layout->structure.emplace(reader.advance(rest), rest);
  }
  if (reader.left() > 0) raise_invalid("the description of a checkpoint goes on behind its regions.");
  return layout;
}

void check_layout(const Layout& layout, int64_t slot_bytes) {
  int64_t end = 0;
  for (size_t i = 0; i < layout.regions.size(); ++i) {
    const RegionLayout& region = layout.regions[i];
    if (region.nbytes < 0 || region.offset < end || region.offset > slot_bytes || region.nbytes > slot_bytes - region.offset) {
      raise_invalid("region " + std::to_string(i) + " of a checkpoint, " + std::to_string(region.nbytes) + " bytes at " +
                    std::to_string(region.offset) + ", lies outside of its slot or in another region.");
    }
    end = region.offset + region.nbytes;
    int64_t bytes = region.itemsize;
    bool fits = bytes >= 0;
    for (int64_t length : region.shape) fits = fits && length >= 0 && !__builtin_mul_overflow(bytes, length, &bytes);
    // The other axes of an empty array may have any length.
    const bool empty = std::find(region.shape.begin(), region.shape.end(), 0) != region.shape.end();
    if (empty ? region.nbytes != 0 : !fits || bytes != region.nbytes) {
      raise_invalid("region " + std::to_string(i) + " of a checkpoint has " + std::to_string(region.nbytes) +
                    " bytes, which its shape and element size do not give.");
    }
  }
}

py::object dtype_of_region(const RegionLayout& region) {
  if (region.dtype) return region.dtype;
  // It refuses any other size, and references: strides and bounds follow from the size.
  region.dtype = py::module_::import("velocpy.arrays").attr("dtype_from_text")(region.dtype_text, region.itemsize);
  return region.dtype;
}

std::shared_ptr<const Layout> LayoutCache::find(uint64_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second;
}

void LayoutCache::put(uint64_t id, std::shared_ptr<const Layout> layout) {
  if (by_id_.size() >= kLayoutsKept) by_id_.clear();
  by_id_.emplace(id, std::move(layout));
}

}  // namespace velocpy
