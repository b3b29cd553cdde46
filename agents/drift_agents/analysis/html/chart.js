const read = id => JSON.parse(document.getElementById(id).textContent);
const scheme = matchMedia('(prefers-color-scheme: dark)'), dark = scheme.matches;
scheme.addEventListener('change', () => location.reload()); // the figure is drawn in the colours of one scheme
const ink = dark ? '#e8ebee' : '#1b1f24';
const config = {
  font: 'system-ui, "DejaVu Sans", sans-serif', view: { stroke: null }, text: { color: ink, fontSize: 12 },
  axis: {
    labelColor: ink, titleColor: ink, labelFontSize: 12, titleFontSize: 12, titleFontWeight: 'normal',
    gridColor: dark ? '#333b44' : '#dde2e7',
  },
  legend: { labelColor: ink, labelFontSize: 12 },
};
// `ast` evaluates expressions without `eval`; styles of the libraries would be inline. The page's policy forbids both.
const options = { actions: false, ast: true, renderer: 'svg', defaultStyle: false, tooltip: { disableDefaultStyle: true } };
