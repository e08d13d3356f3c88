// SPDX-License-Identifier: Apache-2.0
// A source that reads files one after another. Each split is one file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/engine/node_iterator.h"
#include "dataplane/dataset/sources/formats/element_reader.h"
#include "dataplane/dataset/sources/split_cursor.h"

namespace penstock {

class FileSource final : public NodeIterator {
 public:
  FileSource(const BuildSite& site, std::vector<std::string> files, MakeElementReader make_reader)
      : site_(site),
        files_(std::move(files)),
        make_reader_(std::move(make_reader)),
        cursor_(site, files_.size(), files_.size()) {}

  absl::StatusOr<std::optional<Element>> Next() override;
  absl::StatusOr<int64_t> Skip(int64_t count) override;
  absl::Status Save(StateWriter& writer) override;
  absl::Status Restore(StateReader& reader) override;

 private:
  // Opens the next file unless one is open. Returns false after the last file. If a file cannot be
  // opened, its error takes the place of its elements.
  absl::StatusOr<bool> Advance();
  absl::Status Open(const std::string& name, int64_t position);

  BuildSite site_;
  std::vector<std::string> files_;
  MakeElementReader make_reader_;
  SplitCursor cursor_;
  Span64 span_ = {0, 0};                   // files of the current split that are not opened yet
  std::unique_ptr<ElementReader> reader_;  // file span_.begin - 1; nullptr after its end
};

}  // namespace penstock
