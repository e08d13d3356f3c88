// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/check/exactly_once.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tools/simulator/check/ownership.h"

namespace penstock::simulator {
namespace {

constexpr size_t kMostViolations = 5;

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
  Checker(const Histories& histories, const CommittedIterations& iterations,
          const ExpectedElements& expected)
      : histories_(histories), iterations_(iterations), expected_(expected) {}

  Findings Check() && {
    NoteReturned();
    NoteCommitted();
    CheckCommitted();
    CountLiving();
    CountCommittedByGone();
    CheckEachOnce();
    CheckGivenUp();
    CheckValues();
    CheckTwice();
    CheckOwnership();
    return std::move(findings_);
  }

 private:
  void Violates(std::string what) {
    if (findings_.violations.size() < kMostViolations) findings_.violations.push_back(what);
  }

  // An element that is made again, or returned by another trainer, has the same value.
  void NoteReturned() {
    for (const History& history : histories_) {
      if (history.client.has_value()) by_client_.emplace(*history.client, &history);
      for (const std::vector<Got>* list : {&history.undone, &history.got}) {
        for (const Got& got : *list) {
          returned_[got.key].push_back({&history, &got});
          const auto [at, is_new] = values_.emplace(got.key, got.value);
          if (is_new || at->second == got.value) continue;
          Violates(absl::StrCat("changed: the element ", Describe(got.key), " was ", at->second,
                                " first, and then ", got.value, ": ",
                                Describe(Owner{&history, got.when})));
        }
      }
    }
  }

  void NoteCommitted() {
    for (const auto& [id, iteration] : iterations_) {
      for (const CommittedIteration::Reader& reader : iteration.readers) {
        for (const auto& [partition, set] : reader.committed) {
          for (const IndexSet::Interval& interval : set.intervals()) {
            for (Index i = interval.begin; i < interval.end; ++i) {
              NoteCommitted({id, partition, i}, reader.client);
            }
          }
        }
      }
    }
  }

  void NoteCommitted(const ElementKey& key, ClientId client) {
    committed_[client].insert(key);
    if (!committed_by_.emplace(key, client).second) {
      Violates(absl::StrCat("doubled: two readers have committed the element ", Describe(key)));
    }
  }

  // Compares what each reader has committed with what its trainer got.
  void CheckCommitted() {
    for (const auto& [client, committed] : committed_) {
      if (!by_client_.contains(client)) {
        Violates(absl::StrCat("foreign: ", ToString(client),
                              ", which is no trainer, has committed ",
                              Describe(*committed.begin())));
      }
    }
    for (const History& history : histories_) {
      const std::set<ElementKey> committed = CommittedBy(history);
      for (const ElementKey& key : committed) {
        if (HasReturned(history, key)) continue;
        Violates(absl::StrCat("never got: the reader of ", history.name, " has committed ",
                              Describe(key), ", which its trainer never got"));
        break;
      }
      if (history.ended.has_value()) {
        CheckAllCommitted(history, committed);
      } else if (CommitsStates(history)) {
        CheckIsState(history, committed);
      }
    }
  }

  void CheckAllCommitted(const History& history, const std::set<ElementKey>& committed) {
    std::set<ElementKey> rest = committed;
    for (const Got& got : history.got) {
      rest.erase(got.key);
      if (committed.contains(got.key)) continue;
      return Violates(absl::StrCat("not durable: ", history.name, " has ended, but its element ",
                                   Describe(got.key), " is not committed"));
    }
    if (rest.empty()) return;
    Violates(absl::StrCat("not its own: ", history.name, " has ended, and has committed ",
                          Describe(*rest.begin()), ", which is not in its history"));
  }

  // A reader of ack=on_commit has committed the last state for which Commit() returned OK, or a
  // later one.
  void CheckIsState(const History& history, const std::set<ElementKey>& committed) {
    std::vector<size_t> sizes = history.states;
    if (history.committed == 0) sizes.push_back(0);
    const bool is_state = std::any_of(sizes.begin(), sizes.end(), [&](size_t size) {
      if (size < history.committed || size > history.got.size()) return false;
      std::set<ElementKey> state;
      for (size_t i = 0; i < size; ++i) state.insert(history.got[i].key);
      return state == committed;
    });
    if (is_state) return;
    Violates(absl::StrCat("not a state: the reader of ", history.name, " has committed ",
                          committed.size(), " elements, which are none of its stored states"));
  }

  std::set<ElementKey> CommittedBy(const History& history) const {
    if (!history.client.has_value()) return {};
    const auto found = committed_.find(*history.client);
    return found == committed_.end() ? std::set<ElementKey>() : found->second;
  }

  bool HasReturned(const History& history, const ElementKey& key) const {
    const auto found = returned_.find(key);
    return found != returned_.end() &&
           std::any_of(found->second.begin(), found->second.end(),
                       [&](const Returned& returned) { return returned.history == &history; });
  }

  // All iterations are of one job.
  bool CommitsStates(const History& history) const {
    return history.client.has_value() &&
           std::any_of(iterations_.begin(), iterations_.end(),
                       [](const auto& entry) { return entry.second.commits_states; });
  }

  void CountLiving() {
    for (const History& history : histories_) {
      if (!history.ended.has_value()) continue;
      for (const Got& got : history.got) Count(got.key, {&history, got.when});
    }
  }

  void CountCommittedByGone() {
    for (const auto& [key, client] : committed_by_) {
      const auto history = by_client_.find(client);
      if (history == by_client_.end() || !history->second->ended.has_value()) Count(key, {});
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
    for (const auto& [id, iteration] : iterations_) {
      for (size_t p = 0; p < iteration.ends.size(); ++p) {
        const PartitionId partition(p + 1);
        if (!iteration.ends[p].has_value()) {
          Violates(absl::StrCat("ended early: trainers were told the end, but ", ToString(id),
                                " does not know the end of ", ToString(partition)));
          continue;
        }
        known += *iteration.ends[p];
        for (Index i = 0; i < *iteration.ends[p]; ++i) CheckOnce(iteration, {id, partition, i});
      }
    }
    if (const int64_t all = expected_.count * expected_.copies; known != all) {
      Violates(
          absl::StrCat("wrong ends: the partitions have ", known, " elements, the dataset ", all));
    }
  }

  void CheckOnce(const CommittedIteration& iteration, const ElementKey& key) {
    const auto returned = returned_.find(key);
    if (owners_.contains(key)) {
      ++findings_.elements;
    } else if (returned == returned_.end()) {
      Violates(absl::StrCat("lost: nobody has the element ", Describe(key),
                            ", which no trainer ever got"));
    } else if (MayBeGivenUp(histories_, iteration, returned->second)) {
      ++findings_.given_up;
      given_up_.emplace(key);
    } else {
      Violates(absl::StrCat("lost: nobody has the element ", Describe(key), ", whose value is ",
                            values_.at(key)));
    }
  }

  void CheckGivenUp() {
    if (findings_.given_up <= expected_.given_up) return;
    Violates(absl::StrCat("given up: ", findings_.given_up, " elements, but the scenario allows ",
                          expected_.given_up, "; one of them: ", Describe(*given_up_.begin())));
  }

  void CheckValues() {
    struct Copies {
      ElementKey first;
      int64_t count = 0;
    };
    std::map<int64_t, Copies> by_value;
    for (const auto& [key, who] : owners_) {
      const auto value = values_.find(key);
      if (value == values_.end()) continue;  // reported by CheckCommitted()
      Copies& copies = by_value.try_emplace(value->second, Copies{key}).first->second;
      if (++copies.count > expected_.copies) {
        Violates(absl::StrCat("doubled: ", Describe(copies.first), " and ", Describe(key),
                              " both are the element ", value->second));
      }
    }
    for (int64_t i = 0; i < expected_.count; ++i) by_value.erase(expected_.value(i));
    if (!by_value.empty()) {
      Violates(absl::StrCat("wrong: ", by_value.begin()->first, " (",
                            Describe(by_value.begin()->second.first),
                            ") is not an element of the dataset"));
    }
  }

  // No process got an element that it had already, not even a process that died.
  void CheckTwice() {
    for (const History& history : histories_) {
      std::vector<Got> twice = history.twice;
      std::set<ElementKey> has;
      for (const Got& got : history.got) {
        if (!has.insert(got.key).second) twice.push_back(got);
      }
      for (const Got& got : twice) {
        Violates(absl::StrCat("twice: ", history.name, " had the element ", Describe(got.key),
                              " when it got it at ", absl::FormatDuration(got.when)));
      }
    }
  }

  void CheckOwnership() {
    for (auto& [key, list] : returned_) {
      const auto iteration = iterations_.find(key.iteration);
      const std::string wrong = iteration == iterations_.end()
                                    ? "its iteration is in no record"
                                    : WrongOwner(iteration->second, key, list);
      if (!wrong.empty()) Violates(absl::StrCat("owned: the element ", Describe(key), ": ", wrong));
    }
  }

  const Histories& histories_;
  const CommittedIterations& iterations_;
  const ExpectedElements& expected_;
  Findings findings_;
  std::map<ElementKey, int64_t> values_;  // of all that was returned
  std::map<ElementKey, std::vector<Returned>> returned_;
  std::map<ClientId, const History*> by_client_;
  std::map<ClientId, std::set<ElementKey>> committed_;  // durably
  std::map<ElementKey, ClientId> committed_by_;
  std::map<ElementKey, Owner> owners_;  // of elements that are in a history
  std::set<ElementKey> given_up_;
};

}  // namespace

Findings CheckExactlyOnce(const Histories& histories, const CommittedIterations& iterations,
                          const ExpectedElements& expected) {
  return Checker(histories, iterations, expected).Check();
}

}  // namespace penstock::simulator
