// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/check/exactly_once.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock::simulator {
namespace {

constexpr size_t kMostViolations = 5;

// A reader of an iteration, as the durable records know it.
struct ReaderKey {
  IterationId iteration;
  size_t reader = 0;  // position in CommittedIteration::readers
  friend auto operator<=>(const ReaderKey&, const ReaderKey&) = default;
};

std::string Describe(const ElementKey& key) {
  return absl::StrCat(ToString(key.iteration), ", ", ToString(key.partition), ", index ",
                      key.index);
}

// Why an element is in a history.
struct Owner {
  const History* history = nullptr;  // nullptr: a reader that is gone has committed it
  absl::Duration when;
};

std::string Describe(const Owner& owner) {
  if (owner.history == nullptr) return "a trainer that is gone has committed it";
  return absl::StrCat(owner.history->name, " got it at ", absl::FormatDuration(owner.when));
}

class Checker {
 public:
  Checker(const Histories& histories, const Shadow& shadow, const ExpectedElements& expected)
      : histories_(histories), shadow_(shadow), expected_(expected) {}

  Findings Check() && {
    NoteReturned();
    NoteCommitted();
    MatchReaders();
    CountLiving();
    CountCommittedByGone();
    CheckEachOnce();
    CheckValues();
    return std::move(findings_);
  }

 private:
  void Violates(std::string what) {
    if (findings_.violations.size() < kMostViolations) findings_.violations.push_back(what);
  }

  // An element that is made again, or returned by another trainer, has the same value.
  void NoteReturned() {
    for (const History& history : histories_) {
      for (const Got& got : history.got) {
        const auto [at, is_new] = values_.emplace(got.key, got.value);
        if (!is_new && at->second != got.value) {
          Violates(absl::StrCat("changed: the element ", Describe(got.key), " was ", at->second,
                                " first, and then ", got.value, ": ",
                                Describe(Owner{&history, got.when})));
        }
      }
    }
  }

  void NoteCommitted() {
    for (const auto& [id, iteration] : shadow_.iterations()) {
      for (size_t r = 0; r < iteration.readers.size(); ++r) {
        const protocol::ReceivedSets& sets = iteration.readers[r].committed;
        for (size_t p = 0; p < sets.size(); ++p) {
          for (const IndexSet::Interval& interval : sets[p].intervals()) {
            for (Index i = interval.begin; i < interval.end; ++i) {
              NoteCommitted({id, PartitionId(p + 1), i}, {id, r});
            }
          }
        }
      }
    }
  }

  void NoteCommitted(const ElementKey& key, const ReaderKey& reader) {
    const auto [at, is_new] = committed_by_.emplace(key, reader);
    if (!is_new) {
      Violates(absl::StrCat("doubled: two readers have committed the element ", Describe(key)));
    }
  }

  // Finds the reader of each history that ended: the one that has committed most of it.
  void MatchReaders() {
    for (const History& history : histories_) {
      if (!history.ended.has_value()) continue;
      std::map<ReaderKey, int64_t> overlap;
      for (const Got& got : history.got) {
        const auto found = committed_by_.find(got.key);
        if (found != committed_by_.end()) ++overlap[found->second];
      }
      const auto best =
          std::max_element(overlap.begin(), overlap.end(),
                           [](const auto& a, const auto& b) { return a.second < b.second; });
      if (best != overlap.end()) living_.emplace(best->first, &history);
    }
  }

  void CountLiving() {
    for (const History& history : histories_) {
      if (!history.ended.has_value()) continue;
      for (const Got& got : history.got) Count(got.key, {&history, got.when});
    }
  }

  void CountCommittedByGone() {
    for (const auto& [key, reader] : committed_by_) {
      if (!living_.contains(reader)) Count(key, {});
    }
  }

  void Count(const ElementKey& key, const Owner& owner) {
    const auto [at, is_new] = owners_.emplace(key, owner);
    if (is_new) return;
    const auto value = values_.find(key);
    Violates(absl::StrCat("doubled: the element ", Describe(key),
                          value == values_.end() ? "" : absl::StrCat(" (", value->second, ")"),
                          ": ", Describe(at->second), ", and ", Describe(owner)));
  }

  void CheckEachOnce() {
    int64_t known = 0;
    for (const auto& [id, iteration] : shadow_.iterations()) {
      for (size_t p = 0; p < iteration.ends.size(); ++p) {
        const PartitionId partition(p + 1);
        if (!iteration.ends[p].has_value()) {
          Violates(absl::StrCat("ended early: trainers were told the end, but ", ToString(id),
                                " does not know the end of ", ToString(partition)));
          continue;
        }
        known += *iteration.ends[p];
        for (Index i = 0; i < *iteration.ends[p]; ++i) CheckOnce({id, partition, i});
      }
    }
    if (known != expected_.count) {
      Violates(absl::StrCat("wrong ends: the partitions have ", known, " elements, the dataset ",
                            expected_.count));
    }
  }

  void CheckOnce(const ElementKey& key) {
    if (owners_.contains(key)) {
      ++findings_.elements;
    } else if (MayBeGivenUp(key)) {
      ++findings_.given_up;
    } else {
      const auto value = values_.find(key);
      Violates(absl::StrCat("lost: nobody has the element ", Describe(key),
                            value == values_.end()
                                ? ", which no trainer ever got"
                                : absl::StrCat(", whose value is ", value->second)));
    }
  }

  // Until the first trainer is told the end, the dispatcher gives the elements of the dead to
  // others. After that, there may be no others.
  bool MayBeGivenUp(const ElementKey& key) const {
    std::optional<absl::Duration> first_end;
    for (const History& history : histories_) {
      if (history.ended.has_value()) {
        first_end = std::min(first_end.value_or(*history.ended), *history.ended);
      }
    }
    return std::any_of(histories_.begin(), histories_.end(), [&](const History& history) {
      return history.gone.has_value() && first_end.has_value() && *history.gone >= *first_end &&
             std::any_of(history.got.begin(), history.got.end(),
                         [&](const Got& got) { return got.key == key; });
    });
  }

  void CheckValues() {
    std::map<int64_t, ElementKey> by_value;
    for (const auto& [key, who] : owners_) {
      const auto value = values_.find(key);
      if (value == values_.end()) continue;  // delivered when its process died
      const auto [at, is_new] = by_value.emplace(value->second, key);
      if (!is_new) {
        Violates(absl::StrCat("doubled: ", Describe(at->second), " and ", Describe(key),
                              " both are the element ", value->second));
      }
    }
    for (int64_t i = 0; i < expected_.count; ++i) by_value.erase(expected_.value(i));
    if (!by_value.empty()) {
      Violates(absl::StrCat("wrong: ", by_value.begin()->first, " (",
                            Describe(by_value.begin()->second),
                            ") is not an element of the dataset"));
    }
  }

  const Histories& histories_;
  const Shadow& shadow_;
  const ExpectedElements& expected_;
  Findings findings_;
  std::map<ElementKey, int64_t> values_;          // of all that was returned
  std::map<ElementKey, ReaderKey> committed_by_;  // durably
  std::map<ReaderKey, const History*> living_;    // the readers of histories that ended
  std::map<ElementKey, Owner> owners_;            // of elements that are in a history
};

}  // namespace

Findings CheckExactlyOnce(const Histories& histories, const Shadow& shadow,
                          const ExpectedElements& expected) {
  return Checker(histories, shadow, expected).Check();
}

}  // namespace penstock::simulator
