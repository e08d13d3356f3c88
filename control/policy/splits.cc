// SPDX-License-Identifier: Apache-2.0
#include "control/policy/splits.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "control/policy/mix.h"
#include "control/policy/sharding.h"
#include "control/protocol/invariant.h"
#include "include/status_macros.h"

namespace penstock::control {
namespace {

// Returns half the number of bits that numbers below `count` need, rounded up, but at least 1.
int HalfBits(int64_t count) {
  int bits = 1;
  while (bits < 63 && (int64_t{1} << bits) < count) ++bits;
  return (bits + 1) / 2;
}

// The maximum number of splits that are given out at a time.
constexpr int64_t kMostSplits = 1 << 12;

// The number of rounds of the Feistel network. It is enough for a permutation without visible
// order: according to Luby and Rackoff, four rounds with random functions make a permutation that
// cannot be distinguished from a random one.
constexpr int kRounds = 6;

}  // namespace

int64_t PermutedSplit(uint64_t key, int64_t count, int64_t k) {
  PENSTOCK_INVARIANT(k >= 0 && k < count);
  const int half = HalfBits(count);
  const uint64_t mask = (uint64_t{1} << half) - 1;
  uint64_t x = static_cast<uint64_t>(k);
  // A Feistel network permutes the numbers below a power of two. Applying the network again until
  // the result is below `count` always ends, and gives a permutation of [0, count).
  do {
    uint64_t left = x >> half;
    uint64_t right = x & mask;
    for (int round = 0; round < kRounds; ++round) {
      const uint64_t next = left ^ (Mix(key ^ Mix(right + (uint64_t{1} << 40) * round)) & mask);
      left = right;
      right = next;
    }
    x = (left << half) | right;
  } while (x >= static_cast<uint64_t>(count));
  return static_cast<int64_t>(x);
}

uint64_t PermutationKey(uint64_t seed, int64_t iteration_repetition, ProviderKey provider) {
  uint64_t key = Mix(seed);
  key = Mix(key ^ static_cast<uint64_t>(iteration_repetition));
  key = Mix(key ^ static_cast<uint64_t>(provider.repetition));
  return Mix(key ^ static_cast<uint64_t>(provider.provider));
}

int64_t SplitBlock(int64_t wanted, int64_t remaining, int64_t partitions) {
  const int64_t fair = remaining / (4 * std::max<int64_t>(partitions, 1));
  return std::min({std::max<int64_t>(wanted, 1), std::max<int64_t>(fair, 1), remaining});
}

namespace {

// Returns DataLoss for impossible counts, no matter what caused them, so that only this job ends.
absl::Status CheckGiven(int64_t given, int64_t count) {
  if (given >= 0 && given <= count) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(given, " splits were given out, but there are ", count,
                   "; the job's record is damaged: start the job again under a different run_id"));
}

}  // namespace

absl::StatusOr<SplitDecision> DecideSplits(const JobRecord& job, const IterationState& iteration,
                                           const SplitRequest& request) {
  const std::vector<SplitProvider>& plan = job.dataset->summary.plan;
  if (request.provider < 0 || static_cast<size_t>(request.provider) >= plan.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the dataset has ", plan.size(),
                     " split providers, but the request names number ", request.provider));
  }
  const ProviderKey key{request.provider, request.repetition};
  const PartitionSplits& splits = iteration.splits[request.of.partition.value() - 1];
  auto found = splits.given.find(key);
  const SplitRun none;
  const SplitRun& given = found == splits.given.end() ? none : found->second;
  const int64_t end = given.first_ordinal + static_cast<int64_t>(given.numbers.size());
  if (request.first_ordinal < given.first_ordinal || request.first_ordinal > end) {
    return absl::OutOfRangeError(absl::StrCat("split ", request.first_ordinal, " of provider ",
                                              request.provider, " was requested, expected ",
                                              given.first_ordinal, " to ", end));
  }

  const auto retired = splits.retired.find(key.provider);
  if (retired != splits.retired.end() && key.repetition < retired->second) {
    return absl::OutOfRangeError(
        absl::StrCat("a split of repetition ", key.repetition, " of provider ", request.provider,
                     " was requested, but repetitions below ", retired->second, " are retired"));
  }

  SplitDecision decision;
  decision.answer = {.provider = request.provider,
                     .repetition = request.repetition,
                     .first_ordinal = request.first_ordinal};
  if (request.first_ordinal < end || given.no_more) {  // a repeated request
    decision.answer.numbers.assign(
        given.numbers.begin() + (request.first_ordinal - given.first_ordinal), given.numbers.end());
    decision.answer.no_more = given.no_more;
    return decision;
  }

  if (key.repetition < iteration.PassesOverOf(request.provider)) {
    decision.answer.no_more = true;
    return decision;
  }

  const SplitProvider& provider = plan[static_cast<size_t>(request.provider)];
  const int64_t wanted = std::clamp<int64_t>(request.wanted, 1, kMostSplits);
  const uint64_t permutation =
      PermutationKey(provider.seed.value_or(job.seed), iteration.repetition, key);
  if (const ShardOf shard = iteration.ShardOfPartition(request.of.partition); shard.count > 0) {
    const int64_t of_shard = SplitsOfShard(provider.count, shard);
    RETURN_IF_ERROR(CheckGiven(end, of_shard));
    const int64_t block = std::min(wanted, of_shard - end);
    for (int64_t k = end; k < end + block; ++k) {
      const int64_t nth = provider.shuffled ? PermutedSplit(permutation, of_shard, k) : k;
      decision.answer.numbers.push_back(shard.index + nth * shard.count);
    }
    decision.answer.no_more = end + block == of_shard;
    decision.given = SplitsGiven{{iteration.id, request.of.partition}, decision.answer};
    return decision;
  }
  if (job.terms.deterministic) {  // in rotation, whatever each partition's speed
    const ShardOf shard{.count = job.terms.partitions,
                        .index = static_cast<int64_t>(request.of.partition.value()) - 1};
    const int64_t its = SplitsOfShard(provider.count, shard);
    RETURN_IF_ERROR(CheckGiven(end, its));
    const int64_t block = std::min(wanted, its - end);
    for (int64_t nth = end; nth < end + block; ++nth) {
      const int64_t k = shard.index + nth * shard.count;
      decision.answer.numbers.push_back(
          provider.shuffled ? PermutedSplit(permutation, provider.count, k) : k);
    }
    decision.answer.no_more = end + block == its;
    decision.given = SplitsGiven{{iteration.id, request.of.partition}, decision.answer};
    return decision;
  }
  auto handed = iteration.handed_out.find(key);
  const int64_t next = handed == iteration.handed_out.end() ? 0 : handed->second;
  RETURN_IF_ERROR(CheckGiven(next, provider.count));
  const int64_t remaining = provider.count - next;
  const int64_t block =
      SplitBlock(wanted, remaining, static_cast<int64_t>(iteration.splits.size()));
  for (int64_t k = next; k < next + block; ++k) {
    decision.answer.numbers.push_back(
        provider.shuffled ? PermutedSplit(permutation, provider.count, k) : k);
  }
  decision.answer.no_more = block == remaining;
  decision.given = SplitsGiven{{iteration.id, request.of.partition}, decision.answer};
  return decision;
}

}  // namespace penstock::control
