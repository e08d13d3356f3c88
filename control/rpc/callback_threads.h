// SPDX-License-Identifier: Apache-2.0
// For .cc files of gRPC clients and servers only.
#pragma once

namespace penstock::control {

// Keeps the threads on which gRPC runs callbacks, from the first call on for
// good; call it before a channel or a server is made. Otherwise gRPC joins them
// when the last channel or server that uses them goes, even on one of these
// threads, as happens when the end of a stream lets go of it: a double free
// (grpc 1.51, CallbackAlternativeCQ::Unref). Any thread.
void KeepCallbackThreads();

}  // namespace penstock::control
