"""``python -m sa_profile`` prints what a process started here would record and which parts are installed. It writes no file."""

from . import _configuration, _installed_parts
from ._stderr import visible


def main() -> None:
    for title, rows in (
        ("variables", _configuration.variables()),
        ("recording", _configuration.recording()),
        ("parts", _installed_parts.parts()),
    ):
        print(title)
        for name, value in rows:
            print(f"  {name:<20} {visible(value)}")


if __name__ == "__main__":
    main()
