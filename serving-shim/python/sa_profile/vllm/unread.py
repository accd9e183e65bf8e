"""When the newest data of a connection came. While the event loop is busy with others it reads nobody, and only the kernel knows.

The kernel counts the time since then in ticks of 1 to 10 ms. Where it is known when it ticks, that names the tick in which the data
came. Data that came in this very tick, or in the one that ended just now, most likely woke the event loop, and are taken to have
come now or when that tick ended, which is up to a tick late if it was busy. Of an earlier tick the middle is the best guess.
"""

import socket
import struct

from .ticks import TICKS

LAST_DATA_RECEIVED = 52  # offset of tcpi_last_data_recv in struct tcp_info of linux/tcp.h, part of the kernel's interface
LONGEST_NS = 600_000_000_000
JUST_NS = 1_000_000  # how long an idle event loop may take to look


def arrival_ns(transport, now_ns):
    """When the newest data of the transport came, by the monotonic clock, and never after `now_ns`."""
    since = TICKS.glance()
    unread_ms = _last_data_received_ms(transport)
    if unread_ms is None:
        return now_ns
    found = placed(now_ns, TICKS.last_ns(now_ns), TICKS.length_ns, unread_ms * 1_000_000)
    TICKS.worked(since)
    return found


def placed(now_ns, tick_ns, length_ns, unread_ns):
    """The best guess, from when the last tick was, if that is known, and how long, in whole ticks, nobody has read."""
    if unread_ns > LONGEST_NS or length_ns <= 0:
        return now_ns
    ticks = round(unread_ns / length_ns)
    if ticks == 0:
        return now_ns
    if tick_ns is None:
        return now_ns - ticks * length_ns if ticks > 1 else now_ns  # one may mean that no time has passed, and mostly does
    ended_ns = tick_ns - (ticks - 1) * length_ns
    return ended_ns if now_ns - ended_ns <= JUST_NS else ended_ns - length_ns // 2


def _last_data_received_ms(transport):
    """What TCP_INFO says, in whole ticks; `None` if the connection does not tell."""
    theirs = transport.get_extra_info("socket") if transport is not None else None
    if theirs is None or theirs.family not in (socket.AF_INET, socket.AF_INET6):
        return None
    ours = socket.socket(theirs.family, socket.SOCK_STREAM, 0, fileno=theirs.fileno())  # uvloop's has no getsockopt
    try:
        info = ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, LAST_DATA_RECEIVED + 4)
    except OSError:
        return None
    finally:
        ours.detach()  # the descriptor is the server's
    if len(info) < LAST_DATA_RECEIVED + 4:
        return None
    return struct.unpack_from("=I", info, LAST_DATA_RECEIVED)[0]
