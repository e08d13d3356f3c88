// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/server/authenticator.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "control/dispatcher/server/auth_file.h"
#include "control/env/disk.h"
#include "control/sync/mutex.h"
#include "include/status_macros.h"

namespace penstock::control {
namespace {

class NoAuthenticator final : public Authenticator {
 public:
  absl::StatusOr<Caller> Identify(const PeerCredentials& /*peer*/) override { return Caller(); }
  uint64_t Revision() override { return 0; }
};

absl::StatusOr<Principal> Find(const AuthFile& file, const PeerCredentials& peer) {
  if (!peer.token.empty()) {
    if (const Principal* found = file.FindByToken(peer.token)) return *found;
    return absl::UnauthenticatedError(
        "the dispatcher's auth_file does not contain the token that this process sent");
  }
  const Principal* found = nullptr;
  for (const std::string& name : peer.certificate_names) {
    const Principal* its = file.FindByCertificate(name);
    if (its != nullptr && found != nullptr && its != found) {
      return absl::UnauthenticatedError(
          absl::StrCat("the names of the certificate belong to two principals, ", found->name,
                       " and ", its->name));
    }
    if (its != nullptr) found = its;
  }
  if (found != nullptr) return *found;
  if (peer.certificate_names.empty()) {
    return absl::UnauthenticatedError(
        "the dispatcher has an auth_file, but this process presented neither a token nor a "
        "certificate; set token_file (PENSTOCK_TOKEN_FILE), or tls_certificate and tls_key");
  }
  return absl::UnauthenticatedError(
      absl::StrCat("the dispatcher's auth_file contains none of the names of the certificate: ",
                   absl::StrJoin(peer.certificate_names, ", ")));
}

class FileAuthenticator final : public Authenticator {
 public:
  FileAuthenticator(std::string path, std::string text, AuthFile file,
                    std::shared_ptr<EventLog> events, std::function<absl::Time()> now)
      : path_(std::move(path)),
        events_(std::move(events)),
        now_(std::move(now)),
        seen_(std::move(text)),
        looked_(now_()),
        file_(std::make_shared<const AuthFile>(std::move(file))) {}

  absl::StatusOr<Caller> Identify(const PeerCredentials& peer) override {
    if (IsDue(looked_)) Reread();
    const absl::StatusOr<Principal> found = Find(*File(), peer);
    if (found.ok()) return Caller(*found);
    if (IsDue(refused_)) {
      events_->Write({"unauthenticated",
                      {{"address", peer.address}, {"why", std::string(found.status().message())}}});
    }
    return found.status();
  }

  uint64_t Revision() override {
    if (IsDue(looked_)) Reread();
    MutexLock lock(mu_);
    return revision_;
  }

 private:
  std::shared_ptr<const AuthFile> File() const {
    MutexLock lock(mu_);
    return file_;
  }
  // Returns whether kAuthFileInterval has passed since `last`, which then becomes now.
  bool IsDue(absl::Time& last) {
    const absl::Time now = now_();
    MutexLock lock(mu_);
    if (now < last + kAuthFileInterval) return false;
    last = now;
    return true;
  }

  void Reread() {
    if (std::optional<Event> event = ReadAndInstall()) events_->Write(*std::move(event));
  }

  // Returns the event; nullopt if the file has not changed.
  std::optional<Event> ReadAndInstall() {
    // An older content must not be installed after a newer one.
    const MutexLock reading(reading_);
    absl::StatusOr<std::string> text = LocalDisk().Read(path_);
    const std::string now = text.ok() ? *text : std::string(text.status().message());
    if (std::exchange(seen_, now) == now) return std::nullopt;
    absl::StatusOr<AuthFile> file =
        text.ok() ? AuthFile::Parse(*text, path_) : absl::StatusOr<AuthFile>(text.status());
    if (!file.ok()) {
      return Event{"auth_file_refused",
                   {{"file", path_},
                    {"why", std::string(file.status().message())},
                    {"then", "the principals that were read before stay in force"}}};
    }
    auto principals = std::make_shared<const AuthFile>(*std::move(file));
    MutexLock lock(mu_);
    file_ = std::move(principals);
    ++revision_;
    return Event{"auth_file_read", {{"file", path_}, {"principals", absl::StrCat(file_->size())}}};
  }

  const std::string path_;
  const std::shared_ptr<EventLog> events_;
  const std::function<absl::Time()> now_;
  Mutex reading_;                          // taken before mu_
  std::string seen_ GUARDED_BY(reading_);  // the content when the file was last read, or the error
  mutable Mutex mu_;
  // IsDue() changes both, under mu_.
  absl::Time looked_;                          // when the file was last read
  absl::Time refused_ = absl::InfinitePast();  // when a refused peer was last reported
  std::shared_ptr<const AuthFile> file_ GUARDED_BY(mu_);
  uint64_t revision_ GUARDED_BY(mu_) = 0;  // of file_
};

}  // namespace

absl::StatusOr<std::unique_ptr<Authenticator>> Authenticator::Open(
    const std::string& auth_file, std::shared_ptr<EventLog> events,
    std::function<absl::Time()> now) {
  if (auth_file.empty()) return std::make_unique<NoAuthenticator>();
  absl::StatusOr<std::string> text = LocalDisk().Read(auth_file);
  if (!text.ok()) {
    return absl::NotFoundError(absl::StrCat("auth_file: ", text.status().message()));
  }
  ASSIGN_OR_RETURN(AuthFile file, AuthFile::Parse(*text, auth_file));
  events->Write(
      {"auth_file_read", {{"file", auth_file}, {"principals", absl::StrCat(file.size())}}});
  return std::make_unique<FileAuthenticator>(auth_file, *std::move(text), std::move(file),
                                             std::move(events), std::move(now));
}

}  // namespace penstock::control
