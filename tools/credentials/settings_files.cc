// SPDX-License-Identifier: Apache-2.0
#include "tools/credentials/settings_files.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/substitute.h"
#include "control/protocol/host_port.h"
#include "tools/credentials/folder.h"

namespace penstock::tools {
namespace {

// Returns a basic string of TOML.
std::string Quoted(const std::string& text) {
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}}), "\"");
}

std::string QuotedFile(const std::string& folder, const std::string& name) {
  return Quoted(absl::StrCat(folder, "/", name));
}

// Returns the lines of a server's certificate.
std::string TlsLines(const std::string& folder, const std::string& name) {
  return absl::Substitute("tls_ca = $0\ntls_certificate = $1\ntls_key = $2\n",
                          QuotedFile(folder, "ca.pem"),
                          QuotedFile(folder, absl::StrCat(name, ".pem")),
                          QuotedFile(folder, absl::StrCat(name, ".key")));
}

std::string ShellWord(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

}  // namespace

std::string DispatcherSettings(const std::string& folder) {
  return absl::Substitute(
      "# penstock dispatcher --config $0/dispatcher.toml\n"
      "[dispatcher]\n"
      "host = \"0.0.0.0\"\n"
      "port = $1\n"
      "$2"
      "auth_file = $3\n"
      "# A journal, so that a restart loses nothing:\n"
      "# work_dir = \"/var/lib/penstock\"\n"
      "# fault_tolerant_mode = true\n",
      folder, kDispatcherPort, TlsLines(folder, kDispatcher), QuotedFile(folder, "auth.toml"));
}

std::string WorkerSettings(const std::string& folder, const std::string& dispatcher_host) {
  return absl::Substitute(
      "# penstock worker --config $0/worker.toml --worker-address HOST:%port%\n"
      "[worker]\n"
      "dispatcher_address = $1\n"
      "host = \"0.0.0.0\"\n"
      "$2"
      "token_file = $3\n"
      "# The files that datasets may read; without this line: none.\n"
      "# files_allow = [\"/data/\", \"s3://bucket/\"]\n"
      "# The folder in which datasets may write caches; without this line: none.\n"
      "# cache_dir = \"/var/cache/penstock\"\n",
      folder, Quoted(ServiceAt(dispatcher_host)), TlsLines(folder, kWorker),
      QuotedFile(folder, "worker.token"));
}

std::string TrainerSettings(const std::string& folder, const std::string& principal) {
  return absl::Substitute(
      "# PENSTOCK_CONFIG=$0/$1.toml ./trainer\n"
      "[client]\n"
      "tls_ca = $2\n"
      "token_file = $3\n",
      folder, principal, QuotedFile(folder, "ca.pem"),
      QuotedFile(folder, absl::StrCat(principal, ".token")));
}

std::string OperatorVariables(const std::string& folder, const std::string& dispatcher_host) {
  const auto line = [](const char* variable, const std::string& value) {
    return absl::StrCat("export ", variable, "=", ShellWord(value), "\n");
  };
  return absl::StrCat("# . ", folder, "/operator.env && penstock status\n",
                      line("PENSTOCK_DISPATCHER_ADDRESS", ServiceAt(dispatcher_host)),
                      line("PENSTOCK_TLS_CA", absl::StrCat(folder, "/ca.pem")),
                      line("PENSTOCK_TOKEN_FILE", absl::StrCat(folder, "/operator.token")));
}

std::string AuthSection(const control::Principal& principal, const std::string& digest) {
  std::string section =
      absl::Substitute("[$0]\nrole = $1\ntokens = [$2]\n", principal.name,
                       Quoted(std::string(ToText(principal.role))), Quoted(digest));
  if (!principal.namespaces.empty()) {
    absl::StrAppend(&section, "namespaces = [",
                    absl::StrJoin(principal.namespaces, ", ",
                                  [](std::string* out, const std::string& name) {
                                    absl::StrAppend(out, Quoted(name));
                                  }),
                    "]\n");
  }
  return section;
}

std::string ServiceAt(const std::string& dispatcher_host) {
  return absl::StrCat("grpcs://", control::JoinHostPort(dispatcher_host, kDispatcherPort));
}

}  // namespace penstock::tools
