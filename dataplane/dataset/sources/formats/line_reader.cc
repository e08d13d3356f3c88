// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "dataplane/dataset/sources/formats/record_reader.h"
#include "dataplane/memory/element_limit.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

class LineReader final : public RecordReader {
 public:
  explicit LineReader(BufferedFile file) : file_(std::move(file)) {}

  absl::StatusOr<std::optional<std::string_view>> Next() override {
    size_t searched = 0;
    const auto most = static_cast<size_t>(MostElementBytes());
    for (size_t wanted = kFirstLook;;
         wanted = std::max(searched + 1, std::min(2 * searched, most))) {
      absl::StatusOr<std::string_view> seen = file_.Peek(wanted);
      if (!seen.ok()) return file_.GiveUp(seen.status());
      const size_t end = seen->find('\n', searched);
      if (end != std::string_view::npos) {
        file_.Advance(static_cast<int64_t>(end) + 1);
        std::string_view line = seen->substr(0, end);
        if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
        return line;
      }
      if (seen->empty()) return std::nullopt;
      if (seen->size() < wanted || file_.left() == static_cast<int64_t>(seen->size())) {
        file_.Advance(static_cast<int64_t>(seen->size()));
        return *seen;
      }
      searched = seen->size();
    }
  }

  absl::StatusOr<bool> Skip() override {
    ASSIGN_OR_RETURN(const std::optional<std::string_view> line, Next());
    return line.has_value();
  }

  int64_t position() const override { return file_.position(); }

 private:
  static constexpr size_t kFirstLook = 1;  // Peek(1) returns all that is buffered

  BufferedFile file_;
};

}  // namespace

std::unique_ptr<RecordReader> ReadLines(BufferedFile file) {
  return std::make_unique<LineReader>(std::move(file));
}

}  // namespace penstock
