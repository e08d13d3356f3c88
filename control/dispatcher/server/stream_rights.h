// SPDX-License-Identifier: Apache-2.0
// Ends the streams of principals whose rights change while the streams are open. A peer opens its
// stream again, and the dispatcher then decides by the rights that the peer has now.
#pragma once

#include <cstdint>
#include <map>

#include "control/dispatcher/server/authenticator.h"
#include "control/dispatcher/server/port_bounds.h"
#include "control/protocol/principal.h"
#include "control/sync/mutex.h"

namespace penstock::control {

// Who opened a stream, and by which content of the auth_file.
struct Opener {
  PeerCredentials credentials;
  Caller caller;
  uint64_t revision = 0;  // Authenticator::Revision() before the caller was identified
};

// Any thread may call any method.
class StreamRights {
 public:
  explicit StreamRights(Authenticator* authenticator) : authenticator_(authenticator) {}

  // The stream is open until Remove(). Meanwhile Sweep() may call its Refuse(), which must not call
  // the StreamRights.
  void Add(PortUser& stream, Opener opener);
  void Remove(PortUser& stream);
  // Refuses each stream whose opener the auth_file does not contain any more (Unauthenticated) or
  // describes differently (PermissionDenied). Called several times a second; looks at the file at
  // most once in kAuthFileInterval.
  void Sweep();

 private:
  absl::Status Check(const Opener& opener);

  Authenticator* const authenticator_;
  Mutex mu_;
  std::map<PortUser*, Opener> streams_ GUARDED_BY(mu_);
};

}  // namespace penstock::control
