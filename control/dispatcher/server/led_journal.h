// SPDX-License-Identifier: Apache-2.0
// The start of a dispatcher that has standbys: it waits until it leads, and then opens the journal
// (docs/high_availability.md).
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "control/journal/journal.h"
#include "control/leadership/leadership.h"
#include "penstock/server.h"

namespace penstock::control {

// Returns whether the settings name an election.
bool HasStandbys(const DispatcherConfig& config);

// Returns InvalidArgument, with the remedy, if the settings of journal, election and etcd do not
// fit together.
absl::Status CheckLeaderSettings(const DispatcherConfig& config);

// Returns when this process leads. The errors of Leadership::Campaign(); NotFound if a file of the
// settings cannot be read; Unimplemented in a build without gRPC. REQUIRES: HasStandbys(config).
absl::StatusOr<std::unique_ptr<Leadership>> WaitToLead(const DispatcherConfig& config,
                                                       Leadership::Lost lost);

// Opens the journal as the leader of `term`. In a directory, it first waits for twice the lease for
// the leader before to end. The errors of OpenEtcdJournal() or OpenSqliteJournal().
absl::StatusOr<std::unique_ptr<Journal>> OpenLedJournal(const DispatcherConfig& config,
                                                        uint64_t term);

}  // namespace penstock::control
