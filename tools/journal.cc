// SPDX-License-Identifier: Apache-2.0
// The journal commands for operators. print and verify read a copy, so they change nothing and may
// run next to a dispatcher.
#include "control/journal/journal.h"

#include <stdlib.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "control/journal/changes_proto.h"
#include "include/status_macros.h"
#include "tools/commands.h"

namespace penstock::tools {
namespace {

namespace fs = std::filesystem;

// A copy of the directory; removed with this object.
class TemporaryCopy {
 public:
  static absl::StatusOr<std::unique_ptr<TemporaryCopy>> Of(const std::string& work_dir) {
    std::error_code error;
    std::string name = (fs::temp_directory_path() / "penstock-journal-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
      return absl::UnavailableError(absl::StrCat("cannot make ", name, ": ", strerror(errno)));
    }
    std::unique_ptr<TemporaryCopy> copy(new TemporaryCopy(name));
    for (const fs::directory_entry& entry : fs::directory_iterator(work_dir, error)) {
      if (entry.path().filename() == "key") continue;  // secret, and not needed here
      if (entry.is_regular_file(error))
        fs::copy_file(entry.path(), copy->path_ / entry.path().filename(), error);
      if (error) {
        return absl::UnavailableError(
            absl::StrCat("cannot copy ", entry.path().string(), ": ", error.message()));
      }
    }
    return copy;
  }
  ~TemporaryCopy() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  std::string path() const { return path_.string(); }

 private:
  explicit TemporaryCopy(fs::path path) : path_(std::move(path)) {}
  const fs::path path_;
};

// Returns NotFound unless `work_dir` contains a dispatcher's journal.
absl::Status CheckIsJournal(const std::string& work_dir) {
  std::error_code error;
  if (fs::exists(fs::path(work_dir) / "journal.db", error)) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("there is no journal in ", work_dir, "; give the --work-dir of a dispatcher"));
}

// Returns `status` with the path of the copy replaced by `work_dir`, which the user named.
absl::Status Renamed(const absl::Status& status, const std::string& copy,
                     const std::string& work_dir) {
  std::string message(status.message());
  for (size_t at; (at = message.find(copy)) != std::string::npos;)
    message.replace(at, copy.size(), work_dir);
  return absl::Status(status.code(), message);
}

absl::StatusOr<control::Recovered> ReadCopy(const std::string& work_dir) {
  RETURN_IF_ERROR(CheckIsJournal(work_dir));
  ASSIGN_OR_RETURN(auto copy, TemporaryCopy::Of(work_dir));
  auto journal = control::OpenSqliteJournal(copy->path());
  if (!journal.ok()) return Renamed(journal.status(), copy->path(), work_dir);
  return (*journal)->TakeRecovered();
}

absl::Status Print(const std::string& work_dir) {
  ASSIGN_OR_RETURN(const control::Recovered recovered, ReadCopy(work_dir));
  if (recovered.snapshot_sequence > 0) {
    std::printf("%llu snapshot of %zu bytes\n",
                static_cast<unsigned long long>(recovered.snapshot_sequence),
                control::SnapshotBytes(recovered.snapshot));
  }
  for (const auto& record : recovered.records) {
    std::printf("%llu %s\n", static_cast<unsigned long long>(record.sequence),
                control::DescribeRecord(record.bytes).c_str());
  }
  if (!recovered.cut.empty()) std::printf("torn end: %s\n", recovered.cut.c_str());
  return absl::OkStatus();
}

// Returns the state of a dispatcher that starts from the journal.
absl::StatusOr<control::State> StateOf(const control::Recovered& recovered) {
  control::State state;
  if (!recovered.snapshot.empty()) {
    ASSIGN_OR_RETURN(state, control::DecodeState(recovered.snapshot));
  }
  for (const auto& record : recovered.records) {
    RETURN_IF_ERROR(
        Annotate(control::ApplyRecord(record.bytes, state), "record ", record.sequence));
  }
  return state;
}

void Summarize(const control::Recovered& recovered) {
  std::printf("ok: snapshot at %llu, %zu records up to %llu\n",
              static_cast<unsigned long long>(recovered.snapshot_sequence),
              recovered.records.size(), static_cast<unsigned long long>(recovered.last_sequence()));
}

absl::Status Verify(const std::string& work_dir) {
  ASSIGN_OR_RETURN(const control::Recovered recovered, ReadCopy(work_dir));
  ASSIGN_OR_RETURN(control::State state, StateOf(recovered));
  ASSIGN_OR_RETURN(const std::vector<std::string> whole, control::EncodeState(state));
  const size_t answers = std::exchange(state.answers, {}).size();
  ASSIGN_OR_RETURN(const std::vector<std::string> without, control::EncodeState(state));
  Summarize(recovered);
  std::printf(
      "its state takes %zu bytes: %zu for %zu datasets, %zu jobs, %zu iterations, %zu past\n",
      control::SnapshotBytes(whole), control::SnapshotBytes(without), state.datasets.size(),
      state.jobs.size(), state.iterations.size(), state.past.size());
  std::printf("and the rest for the last %zu answers (%zu are kept)\n", answers,
              control::kAnswersKept);
  if (!recovered.cut.empty())
    std::printf("a torn end will be cut at the next start: %s\n", recovered.cut.c_str());
  return absl::OkStatus();
}

// Returns the state after all changes that fit, and adds a line for each change that does not fit.
absl::StatusOr<control::State> WhatFits(const control::Recovered& recovered,
                                        std::vector<std::string>& lines) {
  control::State state;
  std::set<IterationId> ended;
  if (!recovered.snapshot.empty()) {
    ASSIGN_OR_RETURN(state, control::DecodeState(recovered.snapshot));
  }
  for (const auto& record : recovered.records) {
    const auto its = control::ApplyWhatFits(record.bytes, state, ended);
    if (!its.ok()) return Annotate(its.status(), "record ", record.sequence);
    for (const std::string& line : *its) {
      lines.push_back(absl::StrCat("record ", record.sequence, ": ", line));
    }
  }
  return state;
}

// Replaces the content of the opened journal by `state`.
absl::Status Rewrite(std::unique_ptr<control::Journal> journal, const control::Recovered& recovered,
                     const control::State& state) {
  ASSIGN_OR_RETURN(control::SnapshotChanges snapshot, control::EncodeSnapshot(state));
  RETURN_IF_ERROR(journal->Start([](const absl::StatusOr<uint64_t>&) {}));
  journal->Snapshot(recovered.last_sequence(), std::move(snapshot));
  journal.reset();  // waits until it is written
  return absl::OkStatus();
}

// A journal drops a snapshot for which the disk has no space. Returns ResourceExhausted if it has
// dropped the one that needs no key.
absl::Status CheckNeedsNoKey(const std::string& work_dir) {
  ASSIGN_OR_RETURN(const control::Recovered written, ReadCopy(work_dir));
  ASSIGN_OR_RETURN(const control::State state, StateOf(written));
  if (state.NeededKey() == 0) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      "the journal could not be written; free space and run this again");
}

// Cancels the jobs whose tokens are made with the journal's key, so that a dispatcher starts with
// another key.
absl::Status ForgetKey(const std::string& work_dir) {
  RETURN_IF_ERROR(CheckIsJournal(work_dir));
  ASSIGN_OR_RETURN(auto journal, control::OpenSqliteJournal(work_dir));
  const control::Recovered recovered = journal->TakeRecovered();
  ASSIGN_OR_RETURN(control::State state, StateOf(recovered));
  std::vector<JobId> jobs;
  for (const auto& [id, job] : state.jobs) {
    if (job.needs_key()) jobs.push_back(id);
  }
  if (jobs.empty()) {
    std::printf("no job needs the key\n");
    return absl::OkStatus();
  }
  for (JobId id : jobs) state.Apply(control::JobCancelled{id});
  RETURN_IF_ERROR(Rewrite(std::move(journal), recovered, state));
  RETURN_IF_ERROR(CheckNeedsNoKey(work_dir));
  for (JobId id : jobs) {
    std::printf("cancelled: job %s\n", absl::Utf8SafeCEscape(state.jobs.at(id).name).c_str());
  }
  return Verify(work_dir);
}

absl::Status Repair(const std::string& work_dir, bool end_jobs) {
  RETURN_IF_ERROR(CheckIsJournal(work_dir));
  ASSIGN_OR_RETURN(auto journal, control::OpenSqliteJournal(work_dir));
  const control::Recovered recovered = journal->TakeRecovered();
  const absl::Status whole = StateOf(recovered).status();
  std::vector<std::string> lines;
  absl::StatusOr<control::State> fitting = control::State();
  if (!whole.ok()) fitting = WhatFits(recovered, lines);
  RETURN_IF_ERROR(fitting.status());
  if (!whole.ok() && !end_jobs) {
    return Annotate(whole, "--end-jobs ends the jobs to which it belongs and keeps the others");
  }
  if (!recovered.cut.empty()) std::printf("cut: %s\n", recovered.cut.c_str());
  if (whole.ok() && recovered.cut.empty()) std::printf("nothing to repair\n");
  if (!whole.ok()) {
    for (const std::string& line : lines) std::printf("%s\n", line.c_str());
    RETURN_IF_ERROR(Rewrite(std::move(journal), recovered, *fitting));
    return Verify(work_dir);
  }
  Summarize(recovered);
  return absl::OkStatus();
}

using JournalAction = std::function<absl::Status(const std::string&)>;

CLI::App& AddJournalAction(CLI::App& journal, Chosen& chosen, const char* name, const char* help,
                           JournalAction action) {
  auto work_dir = std::make_shared<std::string>();
  CLI::App* command = journal.add_subcommand(name, help);
  command
      ->add_option("work_dir", *work_dir,
                   "Directory of the journal: the --work-dir of the dispatcher.")
      ->required();
  command->callback([work_dir, &chosen, action] {
    chosen.run = [work_dir, action] { return action(*work_dir); };
  });
  return *command;
}

}  // namespace

void AddJournal(CLI::App& app, Chosen& chosen) {
  CLI::App* journal = app.add_subcommand("journal", "Print, verify and repair a journal.");
  journal->require_subcommand(1);
  journal->footer(
      "  penstock journal verify /var/lib/penstock\n"
      "  penstock journal print /var/lib/penstock | tail\n\n"
      "print and verify change nothing and may run beside a dispatcher. repair cuts a torn end;\n"
      "stop the dispatcher first. If a record does not fit, repair --end-jobs ends the jobs that\n"
      "it belongs to, names them, and keeps the others. A damaged snapshot is reported and cannot\n"
      "be repaired: restore a copy of the directory, or start in an empty one. If the journal's\n"
      "key is lost, repair --forget-key cancels the jobs whose readers it lets in.");
  AddJournalAction(*journal, chosen, "print", "Print the changes in the journal, one a line.",
                   Print);
  AddJournalAction(*journal, chosen, "verify",
                   "Check that a dispatcher could start from the journal, and show its size.",
                   Verify);
  auto end_jobs = std::make_shared<bool>(false);
  auto forget_key = std::make_shared<bool>(false);
  CLI::App& repair = AddJournalAction(
      *journal, chosen, "repair", "Cut a torn end, and end jobs whose records do not fit.",
      [end_jobs, forget_key](const std::string& work_dir) {
        const absl::Status repaired = Repair(work_dir, *end_jobs);
        return repaired.ok() && *forget_key ? ForgetKey(work_dir) : repaired;
      });
  repair.add_flag("--end-jobs", *end_jobs, "End the jobs whose records do not fit.");
  repair.add_flag("--forget-key", *forget_key,
                  "Cancel the jobs that need the journal's key, so that a dispatcher starts "
                  "without it.");
}

}  // namespace penstock::tools
