// SPDX-License-Identifier: Apache-2.0
#include "tests/dataplane/dataset/suite.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/sync/mutex.h"
#include "dataplane/dataset/sources/formats/tfrecord_writer.h"
#include "penstock/check.h"

namespace penstock::suite {
namespace {

std::string Values(const Tensor& tensor, int64_t from, int64_t count) {
  std::string out;
  if (tensor.dtype() == kString) {
    for (int64_t i = from; i < from + count; ++i) {
      const std::string_view value = tensor.string(i);
      absl::StrAppend(&out, value.size(), ":", std::string(value));
    }
    return out;
  }
  const size_t size = SizeOf(tensor.dtype());
  return std::string(static_cast<const char*>(tensor.raw()) + from * size, count * size);
}

std::string Values(absl::Span<const int64_t> values) {
  std::string out = "|";
  for (int64_t value : values) absl::StrAppend(&out, value, ",");
  return out;
}

class RandomSplitFeed final : public SplitFeed {
 public:
  RandomSplitFeed(const SplitPlan& plan, uint64_t seed, int partitions, int partition)
      : plan_(plan), seed_(seed), partitions_(partitions), partition_(partition) {}

  absl::StatusOr<std::optional<int64_t>> Get(int provider, int64_t repetition,
                                             int64_t ordinal) override {
    MutexLock lock(mu_);
    const auto [its, first] = splits_.try_emplace({provider, repetition});
    if (first) its->second = Assign(provider, repetition);
    if (ordinal >= static_cast<int64_t>(its->second.size())) return std::nullopt;
    return its->second[static_cast<size_t>(ordinal)];
  }

 private:
  std::vector<int64_t> Assign(int provider, int64_t repetition) const {
    std::seed_seq seeds{seed_, static_cast<uint64_t>(provider), static_cast<uint64_t>(repetition)};
    std::mt19937_64 random(seeds);
    std::vector<int64_t> splits;
    for (int64_t n = 0; n < plan_.providers.at(provider).count; ++n) splits.push_back(n);
    std::shuffle(splits.begin(), splits.end(), random);
    std::erase_if(splits, [&](int64_t) {
      return static_cast<int>(random() % partitions_) + 1 != partition_;
    });
    return splits;
  }

  const SplitPlan plan_;
  const uint64_t seed_;
  const int partitions_;
  const int partition_;
  Mutex mu_;
  std::map<std::pair<int, int64_t>, std::vector<int64_t>> splits_ GUARDED_BY(mu_);  // by repetition
};

}  // namespace

FakeFiles& TestFiles() {
  static FakeFiles* const files = [] {
    auto* made = new FakeFiles;
    const std::pair<std::string, int> sizes[] = {{"a", 5}, {"b", 0}, {"c", 8}};
    for (const auto& [name, count] : sizes) {
      std::string records, lines;
      for (int i = 0; i < count; ++i) {
        records += TFRecordBytes(absl::StrCat(name, i));
        lines += absl::StrCat(name, i, i % 2 == 0 ? "\n" : "\r\n");
      }
      made->Put("/data/" + name + ".tfrecord", records);
      made->Put("/data/" + name + ".txt", lines);
    }
    return made;
  }();
  return *files;
}

std::string Contents(const Element& element) {
  std::string out;
  for (size_t i = 0; i < element.size(); ++i) {
    const Tensor tensor = element.tensor(i);
    absl::StrAppend(&out, static_cast<int>(tensor.dtype()), " ");
    if (!tensor.present()) continue;
    absl::StrAppend(&out, Values(tensor.dims()), Values(tensor, 0, tensor.element_count()));
    for (int level = 0; level < tensor.ragged_rank(); ++level)
      absl::StrAppend(&out, Values(tensor.row_splits(level)));
    if (tensor.kind() == TensorSpec::Kind::kSparse)
      absl::StrAppend(&out, Values(tensor.indices()), Values(tensor.dense_shape()));
  }
  return out;
}

std::vector<std::string> Rows(const Element& batch) {
  PENSTOCK_CHECK(batch.size() > 0);
  const int64_t rows = batch.tensor(0).dim(0);
  std::vector<std::string> out(rows);
  for (size_t i = 0; i < batch.size(); ++i) {
    const Tensor tensor = batch.tensor(i);
    PENSTOCK_CHECK(tensor.kind() == TensorSpec::Kind::kDense && tensor.dim(0) == rows);
    const int64_t row = rows == 0 ? 0 : tensor.element_count() / rows;
    for (int64_t n = 0; n < rows; ++n) out[n] += Values(tensor, n * row, row) + "/";
  }
  return out;
}

std::unique_ptr<SplitFeed> AssignSplitsAtRandom(const SplitPlan& plan, uint64_t seed,
                                                int partitions, int partition) {
  return std::make_unique<RandomSplitFeed>(plan, seed, partitions, partition);
}

// Gives no split before the first that is needed.
class RetiringFeed final : public SplitFeed {
 public:
  explicit RetiringFeed(std::unique_ptr<SplitFeed> feed) : feed_(std::move(feed)) {}

  absl::StatusOr<std::optional<int64_t>> Get(int provider, int64_t repetition,
                                             int64_t ordinal) override {
    const auto first = needed_.find(provider);
    if (first != needed_.end() && std::pair(repetition, ordinal) < first->second) {
      return absl::NotFoundError(absl::StrCat("split ", ordinal, " of provider ", provider,
                                              ", repetition ", repetition, ", is retired"));
    }
    return feed_->Get(provider, repetition, ordinal);
  }
  void Retire(StateWriter::SplitsNeeded needed) { needed_ = std::move(needed); }

 private:
  const std::unique_ptr<SplitFeed> feed_;
  StateWriter::SplitsNeeded needed_;
};

Reading::Reading(const Dataset& dataset, const Options& options) : dataset_(dataset) {
  context_.seed = options.seed;
  context_.threads = options.threads;
  context_.files = &TestFiles();
  context_.stop = stop_.get_token();
  context_.same_elsewhere = options.same_elsewhere;
  if (options.plan != nullptr) {
    feed_ = std::make_unique<RetiringFeed>(AssignSplitsAtRandom(
        *options.plan, options.split_seed, options.partitions, options.partition));
    context_.plan = options.plan;
    context_.splits = feed_.get();
    context_.partition = options.partition;
  }
  absl::StatusOr<std::unique_ptr<NodeIterator>> built = BuildIterator(dataset_, context_);
  if (!built.ok()) {
    ADD_FAILURE() << built.status();
    PENSTOCK_CHECK(built.ok());
  }
  iterator_ = *std::move(built);
}

Reading::~Reading() = default;

std::string Reading::Next() {
  absl::StatusOr<std::optional<Element>> element = iterator_->Next();
  if (!element.ok()) return "error: " + element.status().ToString();
  if (!element->has_value()) return "end";
  if (absl::Status admits = dataset_.element_spec().Admits((*element)->spec()); !admits.ok())
    return "not of the dataset's spec: " + admits.ToString();
  return Contents(**element);
}

std::vector<std::string> Reading::Rest(int64_t limit) {
  std::vector<std::string> elements;
  while (static_cast<int64_t>(elements.size()) < limit) {
    std::string next = Next();
    if (next == "end") break;
    elements.push_back(std::move(next));
  }
  return elements;
}

std::vector<std::string> Reading::Parts(const Case& c) {
  if (c.parts == nullptr) return Rest(c.limit);
  std::vector<std::string> all;
  for (int64_t i = 0; i < c.limit; ++i) {
    absl::StatusOr<std::optional<Element>> element = iterator_->Next();
    if (!element.ok()) {
      all.push_back("error: " + element.status().ToString());
      continue;
    }
    if (!element->has_value()) break;
    for (std::string& part : c.parts(**element)) all.push_back(std::move(part));
  }
  return all;
}

int64_t Reading::Skip(int64_t count) {
  absl::StatusOr<int64_t> passed = iterator_->Skip(count);
  EXPECT_TRUE(passed.ok()) << passed.status();
  return passed.value_or(-1);
}

std::string Reading::Save() {
  absl::StatusOr<std::string> bytes = SaveIterator(*iterator_, dataset_);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return bytes.value_or("");
}

absl::Status Reading::Restore(const std::string& bytes) {
  return RestoreIterator(*iterator_, dataset_, bytes);
}

ReplayPoint Reading::SaveForReplay() {
  absl::StatusOr<ReplayPoint> point = penstock::SaveForReplay(*iterator_, dataset_);
  EXPECT_TRUE(point.ok()) << point.status();
  return point.value_or(ReplayPoint());
}

absl::Status Reading::Restore(const ReplayPoint& point) {
  if (feed_ != nullptr) feed_->Retire(point.splits);
  return Restore(point.position);
}

}  // namespace penstock::suite
