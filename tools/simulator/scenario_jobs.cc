// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/scenario_jobs.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "include/status_macros.h"

namespace penstock::simulator {
namespace {

absl::StatusOr<ShardingPolicy> ParseMode(const std::string& text) {
  static const std::map<std::string, ShardingPolicy>& modes =
      *new std::map<std::string, ShardingPolicy>{{"dynamic", ShardingPolicy::kDynamic},
                                                 {"off", ShardingPolicy::kOff},
                                                 {"data", ShardingPolicy::kData},
                                                 {"file", ShardingPolicy::kFile},
                                                 {"file_or_data", ShardingPolicy::kFileOrData},
                                                 {"hint", ShardingPolicy::kHint}};
  const auto found = modes.find(text);
  if (found == modes.end()) return NotOneOf(text, Names(modes));
  return found->second;
}

absl::StatusOr<Reading> ParseReading(const std::string& text) {
  static const std::map<std::string, Reading>& readings =
      *new std::map<std::string, Reading>{{"any", Reading::kAny},
                                          {"fair", Reading::kFair},
                                          {"rounds", Reading::kRounds},
                                          {"order", Reading::kOrder},
                                          {"cache", Reading::kCache}};
  const auto found = readings.find(text);
  if (found == readings.end()) return NotOneOf(text, Names(readings));
  return found->second;
}

absl::StatusOr<std::string> ParseName(const std::string& text) {
  if (!text.empty()) return text;
  return absl::InvalidArgumentError("a namespace needs a name");
}

Options OptionsOfGroup(TrainerGroup& group) {
  return {{"trainers", ToCount(group.trainers)}, {"step", To(group.step, ParseSpan)}};
}

Options OptionsOfJob(JobPlan& job) {
  Options options = OptionsOfGroup(job.groups.front());
  options.merge(Options{{"namespace", To(job.name_space, ParseName)},
                        {"mode", To(job.mode, ParseMode)},
                        {"read", To(job.reading, ParseReading)},
                        {"ack", To(job.ack, ParseAckMode)},
                        {"elements", ToCount(job.elements)},
                        {"shuffle", ToCount(job.shuffle)},
                        {"repeat", ToCount(job.repeat)},
                        {"repetitions", ToCount(job.repetitions)},
                        {"permits", ToCount(job.permits)},
                        {"outstanding", ToCount(job.outstanding)},
                        {"weight", ToCount(job.share.weight)},
                        {"priority", ToCount(job.share.priority)}});
  return options;
}

// Returns why the job cannot be read so; empty: it can.
std::string WhyNot(const JobPlan& job) {
  const bool shared = job.reading == Reading::kAny || job.reading == Reading::kFair;
  if (job.reading == Reading::kCache && job.mode != ShardingPolicy::kOff) {
    return "'read=cache' needs 'mode=off'";
  }
  if (job.reading == Reading::kCache && job.ack != AckMode::kOnDelivery) {
    return "'read=cache' needs 'ack=on_delivery', because a cache keeps no history";
  }
  if (job.reading == Reading::kRounds && job.mode == ShardingPolicy::kOff) {
    return "'read=rounds' is not for 'mode=off' here";
  }
  if (job.reading == Reading::kOrder && job.mode != ShardingPolicy::kDynamic) {
    return "'read=order' is for 'mode=dynamic' here";
  }
  if (job.repetitions > 1 && (job.reading == Reading::kCache || job.has_consumers())) {
    return "'repetitions' is for jobs without consumers and without a cache";
  }
  const bool changed = job.shuffle > 0 || job.repeat > 1;
  const bool divided = job.mode != ShardingPolicy::kDynamic && job.mode != ShardingPolicy::kOff;
  if (changed && (!shared || divided)) {
    return "'shuffle' and 'repeat' are for 'read=any' and 'read=fair', with 'mode=dynamic' or "
           "'mode=off'";
  }
  if (job.mode == ShardingPolicy::kFile && job.files == 0) {
    return "'mode=file' needs 'files=' in the statement 'dataset'";
  }
  if (!job.named && !shared) return "'unnamed' is for 'read=any' and 'read=fair'";
  if (job.groups.size() > 1 && !shared && job.reading != Reading::kCache) {
    return "the trainers of rounds and of an order are one group";
  }
  return "";
}

}  // namespace

absl::Status AddJob(Words& words, Scenario& scenario) {
  const std::string name = words.Take();
  if (name.empty()) return absl::InvalidArgumentError("a job needs a name");
  const TrainerGroup group = {scenario.trainers, scenario.step};
  const auto same = std::find_if(scenario.jobs.begin(), scenario.jobs.end(),
                                 [&](const JobPlan& job) { return job.name == name; });
  if (same != scenario.jobs.end()) {
    same->groups.push_back(group);
    return SetOptions(words, OptionsOfGroup(same->groups.back()));
  }
  JobPlan job{{scenario}};
  job.name = name;
  job.named = !words.TakeIf("unnamed");
  job.ack = scenario.ack;
  job.groups = {group};
  int64_t copies = 1;
  Options options = OptionsOfJob(job);
  options.emplace("copies", ToCount(copies));
  RETURN_IF_ERROR(SetOptions(words, options));
  for (int64_t copy = 1; copy <= copies; ++copy) {
    scenario.jobs.push_back(job);
    if (copies > 1) scenario.jobs.back().name = absl::StrCat(name, copy);
  }
  return absl::OkStatus();
}

absl::Status ValidateJobs(const Scenario& scenario) {
  for (const JobPlan& job : scenario.jobs) {
    std::string why = WhyNot(job);
    const bool needs_all = job.reading == Reading::kRounds || job.reading == Reading::kOrder;
    if (needs_all && scenario.namespaces.contains(job.name_space)) {
      why =
          "jobs in rounds and in an order need all of their partitions, so they are in no "
          "namespace that has limits";
    }
    if (!why.empty()) return absl::InvalidArgumentError(absl::StrCat("job ", job.name, ": ", why));
  }
  return absl::OkStatus();
}

}  // namespace penstock::simulator
