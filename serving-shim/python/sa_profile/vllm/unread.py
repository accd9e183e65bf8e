"""When the newest data of a connection came. While the event loop is busy with others it reads nobody, and only the kernel knows.

The kernel counts the time since then in ticks of 1 to 10 ms, so it names the tick in which the data came. Data that came in this
very tick, or in the one that ended just now, most likely woke the event loop, and came now or when that tick ended. Otherwise the
loop was busy, and the middle of the tick is the best that can be said.
"""

import socket
import struct

from .ticks import Ticks

LAST_DATA_RECEIVED = 52  # offset of tcpi_last_data_recv in struct tcp_info of linux/tcp.h, part of the kernel's interface
LONGEST_NS = 600_000_000_000
JUST_NS = 1_000_000  # how long an idle event loop may take to look

_ticks = None


def arrival_ns(transport, now_ns):
    """When the newest data of the transport came, by the monotonic clock, and never after `now_ns`."""
    global _ticks
    unread_ms = _last_data_received_ms(transport)
    if unread_ms is None:
        return now_ns
    if _ticks is None:
        _ticks = Ticks()
    return placed(now_ns, _ticks.last_ns(), _ticks.length_ns, unread_ms * 1_000_000)


def placed(now_ns, tick_ns, length_ns, unread_ns):
    """The best guess, from when the last tick was and how long, in whole ticks, nobody has read."""
    if unread_ns > LONGEST_NS or length_ns <= 0 or not 0 <= now_ns - tick_ns <= 10 * length_ns:
        return now_ns
    ticks = round(unread_ns / length_ns)
    if ticks == 0:
        return now_ns
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
