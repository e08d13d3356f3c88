# SPDX-License-Identifier: Apache-2.0
"""A dispatcher that leads, and the standby that waits for its place."""
import etcds
import waiting


class Dispatchers:
    """The two dispatchers of a fleet, whose address it has afterwards; the fleet's first one leads.

    With the fleet's `network` (tools/soak/network.py) the standby's host is "standby".
    """

    def __init__(self, fleet):
        self.fleet, self.leader = fleet, fleet.dispatcher
        network = fleet.network
        self.ports = [fleet.port, fleet.port if network else etcds.free_ports(1)[0]]  # of the leader, and of the standby
        self.standby = None
        self.add_standby()
        host = network.address("standby") if network else "127.0.0.1"
        fleet.service += f",{host}:{self.ports[1]}"

    def add_standby(self):
        """Starts a standby at the address of the one before, or of the leader that has ended."""
        self.fleet.port = self.ports[1]
        self.fleet.start_dispatcher(host="standby")
        self.standby = self.fleet.dispatcher
        waiting.await_words(self.standby, " standby leader=")

    def await_takeover(self):
        """Returns when the standby leads. `leader` remains the one before, until replace_leader()."""
        self.standby.hear_match("ready at", seconds=60)
        self.ports.reverse()

    def replace_leader(self):
        """The standby leads now; starts another at the address of the leader that has ended."""
        self.leader = self.standby
        self.add_standby()
