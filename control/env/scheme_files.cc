// SPDX-License-Identifier: Apache-2.0
#include "control/env/scheme_files.h"

#include <cstdlib>
#include <optional>
#include <stop_token>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "control/env/files_settings.h"
#include "control/env/remote/http_files.h"
#include "control/env/remote/name.h"
#include "control/env/remote/remote_file.h"
#include "control/env/remote/s3_files.h"
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

// The remote files and their shared state.
class Remote {
 public:
  static absl::StatusOr<std::unique_ptr<Remote>> Make(const FilesConfig& config,
                                                      Environment environment) {
    RETURN_IF_ERROR(Check(config));
    ASSIGN_OR_RETURN(auto client, remote::HttpClient::Make(config));
    return std::unique_ptr<Remote>(new Remote(config, std::move(client), std::move(environment)));
  }

  // Returns nullptr for an unknown scheme.
  Files* Of(const std::string& scheme) {
    if (scheme == "http" || scheme == "https") return http_.get();
    return scheme == "s3" ? s3_.get() : nullptr;
  }
  void Stop() { context_.client->Stop(); }

 private:
  Remote(const FilesConfig& config, std::unique_ptr<remote::HttpClient> client,
         Environment environment)
      : context_(config, std::move(client)),
        http_(remote::MakeHttpFiles(context_)),
        s3_(remote::MakeS3Files(context_, std::move(environment))) {}

  remote::RemoteContext context_;
  const std::unique_ptr<Files> http_;
  const std::unique_ptr<Files> s3_;
};

class SchemeFiles : public Files {
 public:
  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& name, std::stop_token stop) final {
    const std::string scheme = remote::SchemeOf(name);
    if (scheme.empty()) return LocalFiles().Open(name, std::move(stop));
    if (scheme == "file") {
      ASSIGN_OR_RETURN(const std::string path, LocalPath(name));
      return LocalFiles().Open(path, std::move(stop));
    }
    ASSIGN_OR_RETURN(Files* const files, RemoteOf(scheme, name));
    return files->Open(name, std::move(stop));
  }

  absl::StatusOr<Names> Glob(const std::string& pattern, std::stop_token stop) final {
    const std::string scheme = remote::SchemeOf(pattern);
    if (scheme.empty()) return LocalFiles().Glob(pattern, std::move(stop));
    if (scheme == "file") {
      ASSIGN_OR_RETURN(const std::string path, LocalPath(pattern));
      ASSIGN_OR_RETURN(Names names, LocalFiles().Glob(path, std::move(stop)));
      for (std::string& name : names) name.insert(0, kLocal);
      return names;
    }
    ASSIGN_OR_RETURN(Files* const files, RemoteOf(scheme, pattern));
    return files->Glob(pattern, std::move(stop));
  }

 private:
  virtual absl::StatusOr<Remote*> GetRemote() = 0;

  absl::StatusOr<Files*> RemoteOf(const std::string& scheme, const std::string& name) {
    ASSIGN_OR_RETURN(Remote* const remote, GetRemote());
    Files* const files = remote->Of(scheme);
    if (files != nullptr) return files;
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot read ", remote::Shown(name), ": unknown scheme; use file, http, https or s3"));
  }
};

class FilesOfConfig final : public SchemeFiles {
 public:
  explicit FilesOfConfig(std::unique_ptr<Remote> remote) : remote_(std::move(remote)) {}

 private:
  absl::StatusOr<Remote*> GetRemote() override { return remote_.get(); }
  const std::unique_ptr<Remote> remote_;
};

// The Files of this process. Its `Remote` is created when a remote file is first named, and is
// never destroyed.
class ProcessFiles final : public SchemeFiles {
 public:
  static ProcessFiles& Get() {
    static ProcessFiles* const files = new ProcessFiles;
    return *files;
  }

  absl::Status Configure(FilesConfig config) {
    RETURN_IF_ERROR(Check(config));
    MutexLock lock(mu_);
    if (remote_.has_value()) {
      return absl::FailedPreconditionError(
          "ConfigureFiles() was called too late: a remote file has already been named");
    }
    config_ = std::move(config);
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<Remote*> GetRemote() override {
    MutexLock lock(mu_);
    if (!remote_.has_value()) {
      remote_ = Make();
      // At exit, the HTTP client must stop before the libraries that it uses are torn down.
      if (remote_->ok()) std::atexit([] { (*Get().GetRemote())->Stop(); });
    }
    if (!remote_->ok()) return remote_->status();
    return (*remote_)->get();
  }

  absl::StatusOr<std::unique_ptr<Remote>> Make() REQUIRES(mu_) {
    if (!config_.has_value()) {
      ASSIGN_OR_RETURN(config_, ReadFilesConfig("", ProcessEnvironment()));
    }
    return Remote::Make(*config_, ProcessEnvironment());
  }

  Mutex mu_;
  std::optional<FilesConfig> config_ GUARDED_BY(mu_);
  // nullopt: not needed yet.
  std::optional<absl::StatusOr<std::unique_ptr<Remote>>> remote_ GUARDED_BY(mu_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<Files>> MakeSchemeFiles(const FilesConfig& config,
                                                       Environment environment) {
  ASSIGN_OR_RETURN(std::unique_ptr<Remote> remote, Remote::Make(config, std::move(environment)));
  return std::make_unique<FilesOfConfig>(std::move(remote));
}

Files& DefaultFiles() {
  return ProcessFiles::Get();
}

absl::Status ConfigureFiles(FilesConfig config) {
  return ProcessFiles::Get().Configure(std::move(config));
}

}  // namespace penstock
