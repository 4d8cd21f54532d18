"""What became of old keys and values when they were computed anew, as markup; all that comes in is escaped."""

from markupsafe import Markup

from playground.core.experiment import KvRecheck
from playground.views.cards import emphasised
from playground.views.figures.numbers import small_text
from playground.views.measuring import Text


def recheck_line(found: KvRecheck, text: Text) -> Markup:
    """The finding with the largest difference, the positions and the layers, and every layer's difference."""
    said = text[found.sentence].format(
        differ=small_text(found.largest_difference), largest=small_text(found.largest_value),
        positions=f"{found.positions:,}", layers=f"{found.layers:,}",
    )  # fmt: skip
    rows = Markup("").join(
        Markup('<tr><th scope="row">{}</th><td>{}</td></tr>').format(layer, small_text(difference))
        for layer, difference in enumerate(found.differences)
    )
    return Markup(
        '<p class="recheck-finding" data-differ="{}">{}</p><details class="recheck-layers"><summary>{}</summary>'
        '<table><thead><tr><th scope="col">{}</th><th scope="col">{}</th></tr></thead><tbody>{}</tbody></table>'
        "</details>"
    ).format(
        found.largest_difference, emphasised(said), text["recheck_layers"], text["recheck_layer"],
        text["recheck_differ"], rows,
    )  # fmt: skip
