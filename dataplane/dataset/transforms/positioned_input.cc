// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/transforms/positioned_input.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/sync/mutex.h"
#include "include/status_macros.h"
#include "penstock/check.h"

namespace penstock {
namespace {

constexpr int64_t kMostStateBytes = int64_t{16} << 20;
constexpr size_t kLeastRemembered = 64;  // positions
constexpr int64_t kMostStride = int64_t{1} << 60;

absl::StatusOr<StateWriter> StateOf(NodeIterator& input, uint64_t save_number) {
  StateWriter writer(save_number);
  RETURN_IF_ERROR(input.Save(writer));
  return writer;
}

}  // namespace

int64_t PositionedInput::Remembered::bytes() const {
  const size_t state_bytes = state.ok() ? state->bytes().size() : state.status().message().size();
  return static_cast<int64_t>(sizeof(Remembered) + state_bytes);
}

PositionedInput::Remembered PositionedInput::Here(uint64_t save_number) const {
  Remembered here = {pulled_, StateOf(*input_, save_number)};
  if (here.state.ok()) here.attached = here.state->TakeAttached();
  return here;
}

void PositionedInput::Remember() {
  if (pulled_ < remember_at_ || !exact_) return;
  RememberHere();
  MutexLock lock(mu_);
  if (__builtin_add_overflow(pulled_, stride_, &remember_at_))
    remember_at_ = std::numeric_limits<int64_t>::max();
}

void PositionedInput::RememberHere() {
  {
    MutexLock lock(mu_);
    if (!remembered_.empty() && remembered_.back().at == pulled_) return;
  }
  Keep(Here());
}

void PositionedInput::Keep(Remembered here) {
  MutexLock lock(mu_);
  if (!remembered_.empty() && remembered_.back().at == here.at) {
    state_bytes_ -= remembered_.back().bytes();
    remembered_.pop_back();
  }
  state_bytes_ += here.bytes();
  remembered_.push_back(std::move(here));
  if (state_bytes_ > kMostStateBytes && remembered_.size() >= kLeastRemembered) Thin();
}

void PositionedInput::Thin() {
  stride_ = std::min(2 * stride_, kMostStride);
  std::deque<Remembered> kept;
  for (size_t i = 0; i < remembered_.size(); ++i) {
    Remembered& one = remembered_[i];
    if (kept.empty() || one.at - kept.back().at >= stride_ || i + 1 == remembered_.size() ||
        one.at == saved_at_) {
      kept.push_back(std::move(one));
    } else {
      state_bytes_ -= one.bytes();
    }
  }
  remembered_ = std::move(kept);
}

template <class Read>
auto PositionedInput::Reading(Read read) {
  if (holds_ == Holds::kNothing) return read();
  PendingDeliveries pending;
  auto result = [&] {
    const PendingDeliveries::Scope scope(&pending);
    return read();
  }();
  if (pending.empty()) return result;
  MutexLock lock(mu_);
  pending_[pulled_].Append(pending);
  return result;
}

absl::StatusOr<std::optional<Element>> PositionedInput::Next() {
  Remember();
  absl::StatusOr<std::optional<Element>> next = Reading([this] { return input_->Next(); });
  if (next.ok() ? next->has_value() : !EndsReading(next.status())) {
    ++pulled_;
  } else if (next.ok() && exact_) {
    RememberHere();  // so that a restore after the last element reads nothing again
  }
  return next;
}

absl::StatusOr<bool> PositionedInput::NextInto(ResultSink& sink) {
  Remember();
  absl::StatusOr<bool> next = Reading([&] { return input_->NextInto(sink); });
  if (next.ok() ? *next : !EndsReading(next.status())) {
    ++pulled_;
  } else if (next.ok() && exact_) {
    RememberHere();
  }
  return next;
}

absl::StatusOr<bool> PositionedInput::NextViews(ElementViews& views) {
  Remember();
  absl::StatusOr<bool> next = Reading([&] { return input_->NextViews(views); });
  if (next.ok() ? *next : !EndsReading(next.status())) ++pulled_;
  return next;
}

absl::StatusOr<int64_t> PositionedInput::Skip(int64_t count) {
  Remember();
  absl::StatusOr<int64_t> skipped = Reading([&] { return input_->Skip(count); });
  if (skipped.ok()) {
    pulled_ += *skipped;
  } else {
    exact_ = false;  // somewhere in between; only remembered positions count
  }
  return skipped;
}

absl::Status PositionedInput::PassTo(int64_t n) {
  if (n < pulled_) return absl::DataLossError("a saved position is after an element that it needs");
  while (pulled_ < n) {
    Remember();
    const int64_t wanted = std::max<int64_t>(1, std::min(n, remember_at_) - pulled_);
    ASSIGN_OR_RETURN(const int64_t passed, Skip(wanted));
    if (passed < wanted) return absl::DataLossError("elements that were read no longer exist");
  }
  return absl::OkStatus();
}

void PositionedInput::Release(int64_t n) {
  MutexLock lock(mu_);
  while (remembered_.size() > 1 && remembered_[1].at <= n) {
    state_bytes_ -= remembered_.front().bytes();
    remembered_.pop_front();
  }
  if (remembered_.size() < kLeastRemembered / 2) stride_ = every_;
}

void PositionedInput::Gave(int64_t number) {
  if (holds_ == Holds::kNothing) return;
  PendingDeliveries gone;
  {
    MutexLock lock(mu_);
    const auto found = pending_.find(number);
    if (found == pending_.end()) return;
    gone = std::move(found->second);
    pending_.erase(found);
  }
  gone.GoOn();
}

void PositionedInput::GaveBelow(int64_t n) {
  if (holds_ == Holds::kNothing) return;
  PendingDeliveries gone;
  {
    MutexLock lock(mu_);
    if (static_cast<size_t>(n - gave_below_) > pending_.size()) {
      for (auto its = pending_.begin(); its != pending_.end();) {
        if (its->first >= n) {
          ++its;
          continue;
        }
        gone.Append(its->second);
        pending_.erase(its++);
      }
    } else {
      for (int64_t number = gave_below_; number < n; ++number) {
        const auto found = pending_.find(number);
        if (found == pending_.end()) continue;
        gone.Append(found->second);
        pending_.erase(found);
      }
    }
    gave_below_ = std::max(gave_below_, n);
  }
  gone.GoOn();
}

absl::Status PositionedInput::Write(StateWriter& writer, int64_t n, const Remembered& from) {
  RETURN_IF_ERROR(from.state.status());
  writer.WriteUnsigned(from.at);
  writer.WriteUnsigned(n - from.at);
  return writer.WriteKept(*from.state, from.attached);
}

absl::Status PositionedInput::Save(StateWriter& writer, int64_t n) {
  if (n != pulled_ || !exact_) return SaveBehind(writer, n);
  Remembered here = Here(writer.save_number());
  RETURN_IF_ERROR(Write(writer, n, here));
  // No later state may start before this one. This state may be committed, and the splits before it
  // forgotten.
  if (writer.save_number() != 0) here = Here();
  {
    MutexLock lock(mu_);
    saved_at_ = here.at;
  }
  Keep(std::move(here));
  return absl::OkStatus();
}

absl::Status PositionedInput::SaveBehind(StateWriter& writer, int64_t n) {
  MutexLock lock(mu_);
  auto from = remembered_.rbegin();
  while (from != remembered_.rend() && from->at > n) ++from;
  PENSTOCK_CHECK(from != remembered_.rend());
  saved_at_ = from->at;
  return Write(writer, n, *from);
}

absl::Status PositionedInput::Restore(StateReader& reader) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 2;
  ASSIGN_OR_RETURN(const uint64_t at, reader.ReadUnsigned());
  ASSIGN_OR_RETURN(const uint64_t behind, reader.ReadUnsigned());
  ASSIGN_OR_RETURN(const std::string_view state, reader.ReadString());
  if (at > kMost || behind > kMost)
    return absl::DataLossError("a position counts more elements than is possible");
  StateReader inner(state);
  RETURN_IF_ERROR(input_->Restore(inner));
  RETURN_IF_ERROR(inner.ExpectEnd());
  pulled_ = remember_at_ = static_cast<int64_t>(at);
  ASSIGN_OR_RETURN(const int64_t passed, Skip(static_cast<int64_t>(behind)));
  if (passed != static_cast<int64_t>(behind)) {
    return absl::DataLossError(absl::StrCat("a position is ", behind,
                                            " elements in, but there are only ", passed,
                                            "; has the input changed?"));
  }
  return absl::OkStatus();
}

}  // namespace penstock
