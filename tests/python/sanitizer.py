# SPDX-License-Identifier: Apache-2.0
"""What tests cannot do under the address sanitizer."""
import os

# A child of fork inherits the locks of the sanitizer's allocator as other threads held them, for good: it may hang at
# its first allocation (GCC 12; about one in some hundred children did). The C library's allocator handles that.
MAY_FORK_BESIDE_THREADS = "asan" not in os.environ.get("LD_PRELOAD", "")
