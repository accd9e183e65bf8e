class WorkerProc:
    def __init__(self):
        self.sent = []

    def enqueue_output(self, output):
        self.sent.append(output)
