// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/check/jobs.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "tools/simulator/check/cache.h"
#include "tools/simulator/check/order.h"
#include "tools/simulator/check/rounds.h"
#include "tools/simulator/check/shards.h"

namespace penstock::simulator {
namespace {

// Returns when the trainer was told the end of a repetition, as far as it shows: with the first
// element of a later one, or with the end of all.
std::optional<absl::Duration> ToldEnd(const History& history, const Shadow& shadow,
                                      int64_t repetition) {
  for (const Got& got : history.got) {
    const auto found = shadow.iterations().find(got.key.iteration);
    if (found != shadow.iterations().end() && found->second.repetition > repetition) {
      return got.when;
    }
  }
  return history.ended;
}

using HasKey = absl::FunctionRef<bool(const ElementKey&)>;

// Returns what `history` has of the elements for which `has` is true. Its states are then the parts
// of the stored states.
History PartOf(const History& history, HasKey has) {
  History part = history;
  for (std::vector<Got>* list : {&part.got, &part.undone, &part.twice}) {
    std::erase_if(*list, [&](const Got& got) { return !has(got.key); });
  }
  const auto size_of_part = [&](size_t size) {
    const auto end =
        history.got.begin() + static_cast<ptrdiff_t>(std::min(size, history.got.size()));
    return static_cast<size_t>(
        std::count_if(history.got.begin(), end, [&](const Got& got) { return has(got.key); }));
  };
  for (size_t& size : part.states) size = size_of_part(size);
  part.committed = size_of_part(history.committed);
  return part;
}

using HistoryList = std::vector<const History*>;

// Returns what the histories have of one iteration. A trainer that was told its end and died later
// has two histories: what it got, and that it was told the end.
Histories PartsOf(const HistoryList& histories, const Shadow& shadow, IterationId id,
                  const CommittedIteration& iteration) {
  Histories parts;
  for (const History* const history : histories) {
    History part = PartOf(*history, [id](const ElementKey& key) { return key.iteration == id; });
    const std::optional<absl::Duration> told = ToldEnd(*history, shadow, iteration.repetition);
    if (!part.gone.has_value()) part.ended = told;
    if (part.gone.has_value() && told.has_value()) {
      History& only_told = parts.emplace_back();
      only_told.name = part.name;
      only_told.ended = told;
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

class JobChecker {
 public:
  JobChecker(const JobsToCheck& run, size_t job, Findings& findings)
      : run_(run),
        plan_(run.jobs[job]),
        expected_{plan_.elements, run.value, 0, plan_.repeat},
        findings_(findings) {
    for (const History& history : run.histories) {
      if (history.job == job) histories_.push_back(&history);
    }
  }

  void Check() {
    if (plan_.reading == Reading::kCache) return Add(CheckCache(Copies(), expected_, run_.calm));
    if (plan_.reading == Reading::kRounds) {
      return Add(CheckRounds(Copies(), plan_.trainers(), expected_), "");
    }
    const Readers readers = ReadersOfIterations();
    if (plan_.named) CheckPasses(readers);
    for (const auto& [id, its] : readers) CheckIteration(id, plan_.named ? histories_ : its);
    for (const History* const history : histories_) CheckAllPasses(*history);
  }

 private:
  using Readers = std::map<IterationId, HistoryList>;  // which got elements of it

  Histories Copies() const {
    Histories copies;
    for (const History* const history : histories_) copies.push_back(*history);
    return copies;
  }

  Readers ReadersOfIterations() const {
    Readers readers;
    for (const History* const history : histories_) {
      for (const std::vector<Got>* list : {&history->undone, &history->got}) {
        for (const Got& got : *list) {
          HistoryList& its = readers[got.key.iteration];
          if (its.empty() || its.back() != history) its.push_back(history);
        }
      }
    }
    return readers;
  }

  void Add(const std::vector<std::string>& violations, const std::string& where = "") {
    for (const std::string& violation : violations) {
      findings_.violations.push_back(absl::StrCat(violation, where));
    }
  }
  void Add(const Findings& findings, const std::string& where) {
    findings_.elements += findings.elements;
    findings_.given_up += findings.given_up;
    Add(findings.violations, where);
  }

  // All trainers of a named job read the same iterations, one for each pass.
  void CheckPasses(const Readers& readers) {
    std::map<int64_t, IterationId> by_repetition;
    for (const auto& [id, its] : readers) {
      const auto found = run_.shadow.iterations().find(id);
      if (found == run_.shadow.iterations().end()) continue;  // CheckExactlyOnce() reports it
      const auto [at, is_new] = by_repetition.emplace(found->second.repetition, id);
      if (is_new) continue;
      Add({absl::StrCat("doubled pass: trainers of job ", plan_.name, " read ",
                        ToString(at->second), " and ", ToString(id), ", and both are its pass ",
                        at->first)});
    }
    if (static_cast<int64_t>(by_repetition.size()) != plan_.repetitions) {
      Add({absl::StrCat("wrong passes: job ", plan_.name, " was read in ", by_repetition.size(),
                        " passes of ", plan_.repetitions)});
    }
  }

  // The only trainer of an unnamed job reads all of its passes.
  void CheckAllPasses(const History& history) {
    if (plan_.named || !history.ended.has_value()) return;
    std::set<IterationId> iterations;
    for (const Got& got : history.got) iterations.insert(got.key.iteration);
    if (static_cast<int64_t>(iterations.size()) == plan_.repetitions) return;
    Add({absl::StrCat("wrong passes: ", history.name, " read ", iterations.size(), " passes of ",
                      plan_.repetitions)});
  }

  // `readers`: those whose histories count.
  void CheckIteration(IterationId id, const HistoryList& readers) {
    const auto found = run_.shadow.iterations().find(id);
    if (found == run_.shadow.iterations().end()) {
      return Add({absl::StrCat("unknown: trainers got elements of ", ToString(id),
                               ", of which the journal has no record")});
    }
    const CommittedIteration& iteration = found->second;
    Histories parts = PartsOf(readers, run_.shadow, id, iteration);
    if (!plan_.named) {
      std::erase_if(parts, [](const History& part) { return part.got.empty(); });
    }
    // The trainer of an unnamed job died, and nobody else reads the job.
    if (!plan_.named && std::none_of(parts.begin(), parts.end(),
                                     [](const History& part) { return part.ended.has_value(); })) {
      return;
    }
    const std::string where =
        run_.jobs.size() == 1 && plan_.repetitions == 1
            ? ""
            : absl::StrCat(" (job ", plan_.name, ", pass ", iteration.repetition, ")");
    if (plan_.mode == ShardingPolicy::kOff) return CheckWholes(id, iteration, parts, where);
    CheckPass(parts, run_.shadow.Only(id), where);
    if (plan_.reading == Reading::kOrder) {
      Add(CheckOrder(parts, iteration.ends, plan_.trainers()), where);
    }
    if (plan_.mode != ShardingPolicy::kDynamic) {
      const auto partitions = static_cast<int64_t>(iteration.ends.size());
      Add(CheckShards(parts, partitions, expected_, PartOfShards(partitions)), where);
    }
  }

  // FILE_OR_DATA is FILE if there are enough files.
  std::function<int64_t(int64_t)> PartOfShards(int64_t partitions) const {
    const bool by_file = plan_.mode == ShardingPolicy::kFile ||
                         (plan_.mode == ShardingPolicy::kFileOrData && plan_.files >= partitions);
    return [this, by_file](int64_t element) { return by_file ? plan_.FileOf(element) : element; };
  }

  // In mode OFF, each partition has the whole dataset.
  void CheckWholes(IterationId id, const CommittedIteration& iteration, const Histories& parts,
                   const std::string& where) {
    for (size_t p = 1; p <= iteration.ends.size(); ++p) {
      const PartitionId partition(p);
      Histories of_partition;
      for (const History& part : parts) {
        of_partition.push_back(PartOf(
            part, [partition](const ElementKey& key) { return key.partition == partition; }));
      }
      CheckPass(of_partition, run_.shadow.Only(id, partition), where);
    }
  }

  // The bound on elements that are given up is for the whole run.
  void CheckPass(const Histories& parts, const Shadow& shadow, const std::string& where) {
    ExpectedElements expected = expected_;
    expected.given_up = std::max<int64_t>(run_.given_up - findings_.given_up, 0);
    Add(CheckExactlyOnce(parts, shadow.iterations(), expected), where);
  }

  const JobsToCheck& run_;
  const JobPlan& plan_;
  const ExpectedElements expected_;
  HistoryList histories_;  // of the job
  Findings& findings_;
};

}  // namespace

Findings CheckJobs(const JobsToCheck& run) {
  Findings findings;
  for (size_t job = 0; job < run.jobs.size(); ++job) JobChecker(run, job, findings).Check();
  return findings;
}

}  // namespace penstock::simulator
