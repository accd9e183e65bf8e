"""Hooks into the functions of an engine that nobody edited, whichever engine it is.

`imports` says when a module is there, and `chain` puts an observer around a function. An engine's own hooks stand in a package beside this
one, and give `warnings` the engine's name. Nothing here knows any engine.
"""
