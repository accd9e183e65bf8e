class EngineArgs:
    def create_engine_config(self, usage_context=None, headless=False):
        return "headless" if headless else "config"
