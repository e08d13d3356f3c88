// SPDX-License-Identifier: Apache-2.0
#include "tools/bench_output.h"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "bench/record.h"
#include "bench/report.h"
#include "include/status_macros.h"
#include "tools/table.h"

namespace penstock::tools {
namespace {

void WriteText(std::FILE* file, const std::string& text) {
  if (file == nullptr) return;
  std::fputs(text.c_str(), file);
  std::fflush(file);  // measured rows are kept even if the bench ends early
}

}  // namespace

void AddCaseFlags(CLI::App& command, BenchFlags& flags) {
  command
      .add_option("--protocol", flags.protocols, "Protocols of the transfer; the default is all.")
      ->delimiter(',');
  command.add_option("--size", flags.sizes, "Bytes of one element.")->delimiter(',');
  command
      .add_option("--pairs", flags.pairs, "Number of pairs: a window of ours and one of the limit.")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command.add_option("--window", flags.window_s, "Length of a window in seconds.")
      ->check(CLI::Range(0.001, 3600.0))
      ->capture_default_str();
}

void AddBenchFlags(CLI::App& command, BenchFlags& flags) {
  AddCaseFlags(command, flags);
  command.add_option("--json", flags.json,
                     "File for one JSON object a line; - means standard output.");
  command.add_option("--html", flags.html,
                     "File for a page with plots. Needs Python with matplotlib and Jinja2.");
  command.add_option("--gpu-figures", flags.gpu_figures,
                     "File with the output of gpu_bench, to show on the page of --html.");
  command
      .add_option(
          "--hosts", flags.hosts,
          "HERE,THERE: addresses of this host and of the host that runs the workers; each must "
          "reach the other.")
      ->delimiter(',');
  command
      .add_option("--remote-shell", flags.remote_shell,
                  "Words that run a command on another host, before the host and the command.")
      ->capture_default_str();
  command.add_option("--remote-program", flags.remote_program,
                     "Path of this program on the other host; the default is its path here.");
}

absl::StatusOr<bench::Hosts> PairOf(const BenchFlags& flags, const std::string& there) {
  bench::Hosts hosts{.here = flags.hosts[0], .there = there};
  for (const std::string& host : {hosts.here, hosts.there}) {
    if (host.find_first_of("[]") == std::string::npos) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "--hosts names '", host, "': write IPv6 addresses without brackets, such as fd00::1"));
  }
  hosts.run_there = absl::StrSplit(flags.remote_shell, ' ', absl::SkipEmpty());
  if (hosts.run_there.empty()) return absl::InvalidArgumentError("--remote-shell is empty");
  hosts.run_there.push_back(hosts.there);
  std::error_code error;
  hosts.run_there.push_back(flags.remote_program.empty()
                                ? std::filesystem::read_symlink("/proc/self/exe", error).string()
                                : flags.remote_program);
  return hosts;
}

absl::StatusOr<BenchOutput::File> BenchOutput::OpenFile(const std::string& name) {
  if (name.empty()) return File(nullptr, [](std::FILE*) {});
  if (name == "-") return File(stdout, [](std::FILE*) {});
  std::FILE* const file = std::fopen(name.c_str(), "w");
  if (file == nullptr) return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", name));
  return File(file, [](std::FILE* done) { std::fclose(done); });
}

absl::StatusOr<BenchOutput> BenchOutput::Open(const BenchFlags& flags) {
  ASSIGN_OR_RETURN(File json, OpenFile(flags.json));
  BenchOutput output(std::move(json), File(nullptr, [](std::FILE*) {}),
                     flags.json == "-" || flags.html == "-" ? stderr : stdout);
  if (flags.html.empty()) return output;
  absl::StatusOr<bench::PageMaker> page = bench::PageMaker::Find(flags.gpu_figures);
  if (page.ok()) {
    ASSIGN_OR_RETURN(output.html_, OpenFile(flags.html));
    output.page_ = *std::move(page);
  } else if (flags.json.empty()) {
    return page.status();
  } else {
    output.no_page_ = std::string(page.status().message());
    std::fprintf(stderr, "%s\n", output.no_page_.c_str());
  }
  return output;
}

void BenchOutput::Record(const std::string& lines) {
  WriteText(json_.get(), lines);
  records_ += lines;
}

void BenchOutput::Add(const bench::Machine& machine, const std::string& host) {
  std::fprintf(stderr, "%s%s%s\n", host.c_str(), host.empty() ? "" : ": ",
               bench::Describe(machine).c_str());
  Record(bench::MachineRecord(machine, host));
}

void BenchOutput::Add(bench::Row row) {
  std::fprintf(stderr, "%s\n", bench::ReportLine(row).c_str());
  Record(bench::RecordsOf(row));
  rows_.push_back(std::move(row));
}

absl::Status BenchOutput::Finish() {
  const bench::Report report = bench::ReportOn(rows_);
  std::fprintf(people_, "\n%s",
               FormatTable(report.head, report.lines, bench::kWordColumns).c_str());
  if (const bench::Matrix matrix = bench::MatrixOf(rows_); !matrix.table.lines.empty()) {
    std::fprintf(people_,
                 "\nGB/s of the fastest row of each pair, with a column for each sender\n%s%s\n",
                 FormatTable(matrix.table.head, matrix.table.lines, /*left=*/1).c_str(),
                 matrix.slowest.c_str());
  }
  absl::StatusOr<std::string> html = page_.has_value() ? page_->Make(records_) : std::string();
  if (html.ok()) WriteText(html_.get(), *html);
  if (!no_page_.empty()) std::fprintf(stderr, "\n%s\n", no_page_.c_str());
  for (const bench::Row& row : rows_) {
    if (absl::IsDataLoss(row.status)) return row.status;
  }
  return html.status();
}

}  // namespace penstock::tools
