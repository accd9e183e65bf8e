"""What is known of objects that somebody else made, kept outside of them.

Up to Python 3.12, an attribute more of an object, or one look into its `__dict__`, makes Python look all of its attributes and methods up in a slower way: an
engine does that for each request of a step.
"""

import weakref

from .chain import chain


class Known(dict):
    """What is known of each of these objects, by `id`, as long as it lives. What is kept must not hold the object."""

    def keep(self, instance, found):
        """Keeps it, and returns it. Raises `TypeError` for an object that has no weak references: another one may have its `id` later."""
        weakref.finalize(instance, self.pop, id(instance), None).atexit = False
        self[id(instance)] = found
        return found


def chain_class(instance, name, observe):
    """Puts an observer around a method of the object's class, whatever class that is; it is called with the object, as with all others of the class.

    Where the object has an attribute of its own in the place of the method, that one is wrapped.
    """
    function = getattr(instance, name, None)
    if function is None or _is_of_class(instance, name, function):
        return chain(type(instance), name, observe)
    named = weakref.ref(instance)
    return chain(instance, name, lambda *args, **kwargs: observe(named(), *args, **kwargs))


def _is_of_class(instance, name, function):
    """Whether it is the class's method, bound to the object: somebody may have bound another one."""
    method = getattr(function, "__func__", None)
    return method is not None and method is getattr(type(instance), name, None)
