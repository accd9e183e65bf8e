"""Records calls of functions as spans: `decorators` provides ``@track``, `wrappers` wraps the functions, and `function_spans` creates the spans of one function.

Apart from `decorators`, nothing here imports a standard module, so that it works in every program: a file of the program may have the same name as a standard module.
"""
