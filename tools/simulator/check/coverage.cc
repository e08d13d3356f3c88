// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/check/coverage.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <array>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "control/proto/control.pb.h"
#include "control/proto/journal.pb.h"
#include "tools/simulator/world/port.h"

namespace penstock::simulator {
namespace {

namespace wire = control::wire;

// In the order in which a job passes through them.
constexpr std::array<const char*, 6> kPhases = {"no job", "opening", "reading",
                                                "ending", "closed",  "finished"};

constexpr char kNestedChange[] = "iteration_altered";  // has a variant of its own
constexpr char kOldChange[] = "term_raised";           // only earlier releases wrote it

// Returns the name of the variant that `message` has in its oneof `oneof`.
std::string VariantOf(const google::protobuf::Message& message, const char* oneof) {
  const google::protobuf::OneofDescriptor* variants =
      message.GetDescriptor()->FindOneofByName(oneof);
  const auto* field = message.GetReflection()->GetOneofFieldDescriptor(message, variants);
  return field == nullptr ? "none" : std::string(field->name());
}

std::string ChangeName(const wire::Change& change) {
  const std::string name = VariantOf(change, "change");
  if (name != kNestedChange) return name;
  return absl::StrCat(name, " ", VariantOf(change.iteration_altered(), "change"));
}

// Adds "<prefix> <name>" for each variant.
void AddVariants(const google::protobuf::Descriptor* message, const char* oneof,
                 const std::string& prefix, std::vector<std::string>& states) {
  const google::protobuf::OneofDescriptor* variants = message->FindOneofByName(oneof);
  for (int i = 0; i < variants->field_count(); ++i) {
    states.push_back(absl::StrCat(prefix, " ", std::string(variants->field(i)->name())));
  }
}

size_t PhaseNumber(const CommittedIteration& iteration) {
  if (iteration.finished) return 5;
  if (iteration.closed) return 4;
  if (iteration.ends.empty()) return 1;
  const bool any_ended = std::any_of(iteration.ends.begin(), iteration.ends.end(),
                                     [](const auto& end) { return end.has_value(); });
  return any_ended ? 3 : 2;
}

std::string FaultState(std::string_view fault, std::string_view phase) {
  return absl::StrFormat("fault %s (%s)", std::string(fault), std::string(phase));
}

}  // namespace

void Coverage::OnMessage(const google::protobuf::Message& message) {
  Saw(absl::StrCat("message ", std::string(message.GetDescriptor()->name()), " ",
                   VariantOf(message, "message")));
}

void Coverage::OnCall(std::string_view method) {
  Saw(absl::StrCat("call ", std::string(method)));
}

void Coverage::OnRefused(std::string_view method, const absl::Status& status) {
  Saw(absl::StrCat("refusal ", std::string(method), " ", absl::StatusCodeToString(status.code())));
}

// The shadow has read the record before, so it can be parsed.
void Coverage::OnRecord(const std::string& record) {
  wire::Changes changes;
  if (!changes.ParseFromString(record)) return;
  for (const wire::Change& change : changes.changes()) {
    Saw(absl::StrCat("change ", ChangeName(change)));
  }
}

void Coverage::OnEvent(std::string_view name) {
  Saw(absl::StrCat("event ", std::string(name)));
}

void Coverage::OnFault(std::string_view fault, const Shadow& shadow) {
  Saw(FaultState(fault, PhaseOf(shadow)));
}

void Coverage::Add(const Coverage& other) {
  for (const auto& [state, count] : other.counts_) Saw(state, count);
}

std::string Coverage::Table(const std::vector<std::string>& known) const {
  std::string table;
  for (const auto& [state, count] : counts_) {
    absl::StrAppendFormat(&table, "%12d  %s\n", count, state);
  }
  std::vector<std::string> never;
  for (const std::string& state : known) {
    if (!counts_.contains(state)) never.push_back(absl::StrCat("       never  ", state, "\n"));
  }
  std::sort(never.begin(), never.end());
  absl::StrAppendFormat(&table, "%s%d states seen; %d of %d known states never seen\n",
                        absl::StrJoin(never, ""), counts_.size(), never.size(), known.size());
  return table;
}

std::string PhaseOf(const Shadow& shadow) {
  std::optional<size_t> earliest;
  for (const auto& [id, iteration] : shadow.progress()) {
    const size_t phase = PhaseNumber(iteration);
    earliest = std::min(earliest.value_or(phase), phase);
  }
  return kPhases.at(earliest.value_or(0));
}

std::vector<std::string> KnownStates() {
  std::vector<std::string> states;
  for (const google::protobuf::Descriptor* stream :
       {wire::ClientUp::descriptor(), wire::ClientDown::descriptor(), wire::WorkerUp::descriptor(),
        wire::WorkerDown::descriptor()}) {
    AddVariants(stream, "message", absl::StrCat("message ", std::string(stream->name())), states);
  }
  AddVariants(wire::Change::descriptor(), "change", "change", states);
  states.erase(std::remove_if(states.begin(), states.end(),
                              [](const std::string& state) {
                                return state == absl::StrCat("change ", kNestedChange) ||
                                       state == absl::StrCat("change ", kOldChange);
                              }),
               states.end());
  AddVariants(wire::IterationAltered::descriptor(), "change",
              absl::StrCat("change ", kNestedChange), states);
  for (const std::string& method : Port::Methods()) states.push_back(absl::StrCat("call ", method));
  for (const std::string& event : KnownEvents()) states.push_back(absl::StrCat("event ", event));
  return states;
}

std::vector<std::string> KnownFaultStates(const std::vector<std::string>& faults) {
  std::vector<std::string> states;
  for (const std::string& fault : faults) {
    for (const char* phase : kPhases) states.push_back(FaultState(fault, phase));
  }
  return states;
}

std::vector<std::string> KnownEvents() {
  return {"assigned",
          "bookmark_passed_over",
          "client_dead",
          "client_joined",
          "client_left",
          "committed",
          "consumer_back",
          "consumer_dead",
          "consumer_suspected",
          "cut",
          "dataset_forgotten",
          "dataset_refused",
          "draining",
          "etcd_unreachable",
          "given_up",
          "invariant_broken",
          "job_cancelled",
          "job_created",
          "job_forgotten",
          "job_removed",
          "job_restored",
          "joined",
          "journal_failed",
          "journal_is_older",
          "leads",
          "lost",
          "overloaded",
          "partition_failed",
          "partition_kills",
          "preempted",
          "quota_reached",
          "refused",
          "registered",
          "relieved",
          "restored",
          "runs_alone",
          "snapshot_refused",
          "stalled",
          "standby",
          "step_torn",
          "unreached",
          "unreadable",
          "unregistered",
          "wanted_workers",
          "worker_reconnected",
          "worker_refused"};
}

}  // namespace penstock::simulator
