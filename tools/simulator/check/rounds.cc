// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/check/rounds.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace penstock::simulator {
namespace {

constexpr size_t kMostRoundViolations = 5;

class RoundsChecker {
 public:
  RoundsChecker(const Histories& histories, int64_t consumers, const ExpectedElements& expected)
      : histories_(histories), consumers_(consumers), expected_(expected) {}

  Findings Check() && {
    if (!FindConsumers()) return std::move(findings_);
    for (const History* history : of_) CheckSequence(*history);
    CheckEnds();
    // Otherwise, the rounds cannot be compared.
    if (findings_.violations.empty()) {
      for (size_t round = 0; round < of_.front()->got.size(); ++round) CheckRound(round);
      CheckRemainders();
      CheckElements();
    }
    return std::move(findings_);
  }

 private:
  void Violates(std::string what) {
    if (findings_.violations.size() < kMostRoundViolations) {
      findings_.violations.push_back(std::move(what));
    }
  }

  // Finds the history of each consumer.
  bool FindConsumers() {
    std::map<int64_t, const History*> by_number;
    for (const History& history : histories_) {
      if (!history.ended.has_value()) continue;
      const int64_t number = history.got.empty() ? -1 : history.got.front().consumer;
      const auto [at, is_new] = by_number.emplace(number, &history);
      if (!is_new) {
        Violates(absl::StrCat("doubled consumer: ", at->second->name, " and ", history.name,
                              " both read to the end as consumer ", number));
      }
    }
    for (int64_t i = 0; i < consumers_; ++i) {
      const auto found = by_number.find(i);
      if (found == by_number.end()) {
        Violates(absl::StrCat("missing consumer: nobody read to the end as consumer ", i, " of ",
                              consumers_));
      } else {
        of_.push_back(found->second);
      }
    }
    return findings_.violations.empty();
  }

  void CheckSequence(const History& history) {
    for (size_t i = 0; i < history.got.size(); ++i) {
      const Got& got = history.got[i];
      if (got.round != static_cast<int64_t>(i)) {
        return Violates(absl::StrCat("wrong round: ", history.name, " got round ", got.round,
                                     " where round ", i, " was next"));
      }
      if (got.consumer != history.got.front().consumer) {
        return Violates(absl::StrCat("wrong consumer: ", history.name, ", which is consumer ",
                                     history.got.front().consumer, ", got the element of consumer ",
                                     got.consumer, " in round ", got.round));
      }
    }
  }

  void CheckEnds() {
    for (const History* history : of_) {
      if (history->got.size() == of_.front()->got.size()) continue;
      Violates(absl::StrCat("different ends: ", of_.front()->name, " got ", of_.front()->got.size(),
                            " rounds, ", history->name, " ", history->got.size()));
    }
  }

  // Returns whether the elements of a round are a row: element i is for consumer i.
  bool IsRow(size_t round) const {
    const ElementKey& first = of_.front()->got[round].key;
    if (first.index % consumers_ != 0) return false;
    for (size_t i = 0; i < of_.size(); ++i) {
      const ElementKey& key = of_[i]->got[round].key;
      if (key.iteration != first.iteration || key.partition != first.partition ||
          key.index != first.index + static_cast<Index>(i)) {
        return false;
      }
    }
    return true;
  }

  void CheckRound(size_t round) {
    const int64_t pads = std::count_if(of_.begin(), of_.end(), [round](const History* history) {
      return history->got[round].pad;
    });
    const bool is_last = round + 1 == of_.front()->got.size();
    if (pads > 0 && (!is_last || pads == consumers_)) {
      Violates(absl::StrCat("wrong copies: round ", round, " of ", of_.front()->got.size(), " has ",
                            pads, " copies"));
    }
    const bool is_row = IsRow(round);
    if (!is_row && !first_mixed_.has_value()) first_mixed_ = round;
    if (is_row && pads == 0 && first_mixed_.has_value()) {
      Violates(absl::StrCat("mixed round: the elements of round ", *first_mixed_,
                            " are not one row, but round ", round, " is whole again"));
      first_mixed_.reset();
    }
  }

  // A remainder has fewer elements than a row.
  void CheckRemainders() {
    std::map<PartitionId, int64_t> sizes;
    for (const History* history : of_) {
      for (size_t i = first_mixed_.value_or(history->got.size()); i < history->got.size(); ++i) {
        if (!history->got[i].pad) ++sizes[history->got[i].key.partition];
      }
    }
    for (const auto& [partition, size] : sizes) {
      if (size < consumers_) continue;
      Violates(absl::StrCat("mixed round: from round ", *first_mixed_,
                            " on the elements are not in "
                            "rows, but ",
                            ToString(partition), " has ", size,
                            " elements there, which make a row"));
    }
  }

  void CheckElements() {
    std::set<ElementKey> keys;
    std::map<int64_t, int64_t> times;  // by value
    for (const History* history : of_) {
      for (const Got& got : history->got) {
        if (!got.pad && !keys.insert(got.key).second) {
          Violates(absl::StrCat("doubled: ", history->name, " got ", ToString(got.key.partition),
                                ", index ", got.key.index, " in round ", got.round,
                                ", which was in a round before"));
        }
        times[got.value] += got.pad ? 0 : 1;
      }
    }
    for (int64_t i = 0; i < expected_.count; ++i) {
      const auto found = times.find(expected_.value(i));
      const int64_t count = found == times.end() ? 0 : found->second;
      if (count == 1) ++findings_.elements;
      if (count != 1) {
        Violates(absl::StrCat(count == 0 ? "lost" : "doubled", ": the element ", expected_.value(i),
                              " is in ", count, " rounds"));
      }
      if (found != times.end()) times.erase(found);
    }
    if (!times.empty()) {
      Violates(absl::StrCat("wrong: ", times.begin()->first, " is not an element of the dataset"));
    }
  }

  const Histories& histories_;
  const int64_t consumers_;
  const ExpectedElements& expected_;
  Findings findings_;
  std::vector<const History*> of_;     // by consumer
  std::optional<size_t> first_mixed_;  // the first round that is not a row
};

}  // namespace

Findings CheckRounds(const Histories& histories, int64_t consumers,
                     const ExpectedElements& expected) {
  return RoundsChecker(histories, consumers, expected).Check();
}

}  // namespace penstock::simulator
