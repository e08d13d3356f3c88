// SPDX-License-Identifier: Apache-2.0
// Files of a tar archive, in its order: ustar, pax (path and size), GNU long
// names and large sizes; POSIX.1-2017, pax, "ustar Interchange Format".
//
// Ours rather than libarchive: a position in an archive must read on exactly as
// the reading that came there, and libarchive judges the first header it is
// given by other rules than the next ones. It would also copy what is in a file
// once more.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "dataplane/dataset/sources/buffered_file.h"

namespace penstock {

struct TarEntry {
  std::string name;
  int64_t size = 0;      // bytes
  int64_t position = 0;  // where in the archive its first header begins
};

class TarReader {
 public:
  explicit TarReader(BufferedFile archive) : archive_(std::move(archive)) {}

  const std::string& name() const { return archive_.name(); }

  // The next regular file; nullopt at the end. Directories, links and devices
  // are passed over. DataLoss names archive and offset for a damaged header and
  // a file that the archive, as far as its size is known, cannot hold.
  // REQUIRES: the last file was read or passed over.
  absl::StatusOr<std::optional<TarEntry>> NextFile();

  // The contents of `entry`, which NextFile() just gave; or pass over them,
  // examining no more than is needed to know that they are there.
  absl::Status Read(const TarEntry& entry, std::string& contents);
  absl::Status PassOver(const TarEntry& entry);

  // Where the next header is looked for; behind an error, where the headers of
  // what could not be read begin.
  int64_t position() const { return archive_.position(); }
  // Looks for the next header at `position`, which was a position().
  void Seek(int64_t position) { archive_.Advance(position - archive_.position()); }
  // BufferedFile::GiveUp
  absl::Status GiveUp(const absl::Status& why) { return archive_.GiveUp(why); }

 private:
  // What headers before a file's own say about it.
  struct Extended {
    std::optional<std::string> name;
    std::optional<int64_t> size;
  };
  struct Header;

  // The header at the position, which stays; nullopt at the end.
  absl::StatusOr<std::optional<Header>> ReadHeader();
  // Reads what an extending header holds. The position is behind that header.
  absl::Status ReadExtension(const Header& header, Extended& extended);
  absl::Status CheckHolds(const Header& header) const;
  // Reads through the contents, into `contents` if that is not nullptr.
  absl::Status Walk(const TarEntry& entry, std::string* contents);
  absl::Status Damaged(int64_t offset, std::string_view what) const;

  BufferedFile archive_;
};

}  // namespace penstock
