// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/farm/farm.h"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "include/status_macros.h"
#include "tools/simulator/farm/child.h"
#include "tools/simulator/farm/generator.h"
#include "tools/simulator/farm/shrinker.h"
#include "tools/simulator/farm/trial.h"
#include "tools/simulator/scenario.h"

namespace penstock::simulator {
namespace {

constexpr uint64_t kTwiceEvery = 100;  // of this many runs, one is repeated
constexpr int64_t kMostSaved = 5;      // scenarios that fail by one check
constexpr absl::Duration kProgressInterval = absl::Minutes(1);
// Bounds of one shrinking. Each text is tried under a few seeds.
constexpr absl::Duration kShrinkTime = absl::Minutes(5);
constexpr int kMostShrinkTries = 300;
constexpr uint64_t kSeedsPerTry = 4;

// Prints a line at once, so that a program that reads it need not wait.
void PrintLine(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

// "worker ended by itself" → "worker_ended_by_itself"
std::string FileName(std::string_view check) {
  std::string name(check.substr(0, 60));
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !absl::ascii_isalnum(c); }, '_');
  return name;
}

struct Source {
  std::string name;
  std::string text;
};

absl::StatusOr<std::vector<Source>> ReadSources(const std::vector<std::string>& files) {
  std::vector<Source> sources;
  for (const std::string& file : files) {
    RETURN_IF_ERROR(ReadScenario(file).status());
    std::ifstream in(file);
    sources.push_back({file, std::string((std::istreambuf_iterator<char>(in)), {})});
  }
  return sources;
}

// In a child: returns the text for the file of a smaller scenario that fails by the same check.
std::string SmallerOf(const Failing& failing, absl::Duration run_limit) {
  const std::string check = CheckOf(failing.what);
  const absl::Time deadline = absl::Now() + kShrinkTime;
  const auto find = [&](const std::string& text) -> std::optional<Failing> {
    for (uint64_t i = 0; i < kSeedsPerTry && absl::Now() < deadline; ++i) {
      const uint64_t seed = failing.seed + i;
      const TrialResult result = RunTrial({text, seed, check == "replay"}, run_limit);
      if (CheckOf(result.violation) == check) return Failing{text, seed, result.violation};
    }
    return std::nullopt;
  };
  return ToFile(Shrink(failing, find, kMostShrinkTries));
}

class Farm {
 public:
  Farm(const FarmOptions& options, std::vector<Source> sources)
      : options_(options), sources_(std::move(sources)) {}

  absl::StatusOr<int64_t> Run() {
    const absl::Time end = begin_ + options_.time;
    absl::Time next_progress = begin_ + kProgressInterval;
    while (true) {
      RETURN_IF_ERROR(StartJobs(end));
      if (jobs_.empty()) break;
      Await(next_progress);
      FinishJobs();
      if (absl::Now() < next_progress) continue;
      PrintProgress();
      next_progress += kProgressInterval;
    }
    PrintProgress();
    std::vector<std::string> known = KnownStates();
    for (std::string& state : KnownFaultStates(DrawnFaults())) known.push_back(std::move(state));
    for (std::string& state : DrawnOptions()) known.push_back(std::move(state));
    PrintLine(coverage_.Table(known));
    for (const auto& [check, times] : failures_) PrintLine(absl::StrCat(times, " runs: ", check));
    return failed_;
  }

 private:
  struct Job {
    std::unique_ptr<Child> child;
    std::function<void(const ChildEnd&)> on_end;
  };

  // Shrinking comes first, and goes on after `end`.
  absl::Status StartJobs(absl::Time end) {
    while (jobs_.size() < static_cast<size_t>(options_.jobs)) {
      if (!to_shrink_.empty()) {
        RETURN_IF_ERROR(StartShrinking(std::move(to_shrink_.front())));
        to_shrink_.pop_front();
      } else if (absl::Now() < end) {
        RETURN_IF_ERROR(StartRun());
      } else {
        break;
      }
    }
    return absl::OkStatus();
  }

  // Every second run, if there are files, is of the next file.
  absl::Status StartRun() {
    const uint64_t number = started_++;
    const uint64_t seed = options_.first_seed + number;
    const bool drawn = sources_.empty() || number % 2 == 0;
    const Source source = drawn ? Source{"a drawn scenario", DrawScenario(seed)}
                                : sources_[static_cast<size_t>(number / 2) % sources_.size()];
    const Trial trial{source.text, seed, number % kTwiceEvery == kTwiceEvery - 1};
    ASSIGN_OR_RETURN(std::unique_ptr<Child> child,
                     StartTrial(trial, options_.run_limit * (trial.twice ? 2 : 1)));
    jobs_.push_back({std::move(child), [this, trial, name = source.name](const ChildEnd& end) {
                       OnRunEnded(trial, name, ResultOf(end));
                     }});
    return absl::OkStatus();
  }

  absl::Status StartShrinking(Failing failing) {
    const auto shrinks = [&] { return SmallerOf(failing, options_.run_limit); };
    const absl::Duration limit = kShrinkTime + 2 * options_.run_limit;
    ASSIGN_OR_RETURN(std::unique_ptr<Child> child, Child::Start(shrinks, limit));
    const std::string path = PathOf(CheckOf(failing.what), "smallest");
    jobs_.push_back({std::move(child), [this, path](const ChildEnd& end) {
                       if (end.text.has_value()) return Save(path, *end.text);
                       PrintLine(absl::StrCat("cannot shrink ", path, ": ", end.failure));
                     }});
    return absl::OkStatus();
  }

  void Await(absl::Time next_progress) const {
    std::vector<int> descriptors;
    absl::Time deadline = next_progress;
    for (const Job& job : jobs_) {
      descriptors.push_back(job.child->descriptor());
      deadline = std::min(deadline, job.child->deadline());
    }
    AwaitReadable(descriptors, deadline);
  }

  void FinishJobs() {
    for (size_t i = jobs_.size(); i-- > 0;) {
      const std::optional<ChildEnd> end = jobs_[i].child->Poll();
      if (!end.has_value()) continue;
      const Job job = std::move(jobs_[i]);
      jobs_.erase(jobs_.begin() + static_cast<ptrdiff_t>(i));
      job.on_end(*end);
    }
  }

  void OnRunEnded(const Trial& trial, const std::string& name, const TrialResult& result) {
    ++ended_;
    virtual_time_ += result.virtual_time;
    coverage_.Add(result.coverage);
    for (const std::string& option : OptionStates(trial.text)) coverage_.Saw(option);
    if (result.violation.empty()) return;
    ++failed_;
    const std::string check = CheckOf(result.violation);
    const int64_t number = ++failures_[check];
    PrintLine(absl::StrFormat("failure after %.1f s: %s, seed %d: %s",
                              absl::ToDoubleSeconds(absl::Now() - begin_), name, trial.seed,
                              result.violation));
    if (number > kMostSaved) return;
    const Failing failing{trial.text, trial.seed, result.violation};
    Save(PathOf(check, absl::StrCat(number)), ToFile(failing));
    if (number == 1) to_shrink_.push_back(failing);
  }

  std::string PathOf(std::string_view check, std::string_view last) const {
    return absl::StrCat(options_.out, "/", FileName(check), "-", std::string(last), ".scenario");
  }

  void Save(const std::string& path, const std::string& text) const {
    std::ofstream file(path);
    file << text;
    file.close();
    PrintLine(absl::StrCat(file ? "saved " : "cannot write ", path));
  }

  void PrintProgress() const {
    PrintLine(absl::StrFormat("%.1f min: %d runs, %d failed, %.1f virtual hours, %d states seen",
                              absl::ToDoubleMinutes(absl::Now() - begin_), ended_, failed_,
                              absl::ToDoubleHours(virtual_time_), coverage_.counts().size()));
  }

  const FarmOptions& options_;
  const std::vector<Source> sources_;
  const absl::Time begin_ = absl::Now();
  std::vector<Job> jobs_;  // that run
  std::deque<Failing> to_shrink_;
  uint64_t started_ = 0;  // runs
  int64_t ended_ = 0;
  int64_t failed_ = 0;
  absl::Duration virtual_time_;
  Coverage coverage_;
  std::map<std::string, int64_t> failures_;  // by check
};

}  // namespace

absl::StatusOr<int64_t> RunFarm(const FarmOptions& options) {
  ASSIGN_OR_RETURN(std::vector<Source> sources, ReadSources(options.files));
  std::error_code error;
  std::filesystem::create_directories(options.out, error);
  if (error) {
    return absl::UnavailableError(
        absl::StrCat("cannot make the folder ", options.out, ": ", error.message()));
  }
  return Farm(options, std::move(sources)).Run();
}

}  // namespace penstock::simulator
