// SPDX-License-Identifier: Apache-2.0
#include "bench/cluster/tool.h"

#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "bench/process.h"
#include "include/status_macros.h"

namespace penstock::bench {
namespace {

// A tool does not report when it listens, so a client retries for this long.
constexpr absl::Duration kServerStart = absl::Seconds(20);
constexpr absl::Duration kToolAgain = absl::Milliseconds(100);
// Added to a client's window, because a tool's last elements are slow on a busy machine.
constexpr double kSlackSeconds = 60;
constexpr int kFirstToolPort = 18'515;
constexpr int kToolPorts = 1000;

// Counts up from a number that differs between processes, because a port cannot be reused
// immediately.
int NextPort() {
  static int next = static_cast<int>(::getpid());
  return kFirstToolPort + next++ % kToolPorts;
}

// Returns the last line of a tool's output that has text. If the tool does not know an option,
// returns that error instead, because a list of all options follows it.
std::string LastWords(const std::string& output) {
  std::string last;
  for (const auto line : absl::StrSplit(output, '\n', absl::SkipWhitespace())) {
    last = std::string(line);
    if (absl::StrContains(last, "unrecognized option")) return last;
  }
  return last.empty() ? "it said nothing" : last;
}

class ToolSide final : public Side {
 public:
  explicit ToolSide(Tool tool) : tool_(std::move(tool)) {}

  std::string name() const override { return tool_.name; }
  const Roles& roles() const override { return roles_; }
  bool starts_anew() const override { return true; }

  absl::StatusOr<Done> Read(double seconds) override {
    if (tool_.counts && last_.bytes_per_s == 0) RETURN_IF_ERROR(RunOnce(seconds));
    RETURN_IF_ERROR(RunOnce(seconds));
    const double bytes = last_.bytes_per_s * seconds;
    return Done{.seconds = seconds,
                .elements = bytes / static_cast<double>(tool_.element_bytes),
                .bytes = static_cast<int64_t>(bytes),
                .p50_us = last_.p50_us};
  }

 private:
  absl::Status RunOnce(double seconds) {
    const std::string server_host = !tool_.hosts.two()   ? "127.0.0.1"
                                    : tool_.client_there ? tool_.hosts.here
                                                         : tool_.hosts.there;
    const ToolRun run = tool_.run(server_host, NextPort(), seconds, last_.bytes_per_s);
    ASSIGN_OR_RETURN(const std::unique_ptr<Process> server,
                     Start(run.server, !tool_.client_there, seconds));
    ASSIGN_OR_RETURN(last_, RunClient(run.client, seconds, *server));
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<Process>> Start(const std::vector<std::string>& tool, bool there,
                                                 double seconds) const {
    const bool away = there && tool_.hosts.two();
    std::vector<std::string> words = away ? tool_.hosts.run_there : std::vector<std::string>{""};
    words.insert(words.end(), {"bench-tool", absl::StrCat(seconds + kSlackSeconds)});
    words.insert(words.end(), tool.begin(), tool.end());
    return Process::Start(words, Process::Ends::kBySignal,
                          absl::StrCat(tool_.scratch, "/tool.log"));
  }

  // Runs the client until it has found the server.
  absl::StatusOr<ToolResult> RunClient(const std::vector<std::string>& client, double seconds,
                                       Process& server) const {
    const absl::Time end = absl::Now() + kServerStart;
    std::string before;  // last output of a client that failed
    while (true) {
      ASSIGN_OR_RETURN(const std::unique_ptr<Process> process,
                       Start(client, tool_.client_there, seconds));
      ASSIGN_OR_RETURN(const std::string line,
                       process->ReadLine(absl::Seconds(seconds + 2 * kSlackSeconds)));
      const absl::StatusOr<ToolResult> result = ResultOf(line);
      if (result.ok() || !absl::IsUnavailable(result.status())) return result;
      const absl::StatusOr<std::string> ended = server.ReadLine(absl::ZeroDuration());
      if (ended.ok()) {
        return Annotate(result.status(), "before: ", before,
                        "; its server ended: ", ResultOf(*ended).status().message());
      }
      before = std::string(result.status().message());
      if (!absl::IsDeadlineExceeded(ended.status())) return ended.status();
      if (absl::Now() > end) return result.status();
      absl::SleepFor(kToolAgain);
    }
  }

  // Returns the client's result from bench-tool's line; an error with the reason if it has none.
  absl::StatusOr<ToolResult> ResultOf(const std::string& line) const {
    const nlohmann::json said = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!said.is_object()) return absl::InternalError(absl::StrCat("a tool said: ", line));
    const std::string output = said.value("output", "");
    if (said.value("exit", -1) == 0) return tool_.parse(output);
    return absl::UnavailableError(LastWords(output));
  }

  const Tool tool_;
  const Roles roles_;  // empty, because no process outlives a window
  ToolResult last_;
};

}  // namespace

std::unique_ptr<Side> MakeToolSide(Tool tool) {
  return std::make_unique<ToolSide>(std::move(tool));
}

}  // namespace penstock::bench
