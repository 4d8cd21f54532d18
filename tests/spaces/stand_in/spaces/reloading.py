"""The platform's hot reloading, which nobody asks for here."""


def start_reload_server(**_):
    """Nothing to watch."""
