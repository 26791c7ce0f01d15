"""Forwards the datagrams of one client: relay.py KIND PORT TARGET TARGET_PORT

reordered      the first two datagrams of the client change places
late           the first datagram of the client arrives after the third one
twice          all datagrams of the first 50 milliseconds arrive twice
moved-early    the port towards the server changes after the first answer
moved-often    it changes after each 500 datagrams from the server
"""

import select
import socket
import sys
import time

kind, port, target = sys.argv[1], int(sys.argv[2]), (sys.argv[3], int(sys.argv[4]))


def connected() -> socket.socket:
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    end.connect(target)
    return end


near = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
near.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
near.bind(("127.0.0.1", port))
far = connected()
client, held, begun = None, [], None
from_client = from_server = 0
while True:
    ready, _, _ = select.select([near, far], [], [], 0.02 if held else None)
    if not ready and held:
        # Nothing else comes: what was held back goes on.
        for datagram in held:
            far.send(datagram)
        held = []
    if near in ready:
        datagram, client = near.recvfrom(65536)
        begun = begun or time.monotonic()
        from_client += 1
        last = {"reordered": 2, "late": 3}.get(kind, 0)
        if from_client == 1 and last:
            held.append(datagram)
            continue
        far.send(datagram)
        if kind == "twice" and time.monotonic() - begun < 0.05:
            far.send(datagram)
        if from_client == last and held:
            far.send(held.pop())
    if far in ready:
        try:
            datagram = far.recv(65536)
        except ConnectionError:
            continue
        from_server += 1
        near.sendto(datagram, client)
        if kind == "twice" and time.monotonic() - begun < 0.05:
            near.sendto(datagram, client)
        early = kind == "moved-early" and from_server == 1
        if early or (kind == "moved-often" and from_server % 500 == 0):
            far.close()
            far = connected()
