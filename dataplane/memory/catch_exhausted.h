// SPDX-License-Identifier: Apache-2.0
// Memory and threads that a process has no more of, as an error where an element would stand, or
// as one that ends reading.
#pragma once

#include <new>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"

namespace penstock {

// ResourceExhausted that begins with `name` and says what to do; IsExhausted().
absl::Status MemoryRanOut(std::string_view name);
absl::Status ThreadsRanOut(std::string_view name, const std::system_error& error);
// Whether it is one of these, which ends reading: where a node's call was broken off nobody knows
// how far it had come, and another process may come further.
bool IsExhausted(const absl::Status& status);
// The same, no longer IsExhausted(): of a call for one element that leaves nothing behind.
absl::Status OfElement(absl::Status status);
// A ResourceExhausted that is IsExhausted() from now on, others as they are: of a node that cannot
// say where its next element begins.
absl::Status OfReading(absl::Status status);

// What `call` returns, a Status or StatusOr; one of the above where it throws since the process
// has no memory for what it wants, or no thread. What it was about is let go of, as by an error.
template <class Call>
std::invoke_result_t<Call> CatchExhausted(std::string_view name, Call&& call) {
  try {
    return std::forward<Call>(call)();
  } catch (const std::bad_alloc&) {
    return MemoryRanOut(name);
  } catch (const std::length_error&) {  // more than any memory has
    return MemoryRanOut(name);
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::resource_unavailable_try_again) throw;
    return ThreadsRanOut(name, error);
  }
}

}  // namespace penstock
