// SPDX-License-Identifier: Apache-2.0
#include "penstock/step_aligner.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "dataplane/replica/collective/collective.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

using replica::Collective;
using replica::CollectiveOf;
using replica::CollectiveOp;
using Values = std::vector<std::pair<std::string, std::string>>;

absl::StatusOr<Values> ReadValues(std::string_view bytes) {
  StateReader reader(bytes);
  Values values;
  while (!reader.AtEnd()) {
    ASSIGN_OR_RETURN(const std::string_view name, reader.ReadString());
    ASSIGN_OR_RETURN(const std::string_view value, reader.ReadString());
    values.emplace_back(name, value);
  }
  return values;
}

// Returns, for example, "the dataset's fingerprint is 1 in process(es) 0, 2; 7 in process(es) 1".
std::string Difference(const std::string& name,
                       const std::map<std::string, std::vector<size_t>>& processes_of) {
  std::vector<std::string> texts;
  for (const auto& [value, processes] : processes_of)
    texts.push_back(absl::StrCat(value, " in process(es) ", absl::StrJoin(processes, ", ")));
  return absl::StrCat(name, " is ", absl::StrJoin(texts, "; "));
}

absl::Status CheckAlikeOver(Collective& collective, const Values& values) {
  StateWriter writer;
  for (const auto& [name, value] : values) {
    writer.WriteString(name);
    writer.WriteString(value);
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> all, collective.AllGather(writer.bytes()));
  std::map<std::string, std::map<std::string, std::vector<size_t>>> by_name;
  for (size_t process = 0; process < all.size(); ++process) {
    ASSIGN_OR_RETURN(const Values of_process, ReadValues(all[process]));
    for (const auto& [name, value] : of_process) by_name[name][value].push_back(process);
  }
  std::vector<std::string> differences;
  for (const auto& [name, processes_of] : by_name)
    if (processes_of.size() > 1 || processes_of.begin()->second.size() < all.size())
      differences.push_back(Difference(name, processes_of));
  if (differences.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the processes of the group differ in what they read: ",
                   absl::StrJoin(differences, "; also ")));
}

const char* PolicyName(PartialBatches policy) {
  constexpr const char* kNames[] = {"kEmpty", "kDrop", "kPad", "kRepeat", "kError"};
  return kNames[static_cast<size_t>(policy)];
}

bool NeedsAll(PartialBatches policy) {
  return policy == PartialBatches::kDrop || policy == PartialBatches::kError;
}

}  // namespace

absl::Status replica_internal::CheckAlike(const ReplicaGroup& group, const Values& values) {
  if (CollectiveOf(group) == nullptr || group.num_processes() == 1) return absl::OkStatus();
  return CheckAlikeOver(*CollectiveOf(group), values);
}

absl::StatusOr<StepAligner> StepAligner::Make(const ReplicaGroup& group,
                                              StepAlignerOptions options) {
  if (!group.connected()) {
    return absl::FailedPreconditionError(
        absl::StrCat("steps of ", group.num_processes(),
                     " processes can be aligned only in a connected group; call "
                     "ReplicaGroup::Connect, or create the group with FromNccl"));
  }
  if (group.num_processes() == 1) return StepAligner(nullptr, options);
  if (options.alike.given().has_value()) options.must_match = *options.alike.given();
  options.must_match.emplace_back("partial_batches", PolicyName(options.partial_batches));
  options.must_match.emplace_back("the next step", absl::StrCat(options.first_step));
  RETURN_IF_ERROR(CheckAlikeOver(*CollectiveOf(group), options.must_match));
  ASSIGN_OR_RETURN(std::unique_ptr<Collective> own, CollectiveOf(group)->Split(0));
  return StepAligner(std::move(own), options);
}

StepAligner::StepAligner(std::unique_ptr<Collective> own, const StepAlignerOptions& options)
    : own_(std::move(own)), policy_(options.partial_batches), step_(options.first_step) {}
StepAligner::StepAligner(StepAligner&& other) noexcept = default;
StepAligner& StepAligner::operator=(StepAligner&& other) noexcept = default;
StepAligner::~StepAligner() = default;

absl::Status StepAligner::Start(bool has_data) {
  if (over_) return absl::OkStatus();
  if (own_ == nullptr) {
    alone_.push_back(has_data);
    return absl::OkStatus();
  }
  // The minima of these values show whether all processes have data, whether some have data, and
  // which is the first process without data.
  const int64_t has = has_data ? 1 : 0;
  return Annotate(
      own_->Start(CollectiveOp::kMin, {has, -has, has_data ? own_->size() : own_->rank()}), "step ",
      step_);
}

absl::StatusOr<bool> StepAligner::Finish() {
  if (over_) return false;
  bool all = false;
  bool some = false;
  int64_t without = 0;
  if (own_ == nullptr) {
    if (alone_.empty()) return absl::FailedPreconditionError("no step was started");
    all = some = alone_.front();
    alone_.pop_front();
  } else {
    absl::StatusOr<std::vector<int64_t>> least = own_->Finish();
    RETURN_IF_ERROR(Annotate(least.status(), "at step ", step_));
    all = (*least)[0] == 1;
    some = (*least)[1] == -1;
    without = (*least)[2];
  }
  over_ = NeedsAll(policy_) ? !all : !some;
  if (over_ && some && policy_ == PartialBatches::kError) {
    return absl::OutOfRangeError(absl::StrCat(
        "process ", without, " has no data for step ", step_,
        " while others do; partial_batches kError makes this an error of all processes"));
  }
  if (!over_) ++step_;
  return !over_;
}

absl::Status StepAligner::AsyncError() const {
  return own_ == nullptr ? absl::OkStatus() : own_->AsyncError();
}

void StepAligner::Abort(const absl::Status& why) {
  if (own_ != nullptr) own_->Abort(why);
}

}  // namespace penstock
