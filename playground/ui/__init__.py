"""The page: the only place that knows gradio. Layout and wiring of a tab live together in one file.

Knows no torch and builds no figure; it asks a backend for events and hands them to the browser.
"""
