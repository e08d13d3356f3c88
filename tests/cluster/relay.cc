// SPDX-License-Identifier: Apache-2.0
#include "tests/cluster/relay.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <limits>
#include <map>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "control/rpc/prepare_grpc.h"
#include "control/stub/target.h"
#include "include/status_macros.h"
#include "penstock/check.h"

namespace penstock {
namespace {

struct Counts {
  std::atomic<int64_t> doubled{0};
  std::atomic<int64_t> broken{0};
};

std::string BytesOfMessage(const grpc::ByteBuffer& message) {
  grpc::Slice whole;
  PENSTOCK_CHECK(message.DumpToSingleSlice(&whole).ok());
  return std::string(reinterpret_cast<const char*>(whole.begin()), whole.size());
}

grpc::ByteBuffer MessageFrom(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

// One call: the caller's end, and the dispatcher's. In each direction one message is read, what
// stands for it is written, and only then the next one is read.
class RelayedCall : public std::enable_shared_from_this<RelayedCall> {
 public:
  RelayedCall(std::shared_ptr<grpc::Channel> channel, std::string method,
              const RelayOptions& options, Counts& counts, std::function<void(RelayedCall*)> over)
      : options_(options),
        counts_(counts),
        over_(std::move(over)),
        stream_(absl::EndsWith(method, "Session")),
        channel_(std::move(channel)),
        stub_(channel_),
        method_(std::move(method)),
        left_(options.breaks_after ? options.breaks_after(stream_)
                                   : std::numeric_limits<int64_t>::max()) {}

  grpc::ServerGenericBidiReactor* Start() {
    near_.call = far_.call = shared_from_this();
    stub_.PrepareBidiStreamingCall(&far_.context, method_, {}, &far_);
    far_.AddHold();  // writes come from the other end's threads
    far_.StartRead(&far_.read);
    far_.StartCall();
    near_.StartRead(&near_.read);
    return &near_;
  }

  void Break() {
    std::lock_guard lock(mu_);
    End(grpc::Status(grpc::StatusCode::UNAVAILABLE, "broken on purpose"));
  }

 private:
  struct Near : grpc::ServerGenericBidiReactor {
    void OnReadDone(bool ok) override { call->OnRead(*this, ok); }
    void OnWriteDone(bool ok) override { call->OnWritten(*this, ok); }
    void OnCancel() override { call->Break(); }
    void OnDone() override { call->OnDone(call); }
    grpc::ByteBuffer read, written;
    std::shared_ptr<RelayedCall> call;
    bool first = true;
    std::deque<grpc::ByteBuffer> next;  // written after `written`
  };
  struct Far : grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
    void OnReadDone(bool ok) override { call->OnRead(*this, ok); }
    void OnWriteDone(bool ok) override { call->OnWritten(*this, ok); }
    void OnDone(const grpc::Status& status) override {
      {
        std::lock_guard lock(call->mu_);
        call->End(status);
      }
      call->OnDone(call);
    }
    grpc::ClientContext context;
    grpc::ByteBuffer read, written;
    std::shared_ptr<RelayedCall> call;
    bool first = true;
    std::deque<grpc::ByteBuffer> next;
  };

  void OnRead(Near& from, bool ok) {
    std::lock_guard lock(mu_);
    if (!holding_) return;
    if (ok) return Pass(from, far_);
    far_.StartWritesDone();
  }
  void OnRead(Far& from, bool ok) {
    std::lock_guard lock(mu_);
    if (ended_) return;
    if (ok) return Pass(from, near_);
    LetGo();  // its OnDone brings the status
  }

  template <class From, class To>
  void Pass(From& from, To& to) {
    if (left_-- <= 0) {
      ++counts_.broken;
      return End(grpc::Status(grpc::StatusCode::UNAVAILABLE, "broken on purpose"));
    }
    const bool is_first = std::exchange(from.first, false);
    to.next = Replaced(from.read, std::is_same_v<To, Far>, is_first);
    WriteNext(to);
  }
  // Returns what is sent instead of a message.
  std::deque<grpc::ByteBuffer> Replaced(const grpc::ByteBuffer& message, bool to_dispatcher,
                                        bool is_first) {
    std::deque<grpc::ByteBuffer> messages = {message};
    if (options_.replace) {
      messages.clear();
      for (const std::string& bytes :
           options_.replace({method_, stream_, to_dispatcher, is_first, BytesOfMessage(message)})) {
        messages.push_back(MessageFrom(bytes));
      }
    }
    if (stream_ && !is_first && options_.double_messages) {
      ++counts_.doubled;
      const std::deque<grpc::ByteBuffer> once = messages;
      messages.insert(messages.end(), once.begin(), once.end());
    }
    return messages;
  }
  template <class End>
  void WriteNext(End& end) {
    end.written = std::move(end.next.front());
    end.next.pop_front();
    Write(end);
  }
  void Write(Near& near) {
    near_writing_ = true;
    near.StartWrite(&near.written);
  }
  void Write(Far& far) {
    if (holding_) far.StartWrite(&far.written);
  }

  void OnWritten(Near& near, bool ok) {
    std::lock_guard lock(mu_);
    near_writing_ = false;
    if (ended_) return FinishNear();
    if (ok) GoOn(near, far_);
  }
  void OnWritten(Far& far, bool ok) {
    std::lock_guard lock(mu_);
    if (ok && !ended_) GoOn(far, near_);
  }
  // Called when `to` has written a message from `from`.
  template <class To, class From>
  void GoOn(To& to, From& from) {
    if (to.next.empty()) return from.StartRead(&from.read);
    WriteNext(to);
  }

  // Requires mu_, as do the functions below.
  void End(const grpc::Status& status) {
    if (std::exchange(ended_, true)) return;
    status_ = status;
    far_.context.TryCancel();
    LetGo();
    if (!near_writing_) FinishNear();
  }
  void FinishNear() {
    if (!std::exchange(finished_, true)) near_.Finish(status_);
  }
  void LetGo() {
    if (std::exchange(holding_, false)) far_.RemoveHold();
  }

  // Called when one end is done. `held` is that end's reference to this call.
  void OnDone(std::shared_ptr<RelayedCall>& held) {
    const std::shared_ptr<RelayedCall> self = std::move(held);
    if (++done_ == 2) over_(this);
  }

  const RelayOptions& options_;
  Counts& counts_;
  const std::function<void(RelayedCall*)> over_;
  const bool stream_;
  const std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
  const std::string method_;

  std::atomic<int> done_{0};
  std::mutex mu_;
  // Guarded by mu_.
  int64_t left_;
  bool holding_ = true;        // writes to the dispatcher may start
  bool near_writing_ = false;  // a write to the caller is under way
  bool ended_ = false;         // status_ is set
  bool finished_ = false;      // the caller has got status_
  grpc::Status status_;
  Near near_;
  Far far_;
};

class RelayServer final : public Relay, private grpc::CallbackGenericService {
 public:
  RelayServer(const std::string& dispatcher, RelayOptions options)
      : options_(std::move(options)), dispatcher_(dispatcher) {}
  ~RelayServer() override {
    if (server_ == nullptr) return;
    {
      std::unique_lock lock(mu_);
      stopped_ = true;
      const auto open = calls_;
      lock.unlock();
      for (const auto& [key, call] : open) call->Break();
      lock.lock();
      none_.wait(lock, [&] { return calls_.empty(); });
    }
    server_->Shutdown();
    server_->Wait();
  }

  absl::Status Listen() {
    control::PrepareGrpc();
    channel_ = grpc::CreateChannel(dispatcher_, grpc::InsecureChannelCredentials());
    grpc::ServerBuilder builder;
    builder.AddListeningPort("localhost:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterCallbackGenericService(this);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port_ == 0) return absl::UnavailableError("no port for a relay");
    return absl::OkStatus();
  }

  std::string service() const override { return absl::StrCat("localhost:", port_); }
  int64_t doubled() const override { return counts_.doubled; }
  int64_t broken() const override { return counts_.broken; }

 private:
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    auto call = std::make_shared<RelayedCall>(channel_, context->method(), options_, counts_,
                                              [this](RelayedCall* over) { Forget(over); });
    std::lock_guard lock(mu_);
    calls_[call.get()] = call;
    grpc::ServerGenericBidiReactor* reactor = call->Start();
    if (stopped_) call->Break();
    return reactor;
  }
  void Forget(RelayedCall* over) {
    std::lock_guard lock(mu_);
    calls_.erase(over);
    none_.notify_all();
  }

  const RelayOptions options_;
  const std::string dispatcher_;
  Counts counts_;
  std::shared_ptr<grpc::Channel> channel_;
  int port_ = 0;
  std::mutex mu_;
  std::condition_variable none_;
  bool stopped_ = false;                                        // guarded by mu_
  std::map<RelayedCall*, std::shared_ptr<RelayedCall>> calls_;  // guarded by mu_
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Relay>> Relay::Start(const std::string& service,
                                                    RelayOptions options) {
  ASSIGN_OR_RETURN(const control::Target target, control::ParseTarget(service));
  auto relay = std::make_unique<RelayServer>(target.addresses.front(), std::move(options));
  RETURN_IF_ERROR(relay->Listen());
  return relay;
}

}  // namespace penstock
