// SPDX-License-Identifier: Apache-2.0
// Files that workloads write for the workers, and helpers with which limits read them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace penstock::bench {

// Writes the file from these parts, in order. ResourceExhausted, naming the file, if it cannot be
// written.
absl::Status WriteFile(const std::string& name, std::initializer_list<std::string_view> parts);

// Reads the whole file into `into`, which grows to its size. NotFound, naming the file, if it
// cannot be read.
absl::Status ReadWhole(const std::string& name, std::string& into);

// A file mapped into memory while this object lives.
class MappedFile {
 public:
  static absl::StatusOr<MappedFile> Open(const std::string& name);
  std::span<const std::byte> bytes() const { return {bytes_.get(), bytes_.get_deleter().size}; }
  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(bytes_.get());
  }

 private:
  struct Unmap {
    size_t size = 0;
    void operator()(const std::byte* bytes) const;
  };
  explicit MappedFile(std::unique_ptr<const std::byte, Unmap> bytes) : bytes_(std::move(bytes)) {}
  std::unique_ptr<const std::byte, Unmap> bytes_;
};

// The header of a .npy file, kNpyHeaderBytes long, for a dtype as NumPy writes it ("<f4").
inline constexpr int64_t kNpyHeaderBytes = 128;
std::string NpyHeader(std::string_view dtype, std::initializer_list<int64_t> dims);

template <class T>
std::string_view BytesOf(std::span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

}  // namespace penstock::bench
