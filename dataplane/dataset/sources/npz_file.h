// SPDX-License-Identifier: Apache-2.0
// The arrays of an .npz file: a zip archive of .npy files, by libzip.
#pragma once

#include <zip.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "control/env/files.h"
#include "dataplane/dataset/sources/npy_header.h"

namespace penstock {

// One thread. Errors name file and member.
class NpzFile {
 public:
  static absl::StatusOr<std::unique_ptr<NpzFile>> Open(std::unique_ptr<File> file);
  ~NpzFile();

  const std::string& name() const;

  // What the member `array` (its name without .npy) says it is. NotFound lists
  // those there are. What it says then fits the archive's size: memory for its
  // values is not more than a thousand times the file.
  absl::StatusOr<NpyHeader> ReadHeader(const std::string& array);
  // All values of that member, whose header is `header`, their checksum
  // checked. REQUIRES: into.size() == header.data_bytes.
  absl::Status ReadValues(const std::string& array, const NpyHeader& header,
                          absl::Span<std::byte> into);

 private:
  struct Source;  // what libzip reads from
  struct Discard {
    void operator()(zip_t* archive) const { zip_discard(archive); }
  };
  struct CloseMember {
    void operator()(zip_file_t* member) const { zip_fclose(member); }
  };
  using Member = std::unique_ptr<zip_file_t, CloseMember>;

  NpzFile();
  absl::StatusOr<zip_uint64_t> Locate(const std::string& array) const;
  absl::StatusOr<Member> OpenMember(const std::string& array, zip_uint64_t index) const;
  // Reads until `into` is full or the member ends; how much it was.
  absl::StatusOr<size_t> Read(zip_file_t& member, const std::string& array,
                              absl::Span<std::byte> into) const;
  absl::Status Damaged(const std::string& array, std::string_view what) const;

  std::unique_ptr<Source> source_;  // outlives archive_
  std::unique_ptr<zip_t, Discard> archive_;
};

}  // namespace penstock
