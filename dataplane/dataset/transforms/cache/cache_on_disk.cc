// SPDX-License-Identifier: Apache-2.0
// Stores elements in a file (cache_file.h), which another program or an earlier run may have
// written. Accepts() and HasTheseSplits() below decide whether the file may replace the input. The
// reasons are in dataset.h at Cache(path).
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/sync/mutex.h"
#include "dataplane/dataset/engine/build_site.h"
#include "dataplane/dataset/sources/formats/record_reader.h"
#include "dataplane/dataset/transforms/cache/cache_file.h"
#include "dataplane/dataset/transforms/cache/cache_store.h"
#include "dataplane/dataset/transforms/element_bytes.h"
#include "include/status_macros.h"
#include "penstock/fingerprint.h"

namespace penstock {
namespace {

// Forwards another feed's answers and remembers them. Any thread.
class RememberingFeed final : public SplitFeed {
 public:
  // Providers in the answers are counted from `first_provider`.
  RememberingFeed(SplitFeed& feed, int first_provider)
      : feed_(feed), first_provider_(first_provider) {}

  absl::StatusOr<std::optional<int64_t>> Get(int provider, int64_t repetition,
                                             int64_t ordinal) override {
    ASSIGN_OR_RETURN(const std::optional<int64_t> split, feed_.Get(provider, repetition, ordinal));
    MutexLock lock(mu_);
    answers_[{provider - first_provider_, repetition, ordinal}] = split.value_or(-1);
    return split;
  }

  std::vector<AnsweredSplit> Answers() const {
    MutexLock lock(mu_);
    std::vector<AnsweredSplit> answers;
    for (const auto& [question, split] : answers_) {
      const auto [provider, repetition, ordinal] = question;
      answers.push_back({provider, repetition, ordinal, split});
    }
    return answers;
  }

 private:
  SplitFeed& feed_;
  const int first_provider_;
  mutable Mutex mu_;
  std::map<std::tuple<int, int64_t, int64_t>, int64_t> answers_ GUARDED_BY(mu_);
};

class DiskReader final : public CacheReader {
 public:
  DiskReader(const BuildSite& site, const CacheFile& cache)
      : site_(site),
        records_(ReadTFRecords(BufferedFile(Shared(cache.file), cache.elements_begin))),
        name_(cache.file->name()),
        left_(cache.elements) {}

  absl::StatusOr<std::optional<Element>> Next() override {
    if (left_ == 0) return std::nullopt;
    --left_;
    const absl::StatusOr<std::optional<std::string_view>> record = records_->Next();
    if (!record.ok()) return Damaged(record.status());
    if (!record->has_value()) return Damaged(absl::DataLossError("elements are missing"));
    absl::StatusOr<Element> element =
        ElementFromBytes(site_.pool(), **record, site_.node().inputs[0]->spec);
    if (absl::IsDataLoss(element.status())) return Damaged(element.status());
    RETURN_IF_ERROR(element.status());
    return *std::move(element);
  }

  absl::StatusOr<int64_t> Skip(int64_t count) override {
    int64_t passed = 0;
    for (; passed < count && left_ > 0; ++passed, --left_) {
      const absl::StatusOr<bool> skipped = records_->Skip();
      if (!skipped.ok()) return Damaged(skipped.status());
    }
    return passed;
  }

 private:
  absl::Status Damaged(const absl::Status& why) {
    if (absl::IsDataLoss(why)) return DamagedCache(name_, why);
    return why;
  }

  BuildSite site_;
  std::unique_ptr<RecordReader> records_;
  const std::string name_;
  int64_t left_;
};

class DiskStore final : public CacheStore {
 public:
  explicit DiskStore(const BuildSite& site)
      : site_(site),
        files_(site.run().cache_files == nullptr ? LocalFiles() : *site.run().cache_files),
        disk_(site.run().cache_disk == nullptr ? LocalDisk() : *site.run().cache_disk),
        name_(site.attr<std::string>("path")),
        of_a_job_(site.run().partition != 0 || site.run().same_elsewhere),
        own_{.fingerprint = site.node().inputs[0]->fingerprint} {
    const uint64_t partition = site.partition();
    if (partition != 0) absl::StrAppend(&name_, ".partition-", partition);
    // Everything that the input's elements depend on.
    own_.key = Fingerprint(own_.fingerprint);
    for (uint64_t part : {site.seed(), partition, static_cast<uint64_t>(site.number())})
      own_.key = Fingerprint(part, own_.key);
    if (partition != 0 && site.run().hint_shards > 0) {
      for (int64_t part : {site.run().hint_shards, site.run().hint_index})
        own_.key = Fingerprint(static_cast<uint64_t>(part), own_.key);
    }
  }

  absl::StatusOr<bool> IsWhole() override {
    if (cache_.has_value()) return true;
    absl::StatusOr<CacheFile> found = OpenCacheFile(name_, files_);
    if (absl::IsNotFound(found.status())) return Missing("the file does not exist");
    RETURN_IF_ERROR(found.status());
    if (found->head.fingerprint != own_.fingerprint) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the cache ", name_, " belongs to a different dataset: the nodes before Cache have ",
          "changed; remove the file, or give Cache a different path"));
    }
    if (!Accepts(found->head.key)) return Missing("the file was made again with a different seed");
    ASSIGN_OR_RETURN(const bool same_splits, HasTheseSplits(found->splits));
    if (!same_splits) return false;
    cache_ = *std::move(found);
    return true;
  }

  uint64_t key() const override { return cache_.has_value() ? cache_->head.key : own_.key; }
  uint64_t seed() const override { return site_.seed(); }

  absl::Status Demand(uint64_t key) override {
    demanded_ = key;
    return absl::OkStatus();
  }

  absl::StatusOr<SplitFeed*> Begin() override {
    Discard();
    demanded_ = own_.key;
    ASSIGN_OR_RETURN(writer_, CacheFileWriter::Create(name_, own_, disk_));
    if (site_.splits() == nullptr) return nullptr;
    splits_ = std::make_unique<RememberingFeed>(*site_.splits(), site_.provider());
    return splits_.get();
  }

  absl::Status Append(const Element& element) override { return writer_->Append(BytesOf(element)); }

  absl::Status Commit() override {
    const absl::Status committed =
        writer_->Commit(splits_ == nullptr ? std::vector<AnsweredSplit>() : splits_->Answers());
    writer_.reset();
    return committed;
  }

  void Discard() override { writer_.reset(); }

  std::unique_ptr<CacheReader> Read() override {
    return std::make_unique<DiskReader>(site_, *cache_);
  }

 private:
  // In process, a cache may be used whatever seed it was made with. On a worker, a partition must
  // produce the same elements wherever it is placed, so only a cache of this run is used.
  bool Accepts(uint64_t key) const {
    if (demanded_.has_value()) return key == *demanded_;
    return !of_a_job_ || key == own_.key;
  }

  // Returns false if the contents can be made again; otherwise an error.
  absl::StatusOr<bool> Missing(std::string_view why) const {
    if (demanded_.value_or(own_.key) == own_.key) return false;
    return absl::FailedPreconditionError(
        absl::StrCat("the position was saved while reading the cache ", name_, ", but ",
                     std::string(why), "; put the earlier file back, or start from the beginning"));
  }

  // Returns whether this partition has the splits that the elements were made from. It requests
  // these splits, as the input would.
  absl::StatusOr<bool> HasTheseSplits(const std::vector<AnsweredSplit>& splits) const {
    SplitFeed* feed = site_.splits();
    if (feed == nullptr) return splits.empty();
    for (const AnsweredSplit& answer : splits) {
      ASSIGN_OR_RETURN(
          const std::optional<int64_t> split,
          feed->Get(site_.provider() + answer.provider, answer.repetition, answer.ordinal));
      if (split.value_or(-1) != answer.split) return false;
    }
    return true;
  }

  BuildSite site_;
  Files& files_;
  Disk& disk_;
  std::string name_;
  const bool of_a_job_;
  CacheFileHead own_;                 // head of the file that filling writes
  std::optional<uint64_t> demanded_;  // key that was read or written before
  std::optional<CacheFile> cache_;    // complete; stays open even if the file is renamed
  std::unique_ptr<CacheFileWriter> writer_;
  std::unique_ptr<RememberingFeed> splits_;
};

}  // namespace

std::unique_ptr<CacheStore> CacheOnDisk(const BuildSite& site) {
  return std::make_unique<DiskStore>(site);
}

}  // namespace penstock
