// SPDX-License-Identifier: Apache-2.0
// Memory that hardware other than the CPU reads or writes directly: page-locked for a GPU's copy
// engine, mapped for a NIC. Registering is slow (it pins every page), so it is done once per
// segment and never in a steady state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

#pragma GCC visibility push(default)
namespace penstock {

// The registration of a piece of memory. The destructor undoes the registration, and must run while
// the memory is still mapped, and after hardware has stopped reading and writing it. Registrars
// derive from this class to keep a key or handle.
class Registration {
 public:
  virtual ~Registration();
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

  absl::Span<std::byte> memory() const { return memory_; }

 protected:
  // Counts the registration (CountRegistrations()).
  explicit Registration(absl::Span<std::byte> memory);

 private:
  const absl::Span<std::byte> memory_;
};

// One way to register memory: one registrar per kind of device, for all memory of the process.
class Registrar {
 public:
  virtual ~Registrar() = default;
  // Returns the kind of registration, for messages: "page-lock for cuda".
  virtual std::string_view name() const = 0;
  // Any thread; takes milliseconds per 10 MB. The memory must stay mapped until the Registration is
  // destroyed. ResourceExhausted if the process may lock no more memory, NotFound if the device is
  // missing, InvalidArgument if the memory cannot be registered.
  virtual absl::StatusOr<std::unique_ptr<Registration>> Register(absl::Span<std::byte> memory) = 0;
};

// Counts of the registrations in this process, over all registrars. A pool that registers its
// segments also counts these registrations in its PoolCounters::registrations.
struct RegistrationCounters {
  int64_t made = 0;   // since the process began; a steady state adds none
  int64_t bytes = 0;  // registered now
};
RegistrationCounters CountRegistrations();

}  // namespace penstock
#pragma GCC visibility pop
