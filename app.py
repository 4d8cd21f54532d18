"""What a Hugging Face Space and `gradio app.py` start: the page, with the default model loading behind it."""

from playground.settings import from_environment
from playground.ui.app import build, free_port, local_models, rules_of, serve_until_ended
from playground.ui.offer import multilingual

here = from_environment()
rules = rules_of(here.host)
models = local_models(here.model, here.device, here.dtype, here.offline, open_names=rules.open_names)
demo = build(models, offer=multilingual(here.offline), policy=rules)

if __name__ == "__main__":
    serve_until_ended(demo, here.host, here.port if here.on_space else free_port(here.host, here.port))
