// SPDX-License-Identifier: Apache-2.0
// Memory that something beside the processor reads or writes by itself: page-locked
// for a GPU's copy engine, mapped for a NIC. Registering is slow (it pins every
// page), so it is done once per segment and never in a steady state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace penstock {

// That a piece of memory is registered; undone when destroyed, which must be while
// the memory is still mapped and nothing reads or writes it that way any more.
// Who registers derives from it to keep what it got (a key, a handle).
class Registration {
 public:
  virtual ~Registration();
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

  absl::Span<std::byte> memory() const { return memory_; }

 protected:
  // Counts it (CountRegistrations).
  explicit Registration(absl::Span<std::byte> memory);

 private:
  const absl::Span<std::byte> memory_;
};

// One way to register: one per kind of device, for all memory of the process.
class Registrar {
 public:
  virtual ~Registrar() = default;
  // What it does, for messages: "page-lock for cuda".
  virtual std::string_view name() const = 0;
  // Any thread; takes milliseconds per 10 MB. The memory must stay mapped until the
  // Registration is gone. ResourceExhausted if the process may lock no more, NotFound
  // without the device, InvalidArgument if the memory is none that can be registered.
  virtual absl::StatusOr<std::unique_ptr<Registration>> Register(absl::Span<std::byte> memory) = 0;
};

// Of this process, by all registrars. A pool that registers its segments also counts
// them in its PoolCounters::registrations.
struct RegistrationCounters {
  int64_t made = 0;   // since the process began; a steady state adds none
  int64_t bytes = 0;  // registered now
};
RegistrationCounters CountRegistrations();

}  // namespace penstock
