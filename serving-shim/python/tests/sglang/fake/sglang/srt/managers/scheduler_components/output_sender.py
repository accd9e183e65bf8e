from sglang.srt.managers.io_struct import sock_send


class SenderWrapper:
    """Sends through a socket. Ranks above 0 have none, and send nothing."""

    def __init__(self, socket):
        self.socket = socket

    def send_output(self, output, recv_obj=None):
        if self.socket is not None:
            sock_send(self.socket, output)
