class StatLoggerManager:
    def record(self, scheduler_stats, iteration_stats=None):
        return None
