// SPDX-License-Identifier: Apache-2.0
#include "control/protocol/positions.h"

#include <algorithm>
#include <utility>

#include "control/protocol/partial_rows.h"

namespace penstock::protocol {
namespace {

// Returns x in [0, modulus) with number * x = 1, modulo `modulus`. REQUIRES: `number` and `modulus`
// have no common divisor.
int64_t InverseOf(int64_t number, int64_t modulus) {
  // Euclid's algorithm: always rest = factor * number and last = before * number, modulo `modulus`.
  int64_t rest = number % modulus, last = modulus;
  int64_t factor = 1, before = 0;
  while (rest > 1) {
    const int64_t times = last / rest;
    last = std::exchange(rest, last - times * rest);
    before = std::exchange(factor, before - times * factor);
  }
  return (factor % modulus + modulus) % modulus;
}

}  // namespace

// Reduces before it multiplies, because an untrusted index may be so large that the product
// overflows.
int64_t Positions::ConsumerOf(PartitionId partition, Index index) const {
  const int64_t at = (index % consumers) * (partitions % consumers) +
                     (static_cast<Index>(partition.value()) - 1) % consumers - first % consumers;
  return (at % consumers + consumers) % consumers;
}

// Solves index * K = consumer - ConsumerOf(partition, 0), modulo C.
std::optional<Index> Positions::OffsetOf(PartitionId partition, int64_t consumer) const {
  if (consumer < 0 || consumer >= consumers) return std::nullopt;
  const int64_t ahead = (consumer - ConsumerOf(partition, 0) + consumers) % consumers;
  const int64_t common = consumers / stride();
  if (ahead % common != 0) return std::nullopt;
  return ahead / common * InverseOf(partitions / common, stride()) % stride();
}

IndexSet Positions::RowsIn(const IndexSet& indices, PartitionId partition, int64_t consumer) const {
  IndexSet rows;
  const std::optional<Index> offset = OffsetOf(partition, consumer);
  if (!offset) return rows;
  const int64_t its = stride();
  // Returns the number of rows with an index below `index`.
  const auto below = [&](Index index) {
    return std::max<int64_t>(0, (index - *offset + its - 1) / its);
  };
  for (const IndexSet::Interval& interval : indices.intervals()) {
    if (below(interval.begin) < below(interval.end)) {
      rows.Add(below(interval.begin), below(interval.end));
    }
  }
  return rows;
}

void RowUnion::Add(int64_t consumer, const IndexSet& rows) {
  if (rows.empty()) return;
  const std::optional<Index> offset = positions_.OffsetOf(partition_, consumer);
  if (!offset) return;
  rows_.resize(static_cast<size_t>(positions_.stride()));
  rows_[static_cast<size_t>(*offset)].Add(rows);
}

IndexSet RowUnion::Indices() && {
  IndexSet indices;
  if (rows_.empty()) return indices;
  // Most rows are rows that all consumers have. These are added as whole intervals. All other rows
  // are added one by one.
  IndexSet everybodys = rows_.front();
  for (const IndexSet& rows : rows_) {
    IndexSet lacking = everybodys;
    lacking.Remove(rows);
    everybodys.Remove(lacking);
  }
  const int64_t stride = positions_.stride();
  for (const IndexSet::Interval& rows : everybodys.intervals()) {
    indices.Add(rows.begin * stride, rows.end * stride);
  }
  for (size_t offset = 0; offset < rows_.size(); ++offset) {
    IndexSet others = std::move(rows_[offset]);
    others.Remove(everybodys);
    indices.Add(IndicesOfPartialRows(
        others, [&](int64_t row) { return row * stride + static_cast<Index>(offset); }));
  }
  return indices;
}

}  // namespace penstock::protocol
