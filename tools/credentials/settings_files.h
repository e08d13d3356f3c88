// SPDX-License-Identifier: Apache-2.0
// The settings files of a cluster with TLS and roles, as texts. They name the other files of the
// folder of credentials by absolute path, so the folder has the same path on all machines.
#pragma once

#include <string>
#include <vector>

#include "control/protocol/principal.h"

namespace penstock::tools {

inline constexpr int kDispatcherPort = 5050;

// `folder`: an absolute path without control characters.
std::string DispatcherSettings(const std::string& folder);
std::string WorkerSettings(const std::string& folder, const std::string& dispatcher_host);
// `principal`: the trainer's name in the auth_file.
std::string TrainerSettings(const std::string& folder, const std::string& principal);
// Returns lines of a shell, because the commands of an operator read no settings file.
std::string OperatorVariables(const std::string& folder, const std::string& dispatcher_host);

// Returns a principal's section of the auth_file. `digest`: of its token.
std::string AuthSection(const control::Principal& principal, const std::string& digest);

// Returns "grpcs://host:port" of the dispatcher.
std::string ServiceAt(const std::string& dispatcher_host);

}  // namespace penstock::tools
