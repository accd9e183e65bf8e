from importlib.metadata import entry_points

GENERAL_PLUGINS_GROUP = "sglang.srt.plugins"
_plugins_loaded = False


def load_plugins():
    global _plugins_loaded
    if not _plugins_loaded:
        _plugins_loaded = True
        for plugin in entry_points(group=GENERAL_PLUGINS_GROUP):
            plugin.load()()
