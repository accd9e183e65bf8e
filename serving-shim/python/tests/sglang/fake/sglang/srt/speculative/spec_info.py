import enum


class SpeculativeAlgorithm(enum.Enum):
    NONE = enum.auto()
    EAGLE = enum.auto()

    @classmethod
    def from_string(cls, name):
        return cls[name or "NONE"]

    def is_none(self):
        return self is SpeculativeAlgorithm.NONE
