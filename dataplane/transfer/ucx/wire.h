// SPDX-License-Identifier: Apache-2.0
// The messages between two UCX worker objects. Every message is an active message with a head of 32
// bytes; little endian:
//
//   u32 'PSU1' | u32 kind | u64 dialler | u64 link | u64 sequence
//
// `dialler` is the random number of the client's worker object and `link` counts its links; these
// two numbers together name the link, in both directions. `sequence` counts the messages of a link
// in one direction from 0; the receiver puts them in order.
//
//   kind 0          a message of ../message.h follows: after the head if it fits
//                   there, else as the data
//   kind 17, 18     an element, a frame: the data is its block
//   kind 60         an element in two pieces: its block's head follows, the data is its body, so
//                   that the head is on the host before the receiver chooses the body's place.
//                   Only to a client whose greeting asks for it. Any element may still arrive in
//                   one piece, as all do from workers that do not know this kind
//   kind 2          the client ends the link because of an error; nothing follows
//   kind 1          a greeting, the client's first message; the data is
//                   u64 connection | u64 bytes | that many bytes of the client's
//                   worker address | hello
//                   u32 flags may follow the head: bit 0, elements in two pieces
//
// `connection` counts the endpoints that the dialler has made to this worker object: all links of
// one connection end together.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace penstock::transfer::ucx {

struct Head {
  static constexpr uint32_t kMagic = 0x31555350;  // "PSU1"
  static constexpr uint32_t kText = 0;
  static constexpr uint32_t kGreeting = 1;
  static constexpr uint32_t kBroken = 2;
  static constexpr uint32_t kTwoPieces = 60;

  uint32_t magic = kMagic;
  uint32_t kind = kText;
  uint64_t dialler = 0;
  uint64_t link = 0;
  uint64_t sequence = 0;
};
static_assert(sizeof(Head) == 32);

// The maximum length in bytes of text that follows the head; in a steady state all text fits.
inline constexpr size_t kMaxInlineText = 96;

// Data of at least this size is announced, and the receiver fetches it into a slot. Smaller data
// arrives with the head and is copied once.
inline constexpr size_t kAnnounceFrom = 64 << 10;

// A hello may list many holdings.
inline constexpr size_t kMaxGreetingBytes = 1 << 20;

struct Greeting {
  uint64_t connection = 0;
  std::string_view address;  // of the client's worker object
  std::string_view hello;    // message.h
};
inline constexpr uint32_t kWantsTwoPieces = 1 << 0;

inline std::string Encode(const Greeting& greeting) {
  const uint64_t numbers[] = {greeting.connection, greeting.address.size()};
  std::string bytes(reinterpret_cast<const char*>(numbers), sizeof numbers);
  bytes += greeting.address;
  bytes += greeting.hello;
  return bytes;
}

// Returns nullopt if the bytes are not a greeting.
inline std::optional<Greeting> DecodeGreeting(std::string_view bytes) {
  uint64_t numbers[2];
  if (bytes.size() < sizeof numbers) return std::nullopt;
  std::memcpy(numbers, bytes.data(), sizeof numbers);
  bytes.remove_prefix(sizeof numbers);
  if (numbers[1] > bytes.size()) return std::nullopt;
  return Greeting{.connection = numbers[0],
                  .address = bytes.substr(0, numbers[1]),
                  .hello = bytes.substr(numbers[1])};
}

}  // namespace penstock::transfer::ucx
