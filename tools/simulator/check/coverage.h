// SPDX-License-Identifier: Apache-2.0
// Counts the named states that runs have been in, without changes in the product. A state is a
// text: its kind and its name, such as "event lost" or "fault crash worker (reading)". Events,
// messages and calls also count if the dispatcher was killed and only ends.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "tools/simulator/check/shadow.h"
#include "tools/simulator/world/traffic.h"

namespace penstock::simulator {

// A value, used on one thread.
class Coverage final : public TrafficObserver {
 public:
  // "message ClientUp hello", "call GetDataset", "refusal GetDataset NOT_FOUND"
  void OnMessage(const google::protobuf::Message& message) override;
  void OnCall(std::string_view method) override;
  void OnRefused(std::string_view method, const absl::Status& status) override;
  // "change worker_gone" for each change in a record of the journal
  void OnRecord(const std::string& record);
  void OnEvent(std::string_view name);  // an event that the dispatcher logs
  // `fault`: Fault::name
  void OnFault(std::string_view fault, const Shadow& shadow);

  void Saw(const std::string& state, int64_t times = 1) { counts_[state] += times; }
  void Add(const Coverage& other);
  const std::map<std::string, int64_t>& counts() const { return counts_; }

  // Returns a line for each state that was seen, with its count, sorted by name, and after them the
  // names in `known` that were never seen.
  std::string Table(const std::vector<std::string>& known) const;

 private:
  std::map<std::string, int64_t> counts_;
};

// Returns what the job does, by its durable records: "no job", "opening" (it has no partition),
// "reading", "ending" (a partition has ended), "closed" (all may be told the end) or "finished". Of
// several iterations, the one that is furthest from its end counts.
std::string PhaseOf(const Shadow& shadow);

// Return the states that are known without a run. Statuses of refusals are not among them.
std::vector<std::string> KnownStates();
// `faults`: as in Fault::name.
std::vector<std::string> KnownFaultStates(const std::vector<std::string>& faults);

// The names of all events that the dispatcher and its leadership can log.
std::vector<std::string> KnownEvents();

}  // namespace penstock::simulator
