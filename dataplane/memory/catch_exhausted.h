// SPDX-License-Identifier: Apache-2.0
// Turns a failed allocation or thread start into an error: the error of one element, or an error
// that ends reading.
#pragma once

#include <new>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"

#pragma GCC visibility push(default)
namespace penstock {

// These two functions return a ResourceExhausted error that begins with `name` and contains the
// remedy. IsExhausted() is true for the error.
absl::Status MemoryRanOut(std::string_view name);
absl::Status ThreadsRanOut(std::string_view name, const std::system_error& error);
// Returns true if `status` is one of these errors. They end reading, because it is unknown how far
// the interrupted call of a node got, and because another process may succeed.
bool IsExhausted(const absl::Status& status);
// Returns `status` with IsExhausted() false. Use it for a call that concerns one element and leaves
// no partial state.
absl::Status OfElement(absl::Status status);
// Returns a ResourceExhausted `status` with IsExhausted() true, and other statuses unchanged. Use
// it for a node that does not know where its next element begins.
absl::Status OfReading(absl::Status status);

// Returns the result of `call`, a Status or StatusOr. If `call` throws because the process cannot
// allocate memory or start a thread, returns one of the errors above. The exception unwinds `call`,
// which releases its resources.
template <class Call>
std::invoke_result_t<Call> CatchExhausted(std::string_view name, Call&& call) {
  try {
    return std::forward<Call>(call)();
  } catch (const std::bad_alloc&) {
    return MemoryRanOut(name);
  } catch (const std::length_error&) {  // longer than any memory
    return MemoryRanOut(name);
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::resource_unavailable_try_again) throw;
    return ThreadsRanOut(name, error);
  }
}

}  // namespace penstock
#pragma GCC visibility pop
