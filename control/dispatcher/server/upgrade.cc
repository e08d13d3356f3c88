// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/server/upgrade.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/dispatcher/transaction.h"
#include "control/policy/authorization.h"
#include "control/state/format.h"

namespace penstock::control {

void FinaliseUpgrade(Core& core, Core::DoneEmpty done, const Caller& caller) {
  Transaction txn(core, caller);
  absl::Status allowed = txn.AuditRefusal(AuthorizeForAll(Action::kFinaliseUpgrade, caller));
  const uint32_t before = txn.shared().state.format;
  if (allowed.ok() && before < kNewestFormat) {
    txn.Apply(FormatFinalised{kNewestFormat});
    txn.Audit("upgrade_finalised",
              {{"format", absl::StrCat(kNewestFormat)}, {"before", absl::StrCat(before)}});
  }
  txn.WhenDurable([done = std::move(done), allowed](const absl::Status& durable) {
    done(allowed.ok() ? durable : allowed);
  });
}

}  // namespace penstock::control
