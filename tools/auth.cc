// SPDX-License-Identifier: Apache-2.0
#include <openssl/rand.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "control/dispatcher/server/auth_file.h"
#include "control/env/disk.h"
#include "include/status_macros.h"
#include "tools/commands.h"

namespace penstock::tools {
namespace {

constexpr size_t kTokenBytes = 32;

// Writes a new token to `path`, which must not exist yet, and prints the line for the auth_file.
absl::Status MakeToken(const std::string& path) {
  if (LocalDisk().Read(path).ok()) {
    return absl::AlreadyExistsError(
        absl::StrCat(path, " exists; name another file, or remove this one first"));
  }
  std::string bytes(kTokenBytes, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(kTokenBytes)) !=
      1) {
    return absl::InternalError("OpenSSL has no random numbers");
  }
  const std::string token = absl::BytesToHexString(bytes);
  ASSIGN_OR_RETURN(const std::unique_ptr<DiskFile> file,
                   LocalDisk().Create(path, Disk::Readers::kOwner));
  RETURN_IF_ERROR(file->Append(absl::StrCat(token, "\n")));
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
  token->callback([path, &chosen] { chosen.run = [path] { return MakeToken(*path); }; });
}

}  // namespace penstock::tools
