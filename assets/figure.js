// Pictures of the figures: PNG and SVG, made here by the page's own plotly. Draws nothing itself.

const SCALE = 2;

/** Plotly's picture of the figure that `button` stands under, as a file. */
function download(button) {
  const figure = button.closest(".figure");
  const plot = figure?.querySelector(".js-plotly-plot");
  if (!plot || !window.Plotly) return;
  const { width, height } = plot.getBoundingClientRect();
  window.Plotly.downloadImage(plot, {
    format: button.dataset.picture, filename: button.dataset.name, width, height,
    scale: button.dataset.picture === "png" ? SCALE : 1,
  });
}

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-picture]");
  if (button) download(button);
});

/** Fits `plot` to its place. One that was hidden or replaced in the meantime is left to its next showing. */
function fit(plot) {
  if (!plot.isConnected) return seen.unobserve(plot);
  if (plot.clientWidth && plot.clientWidth !== plot._fullLayout?.width) window.Plotly?.Plots.resize(plot).catch(() => {});
}

// A figure that was drawn while its tab was hidden takes its width when it comes into view.
const seen = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (isIntersecting || !target.isConnected) fit(target);
  }
});
new MutationObserver((changes) => {
  for (const { addedNodes } of changes) {
    for (const node of addedNodes) {
      const plot = node.closest?.(".figure .js-plotly-plot");
      if (plot) seen.observe(plot);
    }
  }
}).observe(document.documentElement, { childList: true, subtree: true });
