"""Hooks into the functions of an unmodified engine.

`imports` calls a function when a module has been imported, and `chain` adds an observer to a function. The hooks of one engine are in another package next to this
one, which passes the engine's name to `warnings`. Nothing here depends on a particular engine.
"""
