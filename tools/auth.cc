// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "control/dispatcher/server/auth_file.h"
#include "control/env/disk.h"
#include "include/status_macros.h"
#include "tools/commands.h"

namespace penstock::tools {
namespace {

// Writes a new token to `path`, which must not exist yet, and prints the line for the auth_file.
absl::Status WriteToken(const std::string& path) {
  const absl::StatusOr<std::unique_ptr<DiskFile>> file = LocalDisk().CreateLocked(path);
  if (absl::IsAlreadyExists(file.status())) {
    return absl::AlreadyExistsError(
        absl::StrCat(path, " exists; name another file, or remove this one first"));
  }
  if (!file.ok()) return file.status();
  const std::string token = control::MakeToken();
  absl::Status written = (*file)->Append(absl::StrCat(token, "\n"));
  written.Update((*file)->Sync());
  if (!written.ok()) {
    LocalDisk().Remove(path).IgnoreError();  // it may be half a token
    return written;
  }
  std::printf("tokens = [\"%s\"]\n", control::TokenDigest(token).c_str());
  return absl::OkStatus();
}

}  // namespace

void AddAuth(CLI::App& app, Chosen& chosen) {
  CLI::App* auth = app.add_subcommand("auth", "Make tokens for a dispatcher with an auth_file.");
  auth->require_subcommand(1);
  auth->footer("  penstock auth token /etc/penstock/worker.token");
  auto path = std::make_shared<std::string>();
  CLI::App* token = auth->add_subcommand(
      "token", "Write a new token to FILE, and print the line that the auth_file needs.");
  token->footer(
      "Give the file to the process with token_file (PENSTOCK_TOKEN_FILE), and add the line to "
      "the\n"
      "process's section of the dispatcher's auth_file. The line does not contain the token.\n\n"
      "  penstock auth token /etc/penstock/worker.token");
  token->add_option("FILE", *path, "File of the token, which only this user may read.")->required();
  token->callback([path, &chosen] { chosen.run = [path] { return WriteToken(*path); }; });
}

}  // namespace penstock::tools
