// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/monitoring/step_audit.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace penstock::control {
namespace {

// The number of steps kept for an iteration. It suffices because a consumer reports about one step
// for each power of two up to its step number (StepMarks), and consumers are at most a few thousand
// steps apart.
constexpr size_t kStepsKept = 256;

std::string InWords(int64_t step, const std::map<int64_t, protocol::PartitionRow>& by_consumer) {
  std::map<std::pair<PartitionId, int64_t>, std::vector<int64_t>> by_row;
  for (const auto& [consumer, row] : by_consumer) {
    by_row[{row.partition, row.row}].push_back(consumer);
  }
  std::vector<std::string> parts;
  for (const auto& [row, consumers] : by_row) {
    parts.push_back(absl::StrCat("consumer(s) ", absl::StrJoin(consumers, ", "), " returned row ",
                                 row.second, " of ", ToString(row.first)));
  }
  return absl::StrCat("step ", step, " is torn: ", absl::StrJoin(parts, "; "));
}

}  // namespace

std::optional<std::string> StepAudit::Hear(IterationId iteration, int64_t consumer,
                                           absl::Span<const StepMark> marks,
                                           int64_t remainders_begin) {
  if (marks.empty()) return std::nullopt;
  std::map<int64_t, Step>& steps = of_[iteration];
  std::optional<std::string> torn;
  for (const StepMark& mark : marks) {
    if (mark.step >= remainders_begin) continue;
    Step& step = steps[mark.step];
    const bool first = step.empty();
    const bool differs = !first && step.begin()->second != mark.row;
    const bool news = step.insert_or_assign(consumer, mark.row).second;
    if (differs && !torn) torn = InWords(mark.step, step);
    if (!first && !differs && news) ++compared_;
  }
  while (steps.size() > kStepsKept) steps.erase(steps.begin());
  return torn;
}

std::vector<IterationId> StepAudit::Iterations() const {
  std::vector<IterationId> iterations;
  for (const auto& [iteration, steps] : of_) iterations.push_back(iteration);
  return iterations;
}

}  // namespace penstock::control
