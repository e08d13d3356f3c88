// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/server/led_journal.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "control/env/disk.h"
#include "control/etcd/etcd_client.h"
#include "control/journal/etcd_journal.h"
#include "control/leadership/etcd_leadership.h"
#include "control/observe/event_log.h"
#include "control/protocol/host_port.h"
#include "control/sync/clock.h"
#include "control/sync/thread.h"
#include "include/status_macros.h"

namespace penstock::control {
namespace {

// Between two tries to open a journal that another process holds.
constexpr absl::Duration kPauseForHolder = absl::Milliseconds(100);

absl::StatusOr<std::string> ReadPassword(const std::string& file) {
  if (file.empty()) return std::string();
  absl::StatusOr<std::string> text = LocalDisk().Read(file);
  if (!text.ok()) {
    return absl::NotFoundError(absl::StrCat("etcd_password_file: ", text.status().message()));
  }
  return std::string(absl::StripTrailingAsciiWhitespace(*text));
}

absl::StatusOr<EtcdOptions> EtcdOptionsOf(const DispatcherConfig& config) {
  EtcdOptions options;
  const std::string& address = config.journal.empty() ? config.leader_election : config.journal;
  ASSIGN_OR_RETURN(options.address, ParseEtcdAddress(address));
  options.tls.ca = config.etcd.ca;
  options.tls.certificate = config.etcd.certificate;
  options.tls.key = config.etcd.key;
  options.user = config.etcd.user;
  ASSIGN_OR_RETURN(options.password, ReadPassword(config.etcd.password_file));
  return options;
}

// Returns the name of this process in etcd: "machine:port".
std::string NameOf(const DispatcherConfig& config) {
  char host[256] = "?";
  gethostname(host, sizeof host - 1);
  return JoinHostPort(host, config.port);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Leadership>> WaitToLead(const DispatcherConfig& config,
                                                       Leadership::Lost lost) {
  ASSIGN_OR_RETURN(EtcdOptions options, EtcdOptionsOf(config));
  options.patience = LeaderPatience(config.leader_lease);
  const std::string prefix = options.address.prefix;
  ASSIGN_OR_RETURN(std::shared_ptr<EtcdClient> client, EtcdClient::Make(std::move(options)));
  std::unique_ptr<Leadership> leadership = MakeEtcdLeadership(
      std::move(client), {.prefix = prefix, .name = NameOf(config), .lease = config.leader_lease},
      StderrEventLog());
  RETURN_IF_ERROR(leadership->Campaign(std::move(lost)));
  return leadership;
}

absl::StatusOr<std::unique_ptr<Journal>> OpenLedJournal(const DispatcherConfig& config,
                                                        uint64_t term) {
  const absl::Duration patience = 2 * config.leader_lease;
  if (!config.journal.empty()) {
    ASSIGN_OR_RETURN(EtcdOptions options, EtcdOptionsOf(config));
    const std::string prefix = options.address.prefix;
    ASSIGN_OR_RETURN(std::shared_ptr<EtcdClient> client, EtcdClient::Make(std::move(options)));
    return OpenEtcdJournal(std::move(client), {.prefix = prefix,
                                               .leader_key = LeaderKey(prefix),
                                               .term = static_cast<int64_t>(term),
                                               .patience = patience});
  }
  const absl::Time end = BootTime() + patience;
  while (true) {
    absl::StatusOr<std::unique_ptr<Journal>> journal =
        OpenSqliteJournal(config.work_dir, LocalDisk(), term);
    if (!absl::IsFailedPrecondition(journal.status()) || BootTime() >= end) return journal;
    Sleep(kPauseForHolder);
  }
}

}  // namespace penstock::control
