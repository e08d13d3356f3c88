// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "dataplane/dataset/sources/buffered_file.h"
#include "dataplane/dataset/sources/record_reader.h"
#include "penstock/status.h"

namespace penstock {
namespace {

class LineReader final : public RecordReader {
 public:
  LineReader(std::unique_ptr<File> file, int64_t position) : file_(std::move(file), position) {}

  absl::StatusOr<std::optional<std::string_view>> Next() override {
    if (file_.left() <= 0) return std::nullopt;
    size_t searched = 0;
    for (size_t wanted = kFirstLook;; wanted *= 2) {
      absl::StatusOr<std::string_view> seen = file_.Peek(wanted);
      if (absl::IsCancelled(seen.status())) return seen.status();
      if (!seen.ok()) {
        file_.Advance(file_.left());
        return Annotate(seen.status(), "the rest of the file is left out");
      }
      const size_t end = seen->find('\n', searched);
      if (end != std::string_view::npos) {
        file_.Advance(static_cast<int64_t>(end) + 1);
        std::string_view line = seen->substr(0, end);
        if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
        return line;
      }
      if (static_cast<int64_t>(seen->size()) >= file_.left()) {
        file_.Advance(file_.left());
        return *seen;
      }
      searched = seen->size();
      wanted = searched;
    }
  }

  absl::StatusOr<bool> Skip() override {
    ASSIGN_OR_RETURN(const std::optional<std::string_view> line, Next());
    return line.has_value();
  }

  int64_t position() const override { return file_.position(); }

 private:
  static constexpr size_t kFirstLook = 1;  // whatever is buffered

  BufferedFile file_;
};

}  // namespace

std::unique_ptr<RecordReader> ReadLines(std::unique_ptr<File> file, int64_t position) {
  return std::make_unique<LineReader>(std::move(file), position);
}

}  // namespace penstock
