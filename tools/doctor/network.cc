// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tools/doctor/checks.h"
#include "tools/doctor/readings.h"

namespace penstock::doctor {
namespace {

constexpr char kIpv4[] = "/proc/sys/net/ipv4/";

bool Contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// tcp sets cubic on its sockets within a host. A process without the right to administer the
// network gets only an algorithm that is listed as allowed, or the default.
void CheckCubic(const Probe& probe, std::vector<Finding>& findings) {
  const std::string standard =
      probe.Read(absl::StrCat(kIpv4, "tcp_congestion_control")).value_or("unknown");
  const bool available =
      Contains(ReadWords(probe, absl::StrCat(kIpv4, "tcp_available_congestion_control")), "cubic");
  const bool allowed =
      standard == "cubic" || HasCapability(probe, kCapNetAdmin) ||
      Contains(ReadWords(probe, absl::StrCat(kIpv4, "tcp_allowed_congestion_control")), "cubic");
  if (available && allowed) return;
  findings.push_back(
      {.id = "net.no_cubic",
       .severity = Severity::kWarning,
       .what =
           absl::StrCat("This user cannot use cubic as the congestion control of TCP: it is ",
                        available ? "not allowed" : "not loaded", ". Sockets use ", standard, "."),
       .why = "tcp uses cubic between processes of one host. bbr paces a loopback too, and ran at "
              "half the rate there.",
       .remedy = available ? "Add cubic to the sysctl net.ipv4.tcp_allowed_congestion_control."
                           : "Run `modprobe tcp_cubic`, and add cubic to the sysctl "
                             "net.ipv4.tcp_allowed_congestion_control.",
       .protocols = {"tcp"}});
}

void CheckDefault(const Probe& probe, std::vector<Finding>& findings) {
  const std::optional<std::string> standard =
      probe.Read(absl::StrCat(kIpv4, "tcp_congestion_control"));
  if (!standard || *standard == "cubic") {
    findings.push_back({.id = "net.congestion",
                        .what = absl::StrCat("Default congestion control of TCP: ",
                                             standard.value_or("unknown"), "."),
                        .protocols = {"tcp", "grpc", "ucx"}});
    return;
  }
  findings.push_back(
      {.id = "net.default_congestion",
       .severity = Severity::kNote,
       .what = absl::StrCat("The default congestion control of TCP is ", *standard, "."),
       .why =
           "Between processes of one host tcp sets cubic on its sockets. gRPC and UCX's tcp lanes "
           "cannot; they use the default, as tcp does between machines. Between processes of one "
           "host bbr ran at half of cubic's rate.",
       .remedy =
           "Where cubic suits the network, run `sysctl net.ipv4.tcp_congestion_control=cubic`, or "
           "set cubic on the routes between the machines (`ip route change ROUTE congctl cubic`).",
       .protocols = {"grpc", "ucx"}});
}

void CheckQueue(const Probe& probe, std::vector<Finding>& findings) {
  constexpr int64_t kEnough = 1024;
  const std::optional<int64_t> length = ReadNumber(probe, "/proc/sys/net/core/somaxconn");
  if (!length) return;
  if (*length >= kEnough) {
    findings.push_back(
        {.id = "net.queue",
         .what = absl::StrCat("Connections that may wait to be accepted: ", *length, "."),
         .protocols = {"tcp", "grpc"}});
    return;
  }
  findings.push_back(
      {.id = "net.somaxconn",
       .severity = Severity::kWarning,
       .what = absl::StrCat("At most ", *length, " connections may wait to be accepted."),
       .why = "When many trainers connect to a dispatcher or worker at once, connections beyond "
              "this number are dropped and tried again only after a second.",
       .remedy = "Run `sysctl net.core.somaxconn=4096`.",
       .protocols = {"tcp", "grpc"}});
}

// Returns the third number of tcp_rmem or tcp_wmem: the size to which the kernel may grow a
// socket's buffer by itself.
int64_t LargestBuffer(const Probe& probe, const std::string& name) {
  const std::vector<std::string> words = ReadWords(probe, absl::StrCat(kIpv4, name));
  int64_t bytes = 0;
  return words.size() == 3 && absl::SimpleAtoi(words[2], &bytes) ? bytes : 0;
}

void CheckBuffers(const Probe& probe, std::vector<Finding>& findings) {
  // 25 Gb/s over a round trip of 1 ms fill 3 MiB.
  constexpr int64_t kEnoughBytes = int64_t{3} << 20;
  const int64_t receive = LargestBuffer(probe, "tcp_rmem");
  const int64_t send = LargestBuffer(probe, "tcp_wmem");
  if (receive == 0 || send == 0) return;
  const std::string sizes = absl::StrCat(BytesText(static_cast<double>(receive)), " to receive, ",
                                         BytesText(static_cast<double>(send)), " to send");
  if (std::min(receive, send) >= kEnoughBytes) {
    findings.push_back({.id = "net.buffers",
                        .what = absl::StrCat("Buffers of a TCP socket grow to ", sizes, "."),
                        .protocols = {"tcp", "grpc"}});
    return;
  }
  findings.push_back(
      {.id = "net.small_buffers",
       .severity = Severity::kWarning,
       .what = absl::StrCat("Buffers of a TCP socket grow only to ", sizes, "."),
       .why = "A connection cannot have more bytes on their way: 25 Gb/s over a round trip of 1 ms "
              "need 3 MiB.",
       .remedy = "Run `sysctl net.ipv4.tcp_rmem='4096 131072 33554432' net.ipv4.tcp_wmem='4096 "
                 "16384 33554432'`.",
       .protocols = {"tcp", "grpc"}});
}

void CheckOpenFiles(const Probe& probe, std::vector<Finding>& findings) {
  constexpr uint64_t kPerLink = 6, kEnough = 4096;
  const Limit limit = probe.OpenFiles();
  if (limit.soft >= kEnough) {
    findings.push_back(
        {.id = "net.files",
         .what =
             absl::StrCat("Files that a process may have open: ",
                          limit.soft == kUnlimited ? "unlimited" : absl::StrCat(limit.soft), ".")});
    return;
  }
  findings.push_back(
      {.id = "net.open_files",
       .severity = limit.hard >= kEnough ? Severity::kNote : Severity::kWarning,
       .what = absl::StrCat("A process may have ", limit.soft, " files open."),
       .why = absl::StrCat("A link takes up to ", kPerLink,
                           " descriptors (sockets, segments, pidfds). This is enough for about ",
                           limit.soft / kPerLink, " links, files of the dataset not counted."),
       .remedy = limit.hard >= kEnough
                     ? "Run `ulimit -n 65536` (up to the hard limit) before the program, or set "
                       "LimitNOFILE=65536 in a systemd unit."
                     : "Set `nofile` in /etc/security/limits.conf, LimitNOFILE=65536 in a systemd "
                       "unit, or `--ulimit nofile=65536` for a container."});
}

}  // namespace

std::vector<Finding> CheckNetwork(const Probe& probe) {
  std::vector<Finding> findings;
  CheckCubic(probe, findings);
  CheckDefault(probe, findings);
  CheckQueue(probe, findings);
  CheckBuffers(probe, findings);
  CheckOpenFiles(probe, findings);
  return findings;
}

}  // namespace penstock::doctor
