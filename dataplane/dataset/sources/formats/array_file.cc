// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/sources/formats/array_file.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/sources/formats/file_bytes.h"
#include "dataplane/dataset/sources/formats/npz_file.h"
#include "dataplane/element/copy_bytes.h"
#include "dataplane/memory/element_limit.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

// An .npy file, read in place.
class NpyArray final : public ArrayFile {
 public:
  static absl::StatusOr<std::unique_ptr<ArrayFile>> Open(std::unique_ptr<File> file) {
    auto array = std::make_unique<NpyArray>(FileBytes(std::move(file)));
    ASSIGN_OR_RETURN(NpyHeader header, ReadNpyHeader(array->bytes_));
    array->headers_.push_back(std::move(header));
    return array;
  }

  explicit NpyArray(FileBytes bytes) : bytes_(std::move(bytes)) {}

 private:
  absl::Status ReadBytes(size_t, int64_t offset, absl::Span<std::byte> into) override {
    return bytes_.ReadOn(headers_[0].data_offset + offset, into);
  }
  std::optional<absl::Span<const std::byte>> FindBytes(size_t, int64_t offset,
                                                       int64_t bytes) const override {
    return bytes_.Find(headers_[0].data_offset + offset, bytes);
  }
  const std::string& name() const override { return bytes_.name(); }

  FileBytes bytes_;
};

// An .npz file. The first read of a part of an array loads the whole array, which then stays in
// memory.
class NpzArrays final : public ArrayFile {
 public:
  static absl::StatusOr<std::unique_ptr<ArrayFile>> Open(std::unique_ptr<File> file,
                                                         const Spec& spec) {
    ASSIGN_OR_RETURN(std::unique_ptr<NpzFile> npz, NpzFile::Open(std::move(file)));
    auto arrays = std::make_unique<NpzArrays>(std::move(npz));
    for (size_t i = 0; i < spec.size(); ++i) {
      ASSIGN_OR_RETURN(NpyHeader header, arrays->npz_->ReadHeader(spec.key(i)));
      arrays->headers_.push_back(std::move(header));
      arrays->kept_.push_back({.array = spec.key(i)});
    }
    return arrays;
  }

  explicit NpzArrays(std::unique_ptr<NpzFile> npz) : npz_(std::move(npz)) {}

 private:
  struct Kept {
    std::string array = {};
    std::unique_ptr<std::byte[]> values = nullptr;
    absl::Status failure = {};  // the error of reading the array, which is not retried
  };

  absl::Status ReadBytes(size_t i, int64_t offset, absl::Span<std::byte> into) override {
    Kept& kept = kept_[i];
    const int64_t bytes = headers_[i].data_bytes;
    const bool whole = static_cast<int64_t>(into.size()) == bytes;
    if (whole && kept.values == nullptr) return npz_->ReadValues(kept.array, headers_[i], into);
    RETURN_IF_ERROR(kept.failure);
    if (kept.values == nullptr) {
      kept.failure = Keep(kept, headers_[i]);
      RETURN_IF_ERROR(kept.failure);
    }
    CopyBytes(into.data(), kept.values.get() + offset, into.size());
    return absl::OkStatus();
  }

  absl::Status Keep(Kept& kept, const NpyHeader& header) {
    if (header.data_bytes > MostElementBytes()) {
      return AboveElementLimit(absl::StrCat(name(), ": array '", kept.array, "', of ",
                                            header.data_bytes, " bytes, which is kept whole,"));
    }
    std::unique_ptr<std::byte[]> values(new (std::nothrow) std::byte[header.data_bytes]);
    if (values == nullptr) {
      return absl::ResourceExhaustedError(
          absl::StrCat(name(), ": no memory for array '", kept.array, "', ", header.ToString()));
    }
    const auto size = static_cast<size_t>(header.data_bytes);
    RETURN_IF_ERROR(npz_->ReadValues(kept.array, header, {values.get(), size}));
    kept.values = std::move(values);
    return absl::OkStatus();
  }

  const std::string& name() const override { return npz_->name(); }

  std::unique_ptr<NpzFile> npz_;
  std::vector<Kept> kept_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ArrayFile>> ArrayFile::Open(std::unique_ptr<File> file,
                                                           const Spec& spec, bool rows) {
  const bool npy = spec.kind() == Spec::Kind::kLeaf;
  ASSIGN_OR_RETURN(std::unique_ptr<ArrayFile> arrays,
                   npy ? NpyArray::Open(std::move(file)) : NpzArrays::Open(std::move(file), spec));
  const std::vector<NpyHeader>& headers = arrays->headers_;
  for (size_t i = 0; i < headers.size(); ++i) {
    const std::string what =
        npy ? arrays->name() : absl::StrCat(arrays->name(), ": array '", spec.key(i), "'");
    RETURN_IF_ERROR(CheckNpy(headers[i], spec.leaves()[i], rows, what));
    if (!rows || headers[i].dims[0] == headers[0].dims[0]) continue;
    return absl::InvalidArgumentError(absl::StrCat(what, " has ", headers[i].dims[0],
                                                   " rows, but '", spec.key(0), "' has ",
                                                   headers[0].dims[0]));
  }
  return arrays;
}

absl::Status ArrayFile::Read(size_t i, int64_t offset, absl::Span<std::byte> into) {
  RETURN_IF_ERROR(ReadBytes(i, offset, into));
  if (headers_[i].dtype != kBool) return absl::OkStatus();
  const bool good =
      std::all_of(into.begin(), into.end(), [](std::byte value) { return value <= std::byte{1}; });
  if (good) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(name(), " contains a bool that is neither true nor false"));
}

std::optional<absl::Span<const std::byte>> ArrayFile::Find(size_t i, int64_t offset,
                                                           int64_t bytes) const {
  const DType dtype = headers_[i].dtype;
  if (dtype == kBool) return std::nullopt;  // its values must be checked
  const auto found = FindBytes(i, offset, bytes);
  const bool aligned =
      found.has_value() && reinterpret_cast<uintptr_t>(found->data()) % SizeOf(dtype) == 0;
  return aligned ? found : std::nullopt;
}

}  // namespace penstock
