// SPDX-License-Identifier: Apache-2.0
// Dataset::Cache: every pass returns the elements as the first pass reads them. The stored elements
// affect only speed. A pass reads the stored elements if they are complete; otherwise it reads the
// input and fills the store again. A position is therefore a number of elements, together with the
// input's position if the pass reads the input.
#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "control/observe/event_log.h"
#include "control/sync/mutex.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "dataplane/dataset/transforms/buffer_charge.h"
#include "dataplane/dataset/transforms/cache/cache_store.h"
#include "dataplane/dataset/transforms/kinds.h"
#include "dataplane/dataset/transforms/positioned_input.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

class CacheIterator final : public NodeIterator {
 public:
  CacheIterator(const BuildSite& site, std::shared_ptr<CacheStore> store)
      : site_(site), store_(std::move(store)) {}

  ~CacheIterator() override {
    if (mode_ == Mode::kFilling) store_->Discard();
  }

  absl::StatusOr<std::optional<Element>> Next() override {
    RETURN_IF_ERROR(BeginOrSayWhy());
    if (mode_ == Mode::kFailed) return std::nullopt;
    absl::StatusOr<std::optional<Element>> next =
        mode_ == Mode::kReading ? reader_->Next() : input_->Next();
    FailIfDamaged(next.status());
    if (next.ok() ? next->has_value() : !EndsReading(next.status())) ++passed_;
    if (mode_ == Mode::kFilling) Keep(next);
    return next;
  }

  absl::StatusOr<int64_t> Skip(int64_t count) override {
    RETURN_IF_ERROR(BeginOrSayWhy());
    if (mode_ == Mode::kFailed) return 0;
    if (mode_ == Mode::kFilling) return NodeIterator::Skip(count);
    absl::StatusOr<int64_t> skipped =
        mode_ == Mode::kReading ? reader_->Skip(count) : input_->Skip(count);
    FailIfDamaged(skipped.status());
    passed_ += skipped.value_or(0);
    return skipped;
  }

  absl::Status Save(StateWriter& writer) override {
    RETURN_IF_ERROR(Begin());
    writer.WriteUnsigned(store_->key());
    // If this position is restored elsewhere, the next pass may read the input from its start.
    if (site_.splits() != nullptr) writer.NeedsAllSplits();
    writer.WriteInt(passed_);
    writer.WriteBool(input_ != nullptr);
    return input_ == nullptr ? absl::OkStatus() : input_->Save(writer);
  }

  // If the position is in the input, reading continues there. This pass stores nothing, because it
  // does not have the first elements.
  absl::Status Restore(StateReader& reader) override {
    ASSIGN_OR_RETURN(const uint64_t key, reader.ReadUnsigned());
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
    ASSIGN_OR_RETURN(const int64_t passed, reader.ReadIntIn(0, kMost, "the elements passed"));
    ASSIGN_OR_RETURN(const bool in_input, reader.ReadBool());
    RETURN_IF_ERROR(Annotate(store_->Demand(key), "in ", site_.name()));
    if (in_input) {
      if (key != store_->key())
        return absl::DataLossError("a position belongs to a different seed");
      ASSIGN_OR_RETURN(input_, site_.BuildFirstPass(0, nullptr, store_->seed()));
      mode_ = Mode::kPassing;
      passed_ = passed;
      return input_->Restore(reader);
    }
    ASSIGN_OR_RETURN(const int64_t skipped, Skip(passed));
    if (skipped == passed) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("a position is ", passed, " elements in, but ",
                                            site_.name(), " has only ", skipped,
                                            "; has the input changed?"));
  }

 private:
  enum class Mode {
    kNotBegun,
    kReading,  // from the store
    kFilling,  // fills the store from the input
    kPassing,  // passes on the input's elements
    kFailed,   // permanently, and the error was returned
  };

  // Begins the pass unless it has begun. Returns the error if that failed, until BeginOrSayWhy()
  // has returned the error: Save() does not use it up.
  absl::Status Begin() {
    if (mode_ == Mode::kNotBegun) failed_ = Open();
    return failed_;
  }

  // Does the same for calls that read. Returns an error only once, in place of the first element.
  absl::Status BeginOrSayWhy() {
    Begin().IgnoreError();
    return std::exchange(failed_, absl::OkStatus());
  }

  absl::Status Open() {
    mode_ = Mode::kFailed;
    absl::StatusOr<bool> whole = store_->IsWhole();
    RETURN_IF_ERROR(Annotate(whole.status(), "in ", site_.name()));
    if (*whole) {
      reader_ = store_->Read();
      mode_ = Mode::kReading;
      return absl::OkStatus();
    }
    absl::StatusOr<SplitFeed*> splits = store_->Begin();
    RETURN_IF_ERROR(Annotate(splits.status(), "in ", site_.name()));
    ASSIGN_OR_RETURN(input_, site_.BuildFirstPass(0, *splits, store_->seed()));
    mode_ = Mode::kFilling;
    return absl::OkStatus();
  }

  void FailIfDamaged(const absl::Status& status) {
    if (mode_ == Mode::kReading && absl::IsFailedPrecondition(status)) mode_ = Mode::kFailed;
  }

  // A later pass may not have the same error, so neither the error nor anything else of this pass
  // is stored.
  void Keep(const absl::StatusOr<std::optional<Element>>& next) {
    absl::Status kept;
    if (!next.ok()) {
      store_->Discard();
    } else {
      kept = next->has_value() ? store_->Append(**next) : store_->Commit();
      if (kept.ok() && next->has_value()) return;
    }
    mode_ = Mode::kPassing;
    if (kept.ok()) return;
    store_->Discard();
    StderrEventLog()->Write({"not_cached", {{"node", site_.name()}, {"error", kept.ToString()}}});
  }

  BuildSite site_;
  std::shared_ptr<CacheStore> store_;  // outlives input_, which uses its splits
  std::unique_ptr<NodeIterator> input_;
  std::unique_ptr<CacheReader> reader_;
  Mode mode_ = Mode::kNotBegun;
  absl::Status failed_;  // why the pass could not begin, until Next() returns it
  int64_t passed_ = 0;   // elements, and errors in place of elements
};

bool OnDisk(const Attrs& attrs) {
  return attrs.contains("path");
}

absl::StatusOr<Inferred> InferCache(const Attrs& attrs, absl::Span<const NodePtr> inputs) {
  if (OnDisk(attrs)) {
    const std::string& path = Get<std::string>(attrs, "path");
    if (path.empty() || absl::StrContains(path, "://")) {
      return absl::InvalidArgumentError(
          absl::StrCat("path must name a file on this machine, not \"", path,
                       "\"; Cache() without a path keeps the elements in memory"));
    }
  }
  if (inputs[0]->cardinality == kInfinite) {
    return absl::InvalidArgumentError(
        "the input is infinite, so the cache would never be complete; put Cache before Repeat");
  }
  absl::Status elsewhere;
  VisitNodes(*inputs[0], [&](const Dataset::Node& node, int number) {
    if (!FindNodeKind(node.op)->elsewhere) return;
    elsewhere.Update(absl::InvalidArgumentError(absl::StrCat(
        "comes after ", NodeName(node, number), ", but a service delivers each element once, ",
        "so a position in the cache could not be restored; put Cache before that node")));
  });
  RETURN_IF_ERROR(elsewhere);
  return Inferred{inputs[0]->spec, inputs[0]->cardinality};
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildCache(const BuildSite& site) {
  const bool on_disk = OnDisk(site.node().attrs);
  if (on_disk && site.in_body()) {
    return absl::InvalidArgumentError(
        absl::StrCat(site.name(), ": is inside a function, where every element would have the ",
                     "same file; put it after FlatMap or Interleave, or omit the path"));
  }
  const auto make = [&] { return on_disk ? CacheOnDisk(site) : CacheInMemory(site); };
  if (site.kept() == nullptr) return std::make_unique<CacheIterator>(site, make());
  std::shared_ptr<void>& kept = site.kept()->Of(site.number());
  if (kept == nullptr) kept = std::shared_ptr<CacheStore>(make());
  return std::make_unique<CacheIterator>(site, std::static_pointer_cast<CacheStore>(kept));
}

class MemoryReader final : public CacheReader {
 public:
  explicit MemoryReader(std::shared_ptr<const CachedElements> whole) : whole_(std::move(whole)) {}

  absl::StatusOr<std::optional<Element>> Next() override {
    if (next_ == whole_->elements.size()) return std::nullopt;
    return whole_->elements[next_++].Share();
  }
  absl::StatusOr<int64_t> Skip(int64_t count) override {
    const int64_t passed = std::min(count, static_cast<int64_t>(whole_->elements.size() - next_));
    next_ += static_cast<size_t>(passed);
    return passed;
  }

 private:
  const std::shared_ptr<const CachedElements> whole_;
  size_t next_ = 0;
};

class MemoryStore final : public CacheStore {
 public:
  explicit MemoryStore(const BuildSite& site) : site_(site) {}

  absl::StatusOr<bool> IsWhole() override {
    if (whole_ == nullptr) whole_ = OfAllIterators();
    return whole_ != nullptr;
  }
  uint64_t seed() const override {
    return whole_ == nullptr ? demanded_.value_or(site_.seed()) : whole_->seed;
  }
  // A state contains the iterator's own seed, so the key is the difference from that seed. The key
  // is 0 unless the contents were made with the seed of another iterator.
  uint64_t key() const override { return seed() - site_.seed(); }
  absl::Status Demand(uint64_t key) override {
    demanded_ = site_.seed() + key;
    return absl::OkStatus();
  }
  absl::StatusOr<SplitFeed*> Begin() override {
    Discard();
    demanded_ = seed();
    return nullptr;
  }
  absl::Status Append(const Element& element) override {
    BufferCharge charge;
    if (!charge.TryAdd(site_, element, /*shared=*/true))
      return absl::ResourceExhaustedError(
          "the transforms of this worker or of this job leave no room for a cache; raise "
          "buffer_budget_bytes or job_buffer_budget_bytes");
    filling_.push_back(element.Share());
    charges_.push_back(std::move(charge));
    return absl::OkStatus();
  }
  absl::Status Commit() override {
    whole_ = std::make_shared<const CachedElements>(CachedElements{
        std::exchange(filling_, {}), seed(), site_.number(), std::exchange(charges_, {})});
    if (KeptByNode* kept = site_.kept_by_node()) {
      MutexLock lock(kept->mu);
      if (kept->cached == nullptr) kept->cached = whole_;
    }
    return absl::OkStatus();
  }
  void Discard() override {
    charges_.clear();
    filling_.clear();
  }
  std::unique_ptr<CacheReader> Read() override { return std::make_unique<MemoryReader>(whole_); }

 private:
  // Returns the contents that a different iterator over the dataset has stored, if this iterator
  // may use them.
  std::shared_ptr<const CachedElements> OfAllIterators() const {
    KeptByNode* kept = site_.kept_by_node();
    if (kept == nullptr) return nullptr;
    MutexLock lock(kept->mu);
    const std::shared_ptr<const CachedElements> cached = kept->cached;
    // Random draws depend on the node's number.
    if (cached == nullptr || cached->number != site_.number()) return nullptr;
    const bool any_seed = !demanded_.has_value() && !site_.in_first_pass();
    return any_seed || cached->seed == seed() ? cached : nullptr;
  }

  const BuildSite site_;
  std::vector<Element> filling_;
  std::vector<BufferCharge> charges_;  // of filling_
  std::optional<uint64_t> demanded_;   // seed
  std::shared_ptr<const CachedElements> whole_;
};

}  // namespace

std::unique_ptr<CacheStore> CacheInMemory(const BuildSite& site) {
  return std::make_unique<MemoryStore>(site);
}

NodeKind CacheKind() {
  return {.op = "Cache",
          .attrs = {{"path", AttrType::kString, false, false}},
          .infer = InferCache,
          .build = BuildCache};
}

Dataset Dataset::Cache() const {
  return DatasetOf(MakeNode("Cache", {}, {node_}));
}

Dataset Dataset::Cache(std::string path) const {
  return DatasetOf(MakeNode("Cache", {{"path", std::move(path)}}, {node_}));
}

}  // namespace penstock
