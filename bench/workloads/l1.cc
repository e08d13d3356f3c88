// SPDX-License-Identifier: Apache-2.0
// L1: batches of 8 windows of 8,193 tokens (int32) from memory-mapped files, for a trainer that
// computes on each. The figure is the time inside Next(). A language model of 8,192 tokens a
// sequence takes 250 ms for such a batch. The trainer here takes a sixteenth of that, so that a
// measured window holds more than a hundred batches. L1-0: L1 without computing, compared with one
// core that copies the windows.
#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/limits/limits.h"
#include "bench/limits/slot_limit.h"
#include "bench/workload.h"
#include "bench/workloads/files.h"
#include "include/status_macros.h"
#include "penstock/sources.h"

namespace penstock::bench {
namespace {

constexpr int64_t kLength = 8192;  // tokens; each window also has the next one
constexpr int64_t kWindow = kLength + 1;
constexpr int64_t kWindowBatch = 8;  // windows
constexpr int64_t kWindowBatchBytes = kWindowBatch * kWindow * 4;
constexpr double kWindowStep = 0.25 / 16;  // seconds
constexpr int64_t kShards = 8;

// The files. Tokens are numbered over all files, so that each window's tokens are known.
struct Shards {
  int64_t windows;  // of one file

  explicit Shards(const Setup& setup)
      : windows(std::max<int64_t>(kWindowBatch, setup.source_bytes / kShards / (kLength * 4))) {}

  int64_t tokens() const { return windows * kLength + 1; }  // of one file
  int64_t all() const { return kShards * windows; }
  int32_t FirstTokenOf(int64_t window) const {
    return static_cast<int32_t>(window / windows * tokens() + window % windows * kLength);
  }
};

std::string TokenFile(const std::string& folder, int64_t shard) {
  return absl::StrFormat("%s/%02d.bin", folder, shard);
}

// Checks that these are the tokens of batch `number`. Reads all of them.
absl::Status CheckWindows(const Shards& shards, std::span<const int32_t> tokens, uint64_t number) {
  int32_t wrong = static_cast<int64_t>(tokens.size()) == kWindowBatch * kWindow ? 0 : 1;
  for (int64_t row = 0; row < kWindowBatch && wrong == 0; ++row) {
    const int32_t first =
        shards.FirstTokenOf((static_cast<int64_t>(number) * kWindowBatch + row) % shards.all());
    const int32_t* window = tokens.data() + row * kWindow;
    for (int32_t i = 0; i < kWindow; ++i) wrong |= window[i] ^ (first + i);
  }
  if (wrong == 0) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("expected the tokens of batch ", number));
}

class TokenReader final : public Reader {
 public:
  explicit TokenReader(const Shards& shards) : shards_(shards) {}

  absl::StatusOr<int64_t> Take(const Element& element) override {
    const absl::Span<const int32_t> tokens = element.tensor(0).data<int32_t>();
    uint64_t& due = due_[element.identity().partition];
    RETURN_IF_ERROR(CheckWindows(shards_, {tokens.data(), tokens.size()}, due));
    ++due;
    return static_cast<int64_t>(tokens.size() * sizeof(int32_t));
  }

 private:
  const Shards shards_;
  std::map<PartitionId, uint64_t> due_;
};

class CopyWork {
 public:
  CopyWork(const Shards& shards, std::vector<MappedFile> files)
      : shards_(shards), files_(std::move(files)) {}

  absl::Status Fill(std::span<std::byte> slot, uint64_t number) {
    for (int64_t row = 0; row < kWindowBatch; ++row) {
      const int64_t window = (static_cast<int64_t>(number) * kWindowBatch + row) % shards_.all();
      const auto* tokens = files_[window / shards_.windows].as<int32_t>();
      std::memcpy(slot.data() + row * kWindow * 4, tokens + window % shards_.windows * kLength,
                  kWindow * 4);
    }
    return absl::OkStatus();
  }
  absl::Status Take(std::span<const std::byte> slot, uint64_t number) {
    return CheckWindows(shards_, {reinterpret_cast<const int32_t*>(slot.data()), slot.size() / 4},
                        number);
  }

 private:
  Shards shards_;
  std::vector<MappedFile> files_;
};

class Tokens final : public Workload {
 public:
  explicit Tokens(bool computes) : computes_(computes) {}

  std::string_view name() const override { return computes_ ? "L1" : "L1-0"; }
  std::string_view question() const override {
    return computes_ ? "8 windows of 8,193 tokens for a trainer that computes 15.6 ms on them"
                     : "L1 for a trainer that computes nothing";
  }
  std::vector<int64_t> sizes() const override { return {kWindowBatchBytes}; }
  bool sized() const override { return false; }
  double step_s() const override { return computes_ ? kWindowStep : 0; }

  bool has_files() const override { return true; }
  absl::Status Prepare(const Setup& setup) const override {
    const Shards shards(setup);
    std::vector<int32_t> tokens(shards.tokens());
    for (int64_t shard = 0; shard < kShards; ++shard) {
      std::iota(tokens.begin(), tokens.end(), shards.FirstTokenOf(shard * shards.windows));
      RETURN_IF_ERROR(
          WriteFile(TokenFile(setup.scratch, shard), {BytesOf(std::span<const int32_t>(tokens))}));
    }
    return absl::OkStatus();
  }
  Dataset MakeDataset(const Setup& setup) const override {
    std::vector<std::string> files;
    for (int64_t shard = 0; shard < kShards; ++shard) {
      files.push_back(TokenFile(setup.scratch, shard));
    }
    return Dataset::TokenShards(files, kLength, {.dtype = kInt32, .with_next_token = true})
        .Repeat()
        .Batch(kWindowBatch, {.drop_remainder = true});
  }
  std::unique_ptr<Reader> MakeReader(const Setup& setup) const override {
    return std::make_unique<TokenReader>(Shards(setup));
  }
  absl::StatusOr<std::unique_ptr<Side>> MakeLimit(const Setup& setup) const override {
    if (computes_) return MakeBar("computes 15.6 ms", 1 / kWindowStep, setup.element_bytes);
    std::vector<MappedFile> files;
    for (int64_t shard = 0; shard < kShards; ++shard) {
      ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(TokenFile(setup.scratch, shard)));
      files.push_back(std::move(file));
    }
    return std::make_unique<SlotLimit<CopyWork>>("copy loop", kWindowBatchBytes,
                                                 CopyWork(Shards(setup), std::move(files)));
  }

 private:
  const bool computes_;
};

}  // namespace

const Workload& L1() {
  static const Tokens& l1 = *new Tokens(true);
  return l1;
}

const Workload& L1Zero() {
  static const Tokens& l1 = *new Tokens(false);
  return l1;
}

}  // namespace penstock::bench
