"""``python -m sa_profile``: what a process started here would record, and which parts there are. Makes no file."""

from . import configured, parts
from .words import visible


def main() -> None:
    for title, rows in (
        ("variables", configured.variables()),
        ("recording", configured.recording()),
        ("parts", parts.parts()),
    ):
        print(title)
        for name, value in rows:
            print(f"  {name:<20} {visible(value)}")


if __name__ == "__main__":
    main()
