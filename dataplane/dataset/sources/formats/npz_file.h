// SPDX-License-Identifier: Apache-2.0
// The arrays of an .npz file, which is a zip archive of .npy files, read with libzip.
#pragma once

#include <zip.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "control/env/files.h"
#include "dataplane/dataset/sources/formats/npy_header.h"

namespace penstock {

// Used on one thread. Errors name the file and the member.
class NpzFile {
 public:
  static absl::StatusOr<std::unique_ptr<NpzFile>> Open(std::unique_ptr<File> file);
  ~NpzFile();

  const std::string& name() const;

  // Reads the header of the member `array` (its name without .npy). NotFound lists the members that
  // exist. Checks the header against the archive: the values may take at most about a thousand
  // times the size of the file.
  absl::StatusOr<NpyHeader> ReadHeader(const std::string& array);
  // Reads all values of the member `array` and checks their checksum. `header` is the member's
  // header. REQUIRES: into.size() == header.data_bytes.
  absl::Status ReadValues(const std::string& array, const NpyHeader& header,
                          absl::Span<std::byte> into);

 private:
  struct Source;  // the file as libzip reads it
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
  // Reads until `into` is full or the member ends. Returns the number of bytes read.
  absl::StatusOr<size_t> Read(zip_file_t& member, const std::string& array,
                              absl::Span<std::byte> into) const;
  absl::Status Damaged(const std::string& array, std::string_view what) const;

  std::unique_ptr<Source> source_;  // outlives archive_
  std::unique_ptr<zip_t, Discard> archive_;
};

}  // namespace penstock
