// SPDX-License-Identifier: Apache-2.0
#include "tools/credentials/folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "control/dispatcher/server/auth_file.h"
#include "control/env/disk.h"
#include "control/settings/toml_file.h"
#include "include/status_macros.h"
#include "tools/credentials/certificates.h"
#include "tools/credentials/settings_files.h"

namespace penstock::tools {
namespace {

constexpr char kAuthFile[] = "auth.toml";
constexpr char kAuthHeader[] =
    "# Who may do what at the dispatcher (docs/security.md). A running dispatcher reads this file\n"
    "# again when it changes.\n";

using Contents = std::map<std::string, std::string>;  // of files, by name in the folder

// Returns an absolute path without a slash at its end.
absl::StatusOr<std::string> PathOf(const std::string& folder) {
  std::error_code error;
  std::filesystem::path path = std::filesystem::absolute(folder, error).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  const std::string text = path.string();
  if (folder.empty() || error || std::any_of(text.begin(), text.end(), [](unsigned char c) {
        return absl::ascii_iscntrl(c);
      })) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", folder, "' cannot be used as the path of a folder"));
  }
  return text;
}

std::string FileIn(const std::string& folder, const std::string& name) {
  return absl::StrCat(folder, "/", name);
}

// Gives a new file of this user the owner and the mode of the file that it replaces, so that a
// server which could read the old one can read the new one. OK if there is no old file.
absl::Status KeepReaders(const std::string& unfinished, const std::string& path) {
  struct stat old = {};
  if (::lstat(path.c_str(), &old) != 0) {
    return errno == ENOENT ? absl::OkStatus() : DiskError(errno, "look at", path);
  }
  if (!S_ISREG(old.st_mode)) return absl::OkStatus();
  // The folder may belong to another user, who could put a link here.
  const int fd = ::open(unfinished.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return DiskError(errno, "open", unfinished);
  struct stat made = {};
  const bool ours = ::fstat(fd, &made) == 0 && S_ISREG(made.st_mode) && made.st_nlink == 1 &&
                    made.st_uid == ::geteuid();
  const bool same_owner = made.st_uid == old.st_uid && made.st_gid == old.st_gid;
  errno = ours ? 0 : EPERM;
  const bool kept = ours && (same_owner || ::fchown(fd, old.st_uid, old.st_gid) == 0) &&
                    ::fchmod(fd, old.st_mode & 0777) == 0;
  const absl::Status status =
      kept ? absl::OkStatus() : DiskError(errno, "keep the owner and the mode of", path);
  ::close(fd);
  return status;
}

// Gives the file its new content in one step.
absl::Status Replace(const std::string& folder, const std::string& name,
                     const std::string& content) {
  const std::string path = FileIn(folder, name);
  const std::string unfinished = absl::StrCat(path, ".new");
  RETURN_IF_ERROR(LocalDisk().Remove(unfinished));  // of a command that was ended
  ASSIGN_OR_RETURN(const std::unique_ptr<DiskFile> file, LocalDisk().CreateLocked(unfinished));
  RETURN_IF_ERROR(file->Append(content));
  RETURN_IF_ERROR(KeepReaders(unfinished, path));
  RETURN_IF_ERROR(file->Sync());
  return file->Rename(path);
}

absl::Status ReplaceAll(const std::string& folder, const Contents& contents) {
  for (const auto& [name, content] : contents) {
    RETURN_IF_ERROR(Replace(folder, name, content));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<DiskFolder> opened, LocalDisk().OpenFolder(folder));
  return opened->Sync();
}

// OK for a name that can be part of a file's name and a section of TOML.
absl::Status CheckName(const std::string& name) {
  if (name == "ca" || name == kDispatcher) {
    return absl::InvalidArgumentError(
        absl::StrCat("a principal cannot have the name '", name, "', which its files would share"));
  }
  if (!name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
        return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
      })) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the name of a principal has 1 to 64 letters, digits, '-' and '_', unlike '", name, "'"));
}

// Returns whether `name` is "*.domain" and covers `host`.
bool IsWildcardOf(const std::string& name, const std::string& host) {
  const size_t dot = host.find('.');
  return name.starts_with("*.") && dot != host.npos &&
         absl::EqualsIgnoreCase(name.substr(1), host.substr(dot));
}

std::vector<std::string> WithLocalhost(std::vector<std::string> hosts) {
  for (const char* own : {"localhost", "127.0.0.1", "::1"}) {
    if (std::find(hosts.begin(), hosts.end(), own) == hosts.end()) hosts.emplace_back(own);
  }
  return hosts;
}

// Returns the hosts of each certificate. No worker's certificate is for a dispatcher's host.
absl::StatusOr<HostsByName> HostsByCertificate(const ClusterHosts& hosts) {
  std::vector<std::string> of_dispatcher = hosts.dispatcher;
  if (of_dispatcher.empty()) of_dispatcher = {hosts.main()};
  std::vector<std::string> of_workers;
  for (const std::string& host : of_dispatcher) RETURN_IF_ERROR(CheckHost(host));
  for (const std::string& host : hosts.all) {
    RETURN_IF_ERROR(CheckHost(host));
    const auto is_its = [&](const std::string& its) { return absl::EqualsIgnoreCase(host, its); };
    if (std::any_of(of_dispatcher.begin(), of_dispatcher.end(), is_its)) continue;
    for (const std::string& its : of_dispatcher) {
      if (!IsWildcardOf(host, its)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("'", host, "' also names the dispatcher's host '", its,
                       "', so a worker's key could stand for the dispatcher; name the hosts of "
                       "workers one by one, or put them into a domain of their own"));
    }
    of_workers.push_back(host);
  }
  return HostsByName{{kDispatcher, WithLocalhost(std::move(of_dispatcher))},
                     {kWorker, WithLocalhost(std::move(of_workers))}};
}

// Adds the principal's section to `auth_file`, and its files to `contents`.
void Add(const std::string& folder, const control::Principal& principal, std::string& auth_file,
         Contents& contents) {
  const std::string token = control::MakeToken();
  absl::StrAppend(&auth_file, "\n", AuthSection(principal, control::TokenDigest(token)));
  contents[absl::StrCat(principal.name, ".token")] = absl::StrCat(token, "\n");
  if (principal.role == control::Role::kTrainer) {
    contents[absl::StrCat(principal.name, ".toml")] = TrainerSettings(folder, principal.name);
  }
}

// Makes the authority, and the certificates and keys of the dispatcher and of workers.
absl::Status AddCertificates(const ClusterTerms& terms, Contents& contents) {
  ASSIGN_OR_RETURN(const HostsByName hosts, HostsByCertificate(terms.hosts));
  ASSIGN_OR_RETURN(const Authority authority, MakeAuthority());
  contents["ca.pem"] = authority.certificate;
  contents["ca.key"] = authority.key;
  for (const auto& [name, its_hosts] : hosts) {
    ASSIGN_OR_RETURN(const std::string key, MakeKey());
    const CertificateTerms its{.name = name, .hosts = its_hosts, .days = terms.days};
    ASSIGN_OR_RETURN(contents[name + ".pem"], Certify(authority, key, its));
    contents[name + ".key"] = key;
  }
  return absl::OkStatus();
}

// Checks that `auth_file` is valid before it is written.
absl::Status AddAuthFile(const std::string& folder, std::string auth_file, Contents& contents) {
  RETURN_IF_ERROR(control::AuthFile::Parse(auth_file, FileIn(folder, kAuthFile)).status());
  contents[kAuthFile] = std::move(auth_file);
  return absl::OkStatus();
}

absl::Status AddPrincipals(const std::string& folder, const ClusterTerms& terms,
                           Contents& contents) {
  std::vector<control::Principal> principals = {
      {.name = kWorker, .role = control::Role::kWorker, .namespaces = {}},
      {.name = kOperator, .role = control::Role::kOperator, .namespaces = {}}};
  for (const std::string& name : terms.trainers) {
    principals.push_back({.name = name, .role = control::Role::kTrainer, .namespaces = {}});
  }
  std::set<std::string> names;
  std::string auth_file = kAuthHeader;
  for (const control::Principal& principal : principals) {
    RETURN_IF_ERROR(CheckName(principal.name));
    if (!names.insert(principal.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("two principals have the name '", principal.name, "'"));
    }
    Add(folder, principal, auth_file, contents);
  }
  return AddAuthFile(folder, std::move(auth_file), contents);
}

absl::StatusOr<std::string> ReadIn(const std::string& folder, const std::string& name) {
  absl::StatusOr<std::string> content = LocalDisk().Read(FileIn(folder, name));
  if (content.ok()) return content;
  return Annotate(content.status(), folder, " is not a folder of `penstock credentials init`");
}

}  // namespace

absl::Status MakeCredentials(const std::string& folder, const ClusterTerms& terms) {
  ASSIGN_OR_RETURN(const std::string path, PathOf(folder));
  if (terms.hosts.all.empty()) return absl::InvalidArgumentError("there are no hosts");
  Contents contents;
  RETURN_IF_ERROR(AddPrincipals(path, terms, contents));
  RETURN_IF_ERROR(AddCertificates(terms, contents));
  contents["dispatcher.toml"] = DispatcherSettings(path);
  contents["worker.toml"] = WorkerSettings(path, terms.hosts.main());
  contents["operator.env"] = OperatorVariables(path, terms.hosts.main());
  RETURN_IF_ERROR(LocalDisk().MakeFolders(FolderOf(path)));
  // Disk::MakeFolders() accepts an existing folder, which may belong to another user.
  if (::mkdir(path.c_str(), 0700) != 0) {
    if (errno != EEXIST) return DiskError(errno, "make", path);
    return absl::AlreadyExistsError(absl::StrCat(
        path, " exists, and credentials are never overwritten; name a folder that does not exist"));
  }
  return ReplaceAll(path, contents);
}

absl::Status AddPrincipal(const std::string& folder, const control::Principal& principal) {
  ASSIGN_OR_RETURN(const std::string path, PathOf(folder));
  RETURN_IF_ERROR(CheckName(principal.name));
  ASSIGN_OR_RETURN(std::string auth_file, ReadIn(path, kAuthFile));
  ASSIGN_OR_RETURN(const std::vector<TomlSection> sections,
                   ParseToml(auth_file, FileIn(path, kAuthFile)));
  for (const TomlSection& section : sections) {
    if (section.name == principal.name) {
      return absl::AlreadyExistsError(absl::StrCat(FileIn(path, kAuthFile), ":", section.line,
                                                   ": there is already a principal ",
                                                   section.name));
    }
  }
  Contents contents;
  Add(path, principal, auth_file, contents);
  for (const auto& [name, content] : contents) {
    if (LocalDisk().Read(FileIn(path, name)).ok()) {
      return absl::AlreadyExistsError(
          absl::StrCat(FileIn(path, name), " exists, and is not overwritten"));
    }
  }
  Contents last;
  RETURN_IF_ERROR(AddAuthFile(path, std::move(auth_file), last));
  RETURN_IF_ERROR(ReplaceAll(path, contents));  // first, so that a valid token is always in a file
  return ReplaceAll(path, last);
}

absl::StatusOr<HostsByName> RenewCertificates(const std::string& folder, const ClusterHosts& hosts,
                                              int days) {
  ASSIGN_OR_RETURN(const std::string path, PathOf(folder));
  HostsByName renewed;
  if (!hosts.all.empty()) {
    ASSIGN_OR_RETURN(renewed, HostsByCertificate(hosts));
  }
  Authority authority;
  ASSIGN_OR_RETURN(authority.certificate, ReadIn(path, "ca.pem"));
  ASSIGN_OR_RETURN(authority.key, ReadIn(path, "ca.key"));
  Contents contents;
  for (const std::string name : {kDispatcher, kWorker}) {
    if (hosts.all.empty()) {
      ASSIGN_OR_RETURN(const std::string old, ReadIn(path, name + ".pem"));
      ASSIGN_OR_RETURN(renewed[name], HostsOf(old));
    }
    ASSIGN_OR_RETURN(const std::string key, ReadIn(path, name + ".key"));
    const CertificateTerms its{.name = name, .hosts = renewed[name], .days = days};
    ASSIGN_OR_RETURN(contents[name + ".pem"], Certify(authority, key, its));
  }
  RETURN_IF_ERROR(ReplaceAll(path, contents));
  return renewed;
}

}  // namespace penstock::tools
