// SPDX-License-Identifier: Apache-2.0
#include "control/env/scheme_files.h"

#include <cstdlib>
#include <optional>
#include <stop_token>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "control/env/allowed_files.h"
#include "control/env/files_settings.h"
#include "control/env/path_lookup.h"
#include "control/env/remote/http_files.h"
#include "control/env/remote/name.h"
#include "control/env/remote/remote_file.h"
#include "control/env/remote/s3_files.h"
#include "control/env/remote/url_rules.h"
#include "control/sync/mutex.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

using Names = std::vector<std::string>;
constexpr char kLocal[] = "file://";

// Returns the path of file:///path or file://localhost/path.
absl::StatusOr<std::string> LocalPath(const std::string& name) {
  absl::string_view path = absl::string_view(name).substr(sizeof(kLocal) - 1);
  absl::ConsumePrefix(&path, "localhost");
  if (!path.empty() && path[0] == '/') return std::string(path);
  return absl::InvalidArgumentError(
      absl::StrCat(name, " names another machine or has no full path; use file:///path"));
}

// The remote files, by their schemes.
class Remote {
 public:
  // `context` must outlive this object.
  Remote(remote::RemoteContext& context, Environment environment,
         const std::shared_ptr<const remote::UrlRules>& rules = nullptr)
      : http_(remote::MakeHttpFiles(context, rules)),
        s3_(remote::MakeS3Files(context, std::move(environment), rules)) {}

  // Returns nullptr for an unknown scheme.
  Files* Of(const std::string& scheme) const {
    if (scheme == "http" || scheme == "https") return http_.get();
    return scheme == "s3" ? s3_.get() : nullptr;
  }

 private:
  const std::unique_ptr<Files> http_;
  const std::unique_ptr<Files> s3_;
};

absl::StatusOr<std::unique_ptr<remote::RemoteContext>> MakeContext(const FilesConfig& config) {
  RETURN_IF_ERROR(Check(config));
  ASSIGN_OR_RETURN(auto client, remote::HttpClient::Make(config));
  return std::make_unique<remote::RemoteContext>(config, std::move(client));
}

class SchemeFiles : public Files {
 public:
  explicit SchemeFiles(Files& local) : local_(local) {}

  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& name, std::stop_token stop) final {
    const std::string scheme = remote::SchemeOf(name);
    if (scheme.empty()) return local_.Open(name, std::move(stop));
    if (scheme == "file") {
      ASSIGN_OR_RETURN(const std::string path, LocalPath(name));
      return local_.Open(path, std::move(stop));
    }
    ASSIGN_OR_RETURN(Files* const files, RemoteOf(scheme, name));
    return files->Open(name, std::move(stop));
  }

  absl::StatusOr<Names> Glob(const std::string& pattern, std::stop_token stop) final {
    const std::string scheme = remote::SchemeOf(pattern);
    if (scheme.empty()) return local_.Glob(pattern, std::move(stop));
    if (scheme == "file") {
      ASSIGN_OR_RETURN(const std::string path, LocalPath(pattern));
      ASSIGN_OR_RETURN(Names names, local_.Glob(path, std::move(stop)));
      for (std::string& name : names) name.insert(0, kLocal);
      return names;
    }
    ASSIGN_OR_RETURN(Files* const files, RemoteOf(scheme, pattern));
    return files->Glob(pattern, std::move(stop));
  }

 private:
  virtual absl::StatusOr<const Remote*> GetRemote() = 0;

  absl::StatusOr<Files*> RemoteOf(const std::string& scheme, const std::string& name) {
    ASSIGN_OR_RETURN(const Remote* const remote, GetRemote());
    Files* const files = remote->Of(scheme);
    if (files != nullptr) return files;
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot read ", remote::Shown(name), ": unknown scheme; use file, http, https or s3"));
  }

  Files& local_;
};

class FilesOfConfig final : public SchemeFiles {
 public:
  FilesOfConfig(std::unique_ptr<remote::RemoteContext> context, Environment environment)
      : SchemeFiles(LocalFiles()),
        context_(std::move(context)),
        remote_(*context_, std::move(environment)) {}

 private:
  absl::StatusOr<const Remote*> GetRemote() override { return &remote_; }

  const std::unique_ptr<remote::RemoteContext> context_;
  const Remote remote_;
};

// The Files of this process. The context of remote files is created when a remote file is first
// named, and is never destroyed.
class ProcessFiles final : public SchemeFiles {
 public:
  ProcessFiles() : SchemeFiles(LocalFiles()) {}

  static ProcessFiles& Get() {
    static ProcessFiles* const files = new ProcessFiles;
    return *files;
  }

  absl::Status Configure(FilesConfig config) {
    RETURN_IF_ERROR(Check(config));
    MutexLock lock(mu_);
    if (context_.has_value()) {
      return absl::FailedPreconditionError(
          "ConfigureFiles() was called too late: a remote file has already been named");
    }
    config_ = std::move(config);
    return absl::OkStatus();
  }

  absl::StatusOr<remote::RemoteContext*> Context() {
    MutexLock lock(mu_);
    if (!context_.has_value()) {
      context_ = Make();
      if (context_->ok()) {
        remote_.emplace(***context_, ProcessEnvironment());
        // At exit, the HTTP client must stop before the libraries that it uses are torn down.
        std::atexit([] { (*Get().Context())->client->Stop(); });
      }
    }
    if (!context_->ok()) return context_->status();
    return (*context_)->get();
  }

 private:
  absl::StatusOr<const Remote*> GetRemote() override {
    RETURN_IF_ERROR(Context().status());
    MutexLock lock(mu_);
    return &*remote_;
  }

  absl::StatusOr<std::unique_ptr<remote::RemoteContext>> Make() REQUIRES(mu_) {
    if (!config_.has_value()) {
      ASSIGN_OR_RETURN(config_, ReadFilesConfig("", ProcessEnvironment()));
    }
    return MakeContext(*config_);
  }

  Mutex mu_;
  std::optional<FilesConfig> config_ GUARDED_BY(mu_);
  // nullopt: not needed yet.
  std::optional<absl::StatusOr<std::unique_ptr<remote::RemoteContext>>> context_ GUARDED_BY(mu_);
  std::optional<Remote> remote_ GUARDED_BY(mu_);  // set if context_ is OK, and then constant
};

// Shares the connections of ProcessFiles.
class AllowedFiles final : public SchemeFiles {
 public:
  AllowedFiles(std::unique_ptr<Files> local, remote::UrlRules rules)
      : SchemeFiles(*local),
        local_(std::move(local)),
        rules_(std::make_shared<const remote::UrlRules>(std::move(rules))) {}

 private:
  absl::StatusOr<const Remote*> GetRemote() override {
    ASSIGN_OR_RETURN(remote::RemoteContext* const context, ProcessFiles::Get().Context());
    MutexLock lock(mu_);
    if (!remote_.has_value()) remote_.emplace(*context, ProcessEnvironment(), rules_);
    return &*remote_;
  }

  const std::unique_ptr<Files> local_;
  const std::shared_ptr<const remote::UrlRules> rules_;
  Mutex mu_;
  std::optional<Remote> remote_ GUARDED_BY(mu_);  // constant once it is set
};

}  // namespace

absl::StatusOr<std::unique_ptr<Files>> MakeSchemeFiles(const FilesConfig& config,
                                                       Environment environment) {
  ASSIGN_OR_RETURN(std::unique_ptr<remote::RemoteContext> context, MakeContext(config));
  return std::make_unique<FilesOfConfig>(std::move(context), std::move(environment));
}

absl::StatusOr<std::unique_ptr<Files>> MakeAllowedFiles(const std::vector<std::string>& allowed) {
  std::vector<std::string> folders;
  std::vector<std::string> urls;
  for (const std::string& entry : allowed) {
    if (entry.empty()) return absl::InvalidArgumentError("files_allow has an empty entry");
    RETURN_IF_ERROR(CheckPath(entry));
    const std::string scheme = remote::SchemeOf(entry);
    if (scheme.empty()) {
      folders.push_back(entry);
    } else if (scheme == "file") {
      ASSIGN_OR_RETURN(folders.emplace_back(), LocalPath(entry));
    } else {
      urls.push_back(entry);
    }
  }
  ASSIGN_OR_RETURN(remote::UrlRules rules, remote::UrlRules::Parse(urls));
  return std::make_unique<AllowedFiles>(
      LocalFilesFor(PathLookup(std::move(folders), kAllowItsFolder)), std::move(rules));
}

Files& DefaultFiles() {
  return ProcessFiles::Get();
}

absl::Status ConfigureFiles(FilesConfig config) {
  return ProcessFiles::Get().Configure(std::move(config));
}

}  // namespace penstock
