"""Attaches data to objects of an engine, and hooks for them, without changing the objects.

Up to Python 3.12, a further attribute of an object, or one access to its `__dict__`, makes Python use a slower lookup for all of its attributes and methods. An
engine looks them up for each request of a step.
"""

import weakref

from .chain import chain


class ObjectData(dict):
    """Data of other objects, by their `id`, as long as they are alive. The data must not refer to its object."""

    def set(self, instance, data):
        """Stores the data of an object and returns it. Raises `TypeError` for an object that does not support weak references, because another object could get its `id` later."""
        weakref.finalize(instance, self.pop, id(instance), None).atexit = False
        self[id(instance)] = data
        return data


def chain_class(instance, name, observe):
    """Wraps a method of the object's class, whatever class that is. The observer is also called for all other objects of the class, with the object as first argument.

    If the object has an attribute that replaces the method, that attribute is wrapped instead.
    """
    function = getattr(instance, name, None)
    if function is None or _is_of_class(instance, name, function):
        return chain(type(instance), name, observe)
    named = weakref.ref(instance)
    return chain(instance, name, lambda *args, **kwargs: observe(named(), *args, **kwargs))


def _is_of_class(instance, name, function):
    """Returns true if it is the class's method, bound to the object. The attribute may be another bound method."""
    method = getattr(function, "__func__", None)
    return method is not None and method is getattr(type(instance), name, None)
