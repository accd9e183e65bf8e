"""Hooks into the functions of an engine that nobody edited, whichever engine it is.

`imports` says when a module is there, `chain` puts an observer around a function, and `spans` has what most observers open. An engine's
own hooks stand in a package beside this one, and give `warnings` the engine's name. Nothing here knows any engine.
"""
