// SPDX-License-Identifier: Apache-2.0
#include "control/proto/convert.h"

#include <limits>

namespace penstock::control {

void Fields(Encoder&, const IndexSet& value, wire::IndexSet& message) {
  Index end = 0;
  for (const IndexSet::Interval& interval : value.intervals()) {
    message.add_gaps_and_lengths(static_cast<uint64_t>(interval.begin - end));
    message.add_gaps_and_lengths(static_cast<uint64_t>(interval.end - interval.begin));
    end = interval.end;
  }
}

void Fields(Decoder& coder, IndexSet& value, const wire::IndexSet& message) {
  const int size = message.gaps_and_lengths_size();
  coder.Require(size % 2 == 0, "a set of indices ends between a gap and its length");
  uint64_t end = 0;
  constexpr auto kMost = static_cast<uint64_t>(kMostIndices);
  for (int i = 0; i + 1 < size; i += 2) {
    const uint64_t gap = message.gaps_and_lengths(i);
    const uint64_t length = message.gaps_and_lengths(i + 1);
    if (gap > kMost - end || length == 0 || length > kMost - end - gap) {
      return coder.Require(false, "interval ", i / 2,
                           " of a set of indices is empty or ends above ", kMost);
    }
    const uint64_t begin = end + gap;
    end = begin + length;
    value.Add(static_cast<Index>(begin), static_cast<Index>(end));
  }
}

void Fields(Encoder&, const PassesOver::value_type& value, wire::PassOver& message) {
  message.set_provider(value.first);
  message.set_below(value.second);
}

void Fields(Decoder& coder, PassesOver& value,
            const google::protobuf::RepeatedPtrField<wire::PassOver>& message) {
  for (const wire::PassOver& pass : message) {
    coder.Require(pass.provider() >= 0 && pass.below() >= 0 &&
                      pass.below() <= std::numeric_limits<int64_t>::max() / 2,
                  "provider ", pass.provider(), " is passed over below the invalid repetition ",
                  pass.below());
    value[pass.provider()] = pass.below();
  }
}

void Decoder::Get(const char* /*name*/, uint32_t from, ShardingPolicy& to) {
  if (from > static_cast<uint32_t>(ShardingPolicy::kHint)) {
    Fail(absl::InternalError(
        absl::StrCat("processing mode ", from, " does not specify a valid sharding policy")));
  }
  to = static_cast<ShardingPolicy>(from);
}

void CheckTerms(Decoder& coder, const JobTerms& terms) {
  constexpr int64_t kMostConsumers = 1 << 16;  // bounds the cost of a wrong number
  coder.Require(terms.num_consumers <= kMostConsumers, "num_consumers is ", terms.num_consumers,
                "; the maximum is ", kMostConsumers);
  coder.Require(terms.num_consumers >= 0 && terms.quota.max_bytes_in_flight >= 0 &&
                    terms.quota.max_permits >= 0 && terms.partitions >= 0,
                "the terms of a job contain a negative number");
  const absl::Status share = CheckShare(terms.share);
  coder.Require(share.ok(), std::string(share.message()));
  coder.Require(terms.group_size >= 1 && terms.num_consumers % terms.group_size == 0 &&
                    (terms.group_size == 1 || terms.coordinated()),
                terms.num_consumers, " consumers cannot be divided into groups of ",
                terms.group_size);
}

}  // namespace penstock::control
