// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/engine/states_of_ranks.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

// "PSAR", which distinguishes states of all ranks from other bytes.
constexpr std::string_view kRanksMagic = "PSAR";

struct StatesOfRanks {
  std::vector<State> states;
  RestoreOptions options;
  uint64_t name = 0;  // hash of states and run_id; the order of the states does not matter
};

// FNV-1a (Fowler, Noll, Vo): the same in all processes.
uint64_t Mark(std::string_view bytes, uint64_t mark = 0xcbf29ce484222325) {
  for (const char byte : bytes) mark = (mark ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
  return mark;
}

uint64_t NameOfRanks(const StatesOfRanks& ranks) {
  std::vector<uint64_t> marks;
  for (const State& state : ranks.states) marks.push_back(Mark(state.bytes));
  std::sort(marks.begin(), marks.end());
  uint64_t name = Mark(ranks.options.run_id);
  for (const uint64_t mark : marks) name = Mark(absl::StrCat(mark, ";"), name);
  return name;
}

bool IsOfAllRanks(const State& state) {
  return std::string_view(state.bytes).substr(0, kRanksMagic.size()) == kRanksMagic;
}

absl::StatusOr<StatesOfRanks> ReadStatesOfRanks(const State& all) {
  StatesOfRanks ranks;
  StateReader reader(std::string_view(all.bytes).substr(kRanksMagic.size()));
  ASSIGN_OR_RETURN(const std::string_view run_id, reader.ReadString());
  ranks.options.run_id = run_id;
  ASSIGN_OR_RETURN(const uint64_t allowed, reader.ReadUnsigned());
  for (uint64_t i = 0; i < allowed; ++i) {
    ASSIGN_OR_RETURN(const std::string_view node, reader.ReadString());
    ranks.options.allow.emplace_back(node);
  }
  ASSIGN_OR_RETURN(ranks.options.skip_steps, reader.ReadInt());
  ASSIGN_OR_RETURN(const uint64_t count, reader.ReadUnsigned());
  for (uint64_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(const std::string_view bytes, reader.ReadString());
    ranks.states.push_back({std::string(bytes)});
  }
  RETURN_IF_ERROR(reader.ExpectEnd());
  if (ranks.states.empty()) return absl::InvalidArgumentError("no state was given");
  if (ranks.options.skip_steps < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("skip_steps must be 0 or more, not ", ranks.options.skip_steps));
  }
  ranks.name = NameOfRanks(ranks);
  return ranks;
}

absl::StatusOr<StateToRestore> ReadStateOfOne(const State& state) {
  StateToRestore read;
  StateReader reader(AfterMagic(state));
  ASSIGN_OR_RETURN(read.head, ReadStateHead(reader, state));
  ASSIGN_OR_RETURN(StateSections sections, ReadStateSections(reader));
  read.sections.of.push_back(std::move(sections));
  read.position = reader.rest();
  return read;
}

// Returns how far the nodes with sections had read.
int64_t HowFar(const StateSections& sections) {
  int64_t far = 0;
  for (const auto& [node, section] : sections) far += section.at;
  return far;
}

}  // namespace

State MergeRankStates(absl::Span<const State> states, const RestoreOptions& options) {
  StateWriter writer;
  writer.WriteString(options.run_id);
  writer.WriteUnsigned(options.allow.size());
  for (const std::string& node : options.allow) writer.WriteString(node);
  writer.WriteInt(options.skip_steps);
  writer.WriteUnsigned(states.size());
  for (const State& state : states) writer.WriteString(state.bytes);
  return {std::string(kRanksMagic) + writer.bytes()};
}

absl::StatusOr<StateToRestore> ReadStateToRestore(const State& state) {
  if (!IsOfAllRanks(state)) return ReadStateOfOne(state);
  ASSIGN_OR_RETURN(const StatesOfRanks ranks, ReadStatesOfRanks(state));
  StateToRestore merged;
  merged.sections.all_ranks = true;
  merged.sections.name = ranks.name;
  merged.sections.run_id = ranks.options.run_id;
  merged.options = ranks.options;
  // Nodes after Distribute get the positions of the rank that had read the least.
  std::optional<int64_t> least;
  for (const State& of_rank : ranks.states) {
    ASSIGN_OR_RETURN(StateToRestore read, ReadStateOfOne(of_rank));
    StateSections& sections = read.sections.of.front();
    if (sections.empty() && ranks.states.size() > 1) {
      return absl::InvalidArgumentError(
          "one of the states has no position of a Distribute, or nodes after Distribute read "
          "ahead when it was saved: it cannot be merged with the other states");
    }
    const int64_t far = HowFar(sections);
    if (!least.has_value() || far < *least) {
      least = far;
      merged.head = read.head;
      merged.position = std::move(read.position);
    }
    merged.sections.of.push_back(std::move(sections));
  }
  return merged;
}

}  // namespace penstock
