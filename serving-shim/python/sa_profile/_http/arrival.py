"""When the newest data of a connection came. While the event loop is busy with others it reads nobody, and only the kernel knows.

The kernel counts the time since then in ticks of 1 to 10 ms. Where it is known when it ticks, that names the tick in which the data
came. Of that tick, the part counts in which the event loop's thread may have been awake, and which is not before the end of the
connection's last answer; the middle of it is the best guess.
"""

import socket
import struct
import time
from typing import NamedTuple

from .awake import AWAKE
from .ticks import TICKS

LAST_DATA_RECEIVED = 52  # offset of tcpi_last_data_recv in struct tcp_info of linux/tcp.h, part of the kernel's interface
LONGEST_NS = 600_000_000_000
JUST_NS = 1_000_000  # how long a thread that is woken may take to run
TRIES = 3  # to ask the kernel between two ticks


class Arrival(NamedTuple):
    """When data came, by the monotonic clock, and how far off that may be."""

    ns: int
    uncertainty_ns: int


def arrival(transport, now_ns, answered_ns=0):
    """When the newest data of the transport came: never after `now_ns`, and most likely after the last answer."""
    since = TICKS.glance()
    awake_ns = AWAKE.most_ns()
    theirs = _tcp_socket(transport)
    if theirs is None:
        return Arrival(now_ns, 0)
    coarse_ns, asked_ns, unread_ms = _within_a_tick(lambda: _last_data_received_ms(theirs))
    if unread_ms is None:
        return Arrival(now_ns, 0)
    # Since now the thread may have waited for a core, and there may have been ticks.
    tick_ns = TICKS.last_ns(coarse_ns, asked_ns)
    TICKS.was_newest(coarse_ns, asked_ns)
    found = placed(now_ns, tick_ns, TICKS.length_ns, unread_ms * 1_000_000, awake_ns, answered_ns, TICKS.late_ns(), TICKS.lag_ns())
    TICKS.worked(since)
    return found


def _within_a_tick(ask):
    """A glance, when the kernel was asked, and its answer, which counts from the tick of the glance: one that comes meanwhile has it asked again."""
    for _ in range(TRIES):
        coarse_ns = TICKS.glance()
        asked_ns, answer = time.monotonic_ns(), ask()
        if TICKS.glance() == coarse_ns:
            break
    return coarse_ns, asked_ns, answer


def placed(now_ns, tick_ns, length_ns, unread_ns, awake_ns, answered_ns=0, late_ns=0, lag_ns=0):
    """The best guess, from when the last tick was, if that is known, how long, in whole ticks, nobody has read, for how long at most
    the reader was awake, when the connection's last answer was sent, and how late ticks may be and are in the mean."""
    if unread_ns > LONGEST_NS or length_ns <= 0:
        return Arrival(now_ns, 0)
    ticks = round(unread_ns / length_ns)
    if tick_ns is None:
        # One tick may mean that no time has passed, and mostly does.
        return Arrival(now_ns - ticks * length_ns if ticks > 1 else now_ns, length_ns)
    began_ns = tick_ns - ticks * length_ns
    ended_ns = min(began_ns + length_ns, now_ns)
    woke_ns = now_ns - awake_ns
    if woke_ns <= ended_ns + JUST_NS:  # else it slept beside unread data, in a wait for a lock: that says nothing
        began_ns = max(began_ns, min(woke_ns, ended_ns))
    if answered_ns <= ended_ns:  # else the client has not waited for it
        began_ns = max(began_ns, answered_ns)
    # While the next tick is late, what comes counts for the one before. What came since the last one may have come just now.
    latest_ns = now_ns if ticks == 0 else min(ended_ns + late_ns, now_ns)
    best_ns = min((began_ns + ended_ns) // 2 + lag_ns, latest_ns)
    return Arrival(best_ns, max(latest_ns - best_ns, best_ns - began_ns))


def _tcp_socket(transport):
    """The transport's; `None` if it has another one, or none."""
    theirs = transport.get_extra_info("socket") if transport is not None else None
    return theirs if theirs is not None and theirs.family in (socket.AF_INET, socket.AF_INET6) else None


def _last_data_received_ms(theirs):
    """What TCP_INFO says, in whole ticks; `None` if the connection does not tell."""
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
