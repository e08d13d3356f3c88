// SPDX-License-Identifier: Apache-2.0
// DLPack's memory layout (dmlc/dlpack, dlpack.h), in both versions that frameworks use: 0.x
// ("dltensor") and 1.x ("dltensor_versioned"), which has a read-only flag.
#pragma once

#include <cstdint>

namespace penstock::python::dlpack {

enum DeviceType : int32_t { kCpu = 1, kCuda = 2 };
struct Device {
  int32_t type;
  int32_t id;
};

enum DataTypeCode : uint8_t {
  kInt = 0,
  kUInt = 1,
  kFloat = 2,
  kBfloat = 4,
  kComplex = 5,
  kBool = 6
};
struct DataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct Array {
  void* data;
  Device device;
  int32_t ndim;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;  // in values; null: row-major
  uint64_t byte_offset;
};

// The capsule "dltensor".
struct Managed {
  Array array;
  void* context;
  void (*deleter)(Managed* self);
};

struct Version {
  uint32_t major;
  uint32_t minor;
};
inline constexpr uint64_t kReadOnly = 1;

// The capsule "dltensor_versioned".
struct ManagedVersioned {
  Version version;
  void* context;
  void (*deleter)(ManagedVersioned* self);
  uint64_t flags;
  Array array;
};

}  // namespace penstock::python::dlpack
