// The structs of DLPack that are used here: dmlc/dlpack, include/dlpack/dlpack.h, version 1.3.
#pragma once

#include <cstdint>

namespace velocpy::dlpack {

struct Version {
  uint32_t major, minor;
};

struct Tensor {
  void* data;
  int32_t device_type, device_id;
  int32_t ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t* shape;
  int64_t* strides;  // in elements
  uint64_t byte_offset;
};

// DLManagedTensorVersioned.
struct Managed {
  Version version;
  void* context;
  void (*let_go)(Managed* self);
  uint64_t flags;
  Tensor tensor;
};

// DLManagedTensor: the struct before version 1.0.
struct Unversioned {
  Tensor tensor;
  void* context;
  void (*let_go)(Unversioned* self);
};

enum { kInt = 0, kUInt = 1, kFloat = 2, kBfloat = 4, kComplex = 5, kBool = 6 };
enum { kHost = 1, kCuda = 2, kPinned = 3, kCudaManaged = 13 };
enum : uint64_t { kReadOnly = 1, kCopied = 2 };
constexpr uint32_t kMajor = 1;

// The names of capsules: of one whose tensor no consumer has taken yet, and of one whose tensor was taken.
constexpr const char* kNew = "dltensor_versioned";
constexpr const char* kUsed = "used_dltensor_versioned";
constexpr const char* kNewUnversioned = "dltensor";
constexpr const char* kUsedUnversioned = "used_dltensor";

}  // namespace velocpy::dlpack
