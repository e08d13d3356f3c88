// SPDX-License-Identifier: Apache-2.0
// Links that break over and over, each with elements on their way. A client and a worker then know
// different things about each other, and yet each element is delivered once.
#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "dataplane/transfer/transport.h"
#include "tests/cluster/cluster.h"
#include "tools/soak/numbers.h"

namespace penstock {
namespace {

// The client's end of a link of another transport. It breaks after a given number of elements,
// inside the event of the last one: later elements that are on their way are lost, and so are most
// of the latest messages of both ends.
class BreakingLink final : public transfer::ReceiveEvents {
 public:
  BreakingLink(std::shared_ptr<transfer::ReceiveEvents> to, int64_t elements)
      : to_(std::move(to)), left_(elements) {}

  void OnOpen() override { to_->OnOpen(); }
  void OnElements(absl::Span<Element> elements) override {
    left_ -= static_cast<int64_t>(elements.size());
    std::shared_ptr<transfer::ReceiveLink> breaking = left_ <= 0 ? TakeAlone() : nullptr;
    to_->OnElements(elements);
    if (breaking == nullptr) return;
    breaking.reset();
    bool closed;
    {
      std::lock_guard lock(mu_);
      closed = closed_;
    }
    if (!closed) to_->OnClosed(absl::UnavailableError("broken on purpose"));
    {
      std::lock_guard lock(mu_);
      breaker_ = std::thread::id();
    }
    done_.notify_all();
  }
  void OnError(const Identity& identity, const absl::Status& error) override {
    to_->OnError(identity, error);
  }
  void OnRecalled(transfer::Credits credits) override { to_->OnRecalled(credits); }
  void OnClosed(const absl::Status& reason) override { to_->OnClosed(reason); }

  void Take(std::unique_ptr<transfer::ReceiveLink> link) {
    std::lock_guard lock(mu_);
    link_ = std::move(link);
  }
  // Returns nullptr when the link is broken.
  std::shared_ptr<transfer::ReceiveLink> link() {
    std::lock_guard lock(mu_);
    return link_;
  }
  // No event comes after this returns, except the event that calls this.
  void Close() {
    std::shared_ptr<transfer::ReceiveLink> closing;
    std::unique_lock lock(mu_);
    done_.wait(lock, [&] {
      return breaker_ == std::thread::id() || breaker_ == std::this_thread::get_id();
    });
    closed_ = true;
    closing.swap(link_);
    lock.unlock();
  }

 private:
  // Returns the link if no thread is inside one of its methods, else nullptr.
  std::shared_ptr<transfer::ReceiveLink> TakeAlone() {
    std::lock_guard lock(mu_);
    if (link_ == nullptr || link_.use_count() > 1) return nullptr;
    breaker_ = std::this_thread::get_id();
    return std::exchange(link_, nullptr);
  }

  const std::shared_ptr<transfer::ReceiveEvents> to_;
  int64_t left_;  // accessed by events, which come one at a time
  std::mutex mu_;
  std::condition_variable done_;
  // Guarded by mu_:
  std::shared_ptr<transfer::ReceiveLink> link_;
  std::thread::id breaker_;  // the thread that is breaking it
  bool closed_ = false;      // by its owner
};

class BreakingHandle final : public transfer::ReceiveLink {
 public:
  explicit BreakingHandle(std::shared_ptr<BreakingLink> link) : link_(std::move(link)) {}
  ~BreakingHandle() override { link_->Close(); }
  void Grant(transfer::Credits credits) override {
    if (auto link = link_->link()) link->Grant(credits);
  }
  void Recall() override {
    if (auto link = link_->link()) link->Recall();
  }

 private:
  const std::shared_ptr<BreakingLink> link_;
};

// A transport "breaking_" + the name of the transport below. It is chosen only by name.
class BreakingTransport final : public transfer::Transport {
 public:
  explicit BreakingTransport(std::string below)
      : name_("breaking_" + below), below_(**transfer::FindTransport(below)) {}

  std::string_view name() const override { return name_; }
  int rank() const override { return 1000; }
  absl::StatusOr<std::unique_ptr<transfer::Listener>> Listen(
      const transfer::ListenOptions& options, transfer::Listener::Accept accept) override {
    transfer::ListenOptions own = options;
    own.port = 0;
    return below_.Listen(own, std::move(accept));
  }
  absl::Status Check(std::string_view address, std::string_view compatibility) override {
    return below_.Check(address, compatibility);
  }
  absl::StatusOr<std::unique_ptr<transfer::ReceiveLink>> Dial(
      std::string_view address, transfer::DialOptions options,
      std::shared_ptr<transfer::ReceiveEvents> events) override {
    auto link = std::make_shared<BreakingLink>(std::move(events), Elements());
    auto below = below_.Dial(address, std::move(options), link);
    if (!below.ok()) return below.status();
    link->Take(*std::move(below));
    ++dialled_;
    return std::make_unique<BreakingHandle>(std::move(link));
  }
  int dialled() const { return dialled_; }

 private:
  int64_t Elements() {
    std::lock_guard lock(mu_);
    return std::uniform_int_distribution<int64_t>(1, 60)(random_);
  }

  const std::string name_;
  transfer::Transport& below_;
  std::atomic<int> dialled_{0};
  std::mutex mu_;
  std::mt19937 random_{7};
};

class BreakingLinks : public testing::TestWithParam<std::string> {
 protected:
  static constexpr int64_t kCount = 1500;

  static void SetUpTestSuite() {
    if (!transports_.empty()) return;  // they stay for the life of the program
    for (const std::string below : {"local", "shm", "tcp", "grpc"}) {
      auto transport = std::make_unique<BreakingTransport>(below);
      transports_[below] = transport.get();
      ASSERT_TRUE(transfer::RegisterTransport(std::move(transport)).ok());
    }
  }

  Dataset Job(const Cluster& cluster, int64_t words) const {
    DistributeOptions options = cluster.Options(ShardingPolicy::kDynamic, "shared");
    options.max_outstanding_requests = 32;
    options.data_transfer_protocol = "breaking_" + GetParam();
    return soak::Numbers(kCount, words).Distribute(options);
  }
  void Read(const Cluster& cluster, int64_t words) {
    absl::StatusOr<Iterator> it = Job(cluster, words).MakeIterator();
    ASSERT_TRUE(it.ok()) << it.status();
    while (true) {
      absl::StatusOr<std::optional<Element>> element = it->Next();
      ASSERT_TRUE(element.ok()) << element.status();
      if (!element->has_value()) return;
      EXPECT_TRUE(soak::IsWhole(**element, words));
      std::lock_guard lock(mu_);
      ++times_.at(soak::NumberOf(**element));
      ++read_;
      went_on_.notify_all();
    }
  }
  void AwaitRead(int64_t count) {
    std::unique_lock lock(mu_);
    went_on_.wait(lock, [&] { return read_ >= count; });
  }
  void ExpectEachOnce() {
    EXPECT_EQ(std::count(times_.begin(), times_.end(), 0), 0) << "lost";
    EXPECT_EQ(*std::max_element(times_.begin(), times_.end()), 1) << "doubled";
  }

  static std::map<std::string, BreakingTransport*> transports_;
  std::mutex mu_;
  std::condition_variable went_on_;
  int64_t read_ = 0;
  std::vector<int> times_ = std::vector<int>(kCount, 0);
};
std::map<std::string, BreakingTransport*> BreakingLinks::transports_;

TEST_P(BreakingLinks, LoseAndDoubleNothing) {
  for (const int64_t words : {1, 10'000}) {
    SCOPED_TRACE(absl::StrCat("words ", words));
    times_.assign(kCount, 0);
    const int before = transports_.at(GetParam())->dialled();
    Cluster cluster(2);
    std::vector<std::thread> readers;
    for (int i = 0; i < 2; ++i) readers.emplace_back([&] { Read(cluster, words); });
    for (std::thread& reader : readers) reader.join();
    ExpectEachOnce();
    // Each reader dials each worker once, and again after each break. How often links break depends
    // on how many elements arrive together.
    EXPECT_GT(transports_.at(GetParam())->dialled() - before, 4) << "no link broke";
  }
}

TEST_P(BreakingLinks, LoseAndDoubleNothingWhileAWorkerGoes) {
  Cluster cluster(2);
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) readers.emplace_back([&] { Read(cluster, 100); });
  AwaitRead(kCount / 3);
  cluster.RemoveWorker(0);
  for (std::thread& reader : readers) reader.join();
  ExpectEachOnce();
}

INSTANTIATE_TEST_SUITE_P(Over, BreakingLinks, testing::Values("local", "shm", "tcp", "grpc"),
                         [](const auto& its) { return its.param; });

}  // namespace
}  // namespace penstock
