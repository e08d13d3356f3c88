// SPDX-License-Identifier: Apache-2.0
// The files of a tar archive, in archive order. Supports ustar, pax (path and size), and GNU long
// names and large sizes. Format: POSIX.1-2017, pax, "ustar Interchange Format".
//
// libarchive is not used for two reasons. After a restore at a position, reading must continue
// exactly as before, but libarchive applies different rules to the first header than to later ones.
// It also makes an additional copy of the files' contents.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "dataplane/dataset/sources/formats/buffered_file.h"

namespace penstock {

struct TarEntry {
  std::string name;
  int64_t size = 0;      // bytes
  int64_t position = 0;  // of its first header in the archive
};

class TarReader {
 public:
  explicit TarReader(BufferedFile archive) : archive_(std::move(archive)) {}

  const std::string& name() const { return archive_.name(); }

  // The next regular file; nullopt at the end. Directories, links and devices are skipped. DataLoss
  // names the archive and the offset of a damaged header or, if the archive's size is known, of a
  // file that is larger than the rest of the archive. REQUIRES: the last file was read or skipped.
  absl::StatusOr<std::optional<TarEntry>> NextFile();

  // Read() reads the contents of `entry`, which NextFile() just returned. PassOver() skips them and
  // examines only enough to know that they are there.
  absl::Status Read(const TarEntry& entry, std::string& contents);
  absl::Status PassOver(const TarEntry& entry);

  // The position where the next header is expected. After an error, the position of the first
  // header of the file that could not be read.
  int64_t position() const { return archive_.position(); }
  // Continues at `position`, which position() returned.
  void Seek(int64_t position) { archive_.Advance(position - archive_.position()); }
  // See BufferedFile::GiveUp.
  absl::Status GiveUp(const absl::Status& why) { return archive_.GiveUp(why); }

 private:
  // The fields of a file that are defined by extended headers before the file's own header.
  struct Extended {
    std::optional<std::string> name;
    std::optional<int64_t> size;
  };
  struct Header;

  // The header at the position, which does not move; nullopt at the end.
  absl::StatusOr<std::optional<Header>> ReadHeader();
  // Reads the contents of an extended header. REQUIRES: the position is after that header.
  absl::Status ReadExtension(const Header& header, Extended& extended);
  absl::Status CheckHolds(const Header& header) const;
  // Reads the contents, and appends them to `contents` unless it is nullptr.
  absl::Status Walk(const TarEntry& entry, std::string* contents);
  absl::Status Damaged(int64_t offset, std::string_view what) const;

  BufferedFile archive_;
};

}  // namespace penstock
