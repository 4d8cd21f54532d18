"""What every exception that is meant for a person derives from. Knows no particular refusal."""

from typing import ClassVar


class Refused(Exception):
    """A wish that cannot be met; the message is one sentence: what is wrong, what was kept, what to do.

    `wrong_use` tells a wish that cannot be met as it was put from one that failed here and now.
    """

    wrong_use: ClassVar[bool] = False
