// SPDX-License-Identifier: Apache-2.0
// For .cc files of gRPC clients and servers only.
#pragma once

namespace penstock::control {

// Works around two faults of gRPC and of what it is built on. Call it before a channel or a server
// is made. Any thread.
//
// - It keeps the threads on which gRPC runs callbacks, from the first call on for good. Otherwise
//   gRPC joins them when the last channel or server that uses them goes, even on one of these
//   threads, as happens when the end of a stream lets go of it: a double free (grpc 1.51,
//   CallbackAlternativeCQ::Unref).
// - It ends Abseil's search for deadlocks, which is on where Abseil was built without NDEBUG, as
//   Debian's is. That notes each of gRPC's mutexes at its first lock, and keeps the notes of those
//   that gRPC frees without their destructors: processes grow with each connection and call. All
//   locks pass one spinlock there, too.
void PrepareGrpc();

}  // namespace penstock::control
