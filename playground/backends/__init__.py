"""Where tokens come from, behind one protocol; and hosting runs that several readers follow.

Knows no page and no figures.
"""
