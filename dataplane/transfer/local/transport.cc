// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/local/transport.h"

#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "control/sync/random.h"
#include "dataplane/transfer/local/link.h"

namespace penstock::transfer::local {
namespace {

// The part of a listener that pending dials may still use after the listener is destroyed.
class LocalAcceptor {
 public:
  explicit LocalAcceptor(Listener::Accept accept) : accept_(std::move(accept)) {}

  // Returns false if the acceptor is closed.
  bool Open(const std::shared_ptr<LocalLink>& link, const std::shared_ptr<LocalAcceptor>& self) {
    {
      MutexLock lock(mu_);
      if (closed_) return false;
      links_.insert(link);
      ++opening_;
    }
    link->Open(accept_, [self](LocalLink* ended) { self->Forget(ended); });
    MutexLock lock(mu_);
    --opening_;
    opened_.NotifyAll();
    return true;
  }

  void Close() {
    std::set<std::shared_ptr<LocalLink>> links;
    {
      MutexLock lock(mu_);
      closed_ = true;
      opened_.Wait(lock, [&]() REQUIRES(mu_) { return opening_ == 0; });
      links = links_;
    }
    for (const std::shared_ptr<LocalLink>& link : links) {
      link->CloseByWorker(absl::UnavailableError("the worker has stopped"));
      link->WaitEnded();
    }
  }

 private:
  void Forget(LocalLink* ended) {
    MutexLock lock(mu_);
    links_.erase(ended->shared_from_this());
  }

  const Listener::Accept accept_;
  Mutex mu_;
  Condition opened_;
  int opening_ GUARDED_BY(mu_) = 0;
  bool closed_ GUARDED_BY(mu_) = false;
  std::set<std::shared_ptr<LocalLink>> links_ GUARDED_BY(mu_);
};

// The listeners of this process by address.
class LocalAcceptors {
 public:
  std::string Add(std::shared_ptr<LocalAcceptor> acceptor) {
    MutexLock lock(mu_);
    std::string address = absl::StrCat(process_, added_++);
    acceptors_.emplace(address, std::move(acceptor));
    return address;
  }
  // Returns true if the address belongs to this process, even after its listener has stopped.
  bool IsHere(std::string_view address) const { return address.starts_with(process_); }
  void Remove(const std::string& address) {
    MutexLock lock(mu_);
    acceptors_.erase(address);
  }
  std::shared_ptr<LocalAcceptor> Find(std::string_view address) {
    MutexLock lock(mu_);
    auto found = acceptors_.find(address);
    return found == acceptors_.end() ? nullptr : found->second;
  }

 private:
  static std::string ProcessName() {
    return absl::StrFormat("local:%016x%016x:", RandomNumber(), RandomNumber());
  }

  const std::string process_ = ProcessName();
  Mutex mu_;
  uint64_t added_ GUARDED_BY(mu_) = 0;
  std::map<std::string, std::shared_ptr<LocalAcceptor>, std::less<>> acceptors_ GUARDED_BY(mu_);
};

class LocalListener : public Listener {
 public:
  LocalListener(std::shared_ptr<LocalAcceptors> acceptors, Accept accept)
      : acceptors_(std::move(acceptors)),
        acceptor_(std::make_shared<LocalAcceptor>(std::move(accept))),
        address_(acceptors_->Add(acceptor_)) {}
  ~LocalListener() override {
    acceptors_->Remove(address_);
    acceptor_->Close();
  }
  std::string address() const override { return address_; }
  std::string compatibility() const override { return ""; }  // the address is enough

 private:
  const std::shared_ptr<LocalAcceptors> acceptors_;
  const std::shared_ptr<LocalAcceptor> acceptor_;
  const std::string address_;
};

class LocalReceiveLink : public ReceiveLink {
 public:
  explicit LocalReceiveLink(std::shared_ptr<LocalLink> link) : link_(std::move(link)) {}
  ~LocalReceiveLink() override { link_->CloseByClient(); }
  void Grant(Credits credits) override { link_->Grant(credits); }
  void Recall() override { link_->Recall(); }

 private:
  const std::shared_ptr<LocalLink> link_;
};

class LocalTransport : public Transport {
 public:
  std::string_view name() const override { return "local"; }
  int rank() const override { return 0; }

  absl::StatusOr<std::unique_ptr<Listener>> Listen(const ListenOptions&,
                                                   Listener::Accept accept) override {
    return std::make_unique<LocalListener>(acceptors_, std::move(accept));
  }

  absl::Status Check(std::string_view address, std::string_view) override {
    if (acceptors_->IsHere(address)) return absl::OkStatus();
    return absl::NotFoundError("the worker is not in this process");
  }

  absl::StatusOr<std::unique_ptr<ReceiveLink>> Dial(
      std::string_view address, DialOptions options,
      std::shared_ptr<ReceiveEvents> events) override {
    std::shared_ptr<LocalAcceptor> acceptor = acceptors_->Find(address);
    auto link = std::make_shared<LocalLink>(std::move(options), events);
    auto handle = std::make_unique<LocalReceiveLink>(link);
    if (acceptor == nullptr || !acceptor->Open(link, acceptor)) {
      link->NeverOpened(absl::UnavailableError(
          absl::StrCat("no worker listens at ", std::string(address), " in this process")));
    }
    return handle;
  }

 private:
  const std::shared_ptr<LocalAcceptors> acceptors_ = std::make_shared<LocalAcceptors>();
};

}  // namespace

std::unique_ptr<Transport> MakeLocalTransport() {
  return std::make_unique<LocalTransport>();
}

}  // namespace penstock::transfer::local
