// SPDX-License-Identifier: Apache-2.0
// Finalises an upgrade: from then on the journal may contain what only this release and later ones
// can read (control/state/format.h).
#pragma once

#include "control/dispatcher/core.h"
#include "control/protocol/principal.h"

namespace penstock::control {

// Raises the format of the core's journal to the newest one. `done` is called once that is durable,
// also if the journal is in that format already. PermissionDenied unless the caller is an operator
// of all namespaces. Any thread may call it. Event: "upgrade_finalised".
void FinaliseUpgrade(Core& core, Core::DoneEmpty done, const Caller& caller);

}  // namespace penstock::control
