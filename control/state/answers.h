// SPDX-License-Identifier: Apache-2.0
// The latest answers to requests, so that a repeated request gets the answer that the first one
// got. A value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "control/protocol/requests.h"
#include "penstock/ids.h"

namespace penstock::control {

// The answer to a request for a job, without the job's data, which are in its record.
struct AnsweredJob {
  JobId job;
  bool existed = false;
  friend bool operator==(const AnsweredJob&, const AnsweredJob&) = default;
};

using Answer = std::variant<RegisterDatasetAnswer, AnsweredJob>;

struct AnswerRecord {
  RequestId request;
  Answer answer;
  friend bool operator==(const AnswerRecord&, const AnswerRecord&) = default;
};

// The number of answers to requests that are remembered, over all peers. It suffices because a
// repeated request arrives within a peer's timeout, and no fleet makes more requests than this in
// that time.
inline constexpr size_t kAnswersKept = 4096;

// The last kAnswersKept answers, oldest first.
class Answers {
 public:
  Answers() = default;
  explicit Answers(std::vector<AnswerRecord> records) {
    for (AnswerRecord& record : records) Add(std::move(record));
  }

  // Forgets the oldest answer if there are too many.
  void Add(AnswerRecord record) {
    if (records_.size() == kAnswersKept) {
      numbers_.erase(numbers_.lower_bound(records_.front().request));
      records_.pop_front();
      ++first_;
    }
    numbers_.emplace(record.request, first_ + records_.size());
    records_.push_back(std::move(record));
  }
  // Returns the oldest answer to the request; null if there is none.
  const Answer* Find(const RequestId& request) const {
    const auto number = numbers_.lower_bound(request);
    if (number == numbers_.end() || number->first != request) return nullptr;
    return &records_[number->second - first_].answer;
  }

  size_t size() const { return records_.size(); }
  auto begin() const { return records_.begin(); }
  auto end() const { return records_.end(); }
  friend bool operator==(const Answers& a, const Answers& b) { return a.records_ == b.records_; }

 private:
  std::deque<AnswerRecord> records_;
  uint64_t first_ = 0;  // the number of the oldest record; each record has the next number
  // The numbers of the records. Equal requests are in the order of their records.
  std::multimap<RequestId, uint64_t> numbers_;
};

}  // namespace penstock::control
