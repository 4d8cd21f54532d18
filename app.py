"""What a Hugging Face Space and `gradio app.py` start: the page, with the default model loading behind it."""

from playground.settings import from_environment
from playground.ui.app import build, launch, local_models
from playground.ui.offer import multilingual

here = from_environment()
models = local_models(here.model, here.device, here.dtype, here.offline, open_names=not here.on_space)
demo = build(models, offer=multilingual(here.offline))

if __name__ == "__main__":
    launch(demo, here.host, here.port if here.on_space else None)
