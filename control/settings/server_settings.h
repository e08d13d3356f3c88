// SPDX-License-Identifier: Apache-2.0
// The configs of the servers as tables of settings. A row gives a field's flag, its environment
// variable, its key in a file, its keyword in Python, and its help.
#pragma once

#include <string>
#include <vector>

#include "control/settings/settings.h"
#include "penstock/server.h"

#pragma GCC visibility push(default)
namespace penstock {

inline constexpr char kDispatcherAddressHelp[] =
    "Address of the dispatcher: [grpc://]host:port or grpcs://host:port; several after one "
    "protocol, grpc://a:5050,b:5050, if the dispatcher may come back at another address.";

// Return the rows of the table. The rows write to `config`, which must outlive them.
std::vector<Setting> SettingsOf(DispatcherConfig& config);
std::vector<Setting> SettingsOf(WorkerConfig& config);

// Returns the rows of a table [namespaces.NAME].
std::vector<Setting> SettingsOf(NamespaceLimits& limits);

// Returns whether a server asks its clients who they are. Its pages then need a token.
bool AsksWho(const DispatcherConfig& config);
bool AsksWho(const WorkerConfig& config);  // whether its cluster does, as far as it knows

// Returns the address to bind for the status pages: metrics_host if it is set; otherwise loopback
// if AsksWho(), because the pages have no TLS; otherwise `host`.
std::string PagesHost(const DispatcherConfig& config);
std::string PagesHost(const WorkerConfig& config);

}  // namespace penstock
#pragma GCC visibility pop
