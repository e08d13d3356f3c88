// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "control/dispatcher/server/led_journal.h"

namespace penstock::control {
namespace {

absl::Status NotBoth(absl::string_view one, absl::string_view other, absl::string_view remedy) {
  return absl::InvalidArgumentError(
      absl::StrCat(one, " and ", other, " are both configured; ", remedy));
}

}  // namespace

bool HasStandbys(const DispatcherConfig& config) {
  return !config.journal.empty() || !config.leader_election.empty();
}

absl::Status CheckLeaderSettings(const DispatcherConfig& config) {
  const EtcdConfig& etcd = config.etcd;
  if (!HasStandbys(config)) {
    for (const std::string& setting :
         {etcd.user, etcd.password_file, etcd.ca, etcd.certificate, etcd.key}) {
      if (setting.empty()) continue;
      return absl::InvalidArgumentError(
          "settings of etcd are configured without journal or leader_election, so etcd is not "
          "used");
    }
    return absl::OkStatus();
  }
  if (!config.journal.empty() && !config.work_dir.empty()) {
    return NotBoth("journal", "work_dir", "the journal is in one place");
  }
  if (!config.journal.empty() && !config.leader_election.empty()) {
    return NotBoth("journal", "leader_election",
                   "the dispatchers of a journal in etcd elect their leader there");
  }
  if (!config.journal.empty() && config.journal_key_file.empty()) {
    return absl::InvalidArgumentError(
        "journal is in etcd, and no journal_key_file is configured: give all dispatchers of this "
        "journal a file with the same key, such as the output of `openssl rand -hex 32`");
  }
  if (config.journal.empty() && config.work_dir.empty()) {
    return absl::InvalidArgumentError(
        "leader_election is configured without work_dir: a leader needs the journal of the leader "
        "before it; give a directory on a volume that all dispatchers mount, or a `journal` in "
        "etcd");
  }
  if (config.leader_lease < absl::Seconds(2) ||
      config.leader_lease % absl::Seconds(1) != absl::ZeroDuration()) {
    return absl::InvalidArgumentError(absl::StrCat("leader_lease is ",
                                                   absl::FormatDuration(config.leader_lease),
                                                   "; it must be whole seconds, at least 2"));
  }
  if (etcd.user.empty() != etcd.password_file.empty()) {
    return absl::InvalidArgumentError("etcd_user and etcd_password_file belong together");
  }
  return absl::OkStatus();
}

}  // namespace penstock::control
